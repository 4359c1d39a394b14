//! Expressions over metrics (`/api/query/exp`): named queries joined series by series and computed point by point.
//!
//! ```text
//! body ─ request ─ check ─► plan: a query, programs in the order of their needs, outputs
//!                            └ run the query ─ join ─ combine, expression by expression ─► outputs
//! ```
//!
//! *Source*: OpenTSDB 2.4 `QueryExecutor`, `net.opentsdb.query.pojo`, `net.opentsdb.query.expression`.

mod check;
mod combine;
mod join;
mod output;
mod program;
mod request;

pub use check::ExpressionPlan;
pub use output::{OutputAnswer, OutputSeries};
pub use request::ExpressionRequest;

pub(crate) use combine::{Combine, order_of};
pub(crate) use join::{Column, Joined, Rule, join};
pub(crate) use program::Program;

#[cfg(test)]
mod tests;
