//! How two values compare, as conditions and filters ask.

use std::cmp::Ordering;

/// How a stored value is held against the expected one: `stored <comparison> expected`, as unsigned bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater or equal.
    GreaterOrEqual,
    /// Greater.
    Greater,
}

impl Comparison {
    /// Whether it holds where the stored value is so ordered against the expected one.
    pub fn holds(self, stored_to_expected: Ordering) -> bool {
        match self {
            Self::Less => stored_to_expected.is_lt(),
            Self::LessOrEqual => stored_to_expected.is_le(),
            Self::Equal => stored_to_expected.is_eq(),
            Self::NotEqual => stored_to_expected.is_ne(),
            Self::GreaterOrEqual => stored_to_expected.is_ge(),
            Self::Greater => stored_to_expected.is_gt(),
        }
    }
}
