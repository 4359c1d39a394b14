//! Descriptors: what a table and its column families are set to.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::namespace::{READ_ONLY, SYSTEM_NAMESPACE, check_read_only, is_true};
use crate::{Error, Result, TableName};

/// The attribute that sets a table's purge delay.
const PURGE_DELAY: &str = "hbase.hstore.time.to.purge.deletes";

/// As in HBase, where a cell has one signed byte for the length.
const FAMILY_NAME_BYTES_MAX: usize = i8::MAX as usize;

/// Whether deleted cells stay readable below their tombstone (`KEEP_DELETED_CELLS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepDeletedCells {
    /// Deleted cells go at the next major compaction.
    #[default]
    False,
    /// Deleted cells stay, within VERSIONS and TTL.
    True,
    /// Deleted cells and tombstones stay until TTL takes them.
    Ttl,
}

impl KeepDeletedCells {
    const ALL: [Self; 3] = [Self::False, Self::True, Self::Ttl];

    /// HBase's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::False => "FALSE",
            Self::True => "TRUE",
            Self::Ttl => "TTL",
        }
    }

    /// What a name of HBase's means.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kept| kept.name() == name)
    }
}

/// Which keys a file's bloom filter holds (`BLOOMFILTER`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BloomFilter {
    /// No filter.
    None,
    /// Row keys.
    #[default]
    Row,
    /// Row key and qualifier together.
    RowColumn,
}

impl BloomFilter {
    const ALL: [Self; 3] = [Self::None, Self::Row, Self::RowColumn];

    /// HBase's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Row => "ROW",
            Self::RowColumn => "ROWCOL",
        }
    }

    /// What a name of HBase's means.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.name() == name)
    }
}

/// How blocks are compressed (`COMPRESSION`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are.
    None,
    /// Zstandard.
    #[default]
    Zstd,
}

impl Compression {
    /// HBase's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Zstd => "ZSTD",
        }
    }

    /// What a name of HBase's means here: `NONE` is none, every other is stored by zstd, which `describe` then shows.
    /// `None` for what is no name of HBase's (rule S-PERF-3).
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "NONE" => Some(Self::None),
            "ZSTD" | "LZ4" | "SNAPPY" | "GZ" | "LZO" | "BZIP2" | "LZMA" | "BROTLI" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// HBase's names of data block encodings. All name one layout here, which shares row keys within a block and leaves out
/// what repeats from cell to cell (rule S-PERF-6); a family keeps the name that it was given.
pub const BLOCK_ENCODINGS: [&str; 5] = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"];

/// A column family's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyDescriptor {
    /// Name: printable, without `:` and `/`.
    pub name: Bytes,
    /// VERSIONS: how many versions of a column are kept, at least 1.
    pub versions: u32,
    /// `MIN_VERSIONS`: how many are kept although their TTL is past; 0 is off; at most `versions`.
    pub min_versions: u32,
    /// TTL in seconds from the cell's time; `None` keeps for ever.
    pub ttl_seconds: Option<u64>,
    /// `KEEP_DELETED_CELLS`.
    pub keep_deleted: KeepDeletedCells,
    /// BLOOMFILTER.
    pub bloom: BloomFilter,
    /// COMPRESSION.
    pub compression: Compression,
    /// `DATA_BLOCK_ENCODING`: the registered name of a block codec, or one of [`BLOCK_ENCODINGS`], the row-wise layout.
    pub block_encoding: Box<str>,
    /// BLOCKSIZE in bytes before compression.
    pub block_bytes: u32,
    /// `IN_MEMORY`: its blocks are the last to leave the block cache.
    pub in_memory: bool,
    /// BLOCKCACHE: whether reads keep its blocks in the block cache.
    pub block_cache: bool,
    /// `NEW_VERSION_BEHAVIOR`: tombstones mask only what was written before them, and a version that was deleted still
    /// counts (rule U-4). Such a family is not folded.
    pub new_version_behavior: bool,
    /// Registered name of the [`Fold`](crate::Fold) that flush and compaction run over each row.
    pub fold: Option<Box<str>>,
}

impl FamilyDescriptor {
    /// Size of a data block unless another is set, in bytes before compression, as HBase's.
    pub const BLOCK_BYTES_DEFAULT: u32 = 64 * 1024;

    /// A family with HBase's defaults: one version, no TTL, ROW bloom filter, 64 KiB blocks.
    pub fn new(name: impl Into<Bytes>) -> Self {
        Self {
            name: name.into(),
            versions: 1,
            min_versions: 0,
            ttl_seconds: None,
            keep_deleted: KeepDeletedCells::False,
            bloom: BloomFilter::Row,
            compression: Compression::Zstd,
            block_encoding: "NONE".into(),
            block_bytes: Self::BLOCK_BYTES_DEFAULT,
            in_memory: false,
            block_cache: true,
            new_version_behavior: false,
            fold: None,
        }
    }

    /// The same family, keeping `versions`.
    #[must_use]
    pub fn with_versions(mut self, versions: u32) -> Self {
        self.versions = versions;
        self
    }

    /// The same family, forgetting cells `seconds` after their time.
    #[must_use]
    pub fn with_ttl(mut self, seconds: u64) -> Self {
        self.ttl_seconds = Some(seconds);
        self
    }

    /// # Errors
    /// `Invalid`: a name that is empty or has unprintable bytes, `:` or `/` (rule S-NAME-2); `versions` 0;
    /// `min_versions` above `versions` (rule S-VERS-8).
    pub fn validate(&self) -> Result<()> {
        let refuse = |reason| Error::InvalidName {
            what: "column family name",
            name: String::from_utf8_lossy(&self.name).into(),
            reason,
        };
        if self.name.is_empty() {
            return Err(refuse("it is empty"));
        }
        if !self.name.iter().all(u8::is_ascii_graphic) || self.name.iter().any(|b| matches!(b, b':' | b'/')) {
            return Err(refuse("only printable characters without ':' and '/' are allowed"));
        }
        if self.versions == 0 {
            return Err(Error::InvalidArgument { what: "VERSIONS", reason: "at least 1 is needed".into() });
        }
        if self.min_versions > self.versions {
            return Err(Error::InvalidArgument {
                what: "MIN_VERSIONS",
                reason: format!("{} is above VERSIONS = {}", self.min_versions, self.versions).into(),
            });
        }
        Ok(())
    }
}

/// A table's settings. Families are in byte order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescriptor {
    /// The table.
    pub name: TableName,
    /// Its column families, sorted, at least one.
    pub families: Vec<FamilyDescriptor>,
    /// Free settings that the table's user keeps with it, such as a schema's salt width.
    pub attributes: BTreeMap<String, String>,
}

impl TableDescriptor {
    /// A table of these families, which are sorted here.
    pub fn new(name: TableName, mut families: Vec<FamilyDescriptor>) -> Self {
        families.sort_by(|a, b| a.name.cmp(&b.name));
        Self { name, families, attributes: BTreeMap::new() }
    }

    /// The same table with one attribute more.
    #[must_use]
    pub fn with_attribute(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(key.into(), value.into());
        self
    }

    /// The family of a name, and its index in `families`.
    pub fn family(&self, name: &[u8]) -> Option<(usize, &FamilyDescriptor)> {
        self.families.iter().enumerate().find(|(_, f)| f.name == name)
    }

    /// For how long after their time tombstones outlive major compactions, in milliseconds: what the attribute
    /// `hbase.hstore.time.to.purge.deletes` says (rule S-DEL-11), else the store's own setting.
    pub fn purge_delay_ms(&self, of_store: u64) -> u64 {
        self.attributes.get(PURGE_DELAY).and_then(|text| text.parse().ok()).unwrap_or(of_store)
    }

    /// Whether changes of its cells are refused: the attribute `READONLY` is `true`.
    pub fn is_read_only(&self) -> bool {
        is_true(self.attributes.get(READ_ONLY))
    }

    /// The error for a family that the table does not have.
    pub fn unknown_family(&self, name: &[u8]) -> Error {
        Error::UnknownFamily { table: self.name.to_string().into(), family: name.escape_ascii().to_string().into() }
    }

    /// Whether these settings may be given to a table, which had those of `before`.
    ///
    /// # Errors
    /// `Invalid`: as [`TableDescriptor::validate`]; a new family's name of over 127 bytes, or one that begins with a period; a
    /// `READONLY` that is neither true nor false. What is there already may stay.
    pub fn validate_change(&self, before: Option<&TableDescriptor>) -> Result<()> {
        self.validate()?;
        check_read_only(&self.attributes, before.map(|before| &before.attributes))?;
        let is_new = |name: &[u8]| before.is_none_or(|before| before.family(name).is_none());
        let has_period = |family: &&FamilyDescriptor| family.name.starts_with(b".") && is_new(&family.name);
        if let Some(family) = self.families.iter().find(has_period) {
            let name = String::from_utf8_lossy(&family.name).into();
            return Err(Error::InvalidName { what: "column family name", name, reason: "it begins with a period" });
        }
        let too_long = |family: &&FamilyDescriptor| family.name.len() > FAMILY_NAME_BYTES_MAX && is_new(&family.name);
        match self.families.iter().find(too_long) {
            None => Ok(()),
            Some(FamilyDescriptor { name, .. }) => Err(Error::TooLarge {
                what: "column family name",
                size: name.len() as u64,
                limit: FAMILY_NAME_BYTES_MAX as u64,
            }),
        }
    }

    /// # Errors
    /// `Invalid`: a table of the system's namespace (rule S-NS-3); a purge delay that is no number; no family,
    /// two of one name, or a family that [`FamilyDescriptor::validate`] refuses.
    pub fn validate(&self) -> Result<()> {
        if self.name.namespace() == SYSTEM_NAMESPACE {
            return Err(Error::InvalidName {
                what: "table name",
                name: self.name.to_string().into(),
                reason: "its namespace is the system's",
            });
        }
        if self.families.is_empty() {
            return Err(Error::InvalidArgument { what: "table", reason: "it needs at least one column family".into() });
        }
        if let Some(text) = self.attributes.get(PURGE_DELAY).filter(|text| text.parse::<u64>().is_err()) {
            let reason = format!("'{text}' is no number of milliseconds").into();
            return Err(Error::InvalidArgument { what: PURGE_DELAY, reason });
        }
        self.families.iter().try_for_each(FamilyDescriptor::validate)?;
        if !self.families.is_sorted_by(|a, b| a.name < b.name) {
            return Err(Error::InvalidArgument { what: "table", reason: "two column families have one name".into() });
        }
        Ok(())
    }
}

/// Whether a table serves, beside its settings: enabled or not, and whether its namespace lets it be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableState {
    /// It was disabled: reads and changes of its cells are refused until it is enabled (rule S-ADMIN-2).
    pub disabled: bool,
    /// Its namespace is read-only.
    pub namespace_read_only: bool,
}

impl TableState {
    /// Whether the table's cells may be read.
    ///
    /// # Errors
    /// `Unavailable`: it is disabled.
    pub fn check_read(self, table: &TableDescriptor) -> Result<()> {
        if self.disabled { Err(Error::TableDisabled { table: table.name.to_string().into() }) } else { Ok(()) }
    }

    /// Whether the table's cells may be changed.
    ///
    /// # Errors
    /// `Unavailable`: it is disabled. `ReadOnly`: it is, or its namespace.
    pub fn check_write(self, table: &TableDescriptor) -> Result<()> {
        self.check_read(table)?;
        let what = match (self.namespace_read_only, table.is_read_only()) {
            (true, _) => format!("namespace '{}'", table.name.namespace()),
            (false, true) => format!("table '{}'", table.name),
            (false, false) => return Ok(()),
        };
        Err(Error::ReadOnly { reason: format!("{what} is set {READ_ONLY}").into() })
    }

    /// Whether the table may be enabled or disabled: it must not be so already.
    ///
    /// # Errors
    /// `Conflict`.
    pub fn check_switch(self, table: &TableName, enable: bool) -> Result<()> {
        if self.disabled == enable {
            return Ok(());
        }
        let state = if enable { "enabled" } else { "disabled" };
        Err(Error::TableState { table: table.to_string().into(), state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_name_2_a_new_familys_name_begins_with_no_period() {
        let of = |names: &[&'static str]| {
            let families = names.iter().map(|name| FamilyDescriptor::new(*name)).collect();
            TableDescriptor::new("t".parse().unwrap(), families)
        };
        of(&["f."]).validate_change(None).unwrap();
        let told = "illegal column family name '.f': it begins with a period";
        assert_eq!(of(&[".f"]).validate_change(None).unwrap_err().to_string(), told);
        assert_eq!(of(&[".f", "g"]).validate_change(Some(&of(&["g"]))).unwrap_err().to_string(), told);
        // One that an older version let pass may stay.
        of(&[".f"]).validate().unwrap();
        of(&[".f", "g"]).validate_change(Some(&of(&[".f"]))).unwrap();
    }

    #[test]
    fn a_new_family_has_a_name_of_at_most_127_bytes() {
        let of = |lengths: &[usize]| {
            let families = lengths.iter().map(|length| FamilyDescriptor::new("f".repeat(*length))).collect();
            TableDescriptor::new("t".parse().unwrap(), families)
        };
        of(&[1, 127]).validate_change(None).unwrap();
        let told = "column family name of 128 bytes is over the limit of 127 bytes";
        assert_eq!(of(&[1, 128]).validate_change(None).unwrap_err().to_string(), told);
        assert_eq!(of(&[1, 128]).validate_change(Some(&of(&[1, 127]))).unwrap_err().to_string(), told);
        // One that an older version let pass can be read, kept and dropped.
        let before = of(&[1, 128]);
        before.validate().unwrap();
        of(&[2, 128]).validate_change(Some(&before)).unwrap();
        of(&[2]).validate_change(Some(&before)).unwrap();
    }
}
