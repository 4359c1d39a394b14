//! The rows of a family: found by a hash of their keys, walked in key order by leaves of bounded length under one list of
//! their first keys.
//!
//! ```text
//! first keys:  a        f        m        (heads: 8 bytes behind what all keys share)
//!              │        │        │
//! leaves:     a b d    f g k    m p       (heads, and numbers of rows)
//! ```
//!
//! The place of a new row takes two searches, each over a plain list of 64-bit heads; keys themselves are compared where
//! heads are equal only. An insert moves half a leaf. Keys that come in order fill leaf after leaf. Rows themselves stay
//! where they were put, in pieces of their own. No allocation a row.

use std::hash::{BuildHasher, Hasher};

use hashbrown::HashTable;

use super::arena::{Arena, Place, width};
use super::slot::{Entry, Slot};
use super::{MemRow, ROWS_AT_ONCE};
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

/// What a row costs besides the bytes of its key and its first cell: its place in a leaf, and one in the index with a byte of
/// its hash. In random order leaves are two thirds full, and so is the index.
pub(super) const ROW_BYTES: u64 = (size_of::<Row>() + (2 * size_of::<u32>() + size_of::<u64>() + 1) * 3 / 2) as u64;

/// Rows of a piece.
const PIECE_ROWS: usize = 1024;

/// The rows in the order in which they came; those that are there never move.
#[derive(Debug, Default)]
struct Slab(Vec<Vec<Row>>);

/// Rows in key order. All methods take the arena that holds the keys.
#[derive(Debug, Default)]
pub(super) struct Rows {
    leaves: Vec<Leaf>,
    /// Of the first key of each leaf.
    heads: Heads,
    slab: Slab,
    /// Numbers of rows by the hashes of their keys.
    index: HashTable<u32>,
    hashes: foldhash::fast::RandomState,
}

#[derive(Debug, Default)]
struct Leaf {
    heads: Heads,
    /// Numbers of rows in the slab.
    rows: Vec<u32>,
}

/// Where a row is, or where it belongs.
#[derive(Debug, Clone, Copy)]
struct At {
    leaf: usize,
    row: usize,
}

impl Rows {
    /// The number of a row; `None` when it is not there. *Cost*: one comparison for a key behind all others, else one
    /// look-up, and once for each row that came in order its way into the index.
    pub(super) fn get(&mut self, key: &[u8], arena: &Arena) -> Option<u32> {
        if self.is_behind_all(key, arena) {
            return None;
        }
        self.index_all(arena);
        self.index.find(hash(&self.hashes, key), |row| self.slab.key(*row, arena) == key).copied()
    }

    /// Looks rows up, as many as there are places, which are `None` and hold their numbers then.
    ///
    /// The memory of each step is asked for of all rows before the next step, which needs it: so all of them wait for it
    /// once and not each for itself.
    pub(super) fn look_up(&mut self, sought: &[MemRow<'_>], found: &mut [Option<u32>], arena: &Arena) {
        if sought.iter().all(|row| self.is_behind_all(row.key, arena)) {
            return;
        }
        self.index_all(arena);
        let Rows { slab, index, hashes, .. } = self;
        let mut hashed = [0; ROWS_AT_ONCE];
        for ((row, hashed), found) in sought.iter().zip(&mut hashed).zip(&mut *found) {
            *hashed = hash(hashes, row.key);
            *found = index.find(*hashed, |_| true).copied();
        }
        // Nobody wants what is read here; it is asked for so that the compiler leaves the loads.
        let rows = || found.iter().flatten().filter_map(|row| slab.get(*row));
        std::hint::black_box(rows().fold(0, |sum, row| sum ^ row.key_bytes));
        let ends = |row: &Row| {
            let key = row.key(arena).first().copied().unwrap_or_default();
            row.slot.last().map_or(0, |last| last.sequence.0) ^ u64::from(key)
        };
        std::hint::black_box(rows().fold(0, |sum, row| sum ^ ends(row)));
        for ((row, hashed), found) in sought.iter().zip(hashed).zip(found) {
            let is_it = |number: &u32| slab.key(*number, arena) == row.key;
            *found = found.filter(is_it).or_else(|| index.find(hashed, is_it).copied());
        }
    }

    /// The cells of a row.
    pub(super) fn slot_mut(&mut self, row: u32) -> Option<&mut Slot> {
        self.slab.get_mut(row).map(|row| &mut row.slot)
    }

    /// Adds a row that is not there with its first cell; answers its number.
    pub(super) fn insert(&mut self, key: &[u8], first: Entry, arena: &mut Arena) -> u32 {
        let is_behind_all = self.is_behind_all(key, arena);
        let row = Row { key: arena.keep(&[key]), key_bytes: width(key.len()), slot: Slot::One(first) };
        let number = self.slab.push(row);
        let at = if is_behind_all { self.end() } else { self.find(key, arena).unwrap_or_else(|at| at) };
        let at = self.make_room(at, arena);
        let Rows { leaves, heads, slab, .. } = self;
        if let Some(leaf) = leaves.get_mut(at.leaf) {
            leaf.insert(at.row, key, number, (slab, arena));
        }
        if at.row == 0 {
            heads.set(at.leaf, key, |leaf| first_key(leaves, leaf, (slab, arena)));
        }
        number
    }

    /// Whether a key is greater than all that are there.
    fn is_behind_all(&self, key: &[u8], arena: &Arena) -> bool {
        let last = self.leaves.last().and_then(|leaf| leaf.rows.last());
        last.is_none_or(|last| self.slab.key(*last, arena) < key)
    }

    /// Behind the last row.
    fn end(&self) -> At {
        At { leaf: self.leaves.len().saturating_sub(1), row: self.leaves.last().map_or(0, |leaf| leaf.rows.len()) }
    }

    /// Puts the rows into the index that are not there yet: while keys come in order none is, as none is looked up.
    fn index_all(&mut self, arena: &Arena) {
        let Rows { slab, index, hashes, .. } = self;
        let hash_of = |row: &u32| hash(hashes, slab.key(*row, arena));
        for row in width(index.len())..slab.len() {
            index.insert_unique(hash_of(&row), row, hash_of);
        }
    }

    /// Finds a row in the order; the place where it belongs when it is not there.
    fn find(&self, key: &[u8], arena: &Arena) -> Result<At, At> {
        let keys = (&self.slab, arena);
        let leaf = self.heads.search(key, |leaf| first_key(&self.leaves, leaf, keys));
        let leaf = leaf.unwrap_or_else(|behind| behind.saturating_sub(1));
        let Some(found) = self.leaves.get(leaf) else { return Err(At { leaf: 0, row: 0 }) };
        let row = found.heads.search(key, |row| found.key(row, keys));
        row.map(|row| At { leaf, row }).map_err(|row| At { leaf, row })
    }

    /// Splits the leaf when it is full, or begins the next one behind the last; answers where the row then belongs.
    fn make_room(&mut self, at: At, arena: &Arena) -> At {
        let Rows { leaves, heads, slab, .. } = self;
        let keys = (&*slab, arena);
        let is_last = at.leaf + 1 >= leaves.len();
        // Keys that come in order leave full leaves behind.
        if leaves.is_empty() || (is_last && at.row == LEAF_ROWS) {
            let next = leaves.len();
            leaves.push(Leaf::default());
            heads.push_unset(); // set with the leaf's first key
            return At { leaf: next, row: 0 };
        }
        let Some(full) = leaves.get_mut(at.leaf).filter(|leaf| leaf.rows.len() >= LEAF_ROWS) else { return at };
        let upper = full.split(keys);
        let (kept, next) = (full.rows.len(), at.leaf + 1);
        heads.insert(next, upper.key(0, keys), |leaf| first_key(leaves, leaf, keys));
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
        first.iter().chain(rest).filter_map(|row| self.slab.row(*row, arena))
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
        first.iter().rev().chain(rest).filter_map(|row| self.slab.row(*row, arena))
    }
}

fn hash(hashes: &foldhash::fast::RandomState, key: &[u8]) -> u64 {
    let mut hasher = hashes.build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// Where the keys of rows are found.
type Keys<'a> = (&'a Slab, &'a Arena);

fn first_key<'a>(leaves: &[Leaf], leaf: usize, keys: Keys<'a>) -> &'a [u8] {
    leaves.get(leaf).map_or(&[], |leaf| leaf.key(0, keys))
}

impl Leaf {
    fn insert(&mut self, at: usize, key: &[u8], row: u32, keys: Keys<'_>) {
        let Leaf { heads, rows } = self;
        heads.insert(at, key, |row| key_at(rows, row, keys));
        rows.insert(at, row);
    }

    fn key<'a>(&self, row: usize, keys: Keys<'a>) -> &'a [u8] {
        key_at(&self.rows, row, keys)
    }

    /// Takes the upper half off.
    fn split(&mut self, keys: Keys<'_>) -> Leaf {
        let rows = self.rows.split_off(LEAF_ROWS / 2);
        let mut upper = Leaf { heads: self.heads.split_off(LEAF_ROWS / 2), rows };
        for leaf in [self, &mut upper] {
            let Leaf { heads, rows } = leaf;
            heads.deepen(|row| key_at(rows, row, keys));
        }
        upper
    }
}

fn key_at<'a>(rows: &[u32], row: usize, (slab, arena): Keys<'a>) -> &'a [u8] {
    rows.get(row).map_or(&[], |row| slab.key(*row, arena))
}

impl Slab {
    fn push(&mut self, row: Row) -> u32 {
        if self.0.last().is_none_or(|last| last.len() == PIECE_ROWS) {
            // The first piece grows: a small memtable is not to cost a whole one.
            self.0.push(Vec::with_capacity(if self.0.is_empty() { 0 } else { PIECE_ROWS }));
        }
        let before = (self.0.len() - 1) * PIECE_ROWS;
        let mut place = 0;
        if let Some(last) = self.0.last_mut() {
            place = last.len();
            last.push(row);
        }
        width(before + place)
    }

    fn len(&self) -> u32 {
        width(self.0.len().saturating_sub(1) * PIECE_ROWS + self.0.last().map_or(0, Vec::len))
    }

    fn get(&self, row: u32) -> Option<&Row> {
        self.0.get(row as usize / PIECE_ROWS)?.get(row as usize % PIECE_ROWS)
    }

    fn get_mut(&mut self, row: u32) -> Option<&mut Row> {
        self.0.get_mut(row as usize / PIECE_ROWS)?.get_mut(row as usize % PIECE_ROWS)
    }

    fn key<'a>(&self, row: u32, arena: &'a Arena) -> &'a [u8] {
        self.get(row).map_or(&[], |row| row.key(arena))
    }

    fn row<'a>(&'a self, row: u32, arena: &'a Arena) -> Option<(&'a [u8], &'a Slot)> {
        self.get(row).map(|row| (row.key(arena), &row.slot))
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
    use crate::id::FamilyId;
    use crate::io::{Rng, SplitMix};
    use crate::mutation::LoggedCell;

    fn entry(number: u64, arena: &mut Arena) -> Entry {
        let (family, kind, timestamp) = (FamilyId(1), CellKind::Put, Timestamp(number));
        let cell = LoggedCell { family, kind, timestamp, qualifier: b"q", value: b"v" };
        Entry::keep(&cell, SeqNo(number), arena).0
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
            for count in 0..5000 {
                let shape = rng.below(shapes);
                // First as they come, then in order, then both.
                let in_order = |count: u64| [&[0xFF; 3][..], &count.to_string().into_bytes()].concat();
                let key = match count {
                    3000..4000 => in_order(count),
                    4000.. if rng.below(2) == 0 => in_order(3000 + rng.below(1000)),
                    _ => key(&mut rng, shape),
                };
                assert_eq!(rows.find(&key, &arena).is_ok(), expected.contains_key(&key));
                if let Some(row) = rows.get(&key, &arena) {
                    assert_eq!(number(rows.slot_mut(row).unwrap()), expected[&key]);
                } else {
                    let first = entry(count, &mut arena);
                    let row = rows.insert(&key, first, &mut arena);
                    assert_eq!(number(rows.slot_mut(row).unwrap()), count);
                    assert!(expected.insert(key, count).is_none());
                }
            }
            for _ in 0..100 {
                let mut drawn = || {
                    let shape = rng.below(4);
                    key(&mut rng, shape)
                };
                let keys: Vec<_> = (0..ROWS_AT_ONCE).map(|_| drawn()).collect();
                let sought: Vec<_> = keys.iter().map(|key| MemRow { key, sequence: SeqNo(0), cells: &[] }).collect();
                let mut found = [None; ROWS_AT_ONCE];
                rows.look_up(&sought, &mut found, &arena);
                let found = found.map(|row| row.map(|row| number(rows.slot_mut(row).unwrap())));
                assert_eq!(found.to_vec(), keys.iter().map(|key| expected.get(key).copied()).collect::<Vec<_>>());
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
            rows.insert(&key, first, &mut arena);
        }
        assert_eq!(rows.leaves.len(), 1000_usize.div_ceil(LEAF_ROWS));
    }
}
