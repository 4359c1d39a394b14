//! What is wrong with a request of `/api/query/exp`, in OpenTSDB's words where it has some.

use super::Error;

/// What is wrong with an expression or the request around it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionFault {
    /// A part of the request that must be there.
    #[error("missing {0}")]
    Missing(&'static str),
    /// A part that makes no sense, and what is wrong with it.
    #[error("Invalid {what}")]
    Part {
        /// `time`, or `metric at index 0`.
        what: Box<str>,
        /// What is wrong.
        reason: Box<str>,
    },
    /// A query that makes no sense, which `/api/query` refuses in the same words.
    #[error("{0}")]
    Query(#[source] Box<Error>),
    /// An id given twice.
    #[error("{what}: {id}")]
    Repeated {
        /// What it is the id of, in OpenTSDB's words.
        what: &'static str,
        /// The id.
        id: Box<str>,
    },
    /// A metric names a filter and there is no list of them.
    #[error("No filter defined: {0}")]
    NoFilters(Box<str>),
    /// A metric names a filter that is not there.
    #[error("unrecognized filter id {filter} in metric {metric}")]
    UnknownFilter {
        /// The filter's id.
        filter: Box<str>,
        /// The metric's id.
        metric: Box<str>,
    },
    /// An expression without a variable.
    #[error("The expression didn't appear to have any variables")]
    NoVariables,
    /// A variable that is no id.
    #[error("Expression [{expression}] was missing input {variable}")]
    MissingInput {
        /// The expression as given.
        expression: Box<str>,
        /// The variable.
        variable: Box<str>,
    },
    /// A join without an operator.
    #[error("The set operator cannot be null")]
    NoJoinOperator,
    /// An expression of itself.
    #[error("Self referencing expression found: {0}")]
    SelfReference(Box<str>),
    /// Expressions of each other.
    #[error("Circular reference found: {0}")]
    Circular(Box<str>),
    /// An intersection of nothing.
    #[error("No intersections found: {0}")]
    NoIntersection(Box<str>),
    /// A text that is no expression.
    #[error("cannot read the expression at character {at}: '{text}'")]
    Syntax {
        /// The expression.
        text: Box<str>,
        /// The byte of the word that may not stand there.
        at: usize,
    },
    /// Too many nested parts.
    #[error("the expression has more than {limit} nested parts")]
    TooDeep {
        /// The bound.
        limit: usize,
    },
    /// Too many bytes.
    #[error("the expression has more than {limit} bytes")]
    TooLong {
        /// The bound.
        limit: usize,
    },
    /// Too many metrics or expressions.
    #[error("more than {limit} {what}")]
    TooMany {
        /// `metrics` or `expressions`.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

impl ExpressionFault {
    /// Whether OpenTSDB answers it with 500: whatever it finds before it looks at data.
    pub(super) fn is_server_error_in_opentsdb(&self) -> bool {
        !matches!(self, Self::Circular(_) | Self::SelfReference(_) | Self::NoIntersection(_))
    }

    /// The second line of an answer.
    pub(super) fn details(&self) -> Option<String> {
        match self {
            Self::Part { reason, .. } => Some(reason.to_string()),
            Self::Query(cause) if matches!(**cause, Error::Json { .. }) => cause.details(),
            Self::Circular(_) | Self::SelfReference(_) | Self::NoIntersection(_) => Some(self.to_string()),
            _ => None,
        }
    }
}
