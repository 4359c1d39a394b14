//! The contract's requests in HBase's messages.

use std::collections::{BTreeMap, BTreeSet};

use basalt_store::{Columns, Comparison, Durability, Error, Get, Result, Scan, TimeRange};
use bytes::Bytes;

use crate::filter::filter;
use crate::options::HBaseOptions;
use crate::pb::client::{Column, Get as GetMessage, Scan as ScanMessage, TimeRange as TimeRangeMessage};
use crate::pb::rpc::NameBytesPair;

/// The attribute by which a scan asks for tombstones too, and its value: Java's `true`.
const RAW: (&str, &[u8]) = ("_raw_", &[0xff]);
/// HBase's own bound of an answer's size, beside which a larger one is a server's to refuse.
const BATCH_BYTES_MAX: u64 = 100 << 20;
/// Bytes of a scan's answer that are asked for at least, as HBase's own client does: each costs a round trip, and of cells
/// that name their row each anew a batch is a small part.
const ANSWER_BYTES_MIN: u64 = 2 << 20;

/// HBase's level. `Async` is `SYNC_WAL` too: what is logged later makes it durable on the same server alone, and the
/// contract promises it of every change before.
pub(crate) fn durability(durability: Durability, options: &HBaseOptions) -> i32 {
    const SKIP_WAL: i32 = 1;
    const SYNC_WAL: i32 = 3;
    const FSYNC_WAL: i32 = 4;
    match durability {
        Durability::Skip => SKIP_WAL,
        Durability::Fsync if options.fsync_wal => FSYNC_WAL,
        Durability::Async | Durability::Os | Durability::Fsync => SYNC_WAL,
    }
}

/// HBase's number of a comparison, `stored <comparison> expected`, as its filters have it.
pub(crate) fn comparison(comparison: Comparison) -> i32 {
    match comparison {
        Comparison::Less => 0,
        Comparison::LessOrEqual => 1,
        Comparison::Equal => 2,
        Comparison::NotEqual => 3,
        Comparison::GreaterOrEqual => 4,
        Comparison::Greater => 5,
    }
}

/// The same turned round, as HBase's conditions hold the expected value against the stored one.
pub(crate) fn turned(asked: Comparison) -> i32 {
    comparison(match asked {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Greater => Comparison::Less,
        same => same,
    })
}

/// Families once each, with all that was asked of them, sorted; one asked for whole is whole.
fn columns(columns: &Columns) -> Vec<Column> {
    let mut families = BTreeMap::<&Bytes, Option<BTreeSet<&Bytes>>>::new();
    for one in &columns.0 {
        let wanted = families.entry(&one.family).or_insert_with(|| Some(BTreeSet::new()));
        match wanted {
            Some(_) if one.qualifiers.is_empty() => *wanted = None,
            Some(wanted) => wanted.extend(&one.qualifiers),
            None => {}
        }
    }
    let message = |(family, wanted): (&Bytes, Option<BTreeSet<&Bytes>>)| Column {
        family: family.clone(),
        qualifier: wanted.unwrap_or_default().into_iter().cloned().collect(),
    };
    families.into_iter().map(message).collect()
}

fn time_range(range: TimeRange) -> TimeRangeMessage {
    let signed = |time: u64| time.min(i64::MAX.unsigned_abs());
    TimeRangeMessage { from: Some(signed(range.min.0)), to: Some(signed(range.max.0)) }
}

fn versions(versions: u32) -> Result<u32> {
    if versions == 0 {
        return Err(Error::InvalidArgument { what: "versions", reason: "at least 1 is needed".into() });
    }
    Ok(versions.min(i32::MAX.unsigned_abs()))
}

/// A get of one of its rows.
///
/// # Errors
/// `Invalid`
pub(crate) fn get(get: &Get, row: &Bytes) -> Result<GetMessage> {
    Ok(GetMessage {
        row: row.clone(),
        column: columns(&get.columns),
        filter: get.filter.as_ref().map(filter).transpose()?,
        time_range: Some(time_range(get.time_range)),
        max_versions: Some(versions(get.versions)?),
    })
}

/// A scan, but for where it begins.
///
/// # Errors
/// `Invalid`
pub(crate) fn scan(scan: &Scan) -> Result<ScanMessage> {
    if scan.batch_cells.is_some() && scan.filter.as_ref().is_some_and(basalt_store::Filter::judges_whole_rows) {
        let reason = "rows in pieces cannot be judged by a filter of whole rows".into();
        return Err(Error::InvalidArgument { what: "filter", reason });
    }
    let raw = NameBytesPair { name: RAW.0.to_owned(), value: Some(Bytes::from_static(RAW.1)) };
    Ok(ScanMessage {
        column: columns(&scan.columns),
        attribute: scan.raw.then_some(raw).into_iter().collect(),
        start_row: None,
        stop_row: Some(scan.stop.clone()),
        filter: scan.filter.as_ref().map(filter).transpose()?,
        time_range: Some(time_range(scan.time_range)),
        max_versions: Some(versions(scan.versions)?),
        cache_blocks: Some(scan.cache_blocks),
        batch_size: scan.batch_cells.filter(|&cells| cells > 0).map(|cells| cells.min(i32::MAX.unsigned_abs())),
        max_result_size: Some((scan.batch_bytes as u64).clamp(ANSWER_BYTES_MIN, BATCH_BYTES_MAX)),
        // HBase's late loading of families goes astray in reversed scans.
        load_column_families_on_demand: scan.reversed.then_some(false),
        reversed: Some(scan.reversed),
        caching: Some(i32::MAX.unsigned_abs()),
        include_start_row: Some(scan.start_inclusive),
        include_stop_row: Some(scan.stop_inclusive),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_store::FamilyColumns;

    #[test]
    fn a_family_asked_for_twice_is_asked_for_once_with_all_of_it() {
        let asked = |family: &'static str, qualifiers: &[&'static str]| FamilyColumns {
            family: family.into(),
            qualifiers: qualifiers.iter().map(|&name| Bytes::from(name)).collect(),
        };
        let told = columns(&Columns(vec![asked("g", &["b"]), asked("f", &["x"]), asked("g", &["a"]), asked("f", &[])]));
        let told: Vec<_> = told.iter().map(|column| (&column.family[..], column.qualifier.len())).collect();
        assert_eq!(told, [(&b"f"[..], 0), (&b"g"[..], 2)]);
    }

    #[test]
    fn what_steps_on_each_other_is_synced() {
        let mut options = HBaseOptions::of_masters([]);
        let levels = [Durability::Skip, Durability::Async, Durability::Os, Durability::Fsync];
        assert_eq!(levels.map(|level| durability(level, &options)), [1, 3, 3, 3]);
        options.fsync_wal = true;
        assert_eq!(levels.map(|level| durability(level, &options)), [1, 3, 3, 4]);
    }

    #[test]
    fn no_versions_are_refused_and_all_are_what_java_can_count() {
        assert!(versions(0).is_err());
        assert_eq!(versions(u32::MAX).unwrap(), i32::MAX.unsigned_abs());
    }

    #[test]
    fn every_time_is_hbases_every_time() {
        let TimeRangeMessage { from, to } = time_range(TimeRange::ALL);
        assert_eq!((from, to), (Some(0), Some(i64::MAX.unsigned_abs())));
    }
}
