//! Filters that judge a row by its key alone.

use bytes::Bytes;

use super::compare::Test;
use super::fuzzy::{self, FuzzyNext};
use super::verdict::RowVerdict;
use super::{FuzzyKey, RowRange};

/// What a row key is held against.
#[derive(Debug)]
pub(super) enum KeyTest {
    Prefix {
        prefix: Bytes,
        after: Bytes,
    },
    /// Sorted and apart.
    Ranges(Vec<RowRange>),
    Fuzzy(Vec<FuzzyKey>),
    InclusiveStop(Bytes),
    Compared(Test),
}

impl KeyTest {
    pub(super) fn judge(&self, row: &[u8], reversed: bool) -> RowVerdict {
        match self {
            Self::Prefix { prefix, after } => judge_prefix(row, prefix, after, reversed),
            Self::Ranges(ranges) => judge_ranges(row, ranges, reversed),
            Self::Fuzzy(keys) => judge_fuzzy(row, keys, reversed),
            Self::InclusiveStop(stop) if is_beyond(row, stop, reversed) => RowVerdict::Done,
            Self::InclusiveStop(_) => RowVerdict::Pass,
            Self::Compared(test) if test.holds(row) => RowVerdict::Pass,
            Self::Compared(_) => RowVerdict::Skip,
        }
    }

    /// Whether it says so again at the row's end, in a list of which one must pass: HBase's fuzzy, range and stop
    /// filters do not, and a row may then come with what the other filters kept of it.
    pub(super) fn repeats_at_end(&self) -> bool {
        matches!(self, Self::Prefix { .. } | Self::Compared(_))
    }
}

/// Of two filters that must both pass.
pub(super) fn both(a: RowVerdict, b: RowVerdict, reversed: bool) -> RowVerdict {
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
pub(super) fn either(a: RowVerdict, b: RowVerdict, reversed: bool) -> RowVerdict {
    use RowVerdict::{Done, Pass, SeekTo, Skip};
    match (a, b) {
        (Pass, _) | (_, Pass) => Pass,
        (Done, other) | (other, Done) => other,
        (SeekTo(a), SeekTo(b)) => SeekTo(if is_beyond(&b, &a, reversed) { a } else { b }),
        (Skip, _) | (_, Skip) => Skip,
    }
}

/// Whether a scan of this direction meets `key` after `row`.
pub(super) fn is_beyond(key: &[u8], row: &[u8], reversed: bool) -> bool {
    if reversed { key < row } else { key > row }
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
pub(super) fn merged(ranges: &[RowRange]) -> Vec<RowRange> {
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
