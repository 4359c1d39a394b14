//! The query crate's one error type. Texts are OpenTSDB's where it has one, since clients show and match them.
//!
//! A variant carries data; `Display` is the message of the answer and [`Error::details`] its optional second line. What can be
//! wrong with one kind of request or of text is an enum of its own below this one: an error knows words, and nothing of what
//! reads them.

mod expression;
mod fault;
mod formula;
mod last;

use basalt_store::ErrorKind;

pub use expression::ExpressionFault;
pub use fault::{DownsampleFault, DurationFault, FilterFault, GrammarFault, HistogramFault, TimeFault};
pub use formula::FormulaFault;
pub use last::LastFault;

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a query is refused or fails. Cheap to clone: one failed scan answers for all of its query.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The body is not the JSON of a query.
    #[error("Unable to parse the given JSON")]
    Json {
        /// What the parser says.
        reason: Box<str>,
    },
    /// No `start`.
    #[error("Missing start time")]
    MissingStart,
    /// A parameter of the query string that must be there.
    #[error("Missing parameter <code>{name}</code>")]
    MissingParameter {
        /// Its name.
        name: &'static str,
    },
    /// No sub query in a POST.
    #[error("Missing queries")]
    MissingQueries,
    /// A POST without a list of sub queries, in the words of OpenTSDB, which crashes over it; strictly alone.
    #[error("An internal null pointer exception was thrown")]
    NullQueries,
    /// Neither `m` nor `tsuid` in a GET.
    #[error("Missing sub queries")]
    MissingSubQueries,
    /// More of something than a request may have.
    #[error("A request may have at most {limit} {what}; split it")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// `end` is not after `start`; milliseconds.
    #[error("End time [{end_ms}] must be greater than the start time [{start_ms}]")]
    EndNotAfterStart {
        /// Start in ms.
        start_ms: i64,
        /// End in ms.
        end_ms: i64,
    },
    /// A time that cannot be read.
    #[error("{}", fault.message(text))]
    Time {
        /// The text as given.
        text: Box<str>,
        /// What is wrong.
        fault: TimeFault,
    },
    /// A time that no point may have.
    #[error("Invalid timestamp: {time_ms}")]
    TimeOutOfRange {
        /// Milliseconds.
        time_ms: i64,
    },
    /// A duration that cannot be read.
    #[error("{}", fault.message(text))]
    Duration {
        /// The text as given.
        text: Box<str>,
        /// What is wrong.
        fault: DurationFault,
    },
    /// A time zone nobody knows, needed for downsampling alone.
    #[error("The timezone specification could not be found")]
    UnknownDownsampleTimezone,
    /// A time zone nobody knows.
    #[error("Invalid timezone name: {name}")]
    UnknownTimezone {
        /// The name as given.
        name: Box<str>,
    },
    /// No aggregator.
    #[error("Missing the aggregation function")]
    MissingAggregator,
    /// An aggregator nobody knows.
    #[error("No such aggregation function: {name}")]
    UnknownAggregator {
        /// The name as given.
        name: Box<str>,
    },
    /// Neither metric nor TSUIDs.
    #[error("Missing the metric or tsuids, provide at least one")]
    MissingMetric,
    /// A downsampling specifier that cannot be read.
    #[error("{}", fault.message(text))]
    Downsample {
        /// The text as given.
        text: Box<str>,
        /// What is wrong.
        fault: DownsampleFault,
    },
    /// An `m=` or `tsuid=` text that cannot be read.
    #[error("{}", fault.message(text))]
    Grammar {
        /// The text, or the part of it that is wrong.
        text: Box<str>,
        /// What is wrong.
        fault: GrammarFault,
    },
    /// A filter that cannot be read.
    #[error("{}", fault.message(text))]
    Filter {
        /// The text, or the part of it that is wrong.
        text: Box<str>,
        /// What is wrong.
        fault: FilterFault,
    },
    /// A filter's fault, and which tag of `m=` it is in.
    #[error("When parsing {what} '{text}': {source}")]
    InTag {
        /// `tag` in the first braces, `filter` in the second.
        what: &'static str,
        /// The tag as given.
        text: Box<str>,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// A name without a UID.
    #[error("No such name for '{kind}': '{name}'")]
    UnknownName {
        /// `metrics`, `tagk` or `tagv`.
        kind: &'static str,
        /// The name as given.
        name: Box<str>,
    },
    /// A name without a character.
    #[error("Missing UID name")]
    EmptyName,
    /// A TSUID that is not hex, or not as long as a TSUID must be.
    #[error("Invalid TSUID '{text}': it must be the hex digits of a metric's UID and of pairs of tag UIDs")]
    InvalidTsuid {
        /// The text as given.
        text: Box<str>,
    },
    /// TSUIDs of two metrics in one sub query.
    #[error("One or more TSUIDs did not share the same metric [{first}] [{other}]")]
    TsuidsOfTwoMetrics {
        /// The first one's metric, hex.
        first: Box<str>,
        /// Another's metric, hex.
        other: Box<str>,
    },
    /// A query of histograms that asks for more than sums, or for a percentile that is none.
    #[error("{fault}")]
    Histogram {
        /// What is wrong.
        fault: HistogramFault,
    },
    /// Rollups do not tell how far values lie apart.
    #[error("Standard deviation over rolled up data is not supported at this time")]
    RollupDeviation,
    /// A downsampling function of which no rollups are kept.
    #[error("No ID found mapping to aggregator: {name}")]
    NoRollupAggregate {
        /// Its name.
        name: Box<str>,
    },
    /// Pre-aggregates are asked where no rollups are configured, whose tables they lie in.
    #[error("Pre-aggregates are kept only where rollups are configured")]
    NoRollups,
    /// Rows that were to be deleted and are not: others change them all the time.
    #[error("{rows} rows were written while they were being deleted; ask again")]
    RowsBusy {
        /// How many.
        rows: usize,
    },
    /// Rows that were to be deleted and are not: they were written in the future.
    #[error(
        "{rows} rows bear times {} s after this server's clock, which was set back or is behind that of another server; \
         ask again when it has reached them",
        ahead_ms / 1000
    )]
    RowsAhead {
        /// How many.
        rows: usize,
        /// How far the youngest of them is ahead.
        ahead_ms: i64,
    },
    /// A delete where cells bear the times of their points: its tombstones would hide points that are put again later.
    #[error(
        "Points cannot be deleted where cells bear the times of their points: one that is put again would stay hidden. \
         Set schema.use_otsdb_timestamp to false to delete, and run a major compaction before it is true again."
    )]
    DeleteWithPointTimes,
    /// A formula of `/api/query/gexp` that cannot be read or makes no sense.
    #[error(transparent)]
    Formula(FormulaFault),
    /// A request of `/api/query/exp` that makes no sense.
    #[error(transparent)]
    Expression(ExpressionFault),
    /// A request of `/api/query/last` that makes no sense.
    #[error("{0}")]
    Last(LastFault),
    /// More points than the budget.
    #[error(
        "Sorry, you have attempted to fetch more than our limit of {limit} data points. Please try filtering using \
         more tags or decrease your time range."
    )]
    TooManyPoints {
        /// The budget.
        limit: u64,
    },
    /// More points made up than the budget, by fill policies or expressions.
    #[error(
        "Sorry, the fill policy or the expressions of this query would make up more than our limit of {limit} data points, \
         one for each instant or interval of each series. Please try a longer downsampling interval, no fill policy, \
         filtering using more tags or decrease your time range."
    )]
    TooManyMadeUp {
        /// The budget.
        limit: u64,
    },
    /// More bytes than the budget.
    #[error(
        "Sorry, you have attempted to fetch more than our maximum amount of {}MB from storage. Please try filtering \
         using more tags or decrease your time range.", limit_bytes / (1024 * 1024)
    )]
    TooManyBytes {
        /// The budget in bytes.
        limit_bytes: u64,
    },
    /// More series than the budget.
    #[error(
        "Sorry, you have attempted to fetch more than our limit of {limit} series (query.max_series). Please try \
         filtering using more tags."
    )]
    TooManySeries {
        /// The budget.
        limit: usize,
    },
    /// The newest points lie behind more rows than are looked for.
    #[error(
        "Sorry, you have attempted to look for more than our limit of {limit} rows. Please try fewer series or a \
         shorter back scan."
    )]
    TooManyLookUps {
        /// The bound.
        limit: u64,
    },
    /// This query alone needs more memory than all queries may hold.
    #[error(
        "Sorry, you have attempted to fetch more than fits into the {}MB of memory of all queries (query.memory_bytes). \
         Please try filtering using more tags or decrease your time range.", limit_bytes / (1024 * 1024)
    )]
    TooMuchMemory {
        /// The bound in bytes.
        limit_bytes: u64,
    },
    /// The queries that run hold the memory that they may hold together.
    #[error(
        "The queries that run now hold the {}MB of memory that they may hold together (query.memory_bytes). Please ask \
         again.", limit_bytes / (1024 * 1024)
    )]
    MemoryTaken {
        /// The bound in bytes.
        limit_bytes: u64,
        /// What this query held, with what it asked for.
        wanted_bytes: u64,
    },
    /// Others that read as much kept it waiting ([`Gate`](crate::Gate)).
    #[error(
        "Other queries that read as much as this one kept it waiting too long; the log tells slow ones. Please ask again, \
         or filter using more tags or decrease your time range."
    )]
    NoTurn,
    /// Not done within the time allowed.
    #[error("The query did not finish within {limit_ms} ms. Please decrease your time range or use more tags.")]
    DeadlineExceeded {
        /// The time allowed.
        limit_ms: u64,
    },
    /// Whoever asked is gone.
    #[error("The query was cancelled")]
    Cancelled,
    /// An aggregate is too large for a number of JSON.
    #[error("Got Infinity: Infinity at {time_ms} ms")]
    Infinite {
        /// The instant.
        time_ms: i64,
    },
    /// An annotation whose cell holds no JSON.
    #[error("the annotation at {start_ms} ms is no JSON: {reason}")]
    CorruptAnnotation {
        /// When it starts.
        start_ms: i64,
        /// What the parser says.
        reason: Box<str>,
    },
    /// A worker of the query ended by panic.
    #[error("BUG: a query worker panicked")]
    WorkerPanicked,
    /// No thread for a worker.
    #[error("no thread for a query worker: {reason}")]
    NoWorker {
        /// What the system says.
        reason: Box<str>,
    },
    /// The store's own.
    #[error(transparent)]
    Store(#[from] basalt_store::Error),
    /// The schema's own.
    #[error(transparent)]
    Schema(#[from] basalt_schema::Error),
}

impl Error {
    /// What the caller can do about it.
    ///
    /// The budgets are `Invalid` ([`Error::TooManyPoints`], [`Error::TooManyMadeUp`], [`Error::TooManyBytes`],
    /// [`Error::TooManySeries`], [`Error::TooManyLookUps`], [`Error::TooMuchMemory`]: 413 in HTTP) or `Throttled` ([`Error::DeadlineExceeded`]: 408,
    /// [`Error::MemoryTaken`], [`Error::NoTurn`]: 503).
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DeadlineExceeded { .. }
            | Self::MemoryTaken { .. }
            | Self::NoTurn
            | Self::RowsBusy { .. }
            | Self::RowsAhead { .. } => ErrorKind::Throttled,
            Self::Cancelled | Self::NoWorker { .. } => ErrorKind::Unavailable,
            Self::CorruptAnnotation { .. } => ErrorKind::Corrupt,
            Self::WorkerPanicked => ErrorKind::Bug,
            Self::Store(error) => match error.kind() {
                // As of the schema, whose tables these are.
                ErrorKind::NotFound => ErrorKind::Bug,
                kind => kind,
            },
            Self::Schema(error) => error.kind(),
            _ => ErrorKind::Invalid,
        }
    }

    /// The second line of an answer: what a parser said.
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Json { reason } => Some(reason.to_string()),
            Self::UnknownName { .. }
            | Self::EmptyName
            | Self::NoRollupAggregate { .. }
            | Self::Downsample { fault: DownsampleFault::CalendarCount(_), .. } => Some(self.to_string()),
            Self::Formula(fault) if !fault.is_server_error_in_opentsdb() => Some(fault.to_string()),
            Self::Expression(fault) => fault.details(),
            Self::Last(fault) => fault.details(),
            _ => None,
        }
    }

    /// Whether OpenTSDB answers this with 500 although the request is at fault: what goes wrong inside `m=`, times
    /// beyond its range, TSUIDs of two metrics, and no list of sub queries.
    /// Ours is 400 unless `compat.strict`.
    pub fn is_server_error_in_opentsdb(&self) -> bool {
        matches!(
            self,
            Self::InTag { .. }
                | Self::InvalidTsuid { .. }
                | Self::NullQueries
                | Self::TimeOutOfRange { .. }
                | Self::TsuidsOfTwoMetrics { .. }
        ) || match self {
            // Most of what only we refuse is an expression to Java.
            Self::Filter { fault, .. } => !matches!(fault, FilterFault::RegexRefused(_)),
            Self::Grammar { fault, .. } => fault.is_in_metric(),
            Self::Formula(fault) => fault.is_server_error_in_opentsdb(),
            Self::Expression(fault) => fault.is_server_error_in_opentsdb(),
            _ => false,
        }
    }
}

const _: () = assert!(size_of::<Error>() < 128);
