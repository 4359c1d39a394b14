//! What every function of a formula is given and gives: series, the call around its parameters, and its faults.

use std::ops::RangeInclusive;

use crate::cancel::Budget;
use crate::dataset::Dataset;
use crate::error::FormulaFault;
use crate::{Error, Result};

/// A series on its way through formulas, and the place of the sub query it came from.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) query: usize,
    pub(super) data: Dataset,
}

/// What every function is told beside its parameters.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The stamps that will be answered.
    pub(super) range: RangeInclusive<i64>,
    /// OpenTSDB's own ways.
    pub(super) strict: bool,
    pub(super) budget: &'a Budget,
}

/// Refuses a formula.
pub(super) fn fault<T>(fault: FormulaFault) -> Result<T> {
    Err(Error::Formula(fault))
}

/// The digits that a text begins with, and what follows them.
pub(super) fn digits_and_rest(text: &str) -> (&str, &str) {
    let length = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(length).unwrap_or((text, ""))
}
