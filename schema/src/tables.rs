//! The four tables: their families, their splits, and what is recorded in them of the settings that must not change.

use basalt_store::{ErrorKind, FamilyDescriptor, SplitPolicy, Store, TableDescriptor, TableName};
use bytes::Bytes;

use crate::{Error, KeyLayout, Result, Rollups, Salting, SchemaConfig, UidWidth};

/// Family of points, annotations and histograms in the data table, and of everything in the tree table.
pub const DATA_FAMILY: &[u8] = b"t";
/// Family of the forward map and the counters in the UID table.
pub(crate) const UID_ID_FAMILY: &[u8] = b"id";
/// Family of the reverse map in the UID table; also the meta table's one family.
pub const UID_NAME_FAMILY: &[u8] = b"name";

/// The names of the four tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Points.
    pub data: TableName,
    /// UIDs.
    pub uid: TableName,
    /// Trees.
    pub tree: TableName,
    /// Meta data of series.
    pub meta: TableName,
}

/// A setting that the tables were made with, as it is kept in their attributes.
#[derive(Clone)]
struct Fixed {
    setting: &'static str,
    value: String,
}

/// A table as it is made where it is absent.
struct Planned {
    table: TableDescriptor,
    splits: Vec<Bytes>,
    fixed: Vec<Fixed>,
}

impl Planned {
    /// Checks that the table that is there has the families, and was made with the settings: without a family, each put of it
    /// and each read would fail later.
    fn check(&self, found: &TableDescriptor) -> Result<()> {
        for family in &self.table.families {
            if found.family(&family.name).is_none() {
                let (table, family) = (found.name.to_string().into(), String::from_utf8_lossy(&family.name).into());
                return Err(Error::NoFamily { table, family });
            }
        }
        check_fixed(found, &self.fixed)
    }
}

impl Tables {
    /// The names of a configuration.
    pub(crate) fn named(config: &SchemaConfig) -> Result<Self> {
        Ok(Self {
            data: config.data_table.parse()?,
            uid: config.uid_table.parse()?,
            tree: config.tree_table.parse()?,
            meta: config.meta_table.parse()?,
        })
    }

    /// Makes the tables that are absent and checks the families of the others and the settings that they record. Tables that
    /// record none, such as those that OpenTSDB made, are taken as the configuration says.
    pub(crate) fn open(&self, store: &dyn Store, config: &SchemaConfig) -> Result<()> {
        self.check_names(store, config)?;
        self.planned(config).iter().try_for_each(|planned| open_table(store, planned))
    }

    /// As [`Tables::open`] for one who only reads or mends: a table that is absent is an error, but for those of trees and meta
    /// data, which not every OpenTSDB has.
    pub(crate) fn find(&self, store: &dyn Store, config: &SchemaConfig) -> Result<()> {
        self.check_names(store, config)?;
        for planned in self.planned(config) {
            found(store, &planned.table.name)?.map_or(Ok(()), |found| planned.check(&found))?;
        }
        let needed = [&self.data, &self.uid].into_iter().chain(rollup_tables(config));
        for table in needed {
            if found(store, table)?.is_none() {
                return Err(Error::NoTable { table: table.to_string().into() });
            }
        }
        Ok(())
    }

    /// Checks the settings that the tables record, of those that are there.
    pub(crate) fn check_fixed(&self, store: &dyn Store, config: &SchemaConfig) -> Result<()> {
        for Planned { table, fixed, .. } in self.planned(config) {
            found(store, &table.name)?.map_or(Ok(()), |found| check_fixed(&found, &fixed))?;
        }
        Ok(())
    }

    /// As [`crate::Schema::take_recorded`]. What is recorded and cannot be is left to the check, which names it.
    pub(crate) fn take_recorded(
        &self,
        store: &dyn Store,
        config: &mut SchemaConfig,
        is_set: impl Fn(&str) -> bool,
    ) -> Result<()> {
        for name in [&self.uid, &self.data] {
            let Some(table) = found(store, name)? else { continue };
            let recorded = |setting: &str| {
                let value = table.attributes.get(&attribute(setting)).filter(|_| !is_set(setting));
                value.and_then(|value| value.parse::<u32>().ok())
            };
            let bytes = |setting: &str| recorded(setting).and_then(|bytes| u8::try_from(bytes).ok());
            let widths = &mut config.widths;
            for (setting, width) in [
                ("uid.width.metric", &mut widths.metric),
                ("uid.width.tagk", &mut widths.tagk),
                ("uid.width.tagv", &mut widths.tagv),
            ] {
                *width = bytes(setting).and_then(|bytes| UidWidth::new(bytes).ok()).unwrap_or(*width);
            }
            if let Some(buckets) = recorded("salt.buckets") {
                let width = bytes("salt.width").or_else(|| u8::try_from(config.salting.width()).ok());
                let salting = width.and_then(|width| Salting::new(width, buckets).ok());
                config.salting = salting.unwrap_or(config.salting);
            }
        }
        Ok(())
    }

    /// As [`crate::Schema::keep_fold`].
    pub(crate) fn keep_fold(&self, store: &dyn Store, config: &SchemaConfig) -> Result<Option<Box<str>>> {
        let (Some(served), Some(mut table)) = (&config.fold, found(store, &self.data)?) else { return Ok(None) };
        let mut before = None;
        for fold in table.families.iter_mut().filter_map(|family| family.fold.as_mut()).filter(|fold| *fold != served) {
            before = Some(std::mem::replace(fold, served.clone()));
        }
        if before.is_some() {
            store.alter_table(table)?;
        }
        Ok(before)
    }

    /// Refuses tables of points without the one of their names: UIDs would begin anew, and mean other names than those that the
    /// points were written under. Who makes tables meanwhile makes that of names first, so it is looked for last.
    fn check_names(&self, store: &dyn Store, config: &SchemaConfig) -> Result<()> {
        for table in std::iter::once(&self.data).chain(rollup_tables(config)) {
            if found(store, table)?.is_some() {
                return match found(store, &self.uid)? {
                    Some(_) => Ok(()),
                    None => Err(Error::NoUidTable { uid: self.uid.to_string().into(), data: table.to_string().into() }),
                };
            }
        }
        Ok(())
    }

    /// All tables, in the order in which they are made: that of names first, so that a start that is killed leaves no points' table
    /// without it, and those of points last.
    fn planned(&self, config: &SchemaConfig) -> Vec<Planned> {
        let widths = fixed_widths(config);
        let family = |name| vec![FamilyDescriptor::new(name)];
        let plain = |name: &TableName, families, fixed: &[Fixed]| Planned {
            table: TableDescriptor::new(name.clone(), families),
            splits: Vec::new(),
            fixed: fixed.to_vec(),
        };
        let uid_families = vec![FamilyDescriptor::new(UID_ID_FAMILY), FamilyDescriptor::new(UID_NAME_FAMILY)];
        let mut planned = vec![
            plain(&self.uid, uid_families, &widths),
            plain(&self.tree, family(DATA_FAMILY), &[]),
            plain(&self.meta, family(UID_NAME_FAMILY), &widths),
        ];
        let mut points = FamilyDescriptor::new(DATA_FAMILY);
        points.fold.clone_from(&config.fold);
        points.block_encoding.clone_from(&config.block_encoding);
        points.block_bytes = config.block_bytes;
        let mut data = TableDescriptor::new(self.data.clone(), vec![points]);
        if config.salting.width() > 0 {
            // Its regions are the buckets, and grow alike: none of them is split for its size.
            data = data.with_attribute("SPLIT_POLICY", SplitPolicy::DISABLED);
        }
        let fixed: Vec<Fixed> = fixed_salt(config).into_iter().chain(widths).collect();
        let of_points = |table| Planned { table, splits: splits(config), fixed: fixed.clone() };
        planned.push(of_points(data));
        for name in rollup_tables(config).filter(|name| **name != self.data) {
            planned.push(of_points(TableDescriptor::new(name.clone(), family(DATA_FAMILY))));
        }
        planned
    }
}

/// Every table of rollups and pre-aggregates; that of the points may be among them.
pub(crate) fn rollup_tables(config: &SchemaConfig) -> impl Iterator<Item = &TableName> {
    let rollups = config.rollups.iter().flat_map(Rollups::iter);
    rollups.flat_map(|rollup| [rollup.table(), rollup.preaggregate_table()])
}

/// One region a bucket: writes to different buckets share no lock, and a query scans them in parallel.
fn splits(config: &SchemaConfig) -> Vec<Bytes> {
    let layout = KeyLayout { salting: config.salting, widths: config.widths };
    layout.salts().skip(1).map(|salt| Bytes::copy_from_slice(&config.salting.encode(salt))).collect()
}

fn fixed_widths(config: &SchemaConfig) -> Vec<Fixed> {
    let widths = config.widths;
    let fixed = |setting, width: UidWidth| Fixed { setting, value: width.bytes().to_string() };
    vec![
        fixed("uid.width.metric", widths.metric),
        fixed("uid.width.tagk", widths.tagk),
        fixed("uid.width.tagv", widths.tagv),
    ]
}

fn fixed_salt(config: &SchemaConfig) -> [Fixed; 2] {
    [
        Fixed { setting: "salt.width", value: config.salting.width().to_string() },
        Fixed { setting: "salt.buckets", value: config.salting.buckets().to_string() },
    ]
}

/// Makes a table with its settings recorded, or checks those of the one that is there.
fn open_table(store: &dyn Store, planned: &Planned) -> Result<()> {
    let name = &planned.table.name;
    if let Some(found) = found(store, name)? {
        return planned.check(&found);
    }
    let table = planned.fixed.iter().fold(planned.table.clone(), |table, fixed| {
        table.with_attribute(attribute(fixed.setting), fixed.value.as_str())
    });
    match store.create_table(table, &planned.splits) {
        // Another daemon on the same store was quicker.
        Err(error) if error.kind() == ErrorKind::Conflict => planned.check(&store.describe_table(name)?),
        made => Ok(made?),
    }
}

/// A table as it is, if it is there.
fn found(store: &dyn Store, name: &TableName) -> Result<Option<TableDescriptor>> {
    match store.describe_table(name) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn check_fixed(found: &TableDescriptor, fixed: &[Fixed]) -> Result<()> {
    fixed.iter().try_for_each(|Fixed { setting, value }| match found.attributes.get(&attribute(setting)) {
        Some(recorded) if recorded != value => Err(Error::SettingChanged {
            setting,
            table: found.name.to_string().into(),
            recorded: recorded.as_str().into(),
            wanted: value.as_str().into(),
        }),
        _ => Ok(()),
    })
}

fn attribute(setting: &str) -> String {
    format!("basalt.{setting}")
}

#[cfg(test)]
mod tests {
    use basalt_store::{ManualClock, MemoryStore};

    use super::*;

    /// `S-TABLES`: no table of points without that of their names, wherever a start is killed; the next makes the rest.
    #[test]
    fn a_start_that_is_killed_between_two_tables_is_gone_on_with() {
        let json = r#"{"aggregationIds":{"sum":0},"intervals":[
            {"table":"t10","preAggregationTable":"p10","interval":"10m","rowSpan":"1d"}]}"#;
        let rollups = Rollups::parse(json, crate::RollupSettings::default()).unwrap();
        let config = SchemaConfig { rollups: Some(rollups), ..SchemaConfig::default() };
        let tables = Tables::named(&config).unwrap();
        for made in 0..=6 {
            let store = MemoryStore::new(std::sync::Arc::new(ManualClock::default()));
            let before = tables.planned(&config).into_iter().take(made);
            before.for_each(|planned| open_table(&store, &planned).unwrap());
            assert_eq!(store.list_tables().unwrap().len(), made);
            tables.open(&store, &config).unwrap();
            assert_eq!(store.list_tables().unwrap().len(), 6, "{made}");
        }
    }

    /// `S-TABLES`: a table that lacks a family is named before a point is taken, be it OpenTSDB's or of a slip of the pen; what the shell
    /// is opened with asks for none, so that it can add it.
    #[test]
    fn a_table_that_lacks_a_family_is_refused_by_name() {
        let config = SchemaConfig::default();
        let tables = Tables::named(&config).unwrap();
        let all = [
            (&tables.data, "t"),
            (&tables.uid, "id"),
            (&tables.uid, "name"),
            (&tables.tree, "t"),
            (&tables.meta, "name"),
        ];
        for (table, family) in all {
            let store = MemoryStore::new(std::sync::Arc::new(ManualClock::default()));
            for mut planned in tables.planned(&config) {
                if planned.table.name == *table {
                    planned.table.families.retain(|one| one.name != family.as_bytes());
                    planned.table.families.push(FamilyDescriptor::new("x"));
                }
                store.create_table(planned.table, &[]).unwrap();
            }
            for refused in [tables.open(&store, &config), tables.find(&store, &config)] {
                let refused = refused.unwrap_err();
                let expected = format!("table '{table}' has no column family '{family}'");
                assert!(refused.to_string().starts_with(&expected), "{refused}");
                assert_eq!(refused.kind(), ErrorKind::Invalid);
            }
            tables.check_fixed(&store, &config).unwrap();
        }
    }

    /// `S-DTCS`: families that do not fold are left alone, and so is a table that says it already.
    #[test]
    fn s_dtcs_a_table_folds_as_it_is_served() {
        let store = MemoryStore::new(std::sync::Arc::new(ManualClock::default()));
        let served = |fold: Option<&str>| SchemaConfig { fold: fold.map(Into::into), ..SchemaConfig::default() };
        let tables = Tables::named(&served(None)).unwrap();
        let keep = |fold| tables.keep_fold(&store, &served(fold)).unwrap();
        assert_eq!(keep(Some("a")), None, "there is no table");
        let mut points = FamilyDescriptor::new(DATA_FAMILY);
        points.fold = Some("a".into());
        let families = vec![points, FamilyDescriptor::new("x")];
        store.create_table(TableDescriptor::new(tables.data.clone(), families), &[]).unwrap();
        assert_eq!(keep(None), None);
        assert_eq!([keep(Some("b")), keep(Some("b"))], [Some("a".into()), None]);
        let folds = store.describe_table(&tables.data).unwrap().families.into_iter().map(|family| family.fold);
        assert_eq!(folds.collect::<Vec<_>>(), [Some("b".into()), None]);
    }
}
