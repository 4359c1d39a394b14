//! Requests answered: plan, fan-out, spans, downsample, rate, group, aggregate.
//!
//! ```text
//! request ─ check ─ plan ─ fan-out ─ spans ─ downsample ─ rate ─ group, interpolate, aggregate ─ trim ─ answer
//!  texts    types   UIDs    scans    arrays  └───────────── kernels over slices, no store ──────────┘
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | request, check | [`request`](QueryRequest), [`time`](parse_time), [`duration`](parse_duration), [`zone`](parse_zone), [`filter`](TagFilter) |
//! | plan | `plan`, `window`, `hours`, `rollup` |
//! | fan-out | `fetch`, `workers`, `get_size`, [`cancel`](Cancel), [`limits`](Limits), `memory`, [`gate`](Gate) |
//! | span | `span`, `series_data` |
//! | downsample, rate | [`downsample`](Downsample), `rate` |
//! | group, interpolate, aggregate, trim | `group`, [`aggregate`](Aggregator), `merge` |
//! | delete what was read | `delete` |
//! | answer | `dataset`, [`answer`](SubAnswer) |
//! | formulas and expressions over answers | `gexp` ([`Formulas`]), `expression` ([`ExpressionRequest`]) |
//! | newest points | `last` ([`LastRequest`]) |
//! | all of it | [`engine`](QueryEngine) |

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;

mod aggregate;
mod answer;
mod cancel;
mod dataset;
mod delete;
mod discover;
mod downsample;
mod duration;
mod engine;
mod error;
mod expression;
mod fetch;
mod filter;
mod float_text;
#[cfg(any(test, fuzzing))]
pub mod foreign;
mod gate;
mod get_size;
mod gexp;
mod group;
mod held;
mod histogram;
mod hours;
mod last;
mod limits;
mod memory;
mod merge;
mod named_series;
mod names;
mod options;
mod piece;
mod plan;
mod rate;
mod request;
mod rollup;
mod row_filter;
mod row_range;
mod series_data;
mod span;
mod time;
mod window;
mod workers;
mod zone;

pub use aggregate::{Aggregator, Interpolation, Percentile, PercentileRule};
pub use answer::{Held, Number, Point, ScanStats, Series, SeriesAnnotation, Steps, SubAnswer};
pub use cancel::Cancel;
pub use downsample::{Downsample, Fill, Interval};
pub use duration::{Duration, Unit, parse_duration};
pub use engine::QueryEngine;
pub use error::{
    DownsampleFault, DurationFault, Error, ExpressionFault, FilterFault, FormulaFault, GrammarFault, HistogramFault,
    LastFault, Result, TimeFault,
};
pub use expression::{ExpressionPlan, ExpressionRequest, OutputAnswer, OutputSeries};
pub use filter::{FilterDescription, FilterKind, Matcher, TagFilter, filter_descriptions};
pub use gate::Gate;
pub use gexp::Formulas;
pub use last::{LastAnswer, LastMetric, LastPoint, LastQuery, LastRequest, LastTags};
pub use limits::{LimitOverrides, LimitOverridesError, Limits};
pub use named_series::NamedSeries;
pub use names::TagNames;
pub use options::{Compat, Options};
pub use request::{
    FILTERS_MAX, GetParameters, HistogramQuery, Query, QueryRequest, RateOptions, RollupUsage, SUB_QUERIES_MAX, Source,
    SubQuery, SubQueryPlan,
};
pub use time::{TimeContext, parse_time};
pub use zone::parse_zone;
