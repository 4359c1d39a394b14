//! What can be wrong with a text of a request, a kind of text each, in OpenTSDB's words where it has some.

/// What is wrong with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeFault {
    /// A date of none of the known lengths.
    AbsoluteDate,
    /// A date that is no date.
    Unparsable,
    /// A dot anywhere but before one to three digits of milliseconds.
    Dotted,
    /// Below zero.
    Negative,
    /// A character that is no digit.
    Character(char),
    /// More digits than a number may have.
    TooLong,
    /// Beyond 64 bits.
    Overflow,
    /// A sign alone.
    JustASign,
}

impl TimeFault {
    pub(super) fn message(self, text: &str) -> String {
        match self {
            Self::AbsoluteDate => format!("Invalid absolute date: {text}"),
            Self::Unparsable => format!("Invalid date: {text}. Unparseable date: \"{text}\""),
            Self::Dotted => format!(
                "Invalid time: {text}. Millisecond timestamps must be in the format <seconds>.<ms> where the \
                 milliseconds are limited to 3 digits"
            ),
            Self::Negative => format!("Invalid time: {text}. Negative timestamps are not supported."),
            Self::Character(found) => format!("Invalid time: {text}. Invalid character '{found}' in {text}"),
            Self::TooLong => format!("Invalid time: {text}. Value too long: {text}"),
            Self::Overflow => format!("Invalid time: {text}. Overflow in {text}"),
            Self::JustASign => format!("Invalid time: {text}. Just a sign, no value: {text}"),
        }
    }
}

/// What is wrong with a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationFault {
    /// No text.
    Empty,
    /// Digits alone.
    NoUnit,
    /// No number, or one beyond 64 bits.
    Number,
    /// Zero.
    Zero,
    /// A unit nobody knows.
    Suffix,
    /// Beyond 64 bits of milliseconds.
    TooLong,
}

impl DurationFault {
    pub(super) fn message(self, text: &str) -> String {
        match self {
            Self::Empty => "Cannot parse null or empty duration".to_owned(),
            Self::NoUnit => format!("Invalid duration, must have an integer and unit: {text}"),
            Self::Number => format!("Invalid duration (number): {text}"),
            Self::Zero => format!("Zero or negative duration: {text}"),
            Self::Suffix => format!("Invalid duration (suffix): {text}"),
            Self::TooLong => format!("Duration must be < Long.MAX_VALUE ms: {text}"),
        }
    }
}

/// What is wrong with a downsampling specifier.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownsampleFault {
    /// Fewer than two parts.
    TooFewParts,
    /// More than three parts.
    TooManyParts,
    /// A function nobody knows.
    Function(Box<str>),
    /// `none` as the function.
    None,
    /// A fill policy nobody knows.
    Fill(Box<str>),
    /// `scalar`: OpenTSDB takes it and fails at the first gap.
    Scalar,
    /// An interval too long for the calendar.
    CalendarInterval,
    /// What stands before a calendar's unit is no number.
    CalendarCount(Box<str>),
}

impl DownsampleFault {
    pub(super) fn message(&self, text: &str) -> String {
        match self {
            Self::TooFewParts => {
                format!("Invalid downsampling specifier '{text}': must provide at least interval and function")
            }
            Self::TooManyParts => format!(
                "Invalid downsampling specifier '{text}': must consist of interval, function, and optional fill policy"
            ),
            Self::Function(name) => format!("No such downsampling function: {name}"),
            Self::None => "cannot use the NONE aggregator for downsampling".to_owned(),
            Self::Fill(name) => format!("Unrecognized fill policy: {name}"),
            Self::Scalar => {
                format!(
                    "Invalid downsampling specifier '{text}': the fill policy scalar is not for queries; use none, nan, null or zero"
                )
            }
            Self::CalendarInterval => {
                format!("Invalid downsampling specifier '{text}': the interval is too long for a calendar")
            }
            Self::CalendarCount(count) => format!("For input string: \"{count}\""),
        }
    }
}

/// What is wrong with an `m=` or `tsuid=` text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarFault {
    /// An empty `m=`.
    EmptyMetricQuery,
    /// An empty `tsuid=`.
    EmptyTsuidQuery,
    /// Fewer than two parts.
    TooFewParts,
    /// More than five parts.
    TooManyParts,
    /// Nothing between two colons.
    EmptyPart,
    /// `rate{` and nothing after it.
    RateSpec,
    /// More than three rate options.
    RateOptions(usize),
    /// The counter's maximum is no number.
    CounterMax,
    /// The reset value is no number.
    ResetValue,
    /// Percentiles without brackets.
    Percentiles,
    /// A percentile that is no number.
    Percentile,
    /// Nothing where the metric should be.
    EmptyMetric,
    /// Braces that do not end the metric.
    MissingBrace,
}

impl GrammarFault {
    pub(super) fn message(self, text: &str) -> String {
        match self {
            Self::EmptyMetricQuery => "The query string was empty".to_owned(),
            Self::EmptyTsuidQuery => "The tsuid query string was empty".to_owned(),
            Self::TooFewParts => format!("Invalid parameter m={text} (not enough :-separated parts)"),
            Self::TooManyParts => format!("Invalid parameter m={text} (too many :-separated parts)"),
            Self::EmptyPart => format!("Invalid parameter m={text} (an empty :-separated part)"),
            Self::RateSpec => format!("Invalid rate options specification: {text}"),
            // "recieved" is OpenTSDB's spelling.
            Self::RateOptions(parts) => format!(
                "Incorrect number of values in rate options specification, must be counter[,counter max \
                 value,reset value], recieved: {parts} parts"
            ),
            Self::CounterMax => format!("Max value of counter was not a number, received '{text}'"),
            Self::ResetValue => format!("Reset value of counter was not a number, received '{text}'"),
            // "Malformated" and "paramater" are OpenTSDB's.
            Self::Percentiles => format!("Malformated percentile query paramater: {text}"),
            Self::Percentile => format!("Invalid percentiles specification: {text}"),
            Self::EmptyMetric => "Metric cannot be null or empty".to_owned(),
            Self::MissingBrace => format!("Missing '}}' at the end of: {text}"),
        }
    }

    pub(super) fn is_in_metric(self) -> bool {
        matches!(self, Self::EmptyPart | Self::Percentile | Self::EmptyMetric | Self::MissingBrace)
    }
}

/// What is wrong with a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterFault {
    /// Not `key=value`.
    Pair,
    /// A key that has another value already, and the tags so far as Java prints them.
    Duplicate(Box<str>),
    /// No type.
    NoType,
    /// No tag key.
    NoTagk,
    /// A type nobody knows.
    UnknownType,
    /// No closing parenthesis.
    Unclosed,
    /// No text.
    Empty,
    /// A pipe alone.
    JustAPipe,
    /// A wildcard without a star.
    NoStar,
    /// `not_key` with a text.
    NotKeyWithText,
    /// No regular expression, and what its reader says.
    Regex(Box<str>),
    /// One that reads as one and does not compile here: a class that we do not know, or too much memory.
    RegexRefused(Box<str>),
}

impl FilterFault {
    pub(super) fn message(&self, text: &str) -> String {
        match self {
            Self::Pair => format!("invalid tag: {text}"),
            Self::Duplicate(tags) => format!("duplicate tag: {text}, tags={tags}"),
            Self::NoType => "The filter type cannot be null or empty".to_owned(),
            Self::NoTagk => "The tagk cannot be null or empty".to_owned(),
            Self::UnknownType => format!("Could not find a tag value filter of the type: {text}"),
            Self::Unclosed => format!("Filter must end with a ')': {text}"),
            Self::Empty => "Filter cannot be null or empty".to_owned(),
            Self::JustAPipe => "Filter must contain more than just a pipe".to_owned(),
            Self::NoStar => "Filter must contain an asterisk".to_owned(),
            Self::NotKeyWithText => "The filter must be empty for the not_key filter".to_owned(),
            Self::Regex(reason) | Self::RegexRefused(reason) => format!(
                "The regular expression '{text}' is not one we can run: {reason} (look-around and back-references \
                 are not supported)"
            ),
        }
    }
}

/// What is wrong with a query of histograms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistogramFault {
    /// Another function across series.
    #[error("Only NONE or SUM aggregation function supported for histogram query")]
    Aggregator,
    /// Another function of downsampling.
    #[error("Only SUM downsampling aggregation supported for histogram query")]
    Downsample,
    /// A percentile below 0 or above 100.
    #[error("Invalid percentile parameters: {0}")]
    Percentile(Box<str>),
}
