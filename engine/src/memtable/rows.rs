//! The rows of a family in key order: leaves of bounded length under one list of their first keys.
//!
//! ```text
//! first keys:  a        f        m        (heads: 8 bytes behind what all keys share)
//!              │        │        │
//! leaves:     a b d    f g k    m p       (heads, then keys and slots)
//! ```
//!
//! A look-up is two searches, each over a plain list of 64-bit heads; keys themselves are compared where heads are equal
//! only. An insert moves half a leaf. Keys that come in order fill leaf after leaf. No allocation a row.

use super::arena::{Arena, Place, width};
use super::slot::{Entry, Slot};
use crate::heads::Heads;

/// Rows of a leaf: few enough to be moved for an insert, many enough that the list of leaves stays short.
const LEAF_ROWS: usize = 128;

/// A row: where its key lies, and its cells.
#[derive(Debug)]
struct Row {
    key: Place,
    key_bytes: u32,
    slot: Slot,
}

/// What a row costs besides the bytes of its key and its first cell. In random order leaves are two thirds full.
pub(super) const ROW_BYTES: u64 = (size_of::<Row>() + size_of::<u64>()) as u64 * 3 / 2;

/// Rows in key order. All methods take the arena that holds the keys.
#[derive(Debug, Default)]
pub(super) struct Rows {
    leaves: Vec<Leaf>,
    /// Of the first key of each leaf.
    heads: Heads,
}

#[derive(Debug, Default)]
struct Leaf {
    heads: Heads,
    rows: Vec<Row>,
}

/// Where a row is, or where it belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    leaf: usize,
    row: usize,
}

impl Rows {
    /// Finds a row; the place where it belongs when it is not there.
    pub(super) fn find(&self, key: &[u8], arena: &Arena) -> Result<At, At> {
        let leaf = self.heads.search(key, |leaf| first_key(&self.leaves, leaf, arena));
        let leaf = leaf.unwrap_or_else(|behind| behind.saturating_sub(1));
        let Some(found) = self.leaves.get(leaf) else { return Err(At { leaf: 0, row: 0 }) };
        let row = found.heads.search(key, |row| found.key(row, arena));
        row.map(|row| At { leaf, row }).map_err(|row| At { leaf, row })
    }

    /// The cells of a row that was found.
    pub(super) fn slot_mut(&mut self, at: At) -> Option<&mut Slot> {
        Some(&mut self.leaves.get_mut(at.leaf)?.rows.get_mut(at.row)?.slot)
    }

    /// Adds a row with its first cell where [`Rows::find`] says that it belongs; answers where it is.
    pub(super) fn insert(&mut self, at: At, key: &[u8], first: Entry, arena: &mut Arena) -> At {
        let row = Row { key: arena.keep(key, &[]), key_bytes: width(key.len()), slot: Slot::One(first) };
        let at = self.make_room(at, arena);
        let Rows { leaves, heads } = self;
        if let Some(leaf) = leaves.get_mut(at.leaf) {
            leaf.insert(at.row, key, row, arena);
        }
        if at.row == 0 {
            heads.set(at.leaf, key, |leaf| first_key(leaves, leaf, arena));
        }
        at
    }

    /// Splits the leaf when it is full, or begins the next one behind the last; answers where the row then belongs.
    fn make_room(&mut self, at: At, arena: &Arena) -> At {
        let Rows { leaves, heads } = self;
        let is_last = at.leaf + 1 >= leaves.len();
        // Keys that come in order leave full leaves behind.
        if leaves.is_empty() || (is_last && at.row == LEAF_ROWS) {
            let next = leaves.len();
            leaves.push(Leaf::default());
            heads.push_unset(); // set with the leaf's first key
            return At { leaf: next, row: 0 };
        }
        let Some(full) = leaves.get_mut(at.leaf).filter(|leaf| leaf.rows.len() >= LEAF_ROWS) else { return at };
        let upper = full.split(arena);
        let (kept, next) = (full.rows.len(), at.leaf + 1);
        heads.insert(next, upper.key(0, arena), |leaf| first_key(leaves, leaf, arena));
        leaves.insert(next, upper);
        if at.row > kept { At { leaf: next, row: at.row - kept } } else { at }
    }

    /// Rows from a key on, ascending; all without one.
    pub(super) fn from<'a>(
        &'a self,
        key: Option<&[u8]>,
        arena: &'a Arena,
    ) -> impl Iterator<Item = (&'a [u8], &'a Slot)> {
        let at = key.map_or(At { leaf: 0, row: 0 }, |key| self.find(key, arena).unwrap_or_else(|at| at));
        let (first, rest) = self.leaves.get(at.leaf..).and_then(<[Leaf]>::split_first).unzip();
        let first = first.and_then(|leaf| leaf.rows.get(at.row..)).unwrap_or_default();
        let rest = rest.unwrap_or_default().iter().flat_map(|leaf| &leaf.rows);
        first.iter().chain(rest).map(|row| (row.key(arena), &row.slot))
    }

    /// Rows from a key back, descending; all without one.
    pub(super) fn back_from<'a>(
        &'a self,
        key: Option<&[u8]>,
        arena: &'a Arena,
    ) -> impl Iterator<Item = (&'a [u8], &'a Slot)> {
        let end = key.map_or(At { leaf: self.leaves.len(), row: 0 }, |key| match self.find(key, arena) {
            Ok(at) => At { row: at.row + 1, ..at },
            Err(at) => at,
        });
        let first = self.leaves.get(end.leaf).and_then(|leaf| leaf.rows.get(..end.row)).unwrap_or_default();
        let rest = self.leaves.get(..end.leaf).unwrap_or_default().iter().rev().flat_map(|leaf| leaf.rows.iter().rev());
        first.iter().rev().chain(rest).map(|row| (row.key(arena), &row.slot))
    }
}

fn first_key<'a>(leaves: &[Leaf], leaf: usize, arena: &'a Arena) -> &'a [u8] {
    leaves.get(leaf).map_or(&[], |leaf| leaf.key(0, arena))
}

impl Leaf {
    fn insert(&mut self, at: usize, key: &[u8], row: Row, arena: &Arena) {
        let Leaf { heads, rows } = self;
        heads.insert(at, key, |row| rows.get(row).map_or(&[], |row| row.key(arena)));
        rows.insert(at, row);
    }

    fn key<'a>(&self, row: usize, arena: &'a Arena) -> &'a [u8] {
        self.rows.get(row).map_or(&[], |row| row.key(arena))
    }

    /// Takes the upper half off.
    fn split(&mut self, arena: &Arena) -> Leaf {
        let rows = self.rows.split_off(LEAF_ROWS / 2);
        let mut upper = Leaf { heads: self.heads.split_off(LEAF_ROWS / 2), rows };
        for leaf in [self, &mut upper] {
            let Leaf { heads, rows } = leaf;
            heads.deepen(|row| rows.get(row).map_or(&[], |row| row.key(arena)));
        }
        upper
    }
}

impl Row {
    fn key<'a>(&self, arena: &'a Arena) -> &'a [u8] {
        arena.bytes(self.key, 0, self.key_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use basalt_store::{CellKind, SeqNo, Timestamp};

    use super::*;
    use crate::io::{Rng, SplitMix};

    fn entry(number: u64, arena: &mut Arena) -> Entry {
        let place = arena.keep(b"q", b"v");
        let (timestamp, sequence) = (Timestamp(number), SeqNo(number));
        Entry { timestamp, sequence, place, qualifier_len: 1, value_len: 1, kind: CellKind::Put }
    }

    fn number(slot: &Slot) -> u64 {
        slot.cells_from(|_| Ordering::Greater).next().unwrap().sequence.0
    }

    /// Keys whose heads tell them apart, keys that are alike for longer than is passed over, and keys that begin others.
    fn key(rng: &mut SplitMix, shape: u64) -> Vec<u8> {
        let number = rng.below(3000).to_be_bytes();
        match shape {
            0 => number.to_vec(),
            1 => [&[7; 45][..], &number].concat(),
            2 => vec![0; usize::try_from(rng.below(60)).unwrap() + 1],
            _ => [&number[5..], &[1; 9][..usize::try_from(rng.below(9)).unwrap()]].concat(),
        }
    }

    #[test]
    fn rows_are_found_and_walked_as_in_a_sorted_map() {
        for (seed, shapes) in [(1, 1), (2, 2), (3, 4), (4, 3)] {
            let mut rng = SplitMix::new(seed);
            let (mut rows, mut arena, mut expected) = (Rows::default(), Arena::default(), BTreeMap::new());
            for count in 0..4000 {
                let shape = rng.below(shapes);
                // First as they come, then in order.
                let key = if count < 3000 {
                    key(&mut rng, shape)
                } else {
                    [&[0xFF; 3][..], &count.to_string().into_bytes()].concat()
                };
                match rows.find(&key, &arena) {
                    Ok(at) => assert_eq!(number(rows.slot_mut(at).unwrap()), expected[&key]),
                    Err(at) => {
                        let first = entry(count, &mut arena);
                        let at = rows.insert(at, &key, first, &mut arena);
                        assert_eq!(number(rows.slot_mut(at).unwrap()), count);
                        assert!(expected.insert(key, count).is_none());
                    }
                }
            }
            for _ in 0..100 {
                let shape = rng.below(4);
                let from = key(&mut rng, shape);
                let ascending: Vec<_> = rows.from(Some(&from), &arena).map(|(key, slot)| (key, number(slot))).collect();
                let known = expected.range::<[u8], _>((Bound::Included(&from[..]), Bound::Unbounded));
                assert_eq!(ascending, known.map(|(key, number)| (&key[..], *number)).collect::<Vec<_>>());
                let descending: Vec<_> =
                    rows.back_from(Some(&from), &arena).map(|(key, slot)| (key, number(slot))).collect();
                let known = expected.range::<[u8], _>((Bound::Unbounded, Bound::Included(&from[..])));
                assert_eq!(descending, known.rev().map(|(key, number)| (&key[..], *number)).collect::<Vec<_>>());
            }
            assert_eq!(
                (rows.from(None, &arena).count(), rows.back_from(None, &arena).count()),
                (expected.len(), expected.len())
            );
        }
    }

    #[test]
    fn keys_in_order_fill_their_leaves() {
        let (mut rows, mut arena) = (Rows::default(), Arena::default());
        for count in 0..1000_u64 {
            let key = count.to_be_bytes();
            let first = entry(count, &mut arena);
            let at = rows.find(&key, &arena).unwrap_err();
            rows.insert(at, &key, first, &mut arena);
        }
        assert_eq!(rows.leaves.len(), 1000_usize.div_ceil(LEAF_ROWS));
    }
}
