//! What is wrong with a formula, in OpenTSDB's words.

/// What is wrong with a formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormulaFault {
    /// A text that is no formula.
    #[error("Failed to parse {0}")]
    Syntax(Box<str>),
    /// Formulas in formulas beyond the bound.
    #[error("the formula has more than {limit} nested functions")]
    TooDeep {
        /// The bound.
        limit: usize,
    },
    /// A function nobody knows.
    #[error("Function {0} has not been implemented")]
    UnknownFunction(Box<str>),
    /// A parameter that must be there.
    #[error("{0}")]
    MissingParameter(&'static str),
    /// A factor that is not made of digits, dots and signs.
    #[error("Unparseable scale factor value: 0.0")]
    Factor,
    /// A number that is none.
    #[error("Invalid parameter, must be an integer{}", if *.fraction { " or floating point" } else { "" })]
    Number {
        /// Whether a fraction would have been taken.
        fraction: bool,
    },
    /// A window that is neither a number nor a time in quotes.
    #[error("Unparseable window size: {0}")]
    Window(Box<str>),
    /// A window of nothing.
    #[error("Moving average window must be an integer greater than zero")]
    EmptyWindow,
    /// A time without a number.
    #[error("Invalid moving window parameter: {0}")]
    WindowTime(Box<str>),
    /// A time of an unknown unit.
    #[error("Unknown time unit={unit} in window={window}")]
    WindowUnit {
        /// The unit.
        unit: Box<str>,
        /// The window.
        window: Box<str>,
    },
    /// A number of series that is none.
    #[error("Unparseable top n value: {0}")]
    Top(Box<str>),
    /// No series wanted.
    #[error("Top n value must be greater than zero: 0")]
    EmptyTop,
    /// A shift that is no time in quotes.
    #[error("Invalid timeshift parameter: eg '10min'")]
    Shift,
    /// A shift without a number.
    #[error("Invalid Parameter: {0}")]
    ShiftTime(Box<str>),
    /// A shift of an unknown unit.
    #[error("unknown time unit={0}")]
    ShiftUnit(Box<str>),
    /// A shift of nothing.
    #[error("timeshift <= 0")]
    EmptyShift,
    /// Too few or too many series for a function of several.
    #[error("Must have 2 to 26 series, got {0} instead")]
    SeriesCount(usize),
}

impl FormulaFault {
    /// Whether OpenTSDB answers it with 500.
    pub(super) fn is_server_error_in_opentsdb(&self) -> bool {
        matches!(self, Self::Syntax(_) | Self::UnknownFunction(_) | Self::TooDeep { .. })
    }
}
