//! The store's one error type, and the short list of what a caller can do about an error.

use std::sync::Arc;

/// What the caller can do; every crate's errors map to one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong; sent again it fails again.
    Invalid,
    /// A named thing (table, family, name) does not exist.
    NotFound,
    /// Another writer won, or the thing exists already.
    Conflict,
    /// A bound is reached; the same request succeeds later.
    Throttled,
    /// The store cannot be reached, or is closing; the outcome may be unknown.
    Unavailable,
    /// Reads are served, writes are refused until an operator or free space changes that.
    ReadOnly,
    /// Bytes on disk or on the wire are not what was written.
    Corrupt,
    /// A broken promise of our own code.
    Bug,
}

/// The store's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store refused or failed. Cheap to clone: one failed sync answers many waiting writers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A snapshot of this name is there already.
    #[error("snapshot '{snapshot}' already exists")]
    SnapshotExists {
        /// The name asked for.
        snapshot: Box<str>,
    },
    /// No snapshot of this name.
    #[error("unknown snapshot '{snapshot}'")]
    UnknownSnapshot {
        /// The name asked for.
        snapshot: Box<str>,
    },
    /// The table serves, and what was asked for needs that it does not.
    #[error("table '{table}' is enabled: disable it first")]
    TableEnabled {
        /// The table.
        table: Box<str>,
    },
    /// No table of this name.
    #[error("unknown table '{table}'")]
    UnknownTable {
        /// The name asked for.
        table: Box<str>,
    },
    /// A table of this name is there already.
    #[error("table '{table}' already exists")]
    TableExists {
        /// The name asked for.
        table: Box<str>,
    },
    /// The table is disabled: its cells can be neither read nor changed.
    #[error("table '{table}' is disabled")]
    TableDisabled {
        /// The table.
        table: Box<str>,
    },
    /// The table is enabled or disabled already.
    #[error("table '{table}' is {state} already")]
    TableState {
        /// The table.
        table: Box<str>,
        /// What it is.
        state: &'static str,
    },
    /// No namespace of this name.
    #[error("unknown namespace '{namespace}'")]
    UnknownNamespace {
        /// The name asked for.
        namespace: Box<str>,
    },
    /// A namespace of this name is there already.
    #[error("namespace '{namespace}' already exists")]
    NamespaceExists {
        /// The name asked for.
        namespace: Box<str>,
    },
    /// A namespace that holds tables was to be dropped.
    #[error("only empty namespaces can be dropped; '{namespace}' holds {tables_count} tables")]
    NamespaceNotEmpty {
        /// The namespace.
        namespace: Box<str>,
        /// How many tables it holds.
        tables_count: u64,
    },
    /// A namespace's quota has no room.
    #[error("namespace '{namespace}' may have {limit} by {quota}, this would make {wanted}")]
    OverQuota {
        /// The namespace.
        namespace: Box<str>,
        /// The property that sets the quota.
        quota: &'static str,
        /// The quota.
        limit: u64,
        /// What there would be.
        wanted: u64,
    },
    /// A value that a constraint of the table does not allow.
    #[error("constraint '{constraint}' does not allow the value '{value}'")]
    ConstraintBroken {
        /// The constraint's name.
        constraint: Box<str>,
        /// The value, printable.
        value: Box<str>,
    },
    /// The table has no such column family.
    #[error("table '{table}' has no column family '{family}'")]
    UnknownFamily {
        /// The table.
        table: Box<str>,
        /// The family asked for, printable.
        family: Box<str>,
    },
    /// A table, namespace or family name that the rules refuse.
    #[error("illegal {what} '{name}': {reason}")]
    InvalidName {
        /// Which kind of name.
        what: &'static str,
        /// The name as given.
        name: Box<str>,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// An argument that the rules refuse.
    #[error("invalid {what}: {reason}")]
    InvalidArgument {
        /// Which argument.
        what: &'static str,
        /// The rule it breaks, and what to do.
        reason: Box<str>,
    },
    /// A size over its bound.
    #[error("{what} of {size} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The bound in bytes.
        limit: u64,
    },
    /// An increment of a cell whose value is not an 8-byte counter.
    #[error("the cell holds {length} bytes, not a counter of 8 bytes")]
    NotACounter {
        /// Length of the stored value in bytes.
        length: usize,
    },
    /// A queue or budget is full.
    #[error("{what} is full; try again")]
    Throttled {
        /// The bound that is reached.
        what: &'static str,
    },
    /// Writes are refused; reads go on.
    #[error("the store is read-only: {reason}")]
    ReadOnly {
        /// Why.
        reason: Box<str>,
    },
    /// The store is closing or gone; an unfinished write may or may not be stored.
    #[error("the store is closed")]
    Closed,
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// Damaged bytes.
    #[error("{file} is damaged at byte {offset}: expected {expected}, found {found}")]
    Corrupt {
        /// The file's name.
        file: Box<str>,
        /// Where in it.
        offset: u64,
        /// What should be there.
        expected: Box<str>,
        /// What is there.
        found: Box<str>,
    },
    /// A store's own failure, carried with its kind.
    #[error("{source}")]
    Backend {
        /// What the caller can do.
        kind: ErrorKind,
        /// The store's own error.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Wraps a store's own error.
    pub fn backend(kind: ErrorKind, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Backend { kind, source: Arc::new(source) }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownSnapshot { .. }
            | Self::UnknownTable { .. }
            | Self::UnknownFamily { .. }
            | Self::UnknownNamespace { .. } => ErrorKind::NotFound,
            Self::SnapshotExists { .. }
            | Self::TableEnabled { .. }
            | Self::TableExists { .. }
            | Self::TableState { .. }
            | Self::NamespaceExists { .. }
            | Self::NamespaceNotEmpty { .. } => ErrorKind::Conflict,
            Self::OverQuota { .. }
            | Self::ConstraintBroken { .. }
            | Self::InvalidName { .. }
            | Self::InvalidArgument { .. }
            | Self::TooLarge { .. }
            | Self::NotACounter { .. } => ErrorKind::Invalid,
            Self::Throttled { .. } => ErrorKind::Throttled,
            Self::ReadOnly { .. } => ErrorKind::ReadOnly,
            Self::Closed | Self::Cancelled | Self::TableDisabled { .. } => ErrorKind::Unavailable,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Backend { kind, .. } => *kind,
        }
    }
}

const _: () = assert!(size_of::<Error>() < 128);

/// An error and what caused it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(below) = cause {
        let text = below.to_string();
        // A transparent error repeats what it wraps.
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = below.source();
    }
    line.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "cannot write x" alone would not say that the disk is full.
    #[test]
    fn a_line_names_the_cause_below_once() {
        let cause = Error::backend(ErrorKind::ReadOnly, std::io::Error::other("no\nspace"));
        assert_eq!(with_causes(&cause), "no space");
        let parse = "x".parse::<u32>().unwrap_err();
        let outer = std::io::Error::new(std::io::ErrorKind::InvalidData, parse.clone());
        assert_eq!(with_causes(&outer), parse.to_string());
    }
}
