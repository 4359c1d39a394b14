//! A row's cells of one family: sorted runs of bounded length.

use std::cmp::Ordering;

use basalt_store::{CellKind, SeqNo, Timestamp};

use super::arena::{Arena, Place, width};
use super::cell_ref;
use crate::field::Fields;
use crate::mutation::LoggedCell;

/// A run that grows past this is split: an insert moves half of it at most.
const RUN_CELLS_MAX: usize = 512;
/// Room of a row's first run.
const FIRST_CELLS: usize = 4;
/// Runs that are begun behind others have twice the room of the one before, up to this: what is appended is never moved, and
/// little memory is touched that holds nothing.
const APPENDED_CELLS_MAX: usize = 32;

/// Up to so many bytes of qualifier and value lie in the entry itself: those of any point.
const INLINE_BYTES: usize = 12;

/// A cell.
///
/// In this order, so that the bytes lie at a word: what is written in words and read in others is waited for.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) timestamp: Timestamp,
    pub(super) sequence: SeqNo,
    /// The qualifier, the value behind it; or a packed place in the arena: both lengths, then the bytes of both.
    bytes: [u8; INLINE_BYTES],
    /// Of qualifier and value in half a byte each, or [`KEPT`].
    lengths: u8,
    pub(super) kind: CellKind,
}

/// Stands for lengths where the bytes are in the arena; no two that lie in an entry have these.
const KEPT: u8 = u8::MAX;

const _: () = assert!(size_of::<Entry>() == 32 && INLINE_BYTES < 16);

impl Entry {
    /// An entry of the cell's bytes, and how many of them it left to the arena.
    #[inline]
    pub(super) fn keep(cell: &LoggedCell<'_>, sequence: SeqNo, arena: &mut Arena) -> (Entry, usize) {
        let (bytes, lengths, kept) = match inline(cell.qualifier, cell.value) {
            Some((bytes, lengths)) => (bytes, lengths, 0),
            None => keep_in_arena(cell, arena),
        };
        (Entry { timestamp: cell.timestamp, sequence, bytes, lengths, kind: cell.kind }, kept)
    }

    /// Qualifier and value.
    pub(super) fn bytes<'a>(&'a self, arena: &'a Arena) -> (&'a [u8], &'a [u8]) {
        if self.lengths != KEPT {
            let (qualifier, value) = (usize::from(self.lengths >> 4), usize::from(self.lengths & 15));
            let (qualifier, rest) = self.bytes.split_at(qualifier.min(INLINE_BYTES));
            return (qualifier, rest.get(..value).unwrap_or_default());
        }
        let Some(place) = self.bytes.first_chunk().copied().map(Place::unpacked) else { return (&[], &[]) };
        let mut lengths = Fields::new(arena.bytes(place, 0, width(LENGTHS_BYTES)));
        let (qualifier, value) = lengths.u32().zip(lengths.u32()).unwrap_or_default();
        let start = width(LENGTHS_BYTES);
        (arena.bytes(place, start, qualifier), arena.bytes(place, start + qualifier, value))
    }

    /// Whether it comes before another for its qualifier alone; false where only a look at both tells.
    fn is_clearly_before(&self, other: &Entry) -> bool {
        match (self.short_qualifier(), other.short_qualifier()) {
            (Some((bytes, qualifier)), Some((other_bytes, other))) => bytes == other_bytes && qualifier < other,
            _ => false,
        }
    }

    /// A qualifier of at most eight bytes: how many, and a number that orders as others of that length do.
    #[inline]
    fn short_qualifier(&self) -> Option<(u32, u64)> {
        // More than eight where it lies in the arena. None for an empty one, which a shift cannot leave.
        let count = u32::from(self.lengths >> 4);
        let word = u64::from_be_bytes(*self.bytes.first_chunk()?);
        Some((count, word.checked_shr(64_u32.checked_sub(count * 8)?)?))
    }

    fn order(&self, other: &Entry, arena: &Arena) -> Ordering {
        cell_ref(self, arena).order_in_family(&cell_ref(other, arena))
    }
}

/// The two lengths before kept bytes.
const LENGTHS_BYTES: usize = 8;

/// Bytes that fit into an entry, and their lengths.
#[inline]
fn inline(qualifier: &[u8], value: &[u8]) -> Option<([u8; INLINE_BYTES], u8)> {
    qualifier.len().checked_add(value.len()).filter(|end| *end <= INLINE_BYTES)?;
    let lengths = u8::try_from(qualifier.len() << 4 | value.len()).ok()?;
    // Fast path: nearly all points' bytes are of few lengths, each of which is one load; they are joined in registers.
    if let Some((qualifier_word, value_word)) = word(qualifier).zip(word(value)) {
        let word = u128::from(qualifier_word) | u128::from(value_word) << (8 * qualifier.len());
        return Some((*word.to_le_bytes().first_chunk()?, lengths));
    }
    Some((joined(qualifier, value), lengths))
}

/// Bytes one behind the other.
fn joined(qualifier: &[u8], value: &[u8]) -> [u8; INLINE_BYTES] {
    let mut bytes = [0; INLINE_BYTES];
    for (place, byte) in bytes.iter_mut().zip(qualifier.iter().chain(value)) {
        *place = *byte;
    }
    bytes
}

/// Leaves a cell's bytes to the arena: their place, what stands for their lengths, and how many they are.
fn keep_in_arena(cell: &LoggedCell<'_>, arena: &mut Arena) -> ([u8; INLINE_BYTES], u8, usize) {
    let (qualifier, value) = (cell.qualifier, cell.value);
    let lengths = [width(qualifier.len()).to_le_bytes(), width(value.len()).to_le_bytes()];
    let place = arena.keep(&[lengths.as_flattened(), qualifier, value]);
    (joined(&place.packed(), &[]), KEPT, LENGTHS_BYTES + qualifier.len() + value.len())
}

/// Bytes as a number, the first the lowest; `None` for lengths that are rare.
#[inline]
fn word(bytes: &[u8]) -> Option<u64> {
    Some(match bytes.len() {
        0 => 0,
        1 => bytes.first().copied()?.into(),
        2 => u16::from_le_bytes(*bytes.first_chunk()?).into(),
        4 => u32::from_le_bytes(*bytes.first_chunk()?).into(),
        8 => u64::from_le_bytes(*bytes.first_chunk()?),
        _ => return None,
    })
}

/// A row's cells.
#[derive(Debug)]
pub(super) enum Slot {
    /// Many rows have one cell; it lies here without a list around it.
    One(Entry),
    /// More than one.
    Many(Runs),
}

/// The runs, each sorted and not empty, all before the next.
#[derive(Debug)]
pub(super) struct Runs {
    /// Points of a series go behind its end: from the row to there it is one step.
    last: Vec<Entry>,
    /// Few rows have more: a word is spared where there are none.
    before: Option<Box<Before>>,
}

/// In order.
#[derive(Debug, Default)]
struct Before(Vec<Vec<Entry>>);

impl Slot {
    /// Puts a cell where it belongs; replaces the one of the same address and number.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry, arena: &Arena) {
        match self {
            Slot::One(one) if one.order(&entry, arena) == Ordering::Equal => *one = entry,
            Slot::One(one) => {
                let mut runs = Runs { last: Vec::with_capacity(FIRST_CELLS), before: None };
                runs.last.push(*one);
                runs.insert(entry, arena);
                *self = Slot::Many(runs);
            }
            Slot::Many(runs) => runs.insert(entry, arena),
        }
    }

    /// The last cell that was appended in order, which the next one is compared with.
    pub(super) fn last(&self) -> Option<&Entry> {
        match self {
            Slot::One(one) => Some(one),
            Slot::Many(runs) => runs.last.last(),
        }
    }

    /// The cells in order, from the first that is not before `from` on.
    pub(super) fn cells_from<F: Fn(&Entry) -> Ordering>(&self, from: F) -> impl Iterator<Item = &Entry> + use<'_, F> {
        let is_before = |entry: &Entry| from(entry) == Ordering::Less;
        let (before, last) = match self {
            Slot::One(one) => (&[][..], std::slice::from_ref(one)),
            Slot::Many(runs) => (runs.before(), &runs.last[..]),
        };
        // The last run that begins before it, or the first.
        let begins_before = |run: &[Entry]| run.first().is_some_and(is_before);
        let (run, between, last) = if before.is_empty() || begins_before(last) {
            (last, &[][..], &[][..])
        } else {
            let index = before.partition_point(|run| begins_before(run)).saturating_sub(1);
            let (run, between) = before.get(index..).and_then(<[_]>::split_first).unzip();
            (run.map_or(&[][..], Vec::as_slice), between.unwrap_or_default(), last)
        };
        let start = run.partition_point(is_before);
        run.get(start..).unwrap_or_default().iter().chain(between.iter().flatten()).chain(last)
    }
}

impl Runs {
    #[inline]
    fn insert(&mut self, entry: Entry, arena: &Arena) {
        let last = &mut self.last;
        // Fast path: the cell after all others, as points of a series come.
        if last.last().is_none_or(|last| last.is_clearly_before(&entry) || last.order(&entry, arena) == Ordering::Less)
        {
            if last.len() == last.capacity() {
                let next = Vec::with_capacity((last.capacity() * 2).min(APPENDED_CELLS_MAX));
                self.before.get_or_insert_default().0.push(std::mem::replace(last, next));
            }
            last.push(entry);
        } else {
            self.insert_between(entry, arena);
        }
    }

    fn insert_between(&mut self, entry: Entry, arena: &Arena) {
        let index = self.run_of(&entry, arena);
        let run = self.run_mut(index);
        match run.binary_search_by(|probe| probe.order(&entry, arena)) {
            Ok(same) => {
                if let Some(place) = run.get_mut(same) {
                    *place = entry;
                }
            }
            Err(place) => run.insert(place, entry),
        }
        if run.len() > RUN_CELLS_MAX {
            let upper = run.split_off(RUN_CELLS_MAX / 2);
            self.insert_behind(index, upper);
        }
    }

    fn before(&self) -> &[Vec<Entry>] {
        self.before.as_ref().map_or(&[], |before| &before.0)
    }

    /// The last run that begins at or before the cell, or the first.
    fn run_of(&self, entry: &Entry, arena: &Arena) -> usize {
        let begins = |run: &Vec<Entry>| run.first().is_some_and(|first| first.order(entry, arena) != Ordering::Greater);
        let before = self.before();
        if begins(&self.last) { before.len() } else { before.partition_point(begins).saturating_sub(1) }
    }

    fn run_mut(&mut self, index: usize) -> &mut Vec<Entry> {
        let before = self.before.as_mut().and_then(|before| before.0.get_mut(index));
        before.unwrap_or(&mut self.last)
    }

    fn insert_behind(&mut self, index: usize, run: Vec<Entry>) {
        let Self { last, before } = self;
        let before = &mut before.get_or_insert_default().0;
        if index < before.len() {
            before.insert(index + 1, run);
        } else {
            before.push(std::mem::replace(last, run));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FamilyId;

    fn entry(qualifier: &[u8], arena: &mut Arena) -> Entry {
        let (family, kind, timestamp) = (FamilyId(1), CellKind::Put, Timestamp(7));
        Entry::keep(&LoggedCell { family, kind, timestamp, qualifier, value: b"" }, SeqNo(9), arena).0
    }

    #[test]
    fn what_is_clearly_before_is_before() {
        let pairs = [(1, 2), (0, 255), (7, 7)];
        let cases = (0..14).flat_map(|length| pairs.map(|(low, high)| (length, low, high)));
        let cases = cases
            .flat_map(|(length, low, high)| [length, length + 1].map(|other| (vec![low; length], vec![high; other])));
        let (mut arena, mut told) = (Arena::default(), 0);
        for (a, b) in cases {
            let (a_entry, b_entry) = (entry(&a, &mut arena), entry(&b, &mut arena));
            assert!(!b_entry.is_clearly_before(&a_entry));
            if a_entry.is_clearly_before(&b_entry) {
                told += 1;
                assert!(a < b && a_entry.order(&b_entry, &arena) == Ordering::Less);
            }
        }
        assert_eq!(told, 16, "qualifiers of 1 to 8 bytes, by two pairs");
    }

    #[test]
    fn bytes_come_back_whether_they_lie_in_the_entry_or_not() {
        let mut arena = Arena::default();
        for qualifier in 0..20 {
            for value in 0..20 {
                let (qualifier, value) = (vec![b'q'; qualifier], vec![b'v'; value]);
                let (timestamp, kind) = (Timestamp(7), CellKind::DeleteColumn);
                let cell = LoggedCell { family: FamilyId(1), kind, timestamp, qualifier: &qualifier, value: &value };
                let (entry, kept) = Entry::keep(&cell, SeqNo(9), &mut arena);
                assert_eq!(kept > 0, qualifier.len() + value.len() > INLINE_BYTES);
                assert_eq!(entry.bytes(&arena), (&qualifier[..], &value[..]));
                assert_eq!((entry.timestamp, entry.sequence, entry.kind), (timestamp, SeqNo(9), kind));
            }
        }
    }
}
