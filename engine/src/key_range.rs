//! A range of row keys, and a sorted stream cut down to it.
//!
//! After a split both halves read the files and memtables of the region that was: each through [`Part`], which shows it
//! the rows of its own range only. What a region writes itself lies wholly within it and is read without.

use basalt_store::CellRef;
use bytes::Bytes;

use crate::error::Result;
use crate::merge::{CellSource, Direction, Step};

/// Rows from `start` on and before `end`; an empty `end` is the end of all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: Bytes,
    pub(crate) end: Bytes,
}

impl KeyRange {
    /// Whether a row lies before the end.
    pub(crate) fn is_before_end(&self, row: &[u8]) -> bool {
        self.end.is_empty() || row < &self.end[..]
    }

    /// Whether a row lies within.
    pub(crate) fn contains(&self, row: &[u8]) -> bool {
        row >= &self.start[..] && self.is_before_end(row)
    }
}

/// The rows of a stream that lie in a range.
///
/// Cost: one comparison of row keys a step.
#[derive(Debug)]
pub(crate) struct Part<S> {
    source: S,
    range: KeyRange,
    direction: Direction,
    /// Whether the source stands on a cell within the range.
    is_within: bool,
}

impl<S: CellSource> Part<S> {
    /// Cuts a stream that walks in `direction`. Stands nowhere yet.
    pub(crate) fn new(source: S, range: KeyRange, direction: Direction) -> Part<S> {
        Part { source, range, direction, is_within: false }
    }

    /// The stream, if it stands within the range.
    pub(crate) fn within(&self) -> Option<&S> {
        self.is_within.then_some(&self.source)
    }

    fn look(&mut self) {
        self.is_within = self.source.row().is_some_and(|row| match self.direction {
            Direction::Forward => self.range.is_before_end(row),
            Direction::Reverse => row >= &self.range.start[..],
        });
    }

    /// Goes to the last row before the range's end.
    fn rewind_reverse(&mut self) -> Result<()> {
        if self.range.end.is_empty() {
            return self.source.rewind();
        }
        self.source.seek(&self.range.end, &[])?;
        while self.source.cell().is_some_and(|cell| cell.row == self.range.end) {
            self.source.advance()?;
        }
        Ok(())
    }
}

impl<S: CellSource> CellSource for Part<S> {
    fn cell(&self) -> Option<CellRef<'_>> {
        if self.is_within { self.source.cell() } else { None }
    }

    fn row(&self) -> Option<&[u8]> {
        if self.is_within { self.source.row() } else { None }
    }

    fn unpack(&mut self) -> Result<()> {
        if self.is_within { self.source.unpack() } else { Ok(()) }
    }

    fn advance(&mut self) -> Result<Step> {
        if !self.is_within {
            return Ok(Step::OtherRow);
        }
        let step = self.source.advance()?;
        if step != Step::SameRow {
            self.look();
        }
        Ok(if self.is_within { step } else { Step::OtherRow })
    }

    fn rewind(&mut self) -> Result<()> {
        self.is_within = false;
        match self.direction {
            Direction::Forward if self.range.start.is_empty() => self.source.rewind()?,
            Direction::Forward => self.source.seek(&self.range.start, &[])?,
            Direction::Reverse => self.rewind_reverse()?,
        }
        self.look();
        Ok(())
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        self.is_within = false;
        match self.direction {
            Direction::Forward if row < &self.range.start[..] => self.source.seek(&self.range.start, &[])?,
            Direction::Reverse if !self.range.is_before_end(row) => self.rewind_reverse()?,
            Direction::Forward | Direction::Reverse => self.source.seek(row, qualifier)?,
        }
        self.look();
        Ok(())
    }
}
