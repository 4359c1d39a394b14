//! The schema's one error type.

mod damage;
mod name_role;

pub use damage::Damage;
pub use name_role::NameRole;

use basalt_store::ErrorKind;

use crate::uid_kind::UidKind;

/// The schema's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the schema refused or failed. Texts that clients of OpenTSDB know are OpenTSDB's own.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name without a character.
    #[error("Invalid {role}: empty string")]
    EmptyName {
        /// What the name is for.
        role: NameRole,
    },
    /// A name with a character that the rules refuse.
    #[error("Invalid {role} (\"{name}\"): illegal character: {character}")]
    IllegalCharacter {
        /// What the name is for.
        role: NameRole,
        /// The whole name.
        name: Box<str>,
        /// The first character refused.
        character: char,
    },
    /// A name that no point may have.
    #[error("Invalid {role}: {bytes} bytes, and {max} are allowed")]
    NameTooLong {
        /// What the name is for.
        role: NameRole,
        /// Its bytes.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// A point without tags.
    #[error("Need at least one tag (metric={metric}, tags={{}})")]
    NoTags {
        /// The point's metric.
        metric: Box<str>,
    },
    /// A point with more tags than `max_tags`.
    #[error("Too many tags: {found} maximum allowed: {max}, tags: {{{}}}", JoinedTags(tags))]
    TooManyTags {
        /// How many it has.
        found: usize,
        /// How many it may have.
        max: usize,
        /// Its tags in the order given.
        tags: Box<[(Box<str>, Box<str>)]>,
    },
    /// A time that is negative or that no row key can hold.
    #[error("Invalid timestamp: {timestamp}")]
    InvalidTimestamp {
        /// The number given.
        timestamp: i64,
    },
    /// A value that is no finite number.
    #[error("value is NaN or Infinite: {value}")]
    InvalidValue {
        /// The value given.
        value: f64,
    },
    /// A UID width other than 1 to 8.
    #[error("invalid UID width {width}: 1 to 8 bytes are allowed")]
    InvalidUidWidth {
        /// The width given, bytes.
        width: u8,
    },
    /// A salt width or number of buckets that the rules refuse.
    #[error(
        "invalid salt: width {width} with {buckets} buckets; 1 to 8 bytes must number 1 to 4096 buckets, one byte 256 at most"
    )]
    InvalidSalting {
        /// Bytes of the salt.
        width: u8,
        /// Number of buckets.
        buckets: u32,
    },
    /// Text or bytes that are no TSUID.
    #[error("invalid TSUID '{text}': {reason}")]
    InvalidTsuid {
        /// What was given.
        text: Box<str>,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// A row key of the data table whose length fits no series.
    #[error("corrupt row key of {length} bytes: {key}")]
    CorruptRowKey {
        /// Bytes of the key.
        length: usize,
        /// The key in hex.
        key: Box<str>,
    },
    /// A data cell that does not hold what its qualifier says.
    #[error("corrupt cell (qualifier {qualifier}, value of {value_bytes} bytes): {damage}")]
    CorruptCell {
        /// The qualifier in hex, cut after 16 bytes.
        qualifier: Box<str>,
        /// Bytes of the value.
        value_bytes: usize,
        /// What is wrong.
        damage: Damage,
    },
    /// A name that has no UID.
    #[error("No such name for '{kind}': '{name}'")]
    NoSuchName {
        /// Which space was asked.
        kind: UidKind,
        /// The name.
        name: Box<str>,
    },
    /// A UID that has no name.
    #[error("No such unique ID for '{kind}': {id:?}")]
    NoSuchId {
        /// Which space was asked.
        kind: UidKind,
        /// The UID's bytes.
        id: Box<[JavaByte]>,
    },
    /// A name given to an ID although it has one already.
    #[error("Name already exists with UID: {id}")]
    NameExists {
        /// Which space was asked.
        kind: UidKind,
        /// The name.
        name: Box<str>,
        /// Its UID in hex.
        id: Box<str>,
    },
    /// A rename to a name that is taken.
    #[error(
        "When trying rename(\"{from}\", \"{to}\") on UniqueId({table}, {kind}, {width}): new name already assigned \
         ID={id:?}"
    )]
    RenameTaken {
        /// Which space was asked.
        kind: UidKind,
        /// The old name.
        from: Box<str>,
        /// The new name.
        to: Box<str>,
        /// The table of names.
        table: Box<str>,
        /// Bytes of a UID.
        width: usize,
        /// The new name's UID.
        id: Box<[JavaByte]>,
    },
    /// The width's last UID is taken.
    #[error("All Unique IDs for {kind} on {width} bytes are already assigned!")]
    UidsExhausted {
        /// Which space is full.
        kind: UidKind,
        /// Its width, bytes.
        width: usize,
    },
    /// A new name that the filter of names refuses.
    #[error("Failed to assign ID for kind='{kind}' name='{name}' after 0 attempts due to: Blocked by UID filter.")]
    NameFiltered {
        /// Which space was asked.
        kind: UidKind,
        /// The name.
        name: Box<str>,
    },
    /// A pattern of the filter of names, or its delimiter, that is no regular expression.
    #[error("`{pattern}` is no regular expression: {reason}")]
    InvalidUidPattern {
        /// The pattern.
        pattern: Box<str>,
        /// What the compiler said.
        reason: Box<str>,
    },
    /// Random UIDs of metrics on a width that is too large for them.
    #[error("random UIDs of metrics take at most {max} bytes, not {width}")]
    RandomWidth {
        /// The width, bytes.
        width: usize,
        /// The largest.
        max: usize,
    },
    /// A UID could not be assigned although it was tried again and again.
    #[error("Failed to assign an ID for kind='{kind}' name='{name}' after {attempts} attempts")]
    AssignmentFailed {
        /// Which space was asked.
        kind: UidKind,
        /// The name.
        name: Box<str>,
        /// How often it was tried.
        attempts: u32,
    },
    /// A UID table's cell that is no UID or no name.
    #[error("corrupt UID table: {what} of {kind} '{name}' has {length} bytes, expected {expected}")]
    CorruptUid {
        /// Which space was asked.
        kind: UidKind,
        /// Which cell.
        what: &'static str,
        /// Its row.
        name: Box<str>,
        /// Bytes found.
        length: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// A cell of JSON that is none of its kind.
    #[error("corrupt {what}: {reason}")]
    CorruptObject {
        /// What it should be.
        what: &'static str,
        /// What the parser said.
        reason: Box<str>,
    },
    /// More annotations than may be answered at once.
    #[error("more than {max} annotations: ask for a shorter time")]
    TooManyAnnotations {
        /// The bound.
        max: usize,
    },
    /// More meta objects than may be answered at once.
    #[error("more than {max} meta objects: name more tags")]
    TooManyMetas {
        /// The bound.
        max: usize,
    },
    /// A number that no tree has: not 1 to 65535.
    #[error("Invalid Tree ID")]
    InvalidTreeId,
    /// A new tree without a name.
    #[error("Tree was missing the name")]
    UnnamedTree,
    /// Tree 65535 is taken.
    #[error("Exhausted all Tree IDs")]
    TreesExhausted,
    /// A rule that is none.
    #[error("{reason}")]
    InvalidTreeRule {
        /// OpenTSDB's own words.
        reason: Box<str>,
    },
    /// More branches and leaves than may be answered at once.
    #[error("more than {max} branches and leaves on one branch")]
    TooManyBranches {
        /// The bound.
        max: usize,
    },
    /// More series of a tree that found no place than may be answered at once.
    #[error("more than {max} series of this tree found no place; name those that are asked for by `tsuids`")]
    TooManyTreeFailures {
        /// The bound.
        max: usize,
    },
    /// More text in annotations or meta objects than may be answered at once.
    #[error("the {what} that are asked for take more than {max} bytes; ask for fewer")]
    TooMuchText {
        /// What is asked for.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// A change that others overtook each time it was tried.
    #[error("the {what} was changed by others at each of {attempts} attempts")]
    EditLost {
        /// What was changed.
        what: &'static str,
        /// How often it was tried.
        attempts: u32,
    },
    /// A setting that contradicts what the tables were made with.
    #[error(
        "{setting} is {wanted} in the configuration but {recorded} in table '{table}': it is fixed for the life of \
         the tables; set it back, or copy the data into a new store"
    )]
    SettingChanged {
        /// The setting.
        setting: &'static str,
        /// The table that records it.
        table: Box<str>,
        /// What the table was made with.
        recorded: Box<str>,
        /// What the configuration asks for.
        wanted: Box<str>,
    },
    /// A table of points without that of their names.
    #[error(
        "there is no UID table '{uid}', but a table of points '{data}': UIDs would begin anew, and the points get other names; \
         set `schema.uid_table` (--uidtable) to the table of their names; if there are none to keep, make it by \
         `basalt shell`: create '{uid}', 'id', 'name'"
    )]
    NoUidTable {
        /// The table of names that the configuration says.
        uid: Box<str>,
        /// The table of points.
        data: Box<str>,
    },
    /// A table that is absent, for one who makes none.
    #[error(
        "there is no table '{table}', and none is made by who only reads or mends: set `schema.data_table` (--table) and \
         `schema.uid_table` (--uidtable); of rollups, start the server once with these settings"
    )]
    NoTable {
        /// The table that the configuration says.
        table: Box<str>,
    },
    /// A table without a column family that is written to or read.
    #[error(
        "table '{table}' has no column family '{family}': if it is one of OpenTSDB's, add it by `basalt shell`: alter '{table}', \
         '{family}'; if not, set its name in `schema.…_table`"
    )]
    NoFamily {
        /// The table that the configuration says.
        table: Box<str>,
        /// The family, printable.
        family: Box<str>,
    },
    /// The index would pass its bound.
    #[error("the series index is full: {max} series")]
    IndexFull {
        /// The bound.
        max: u32,
    },
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] basalt_store::Error),
}

/// A byte as Java prints it: signed. Part of a text that users search for.
pub type JavaByte = i8;

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EmptyName { .. }
            | Self::IllegalCharacter { .. }
            | Self::NameTooLong { .. }
            | Self::NoTags { .. }
            | Self::TooManyTags { .. }
            | Self::InvalidTimestamp { .. }
            | Self::InvalidValue { .. }
            | Self::InvalidUidWidth { .. }
            | Self::InvalidSalting { .. }
            | Self::InvalidTsuid { .. }
            | Self::UidsExhausted { .. }
            | Self::NameFiltered { .. }
            | Self::InvalidUidPattern { .. }
            | Self::RandomWidth { .. }
            | Self::InvalidTreeId
            | Self::UnnamedTree
            | Self::TreesExhausted
            | Self::InvalidTreeRule { .. }
            | Self::NoUidTable { .. }
            | Self::NoFamily { .. }
            | Self::SettingChanged { .. } => ErrorKind::Invalid,
            Self::NoSuchName { .. } | Self::NoSuchId { .. } | Self::NoTable { .. } => ErrorKind::NotFound,
            Self::NameExists { .. } | Self::RenameTaken { .. } | Self::EditLost { .. } => ErrorKind::Conflict,
            Self::AssignmentFailed { .. }
            | Self::TooManyAnnotations { .. }
            | Self::TooManyMetas { .. }
            | Self::TooMuchText { .. }
            | Self::TooManyBranches { .. }
            | Self::TooManyTreeFailures { .. }
            | Self::IndexFull { .. } => ErrorKind::Throttled,
            Self::CorruptObject { .. }
            | Self::CorruptRowKey { .. }
            | Self::CorruptCell { .. }
            | Self::CorruptUid { .. } => ErrorKind::Corrupt,
            Self::Store(error) => match error.kind() {
                // A table or family that is gone since it was looked for: no name that nobody has, and no mistake of who asks.
                ErrorKind::NotFound => ErrorKind::Bug,
                kind => kind,
            },
        }
    }
}

/// `a=b, c=d`, as Java prints a map's entries.
struct JoinedTags<'a>(&'a [(Box<str>, Box<str>)]);

impl std::fmt::Display for JoinedTags<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, (key, value))| {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{key}={value}")
        })
    }
}

const _: () = assert!(size_of::<Error>() < 128);
