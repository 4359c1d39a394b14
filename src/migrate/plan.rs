//! Which tables go where, and what becomes of their row keys.

use std::time::Duration;

use basalt_rewrite::HourFold;
use basalt_schema::{KeyLayout, Rollups, SchemaConfig};
use basalt_store::{ErrorKind, Fold as _, TableName, with_causes};

use super::job::{End, Job, at};
use crate::exit::Failure;

/// How long a copy and its comparison may take in which cells expire.
const LASTING_MAX: Duration = Duration::from_hours(48);

/// A table of the source and where it goes.
#[derive(Debug)]
pub(super) struct TablePair {
    pub(super) from: TableName,
    pub(super) to: TableName,
    /// Rows hold points that a store may fold.
    pub(super) is_folded: bool,
    /// Its rows are those of names.
    pub(super) is_names: bool,
    keys: Option<(KeyLayout, KeyLayout)>,
}

impl TablePair {
    /// A row's key in the target; `None` for a key that is none of the source's settings.
    pub(super) fn key(&self, key: &[u8]) -> Option<Vec<u8>> {
        let Some((from, to)) = &self.keys else { return Some(key.to_vec()) };
        let decoded = from.decode(key).ok()?;
        Some(if decoded.is_global_annotations() {
            to.global_annotations_key(decoded.base())
        } else {
            to.series_key(&decoded.tsuid()).row_key(decoded.base())
        })
    }

    /// The part of a source's key that the target's has too.
    pub(super) fn shared_of_source<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let salt = self.keys.map_or(0, |(from, _)| from.salting.width());
        key.get(salt..).unwrap_or_default()
    }

    /// The same of a target's key; `None` where its salt is not the one that its series has.
    pub(super) fn shared_of_target<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let Some((from, to)) = self.keys else { return Some(key) };
        let back = Self { keys: Some((to, from)), from: self.to.clone(), to: self.from.clone(), ..*self };
        let again = back.key(key).and_then(|source| self.key(&source));
        (again.as_deref() == Some(key)).then(|| key.get(to.salting.width()..).unwrap_or_default())
    }
}

/// The tables that the source has, names first and points last.
///
/// # Errors
///
/// Exit code 3: UIDs of other widths, rollups on one end only, or a table of the source with other settings than told.
pub(super) fn pairs(job: &Job) -> Result<Vec<TablePair>, Failure> {
    let (from, to) = (&job.source.schema, &job.target.schema);
    if from.widths != to.widths {
        return Err(Failure::config(
            "the ends have UIDs of different widths, which no copy can bring together: set `schema.uid_width_…` alike",
        ));
    }
    let layout = |config: &SchemaConfig| KeyLayout { salting: config.salting, widths: config.widths };
    let keys = (layout(from) != layout(to)).then(|| (layout(from), layout(to)));
    let name = |text: &str| -> Result<TableName, Failure> {
        text.parse().map_err(|cause: basalt_store::Error| Failure::config(with_causes(&cause)))
    };
    let mut pairs = Vec::new();
    for (is_names, source, target) in [
        (true, &from.uid_table, &to.uid_table),
        (false, &from.meta_table, &to.meta_table),
        (false, &from.tree_table, &to.tree_table),
    ] {
        pairs.push(TablePair { from: name(source)?, to: name(target)?, is_folded: false, is_names, keys: None });
    }
    let data =
        TablePair { from: name(&from.data_table)?, to: name(&to.data_table)?, is_folded: true, is_names: false, keys };
    for (source, target) in rollups(from).into_iter().zip(rollups_of(to, from)?) {
        if source != data.from && !pairs.iter().any(|pair: &TablePair| pair.from == source) {
            pairs.push(TablePair { from: source, to: target, is_folded: false, is_names: false, keys });
        }
    }
    pairs.push(data);
    let mut found = Vec::new();
    for pair in pairs {
        match job.source.store.describe_table(&pair.from) {
            Ok(table) => {
                check_recorded(&job.source, &table)?;
                found.push(pair);
            }
            // Points are worth nothing without their names.
            Err(cause) if cause.kind() == ErrorKind::NotFound && !pair.is_folded && !pair.is_names => {}
            Err(cause) => return Err(at(&job.source, &cause)),
        }
    }
    Ok(found)
}

fn rollups(config: &SchemaConfig) -> Vec<TableName> {
    let rollups = config.rollups.iter().flat_map(Rollups::iter);
    rollups.flat_map(|rollup| [rollup.table().clone(), rollup.preaggregate_table().clone()]).collect()
}

fn rollups_of(target: &SchemaConfig, source: &SchemaConfig) -> Result<Vec<TableName>, Failure> {
    let names = |config: &SchemaConfig| -> Vec<String> {
        config.rollups.iter().flat_map(Rollups::iter).map(|rollup| rollup.name().to_owned()).collect()
    };
    if names(target) == names(source) {
        return Ok(rollups(target));
    }
    Err(Failure::config("the ends have rollups of different intervals: set `rollups.config` alike"))
}

/// Tables that record the settings they were made with must have been made with those told here.
fn check_recorded(end: &End, table: &basalt_store::TableDescriptor) -> Result<(), Failure> {
    let (salting, widths) = (end.schema.salting, end.schema.widths);
    for (setting, told) in [
        ("salt.width", salting.width().to_string()),
        ("salt.buckets", salting.buckets().to_string()),
        ("uid.width.metric", widths.metric.bytes().to_string()),
        ("uid.width.tagk", widths.tagk.bytes().to_string()),
        ("uid.width.tagv", widths.tagv.bytes().to_string()),
    ] {
        let recorded = table.attributes.get(&format!("basalt.{setting}"));
        if let Some(recorded) = recorded.filter(|recorded| **recorded != told) {
            return Err(Failure::config(format!(
                "table {} of {} was made with {setting} = {recorded}, and the settings say {told}: name its configuration",
                table.name, end.name
            )));
        }
    }
    Ok(())
}

/// The earliest time of cells that are compared, in milliseconds; 0 where none expire. A store takes cells away when their
/// TTL is over, so those that have less than [`LASTING_MAX`] to go, or a quarter of their TTL, may be gone from one end when
/// it is read and not from the other.
///
/// # Errors
///
/// What a store says.
pub(super) fn lasting_from(job: &Job, pair: &TablePair) -> Result<u64, Failure> {
    let mut ttls = Vec::new();
    for (end, table) in [(&job.source, &pair.from), (&job.target, &pair.to)] {
        let table = end.store.describe_table(table).map_err(|cause| at(end, &cause))?;
        ttls.extend(table.families.iter().filter_map(|family| family.ttl_seconds));
    }
    let Some(ttl) = ttls.into_iter().min() else { return Ok(0) };
    let age = ttl - LASTING_MAX.as_secs().min(ttl / 4);
    Ok(job.now.0.saturating_sub(age.saturating_mul(1000)))
}

/// Gives a table of the target what the source's says of versions and of how long cells live, and, where it says so at all, which of
/// two values at one instant wins: cells keep their times.
///
/// # Errors
///
/// What a store says.
pub(super) fn take_over_settings(job: &Job, pair: &TablePair) -> Result<(), Failure> {
    let told = job.source.store.describe_table(&pair.from).map_err(|cause| at(&job.source, &cause))?;
    let mut table = job.target.store.describe_table(&pair.to).map_err(|cause| at(&job.target, &cause))?;
    let before = table.clone();
    for family in &mut table.families {
        if let Some(fold) = family.fold.as_mut().filter(|_| pair.is_folded) {
            *fold = HourFold::new(job.source.schema.data_times).name().into();
        }
        if let Some((_, told)) = told.family(&family.name) {
            family.versions = told.versions;
            family.min_versions = told.min_versions;
            family.ttl_seconds = told.ttl_seconds;
            family.keep_deleted = told.keep_deleted;
        }
    }
    if table == before {
        return Ok(());
    }
    job.target.store.alter_table(table).map_err(|cause| at(&job.target, &cause))
}
