//! What can be wrong with one point, and OpenTSDB's words for it at each door.
//!
//! *Source*: OpenTSDB 2.4 `PutDataPointRpc`, `IncomingDataPoint.validate`, `TSDB.addPoint`, `IncomingDataPoints`; the
//! texts were compared with those of a running 2.4.1.

use basalt_store::ErrorKind;

use crate::NumberError;

/// How the text of a point begins that the store will never take, such as one whose cell is over its bound. OpenTSDB has no such
/// points; those that a store did not take for now begin with `Storage exception:`, as there.
pub const REFUSED_FOR_GOOD: &str = "Storage exception for good";

/// Why a point was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// `null` instead of a point.
    NullPoint,
    /// Fewer words than a line must have.
    NotEnoughWords {
        /// How many there are.
        found: usize,
        /// How many there must be.
        least: usize,
    },
    /// A rule that only rollups or histograms have.
    Illegal {
        /// OpenTSDB's words for it, the same at every door.
        text: Box<str>,
    },
    /// An interval that no rollup is kept of.
    UnknownRollup {
        /// The interval.
        interval: Box<str>,
    },
    /// Bytes that are not a histogram of their codec.
    Unreadable,
    /// A problem that OpenTSDB finds only on the way to its store; for a line its words are those of a store's error.
    Late {
        /// What it is.
        text: Box<str>,
    },
    /// No metric.
    EmptyMetric,
    /// A time that is not a number (of lines only; a body with such a time is refused as a whole).
    NotATime(NumberError),
    /// A time of zero or before.
    InvalidTimestamp {
        /// The time.
        timestamp: i64,
    },
    /// No value.
    EmptyValue,
    /// No tag.
    NoTags {
        /// The metric.
        metric: Box<str>,
    },
    /// A word of a line that is not `key=value`.
    InvalidTag {
        /// The word.
        word: Box<str>,
    },
    /// Two values of one key.
    DuplicateTag {
        /// The later one's word.
        word: Box<str>,
        /// The tags before it, as Java prints a map.
        tags: Box<str>,
    },
    /// A value that is no number.
    NotANumber(NumberError),
    /// A value beyond the largest double.
    NotFinite {
        /// `Infinity` or `-Infinity`.
        value: &'static str,
        /// The metric.
        metric: Box<str>,
        /// The time.
        timestamp: i64,
    },
    /// A time that no row can hold.
    TimestampTooLarge {
        /// The time.
        timestamp: i64,
        /// The value's bytes as Java prints them, and its flags: `[1]/0`.
        value: Box<str>,
        /// The metric.
        metric: Box<str>,
        /// The tags, as Java prints a map.
        tags: Box<str>,
    },
    /// More tags than allowed.
    TooManyTags {
        /// How many there are.
        found: usize,
        /// How many there may be.
        max: usize,
        /// The tags, as Java prints a map.
        tags: Box<str>,
    },
    /// A metric, tag name or tag value that the rules of names refuse.
    InvalidName {
        /// What it is for: `metric name`, `tag name with value [x]`, `tag value with key [k]`.
        role: Box<str>,
        /// What is wrong: `empty string`, `null`, or the name and the character.
        reason: Box<str>,
    },
    /// A name that has no UID where none may be made.
    UnknownName {
        /// The schema's text: `No such name for 'metrics': 'x'`.
        text: Box<str>,
    },
    /// A new name that gets no UID: the filter of names refuses it, or none is left on the width.
    NameRefused {
        /// The schema's text.
        text: Box<str>,
    },
    /// A bound of the store, or of what is under way, is reached; the point may be stored when it is sent again.
    Throttled {
        /// Which one.
        text: Box<str>,
    },
    /// The store or the schema failed.
    Storage {
        /// What the caller can do.
        kind: ErrorKind,
        /// The text of the cause.
        text: Box<str>,
    },
    /// The caller's time ran out; the point may still be stored.
    TimedOut,
}

/// How OpenTSDB counts and words a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemClass {
    /// The point is wrong: `illegal argument`.
    IllegalArgument,
    /// Its value, or a line's time, is no number: `invalid value`.
    InvalidValue,
    /// A name is unknown: `unknown metric`.
    UnknownMetric,
    /// Try again later.
    Throttled,
    /// The store failed.
    Storage,
    /// Time ran out.
    TimedOut,
}

impl ProblemClass {
    /// All classes, in the order of [`ProblemClass::index`].
    pub const ALL: [Self; 6] = [
        Self::IllegalArgument,
        Self::InvalidValue,
        Self::UnknownMetric,
        Self::Throttled,
        Self::Storage,
        Self::TimedOut,
    ];

    /// The label of metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::IllegalArgument => "illegal_arguments",
            Self::InvalidValue => "invalid_values",
            Self::UnknownMetric => "unknown_metrics",
            Self::Throttled => "throttled",
            Self::Storage => "storage",
            Self::TimedOut => "timed_out",
        }
    }

    /// Its place in [`ProblemClass::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the point itself is wrong, so that sending it again does not help.
    pub const fn is_rejection(self) -> bool {
        matches!(self, Self::IllegalArgument | Self::InvalidValue | Self::UnknownMetric)
    }
}

impl Problem {
    /// Whether the store was away, which it may be for the next point as well.
    pub(crate) const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Storage { kind: ErrorKind::Unavailable, .. })
    }

    /// How it is counted and worded.
    pub const fn class(&self) -> ProblemClass {
        match self {
            Self::NotATime(_) | Self::NotANumber(_) => ProblemClass::InvalidValue,
            Self::UnknownName { .. } | Self::NameRefused { .. } => ProblemClass::UnknownMetric,
            Self::Throttled { .. } => ProblemClass::Throttled,
            Self::Storage { .. } => ProblemClass::Storage,
            Self::TimedOut => ProblemClass::TimedOut,
            _ => ProblemClass::IllegalArgument,
        }
    }

    /// The text of `errors[].error` in a put's details.
    pub fn http_text(&self) -> String {
        match self {
            Self::Unreadable | Self::UnknownRollup { .. } => "Unexpected exception".into(),
            Self::NullPoint => "Unexpected null datapoint encountered in set.".into(),
            Self::EmptyMetric => "Metric name was empty".into(),
            Self::InvalidTimestamp { .. } => "Invalid timestamp".into(),
            Self::EmptyValue => "Empty value".into(),
            Self::NoTags { .. } => "Missing tags".into(),
            Self::NotANumber(_) | Self::NotATime(_) => "Unable to parse value to a number".into(),
            Self::UnknownName { .. } => "Unknown metric".into(),
            // OpenTSDB answers "Unexpected exception" here, and nothing over telnet.
            Self::NameRefused { text } => text.to_string(),
            Self::Throttled { text } => format!("Please throttle writes: {text}"),
            Self::Storage { kind: ErrorKind::Invalid, text } => format!("{REFUSED_FOR_GOOD}: {text}"),
            Self::Storage { text, .. } => format!("Storage exception: {text}"),
            Self::TimedOut => "Write timedout".into(),
            _ => self.argument_text(),
        }
    }

    /// The line that answers `command` (`put`), without its end.
    pub fn telnet_text(&self, command: &str) -> String {
        match self {
            Self::NotATime(error) | Self::NotANumber(error) => format!("{command}: invalid value: {error}"),
            Self::UnknownName { text } | Self::NameRefused { text } => format!("{command}: unknown metric: {text}"),
            Self::Throttled { text } => format!("{command}: Please throttle writes: {text}"),
            // Collectors look for these words, so they stay, whatever the store is.
            Self::Storage { text, .. } | Self::Late { text } => format!("{command}: HBase error: {text}"),
            Self::UnknownRollup { interval } => format!("{command}: No such rollup: {interval}"),
            Self::TimedOut => format!("{command}: Request timed out: the write was not answered in time"),
            _ => format!("{command}: illegal argument: {}", self.argument_text()),
        }
    }

    /// The words of an illegal argument, the same at every door.
    pub(crate) fn argument_text(&self) -> String {
        match self {
            Self::NotEnoughWords { found, least } => {
                format!("not enough arguments (need least {least}, got {found})")
            }
            Self::Illegal { text } | Self::Late { text } => text.to_string(),
            Self::EmptyMetric => "empty metric name".into(),
            Self::InvalidTimestamp { timestamp } => format!("invalid timestamp: {timestamp}"),
            Self::EmptyValue => "empty value".into(),
            Self::NoTags { metric } => format!("Need at least one tag (metric={metric}, tags={{}})"),
            Self::InvalidTag { word } => format!("invalid tag: {word}"),
            Self::DuplicateTag { word, tags } => format!("duplicate tag: {word}, tags={tags}"),
            Self::NotFinite { value, metric, timestamp } => {
                format!("value is NaN or Infinite: {value} for metric={metric} timestamp={timestamp}")
            }
            Self::TimestampTooLarge { timestamp, value, metric, tags } => {
                format!("bad timestamp={timestamp} when trying to add value={value} to metric={metric}, tags={tags}")
            }
            Self::TooManyTags { found, max, tags } => {
                format!("Too many tags: {found} maximum allowed: {max}, tags: {tags}")
            }
            Self::InvalidName { role, reason } => format!("Invalid {role}{reason}"),
            _ => self.http_text(),
        }
    }
}

const _: () = assert!(size_of::<Problem>() <= 64);
