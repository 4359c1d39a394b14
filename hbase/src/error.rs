//! The crate's one error type, and what becomes of it in the contract's.

use basalt_store::{Error as StoreError, ErrorKind, TableName};

use crate::exception::Exception;

/// Why HBase did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing answered at an address, or nobody can be asked where to go; nothing was done.
    #[error("cannot reach {what}: {reason}")]
    Unreachable {
        /// Whom.
        what: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// No answer in time: it may be done, or done later, or never.
    #[error("{server} did not answer {call} in time; whether it was done is unknown")]
    TimedOut {
        /// The server's address.
        server: Box<str>,
        /// The call.
        call: &'static str,
    },
    /// A master that does not know any more what became of a change of tables, and nothing shows that it was made.
    #[error(
        "the master does not know any more how {call} ended, and nothing shows that it was done: whether it was is unknown; \
         look before it is asked for again"
    )]
    Forgotten {
        /// The call.
        call: &'static str,
    },
    /// Regions that were flushed already, or closed, for as long as they were asked to flush.
    #[error(
        "{regions} regions did not flush what they hold in memory, as they are busy flushing or closing: ask again later"
    )]
    Unflushed {
        /// How many.
        regions: usize,
    },
    /// A connection ended with calls under way: they may be done or not.
    #[error("the connection to {server} ended: {reason}; whether what was asked was done is unknown")]
    Lost {
        /// The server's address.
        server: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// The cluster asks for a login, and there is none here; nothing was done.
    #[error(
        "{server} takes nobody without a login by SASL (hbase.security.authentication = kerberos), which is not \
         supported: it said '{message}'"
    )]
    LoginRequired {
        /// The server's address.
        server: Box<str>,
        /// What it said.
        message: Box<str>,
    },
    /// HBase's own refusal.
    #[error("{class}: {message}")]
    Refused {
        /// The exception's class.
        class: Box<str>,
        /// What it says.
        message: Box<str>,
        /// What a caller can do.
        kind: ErrorKind,
    },
    /// An answer that cannot be read.
    #[error("{what} of HBase's answer cannot be read: {reason}")]
    Malformed {
        /// Which part.
        what: &'static str,
        /// What is wrong.
        reason: Box<str>,
    },
    /// What was asked is larger than one call may be.
    #[error("{what} of {bytes} bytes is over the {limit} bytes that one call may hold")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// What HBase could do and this client cannot.
    #[error("{what} is not supported")]
    NotSupported {
        /// What.
        what: &'static str,
    },
    /// A setting that cannot be.
    #[error("{what}: {reason}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// Our own part ended.
    #[error("the client's own part ended")]
    Ended,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Forgotten { .. }
            | Self::Unflushed { .. }
            | Self::Lost { .. }
            // It lasts until an operator changes the cluster or its settings: points are good meanwhile, and not to be dropped.
            | Self::LoginRequired { .. }
            | Self::Ended => ErrorKind::Unavailable,
            Self::Refused { kind, .. } => *kind,
            Self::Malformed { .. } => ErrorKind::Corrupt,
            Self::TooLarge { .. } | Self::NotSupported { .. } | Self::Setting { .. } => ErrorKind::Invalid,
        }
    }

    pub(crate) fn malformed(what: &'static str, reason: impl Into<Box<str>>) -> Self {
        Self::Malformed { what, reason: reason.into() }
    }
}

impl From<Exception> for Error {
    fn from(exception: Exception) -> Self {
        let kind = exception.kind();
        let Exception { class, mut message, is_of_batch, .. } = exception;
        if is_of_batch {
            message = format!("{message}; whether it was done is unknown").into();
        }
        Self::Refused { class, message, kind }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::backend(error.kind(), error)
    }
}

/// The contract's own error for an exception about a table, where it has one.
pub(crate) fn about(table: &TableName, exception: Exception) -> StoreError {
    let table: Box<str> = table.to_string().into();
    match &*exception.class {
        "TableNotFoundException" => StoreError::UnknownTable { table },
        "TableExistsException" => StoreError::TableExists { table },
        "TableNotEnabledException" => StoreError::TableState { table, state: "disabled" },
        "TableNotDisabledException" => StoreError::TableState { table, state: "enabled" },
        // HBase names at most a region.
        _ if exception.is_of_read_only_table() => {
            StoreError::ReadOnly { reason: format!("table '{table}' is set READONLY").into() }
        }
        _ => Error::from(exception).into(),
    }
}

/// Why one call has no answer that can be used.
#[derive(Debug)]
pub(crate) enum CallError {
    /// It was not sent.
    Unsent(Error),
    /// It was sent, and what became of it is not known.
    Unknown(Error),
    /// The server refused.
    Refused(Exception),
}

impl CallError {
    /// Whether it is the same however often it is tried.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Unsent(Error::LoginRequired { .. }) | Self::Unknown(Error::LoginRequired { .. }))
    }

    /// The error where nothing more is tried.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Unsent(error) | Self::Unknown(error) => error,
            Self::Refused(exception) => exception.into(),
        }
    }
}
