//! What can be wrong with a cell of points.

use std::fmt;

/// What is wrong with a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The value's length is one that no value has, or not what the qualifier says.
    ValueLength,
    /// A 4-byte float on 8 bytes whose first four are not zero.
    FloatPadding,
    /// The qualifiers do not end where the last one does.
    Qualifiers,
    /// The value ends before its last point does, or after.
    ValueEnd {
        /// Bytes that the points take.
        consumed: usize,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ValueLength => f.write_str("the value's length is not what the qualifier says"),
            Self::FloatPadding => f.write_str("Corrupted floating point value"),
            Self::Qualifiers => f.write_str("the qualifiers end within a qualifier"),
            Self::ValueEnd { consumed } => {
                write!(f, "couldn't break down into individual values (consumed {consumed} bytes)")
            }
        }
    }
}
