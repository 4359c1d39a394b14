//! The four tables: their families, their splits, and what is recorded in them of the settings that must not change.

use basalt_store::{ErrorKind, FamilyDescriptor, SplitPolicy, Store, TableDescriptor, TableName};
use bytes::Bytes;

use crate::{Error, KeyLayout, Result, Rollups, SchemaConfig};

/// Family of points, annotations and histograms in the data table, and of everything in the tree table.
pub const DATA_FAMILY: &[u8] = b"t";
/// Family of the forward map and the counters in the UID table.
pub(crate) const UID_ID_FAMILY: &[u8] = b"id";
/// Family of the reverse map in the UID table; also the meta table's one family.
pub(crate) const UID_NAME_FAMILY: &[u8] = b"name";

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
struct Fixed {
    setting: &'static str,
    value: String,
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

    /// Makes the tables that are absent and checks the settings that the others record. Tables that record none, such as
    /// those that OpenTSDB made, are taken as the configuration says.
    pub(crate) fn open(&self, store: &dyn Store, config: &SchemaConfig) -> Result<()> {
        let widths = fixed_widths(config);
        let name_family = || vec![FamilyDescriptor::new(UID_NAME_FAMILY)];
        let uid_families = vec![FamilyDescriptor::new(UID_ID_FAMILY), FamilyDescriptor::new(UID_NAME_FAMILY)];
        open_table(store, TableDescriptor::new(self.uid.clone(), uid_families), &[], &widths)?;
        let tree = TableDescriptor::new(self.tree.clone(), vec![FamilyDescriptor::new(DATA_FAMILY)]);
        open_table(store, tree, &[], &[])?;
        open_table(store, TableDescriptor::new(self.meta.clone(), name_family()), &[], &widths)?;
        // The data table is the last one made: once it is there, all are.
        let mut family = FamilyDescriptor::new(DATA_FAMILY);
        family.fold.clone_from(&config.fold);
        family.block_encoding.clone_from(&config.block_encoding);
        family.block_bytes = config.block_bytes;
        let mut data = TableDescriptor::new(self.data.clone(), vec![family]);
        if config.salting.width() > 0 {
            // Its regions are the buckets, and grow alike: none of them is split for its size.
            data = data.with_attribute("SPLIT_POLICY", SplitPolicy::DISABLED);
        }
        let fixed: Vec<Fixed> = fixed_salt(config).into_iter().chain(widths).collect();
        open_table(store, data, &splits(config), &fixed)?;
        for name in rollup_tables(config).filter(|name| **name != self.data) {
            let table = TableDescriptor::new(name.clone(), vec![FamilyDescriptor::new(DATA_FAMILY)]);
            open_table(store, table, &splits(config), &fixed)?;
        }
        Ok(())
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
    let fixed = |setting, width: crate::UidWidth| Fixed { setting, value: width.bytes().to_string() };
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
fn open_table(store: &dyn Store, table: TableDescriptor, splits: &[Bytes], fixed: &[Fixed]) -> Result<()> {
    let name = table.name.clone();
    match store.describe_table(&name) {
        Ok(found) => return check_fixed(&found, fixed),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let table =
        fixed.iter().fold(table, |table, fixed| table.with_attribute(attribute(fixed.setting), fixed.value.as_str()));
    match store.create_table(table, splits) {
        // Another daemon on the same store was quicker.
        Err(error) if error.kind() == ErrorKind::Conflict => check_fixed(&store.describe_table(&name)?, fixed),
        made => Ok(made?),
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
