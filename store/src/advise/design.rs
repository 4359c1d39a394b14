//! A table's design, as its user tells it.

use bytes::Bytes;

use crate::FamilyDescriptor;

/// Widest hash or bucket that is asked value by value.
pub(super) const FAN_OUT_MAX: u64 = 4096;

/// What a field of a row key holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Names and the like; of variable length unless `bytes` is set.
    #[default]
    Text,
    /// A number that is kept as its digits.
    Digits,
    /// Bytes that are kept as hexadecimal digits.
    Hex,
    /// A number in big-endian bytes.
    Number,
    /// A time in big-endian bytes.
    Time,
    /// A number that rises with each row.
    Sequence,
    /// A number that stands for a name, given by a table of names.
    Id,
    /// A hash of other fields.
    Hash,
    /// A number modulo `buckets`.
    Bucket,
    /// A random number.
    Random,
}

impl Kind {
    /// Every kind with its name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("text", Self::Text),
        ("digits", Self::Digits),
        ("hex", Self::Hex),
        ("number", Self::Number),
        ("time", Self::Time),
        ("sequence", Self::Sequence),
        ("id", Self::Id),
        ("hash", Self::Hash),
        ("bucket", Self::Bucket),
        ("random", Self::Random),
    ];

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// A field of the row key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyField {
    /// Its name, by which accesses ask for it.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Its width in bytes; none for the kind's own, which is variable for text, digits and hex.
    pub bytes: Option<u32>,
    /// The fields that a hash or a bucket is made of; they need not be in the key themselves.
    pub of: Vec<String>,
    /// How many values a hash or a bucket has.
    pub buckets: Option<u32>,
    /// What all its times are multiples of, in their own unit.
    pub step: Option<u64>,
    /// How many values there are.
    pub values: Option<u64>,
    /// Percent of all rows that the commonest value has.
    pub top_percent: Option<u32>,
    /// The byte that ends a field of variable length.
    pub delimiter: Option<u8>,
    /// The byte that fills a field up to `bytes`.
    pub pad: Option<u8>,
    /// A hash is kept as hexadecimal digits.
    pub hex: bool,
    /// A time is kept as the largest one less itself.
    pub newest_first: bool,
    /// Its bytes or digits stand in reverse.
    pub reversed: bool,
}

impl KeyField {
    /// Its width in bytes; none where it varies.
    pub(super) fn width(&self) -> Option<u64> {
        let own = match self.kind {
            Kind::Text | Kind::Digits | Kind::Hex => None,
            Kind::Number | Kind::Time | Kind::Sequence | Kind::Id => Some(8),
            Kind::Hash => Some(if self.hex { 32 } else { 16 }),
            Kind::Bucket => Some(if self.buckets.unwrap_or(1) > 256 { 2 } else { 1 }),
            Kind::Random => Some(4),
        };
        self.bytes.map(u64::from).or(own)
    }

    /// Whether it is made of other fields.
    pub(super) fn is_derived(&self) -> bool {
        matches!(self.kind, Kind::Hash | Kind::Bucket)
    }

    /// Whether a sample tells it.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_derived() && self.kind != Kind::Random
    }

    /// Whether later rows have larger ones, or smaller ones all along.
    pub(super) fn rises(&self) -> bool {
        matches!(self.kind, Kind::Time | Kind::Sequence) && !self.reversed
    }

    /// How many values a derived field has, if they may be asked one by one.
    pub(super) fn fan_out(&self) -> Option<u64> {
        let by_width = match self.width()? {
            1 => Some(256),
            _ => None,
        };
        self.buckets.map(u64::from).or(by_width).filter(|count| self.is_derived() && *count <= FAN_OUT_MAX)
    }
}

/// A column family that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyPlan {
    /// Its name.
    pub name: String,
    /// VERSIONS.
    pub versions: u32,
    /// `MIN_VERSIONS`.
    pub min_versions: u32,
    /// TTL in seconds.
    pub ttl_seconds: Option<u64>,
    /// BLOCKSIZE in bytes.
    pub block_bytes: u32,
    /// Whether writers give cells their times.
    pub explicit_times: bool,
    /// How many columns a row has.
    pub columns: Option<u64>,
    /// Names of columns.
    pub qualifiers: Vec<String>,
    /// Bytes of a usual qualifier, where they are not named.
    pub qualifier_bytes: Option<u64>,
    /// Bytes of a usual value, for each kind of column.
    pub value_bytes: Vec<u64>,
    /// How many rows have something in it.
    pub rows: Option<u64>,
}

impl FamilyPlan {
    /// A family of a name with the store's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            versions: 1,
            min_versions: 0,
            ttl_seconds: None,
            block_bytes: FamilyDescriptor::BLOCK_BYTES_DEFAULT,
            explicit_times: false,
            columns: None,
            qualifiers: Vec::new(),
            qualifier_bytes: None,
            value_bytes: Vec::new(),
            rows: None,
        }
    }
}

/// A way in which the table is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// What it is for.
    pub name: String,
    /// Fields of which the value is known.
    pub equals: Vec<String>,
    /// The field of which a range is wanted.
    pub range: Option<String>,
    /// Whether the newest is wanted first.
    pub newest_first: bool,
    /// The families that it reads; none where that is not told.
    pub families: Vec<String>,
    /// How often it is used beside the others.
    pub weight: u64,
}

/// A table's design.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Design {
    /// The table's name.
    pub table: String,
    /// The row key's fields in order.
    pub fields: Vec<KeyField>,
    /// The column families.
    pub families: Vec<FamilyPlan>,
    /// How it is read.
    pub accesses: Vec<Access>,
    /// Where its regions are split, sorted.
    pub splits: Vec<Bytes>,
    /// Some rows: the values of the key's fields as text, but for those that are hashes, buckets or random.
    pub rows: Vec<Vec<String>>,
    /// Cells written in a second.
    pub writes_per_second: Option<u64>,
    /// How many regions the table has; `splits` tell it too.
    pub regions: Option<u64>,
}

impl Design {
    /// How many regions the table has, if that is told.
    pub(super) fn regions_count(&self) -> Option<u64> {
        self.regions.or_else(|| (!self.splits.is_empty()).then_some(self.splits.len() as u64 + 1))
    }

    /// The first field of more than one value: what decides where a row lies.
    pub(super) fn leading(&self) -> Option<&KeyField> {
        self.fields.iter().find(|field| field.values != Some(1) && field.buckets != Some(1))
    }
}
