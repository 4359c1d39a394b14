//! A filter at work: one scan's or get's state over the tree of a [`Filter`].
//!
//! A store asks it about each row before it reads the row ([`FilterRun::judge_row`]), and then about each cell that
//! retention lets through ([`FilterRun::judge_cell`]). Filters that judge a whole row by its cells answer at its end
//! ([`FilterRun::keeps_row`]). Pure: no clock, no store.

use bytes::Bytes;

use super::fuzzy::{self, FuzzyNext};
use super::{Filter, FuzzyKey, ListOperator, RowRange};
use crate::CellRef;
use crate::scan::after_prefix;

/// What a filter says of a row by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowVerdict {
    /// Read it.
    Pass,
    /// Leave it out.
    Skip,
    /// Leave it out, and all up to this key: the next row worth reading is at it or beyond it in the scan's direction.
    /// It always lies strictly further on than the row asked about.
    SeekTo(Bytes),
    /// Leave it out, and all that follow: the scan is over.
    Done,
}

/// How much of a cell is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Nothing.
    No,
    /// All but its value, which comes empty.
    Key,
    /// All of it.
    Whole,
}

/// Where to look next within a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advance {
    /// The next cell.
    NextCell,
    /// The next column.
    NextColumn,
    /// The next family.
    NextFamily,
    /// The next row.
    NextRow,
}

/// What a filter says of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellVerdict {
    /// How much of it is kept.
    pub kept: Kept,
    /// Where to go on; nothing before it can be kept.
    pub advance: Advance,
}

impl CellVerdict {
    /// Whole, and on to the next cell.
    pub const KEEP: Self = Self { kept: Kept::Whole, advance: Advance::NextCell };
}

/// A [`Filter`] at work over the rows of one scan or get.
///
/// ```
/// # use basalt_store::{Filter, FilterRun, RowVerdict};
/// let filter = Filter::Prefix("b".into());
/// let mut run = FilterRun::new(&filter, false);
/// assert_eq!(run.judge_row(b"a"), RowVerdict::SeekTo("b".into()));
/// assert_eq!(run.judge_row(b"bc"), RowVerdict::Pass);
/// assert_eq!(run.judge_row(b"c"), RowVerdict::Done);
/// ```
#[derive(Debug)]
pub struct FilterRun {
    root: Node,
    reversed: bool,
}

/// A filter and its state.
#[derive(Debug)]
enum Node {
    KeyOnly,
    FirstKeyOnly {
        found: bool,
    },
    Prefix {
        prefix: Bytes,
        after: Bytes,
    },
    /// Sorted and apart.
    Ranges(Vec<RowRange>),
    Fuzzy(Vec<FuzzyKey>),
    Regex(regex::bytes::Regex),
    ColumnPrefix(Bytes),
    All(Vec<Node>),
    /// Each with whether it let the row pass: one that did not is not asked about the row's cells.
    One(Vec<(Node, bool)>),
}

impl FilterRun {
    /// A run over a scan of this direction. Ranges may come in any order and overlap.
    pub fn new(filter: &Filter, reversed: bool) -> Self {
        Self { root: Node::new(filter), reversed }
    }

    /// Begins a row and judges it by its key. Rows come in the scan's direction.
    ///
    /// Cost: logarithmic in ranges, linear in fuzzy keys; allocates for fuzzy hints only.
    pub fn judge_row(&mut self, row: &[u8]) -> RowVerdict {
        let verdict = self.root.judge_row(row, self.reversed);
        debug_assert!(
            !matches!(&verdict, RowVerdict::SeekTo(key) if !is_beyond(key, row, self.reversed)),
            "BUG: a hint leads on"
        );
        verdict
    }

    /// Judges a cell of the row begun last; cells come in cell order.
    pub fn judge_cell(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        self.root.judge_cell(cell)
    }

    /// At the row's end: whether what was kept of it is to be given. No filter of today judges so late; those that do
    /// (single column value, page, skip) answer here.
    pub fn keeps_row(&mut self) -> bool {
        true
    }
}

impl Node {
    fn new(filter: &Filter) -> Self {
        match filter {
            Filter::KeyOnly => Self::KeyOnly,
            Filter::FirstKeyOnly => Self::FirstKeyOnly { found: false },
            Filter::Prefix(prefix) => Self::Prefix { prefix: prefix.clone(), after: after_prefix(prefix) },
            Filter::MultiRowRange(ranges) => Self::Ranges(merged(ranges)),
            Filter::FuzzyRow(keys) => Self::Fuzzy(keys.clone()),
            Filter::RowRegex(regex) => Self::Regex(regex.clone()),
            Filter::ColumnPrefix(prefix) => Self::ColumnPrefix(prefix.clone()),
            Filter::List(ListOperator::All, list) => Self::All(list.iter().map(Self::new).collect()),
            Filter::List(ListOperator::One, list) => Self::One(list.iter().map(|f| (Self::new(f), true)).collect()),
        }
    }

    fn judge_row(&mut self, row: &[u8], reversed: bool) -> RowVerdict {
        match self {
            Self::KeyOnly | Self::ColumnPrefix(_) => RowVerdict::Pass,
            Self::FirstKeyOnly { found } => {
                *found = false;
                RowVerdict::Pass
            }
            Self::Prefix { prefix, after } => judge_prefix(row, prefix, after, reversed),
            Self::Ranges(ranges) => judge_ranges(row, ranges, reversed),
            Self::Fuzzy(keys) => judge_fuzzy(row, keys, reversed),
            Self::Regex(regex) => pass_or_skip(regex.is_match(row)),
            Self::All(list) => {
                // Each is asked, since each begins the row by it.
                list.iter_mut()
                    .map(|node| node.judge_row(row, reversed))
                    .fold(RowVerdict::Pass, |all, one| both(all, one, reversed))
            }
            Self::One(list) => {
                let verdicts = list.iter_mut().map(|(node, passes)| {
                    let verdict = node.judge_row(row, reversed);
                    *passes = verdict == RowVerdict::Pass;
                    verdict
                });
                verdicts.reduce(|any, one| either(any, one, reversed)).unwrap_or(RowVerdict::Pass)
            }
        }
    }

    fn judge_cell(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        match self {
            Self::Prefix { .. } | Self::Ranges(_) | Self::Fuzzy(_) | Self::Regex(_) => CellVerdict::KEEP,
            Self::KeyOnly => CellVerdict { kept: Kept::Key, advance: Advance::NextCell },
            Self::FirstKeyOnly { found } => {
                let kept = if *found { Kept::No } else { Kept::Whole };
                *found = true;
                CellVerdict { kept, advance: Advance::NextRow }
            }
            Self::ColumnPrefix(prefix) => match (cell.qualifier.starts_with(prefix), cell.qualifier < &prefix[..]) {
                (true, _) => CellVerdict::KEEP,
                (false, true) => CellVerdict { kept: Kept::No, advance: Advance::NextColumn },
                (false, false) => CellVerdict { kept: Kept::No, advance: Advance::NextFamily },
            },
            Self::All(list) => {
                let mut all = CellVerdict::KEEP;
                // One that says no ends it: those after it judge only the cells that those before it let through.
                for node in list {
                    let one = node.judge_cell(cell);
                    all = CellVerdict { kept: all.kept.min(one.kept), advance: all.advance.max(one.advance) };
                    if all.kept == Kept::No {
                        break;
                    }
                }
                all
            }
            Self::One(list) => {
                let asked = list.iter_mut().filter(|(_, passes)| *passes).map(|(node, _)| node.judge_cell(cell));
                let any = asked.reduce(|any, one| CellVerdict {
                    kept: match (any.kept, one.kept) {
                        (Kept::No, kept) | (kept, Kept::No) => kept,
                        (a, b) => a.min(b),
                    },
                    advance: any.advance.min(one.advance),
                });
                any.unwrap_or(CellVerdict::KEEP)
            }
        }
    }
}

/// Of two filters that must both pass.
fn both(a: RowVerdict, b: RowVerdict, reversed: bool) -> RowVerdict {
    use RowVerdict::{Done, Pass, SeekTo, Skip};
    match (a, b) {
        (Done, _) | (_, Done) => Done,
        (SeekTo(a), SeekTo(b)) => SeekTo(if is_beyond(&b, &a, reversed) { b } else { a }),
        (SeekTo(key), _) | (_, SeekTo(key)) => SeekTo(key),
        (Skip, _) | (_, Skip) => Skip,
        (Pass, Pass) => Pass,
    }
}

/// Of two filters of which one must pass.
fn either(a: RowVerdict, b: RowVerdict, reversed: bool) -> RowVerdict {
    use RowVerdict::{Done, Pass, SeekTo, Skip};
    match (a, b) {
        (Pass, _) | (_, Pass) => Pass,
        (Done, other) | (other, Done) => other,
        (SeekTo(a), SeekTo(b)) => SeekTo(if is_beyond(&b, &a, reversed) { a } else { b }),
        (Skip, _) | (_, Skip) => Skip,
    }
}

/// Whether a scan of this direction meets `key` after `row`.
fn is_beyond(key: &[u8], row: &[u8], reversed: bool) -> bool {
    if reversed { key < row } else { key > row }
}

fn pass_or_skip(pass: bool) -> RowVerdict {
    if pass { RowVerdict::Pass } else { RowVerdict::Skip }
}

/// A hint to a key that may not lie further on than the row itself.
fn seek_or_skip(key: &Bytes, row: &[u8], reversed: bool) -> RowVerdict {
    if is_beyond(key, row, reversed) { RowVerdict::SeekTo(key.clone()) } else { RowVerdict::Skip }
}

fn judge_prefix(row: &[u8], prefix: &Bytes, after: &Bytes, reversed: bool) -> RowVerdict {
    if row.starts_with(prefix) {
        return RowVerdict::Pass;
    }
    match (row < &prefix[..], reversed) {
        (true, false) => RowVerdict::SeekTo(prefix.clone()),
        (false, true) => seek_or_skip(after, row, reversed),
        (true, true) | (false, false) => RowVerdict::Done,
    }
}

fn judge_ranges(row: &[u8], ranges: &[RowRange], reversed: bool) -> RowVerdict {
    let next = ranges.partition_point(|range| range.start <= row);
    let (begun, to_come) = ranges.split_at_checked(next).unwrap_or_default();
    match begun.last() {
        Some(range) if range.stop.is_empty() || row < &range.stop[..] => RowVerdict::Pass,
        Some(range) if reversed => seek_or_skip(&range.stop, row, reversed),
        None if reversed => RowVerdict::Done,
        _ => to_come.first().map_or(RowVerdict::Done, |range| RowVerdict::SeekTo(range.start.clone())),
    }
}

fn judge_fuzzy(row: &[u8], keys: &[FuzzyKey], reversed: bool) -> RowVerdict {
    if keys.iter().any(|key| fuzzy::matches(key, row)) {
        return RowVerdict::Pass;
    }
    if reversed {
        return RowVerdict::Skip;
    }
    let next = keys.iter().map(|key| fuzzy::next(key, row)).map(|next| match next {
        FuzzyNext::At(key) => RowVerdict::SeekTo(key),
        FuzzyNext::None => RowVerdict::Done,
    });
    next.reduce(|any, one| either(any, one, reversed)).unwrap_or(RowVerdict::Done)
}

/// The ranges sorted, with those that touch or overlap made one and empty ones gone.
fn merged(ranges: &[RowRange]) -> Vec<RowRange> {
    let mut sorted: Vec<_> = ranges.iter().filter(|r| r.stop.is_empty() || r.start < r.stop).cloned().collect();
    sorted.sort_by(|a, b| a.start.cmp(&b.start));
    let mut merged: Vec<RowRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if last.stop.is_empty() => {}
            Some(last) if range.start <= last.stop => {
                if range.stop.is_empty() || range.stop > last.stop {
                    last.stop = range.stop;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
