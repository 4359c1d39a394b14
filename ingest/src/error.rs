//! Why a whole body or batch was refused. What is wrong with one point is a [`Problem`](crate::Problem), never this.

use basalt_store::ErrorKind;

/// Ingest's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing of a body or batch was taken.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A body without a character, or of blanks alone.
    #[error("Missing request content")]
    EmptyBody,
    /// A body that begins with something else than an object or an array.
    #[error("The JSON must start as an object or an array")]
    NotPoints,
    /// An array without an element.
    #[error("No datapoints found in content")]
    NoPoints,
    /// A body that is no JSON, or JSON that is no put.
    #[error("Unable to parse the given JSON: expected {expected} at byte {offset}")]
    Json {
        /// Byte of the trimmed text where the parser stood.
        offset: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// More points than a body may have.
    #[error("more than {max} data points in one body: send smaller batches")]
    TooManyPoints {
        /// The bound.
        max: usize,
    },
    /// Too much is under way.
    #[error("{what} under way are at the limit of {limit}: try again")]
    Throttled {
        /// Points or bytes.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// An error of the schema that does not concern one point alone.
    #[error(transparent)]
    Schema(#[from] basalt_schema::Error),
    /// An error of the store that does not concern one row alone.
    #[error(transparent)]
    Store(#[from] basalt_store::Error),
}

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EmptyBody | Self::NotPoints | Self::NoPoints | Self::Json { .. } | Self::TooManyPoints { .. } => {
                ErrorKind::Invalid
            }
            Self::Throttled { .. } => ErrorKind::Throttled,
            Self::Schema(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }

    /// OpenTSDB's message and details for it, as two fields of its error document.
    pub fn message_and_details(&self) -> (String, Option<String>) {
        match self {
            Self::Json { offset, expected } => {
                ("Unable to parse the given JSON".into(), Some(format!("expected {expected} at byte {offset}")))
            }
            _ => (self.to_string(), None),
        }
    }
}

const _: () = assert!(size_of::<Error>() < 128);
