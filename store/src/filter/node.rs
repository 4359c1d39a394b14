//! One filter of the tree, with its state.

use bytes::Bytes;

use super::column::{Column, Seen, SingleColumn};
use super::compare::Test;
use super::list::One;
use super::row::{KeyTest, both, merged};
use super::verdict::{Advance, CellVerdict, Kept, RowVerdict};
use super::{ColumnRange, Filter, ListOperator};
use crate::scan::after_prefix;
use crate::{CellRef, Timestamp};

/// A filter and its state.
#[derive(Debug)]
pub(super) enum Node {
    KeyOnly,
    FirstKeyOnly {
        found: bool,
    },
    /// With whether the row of now is out.
    Key(KeyTest, bool),
    Family(Test),
    Qualifier(Test),
    Value(Test),
    /// Sorted.
    Prefixes(Vec<Bytes>),
    Range(ColumnRange),
    Page {
        limit: u64,
        offset: u64,
        count: u64,
    },
    Column(Column),
    SingleColumn(SingleColumn),
    /// Sorted.
    Timestamps(Vec<Timestamp>),
    Rows {
        size: u64,
        accepted: u64,
    },
    While(Box<Node>, bool),
    Skip(Box<Node>, bool),
    All(Vec<Node>),
    One(One),
}

/// Nothing of it; on as said.
const fn out(advance: Advance) -> CellVerdict {
    CellVerdict { kept: Kept::No, advance }
}

fn kept_if(kept: bool, else_advance: Advance) -> CellVerdict {
    if kept { CellVerdict::KEEP } else { out(else_advance) }
}

impl Node {
    pub(super) fn new(filter: &Filter) -> Self {
        let key = |test| Self::Key(test, false);
        match filter {
            Filter::KeyOnly => Self::KeyOnly,
            Filter::FirstKeyOnly => Self::FirstKeyOnly { found: false },
            Filter::Prefix(prefix) => key(KeyTest::Prefix { prefix: prefix.clone(), after: after_prefix(prefix) }),
            Filter::MultiRowRange(ranges) => key(KeyTest::Ranges(merged(ranges))),
            Filter::FuzzyRow(keys) => key(KeyTest::Fuzzy(keys.clone())),
            Filter::InclusiveStop(stop) => key(KeyTest::InclusiveStop(stop.clone())),
            Filter::Row(comparison, with) => key(KeyTest::Compared(Test::new(*comparison, with))),
            Filter::Family(comparison, with) => Self::Family(Test::new(*comparison, with)),
            Filter::Qualifier(comparison, with) => Self::Qualifier(Test::new(*comparison, with)),
            Filter::Value(comparison, with) => Self::Value(Test::new(*comparison, with)),
            Filter::ColumnPrefix(prefix) => Self::Prefixes(vec![prefix.clone()]),
            Filter::ColumnPrefixes(prefixes) => Self::Prefixes(sorted(prefixes)),
            Filter::ColumnRange(range) => Self::Range(range.clone()),
            Filter::ColumnCount(limit) => Self::Page { limit: (*limit).into(), offset: 0, count: 0 },
            &Filter::ColumnPage { limit, offset } => {
                Self::Page { limit: limit.into(), offset: offset.into(), count: 0 }
            }
            Filter::ColumnValue(test) => Self::Column(Column::new(test)),
            Filter::SingleColumnValue { test, if_missing, latest_only, exclude } => Self::SingleColumn(SingleColumn {
                column: Column::new(test),
                if_missing: *if_missing,
                latest_only: *latest_only,
                exclude: *exclude,
                seen: Seen::Nothing,
            }),
            Filter::Timestamps(times) => Self::Timestamps(sorted(times)),
            Filter::Page(size) => Self::Rows { size: *size, accepted: 0 },
            Filter::WhileMatch(within) => Self::While(Box::new(Self::new(within)), false),
            Filter::Skip(within) => Self::Skip(Box::new(Self::new(within)), false),
            Filter::List(ListOperator::All, list) => Self::All(list.iter().map(Self::new).collect()),
            Filter::List(ListOperator::One, list) => Self::One(One::new(list.iter().map(Self::new))),
        }
    }

    /// Before each row. What counts rows, and whether the scan is over, stays.
    pub(super) fn reset(&mut self) {
        match self {
            Self::FirstKeyOnly { found } => *found = false,
            Self::Key(_, out) => *out = false,
            Self::Page { count, .. } => *count = 0,
            Self::SingleColumn(single) => single.reset(),
            Self::Skip(within, out) => {
                *out = false;
                within.reset();
            }
            Self::While(within, _) => within.reset(),
            Self::All(list) => list.iter_mut().for_each(Self::reset),
            Self::One(list) => list.reset(),
            _ => {}
        }
    }

    pub(super) fn judge_row(&mut self, row: &[u8], reversed: bool) -> RowVerdict {
        if self.is_done() {
            return RowVerdict::Done;
        }
        match self {
            Self::Key(test, out) => {
                let verdict = test.judge(row, reversed);
                *out = verdict != RowVerdict::Pass;
                verdict
            }
            Self::While(within, over) => {
                *over = within.judge_row(row, reversed) != RowVerdict::Pass;
                if *over { RowVerdict::Done } else { RowVerdict::Pass }
            }
            Self::Skip(within, _) => within.judge_row(row, reversed),
            // Each is asked, since each begins the row by it.
            Self::All(list) => list
                .iter_mut()
                .map(|node| node.judge_row(row, reversed))
                .fold(RowVerdict::Pass, |all, one| both(all, one, reversed)),
            Self::One(list) => list.judge_row(row, reversed),
            _ => RowVerdict::Pass,
        }
    }

    pub(super) fn judge_cell(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        use Advance::{NextCell, NextColumn, NextFamily, NextRow};
        match self {
            Self::KeyOnly => CellVerdict { kept: Kept::Key, advance: NextCell },
            Self::FirstKeyOnly { found } => {
                let kept = if *found { Kept::No } else { Kept::Whole };
                *found = true;
                CellVerdict { kept, advance: NextRow }
            }
            Self::Key(_, is_out) => kept_if(!*is_out, NextRow),
            Self::Family(test) => kept_if(test.holds(cell.family), NextFamily),
            Self::Qualifier(test) => kept_if(test.holds(cell.qualifier), NextColumn),
            Self::Value(test) => kept_if(test.holds(cell.value), NextCell),
            Self::Prefixes(prefixes) => judge_prefixes(prefixes, cell.qualifier),
            Self::Range(range) => range.judge(cell.qualifier),
            Self::Page { limit, offset, count } => {
                let kept = *count >= *offset && *count < offset.saturating_add(*limit);
                let advance = if *count < offset.saturating_add(*limit) { NextColumn } else { NextRow };
                *count = count.saturating_add(1);
                CellVerdict { kept: if kept { Kept::Whole } else { Kept::No }, advance }
            }
            Self::Column(column) if column.is_of(cell) => kept_if(column.holds(cell), NextCell),
            Self::Column(_) => out(NextColumn),
            Self::SingleColumn(single) => single.judge(cell),
            Self::Timestamps(times) => {
                let is_older = times.first().is_none_or(|&first| cell.timestamp < first);
                let advance = if is_older { NextColumn } else { NextCell };
                kept_if(times.binary_search(&cell.timestamp).is_ok(), advance)
            }
            Self::Rows { .. } => CellVerdict::KEEP,
            Self::While(within, over) | Self::Skip(within, over) => {
                let (verdict, included) = within.judge_wrapped(cell);
                *over |= !included;
                verdict
            }
            Self::All(list) => judge_all(list, cell),
            Self::One(list) => list.judge_cell(cell),
        }
    }

    /// What the filter within a wrapper says, and whether to HBase's wrappers that is plainly "include": not what
    /// includes a cell and has done with its column.
    fn judge_wrapped(&mut self, cell: &CellRef<'_>) -> (CellVerdict, bool) {
        let mut verdict = self.judge_cell(cell);
        // A first key keeps its cell and would pass over the rest of the row; the wrapper must hear of the rest.
        if verdict.kept != Kept::No && verdict.advance == Advance::NextRow {
            verdict.advance = Advance::NextCell;
        }
        (verdict, verdict.kept != Kept::No && verdict.advance == Advance::NextCell)
    }

    pub(super) fn excludes(&self, cell: &CellRef<'_>) -> bool {
        match self {
            Self::SingleColumn(single) => single.exclude && single.column.is_of(cell),
            Self::While(within, _) | Self::Skip(within, _) => within.excludes(cell),
            Self::All(list) => list.iter().any(|node| node.excludes(cell)),
            Self::One(list) => list.nodes().any(|node| node.excludes(cell)),
            _ => false,
        }
    }

    /// At the end of a row of which cells were kept.
    pub(super) fn rejects_row(&mut self) -> bool {
        match self {
            Self::Key(test, out) => *out && test.repeats_at_end(),
            Self::SingleColumn(single) => single.rejects_row(),
            Self::Rows { size, accepted } => {
                *accepted = accepted.saturating_add(1);
                accepted > size
            }
            Self::While(within, over) => {
                let rejects = within.rejects_row();
                *over |= rejects;
                rejects
            }
            Self::Skip(_, out) => *out,
            // Those after one that rejects are not asked: a page behind it counts no such row.
            Self::All(list) => list.iter_mut().any(Self::rejects_row),
            Self::One(list) => list.rejects_row(),
            _ => false,
        }
    }

    /// Whether nothing can pass any more.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Rows { size, accepted } => accepted >= size,
            Self::While(within, over) => *over || within.is_done(),
            Self::All(list) => list.iter().any(Self::is_done),
            Self::One(list) => list.is_done(),
            _ => false,
        }
    }
}

fn judge_all(list: &mut [Node], cell: &CellRef<'_>) -> CellVerdict {
    let mut all = CellVerdict::KEEP;
    // One that says no ends it: those after it judge only the cells that those before it let through.
    for node in list {
        let one = if node.is_done() { out(Advance::NextRow) } else { node.judge_cell(cell) };
        all = CellVerdict { kept: all.kept.min(one.kept), advance: all.advance.max(one.advance) };
        if all.kept == Kept::No {
            break;
        }
    }
    all
}

/// Any of them, where HBase's filter forgets a prefix that another one extends.
fn judge_prefixes(prefixes: &[Bytes], qualifier: &[u8]) -> CellVerdict {
    if prefixes.iter().any(|prefix| qualifier.starts_with(prefix)) {
        return CellVerdict::KEEP;
    }
    let is_more_to_come = prefixes.last().is_some_and(|last| qualifier < last);
    out(if is_more_to_come { Advance::NextColumn } else { Advance::NextFamily })
}

fn sorted<T: Ord + Clone>(items: &[T]) -> Vec<T> {
    let mut sorted = items.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted
}
