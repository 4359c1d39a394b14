//! A cell of a memtable: twenty bytes, in which lie the qualifier and value of any point.
//!
//! Longer bytes lie in the arena, and so does what cells share that were written together: their time, and the first of their numbers.

use std::cmp::Ordering;

use basalt_store::{CellKind, CellRef, SeqNo, Timestamp};

use super::arena::{Arena, Place};
use super::slab::width;
use super::stamps::Stamped;
use crate::field::Fields;
use crate::mutation::LoggedCell;

/// Up to so many bytes of qualifier and value lie in the entry itself: those of any point.
const INLINE_BYTES: usize = 12;

/// A cell on its way to its place: numbers.
///
/// What is put together in memory piece by piece, and then read as a whole, waits for all that was written before it, and in a
/// memtable that is memory from far away.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewEntry {
    stamped: Stamped,
    /// The first [`INLINE_BYTES`] of it are the bytes.
    word: u128,
    lengths: u8,
    pub(super) kind: CellKind,
}

/// Qualifier and value of a cell that has room for both in its entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inline {
    bytes: [u8; INLINE_BYTES],
    lengths: u8,
    kind: CellKind,
}

impl Inline {
    /// Bytes that there is room for.
    pub(crate) const BYTES_MAX: usize = INLINE_BYTES;

    /// `None` where there is no room.
    #[inline]
    pub(crate) fn of(kind: CellKind, qualifier: &[u8], value: &[u8]) -> Option<Inline> {
        let (word, lengths) = inline(qualifier, value)?;
        Some(Inline { bytes: *word.to_le_bytes().first_chunk()?, lengths, kind })
    }

    /// With when it was written, and under which number.
    #[inline]
    pub(super) fn entry(self, (stamp, behind): Stamped) -> Entry {
        let Inline { bytes, lengths, kind } = self;
        Entry { stamp, behind, lengths, kind, bytes }
    }
}

/// A cell in its place.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    /// When it was written, and under which number: the two halves of what the arena gives for them.
    stamp: u32,
    behind: u16,
    /// Of qualifier and value in half a byte each, or [`KEPT`].
    lengths: u8,
    pub(super) kind: CellKind,
    /// The qualifier, the value behind it; or a packed place in the arena: both lengths, then the bytes of both.
    bytes: [u8; INLINE_BYTES],
}

/// Stands for lengths where the bytes are in the arena; no two that lie in an entry have these.
const KEPT: u8 = u8::MAX;

const _: () = assert!(size_of::<Entry>() == 20 && INLINE_BYTES < 16);

impl NewEntry {
    /// One of the cell's bytes, and how many of them it left to the arena.
    #[inline]
    pub(super) fn keep(cell: &LoggedCell<'_>, sequence: SeqNo, arena: &mut Arena) -> (NewEntry, usize) {
        let (word, lengths, kept) = match inline(cell.qualifier, cell.value) {
            Some((word, lengths)) => (word, lengths, 0),
            None => keep_in_arena(cell, arena),
        };
        let stamped = arena.stamp(cell.timestamp, sequence);
        (NewEntry { stamped, word, lengths, kind: cell.kind }, kept)
    }

    /// As it lies in its place.
    #[inline]
    pub(super) fn entry(self) -> Entry {
        let NewEntry { stamped: (stamp, behind), word, lengths, kind } = self;
        let bytes = word.to_le_bytes().first_chunk().copied().unwrap_or_default();
        Entry { stamp, behind, lengths, kind, bytes }
    }

    /// Its qualifier as a mark.
    #[inline]
    pub(super) fn mark(self) -> Mark {
        let [a, b, c, d, ..] = self.word.to_le_bytes();
        Mark::of(self.lengths, [a, b, c, d])
    }
}

impl Entry {
    /// Stands where there is room.
    pub(super) const EMPTY: Entry =
        Entry { stamp: 0, behind: 0, lengths: 0, kind: CellKind::Put, bytes: [0; INLINE_BYTES] };

    /// As it was before it lay in its place, or on its way to another.
    #[inline]
    pub(super) fn again(&self) -> NewEntry {
        let Entry { stamp, behind, lengths, kind, bytes } = *self;
        let mut word = [0; 16];
        if let Some(low) = word.first_chunk_mut() {
            *low = bytes;
        }
        NewEntry { stamped: (stamp, behind), word: u128::from_le_bytes(word), lengths, kind }
    }

    /// When it was written, and under which number.
    #[inline]
    pub(super) fn stamped(&self, arena: &Arena) -> (Timestamp, SeqNo) {
        arena.stamped((self.stamp, self.behind))
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

    /// Its qualifier as a mark.
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        let [a, b, c, d, ..] = self.bytes;
        Mark::of(self.lengths, [a, b, c, d])
    }

    /// Whether it is a put.
    #[inline]
    pub(super) fn is_put(&self) -> bool {
        self.kind == CellKind::Put
    }

    /// The order of cells in a row's family.
    pub(super) fn order(&self, other: &Entry, arena: &Arena) -> Ordering {
        self.cell(arena).order_in_family(&other.cell(arena))
    }

    /// The cell, without row and family.
    pub(super) fn cell<'a>(&'a self, arena: &'a Arena) -> CellRef<'a> {
        let ((qualifier, value), (timestamp, seq)) = (self.bytes(arena), self.stamped(arena));
        CellRef { row: &[], family: &[], qualifier, timestamp, kind: self.kind, seq, value }
    }

    /// Something of it, for whoever only wants its memory to come.
    #[inline]
    pub(super) fn touch(&self) -> u32 {
        self.stamp
    }
}

/// A qualifier of up to four bytes, as points have them, as a number.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Mark {
    pub(super) qualifier: u32,
    pub(super) bytes: MarkBytes,
}

/// Of how many bytes it is; `None` where it is no such qualifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MarkBytes {
    None,
    One,
    Two,
    Three,
    Four,
}

impl Mark {
    /// Of an entry's lengths and its first bytes.
    #[inline]
    fn of(lengths: u8, bytes: [u8; 4]) -> Mark {
        let word = u32::from_be_bytes(bytes);
        match lengths >> 4 {
            1 => Mark { qualifier: word >> 24, bytes: MarkBytes::One },
            2 => Mark { qualifier: word >> 16, bytes: MarkBytes::Two },
            3 => Mark { qualifier: word >> 8, bytes: MarkBytes::Three },
            4 => Mark { qualifier: word, bytes: MarkBytes::Four },
            // More where they lie in the arena; none have nothing to tell.
            _ => Mark { qualifier: 0, bytes: MarkBytes::None },
        }
    }

    /// Whether its cell comes before another's for the qualifiers alone; false where only a look at both cells tells.
    #[inline]
    pub(super) fn is_clearly_before(self, other: Mark) -> bool {
        self.bytes == other.bytes && self.bytes != MarkBytes::None && self.qualifier < other.qualifier
    }
}

/// The two lengths before kept bytes.
const LENGTHS_BYTES: usize = 8;

/// Bytes that fit into an entry, as a number, and their lengths.
#[inline]
fn inline(qualifier: &[u8], value: &[u8]) -> Option<(u128, u8)> {
    qualifier.len().checked_add(value.len()).filter(|end| *end <= INLINE_BYTES)?;
    let lengths = u8::try_from(qualifier.len() << 4 | value.len()).ok()?;
    // Fast path: nearly all points' bytes are of few lengths, each of which is one load.
    if let Some((qualifier_word, value_word)) = word(qualifier).zip(word(value)) {
        return Some((u128::from(qualifier_word) | u128::from(value_word) << (8 * qualifier.len()), lengths));
    }
    Some((joined(qualifier, value), lengths))
}

/// Bytes one behind the other, as a number.
fn joined(qualifier: &[u8], value: &[u8]) -> u128 {
    value.iter().rev().chain(qualifier.iter().rev()).fold(0, |word, byte| word << 8 | u128::from(*byte))
}

/// Leaves a cell's bytes to the arena: their place, what stands for their lengths, and how many they are.
fn keep_in_arena(cell: &LoggedCell<'_>, arena: &mut Arena) -> (u128, u8, usize) {
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::id::FamilyId;

    /// A put of an empty value.
    pub(in crate::memtable) fn entry(qualifier: &[u8], arena: &mut Arena) -> NewEntry {
        let (family, kind, timestamp) = (FamilyId(1), CellKind::Put, Timestamp(7));
        NewEntry::keep(&LoggedCell { family, kind, timestamp, qualifier, value: b"" }, SeqNo(9), arena).0
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
            assert!(!b_entry.mark().is_clearly_before(a_entry.mark()));
            if a_entry.mark().is_clearly_before(b_entry.mark()) {
                told += 1;
                assert!(a < b && a_entry.entry().order(&b_entry.entry(), &arena) == Ordering::Less);
            }
        }
        assert_eq!(told, 8, "qualifiers of 1 to 4 bytes, by two pairs");
    }

    #[test]
    fn bytes_come_back_whether_they_lie_in_the_entry_or_not() {
        let mut arena = Arena::default();
        for qualifier in 0..20 {
            for value in 0..20 {
                let (qualifier, value) = (vec![b'q'; qualifier], vec![b'v'; value]);
                let (timestamp, kind) = (Timestamp(7), CellKind::DeleteColumn);
                let cell = LoggedCell { family: FamilyId(1), kind, timestamp, qualifier: &qualifier, value: &value };
                let (new, kept) = NewEntry::keep(&cell, SeqNo(9), &mut arena);
                let entry = new.entry();
                assert_eq!(kept > 0, qualifier.len() + value.len() > INLINE_BYTES);
                assert_eq!(entry.bytes(&arena), (&qualifier[..], &value[..]));
                assert_eq!((entry.stamped(&arena), entry.kind), ((timestamp, SeqNo(9)), kind));
            }
        }
    }
}
