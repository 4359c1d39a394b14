//! The rows of a family. A hash of its handle or key finds a row; leaves of bounded length, under one list of their first keys, give
//! the rows in key order.
//!
//! ```text
//! first keys:  a        f        m        (heads: 8 bytes behind what all keys share)
//!              │        │        │
//! leaves:     a b d    f g k    m p       (heads, and numbers of rows)
//! ```
//!
//! To place a new row takes two searches, each over a plain list of 64-bit heads; whole keys are compared only where heads are
//! equal. An insert moves half a leaf. Keys that come in order fill one leaf after the other. The rows themselves lie in a slab
//! and never move. No row needs an allocation.

use std::hash::{BuildHasher, Hasher};

use basalt_store::RowHandle;
use hashbrown::HashTable;

use super::arena::{Arena, Place};
use super::entry::{Entry, NewEntry};
use super::incoming::{MemRow, ROWS_AT_ONCE};
use super::runs::Runs;
use super::slab::{Slab, width};
use super::slot::Slot;
use crate::heads::Heads;

/// Rows in a leaf: few enough that an insert may move them, many enough that the list of leaves stays short.
const LEAF_ROWS: usize = 128;

/// A row: where its key lies, and its cells.
#[derive(Debug)]
struct Row {
    key: Place,
    key_bytes: u32,
    slot: Slot,
}

/// What a row costs besides the bytes of its key and its first cell: its handle, its place in a leaf, and one in the index with a
/// byte of its hash. In random order leaves are two thirds full, and so is the index.
pub(super) const ROW_BYTES: u64 =
    (size_of::<Row>() + size_of::<Option<RowHandle>>() + (2 * size_of::<u32>() + size_of::<u64>() + 1) * 3 / 2) as u64;

/// Rows in one piece of the slab.
const PIECE_ROWS: usize = 1024;

/// The rows in order of arrival.
type RowSlab = Slab<Row, PIECE_ROWS>;

/// What stands for the keys of rows, by their numbers. Apart from the rows: whoever looks rows up reads these alone, eight to a line
/// of memory.
type Handles = Slab<Option<RowHandle>, PIECE_ROWS>;

/// Rows in key order. All methods take the arena that holds the keys.
#[derive(Debug, Default)]
pub(super) struct Rows {
    leaves: Vec<Leaf>,
    /// The head of each leaf's first key.
    heads: Heads,
    slab: RowSlab,
    handles: Handles,
    /// The number behind that of the row looked up last.
    next: u32,
    runs: Runs,
    /// Numbers of rows by the hashes of their keys. It holds a first part of the slab's rows, and the rest once a key is sought.
    by_key: HashTable<u32>,
    /// Numbers of rows by the hashes of their handles. It holds the rows that have a handle.
    by_handle: HashTable<u32>,
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
    /// The number of a row; `None` when it is not there. *Cost*: one look-up by handle, while every row has a handle. Otherwise also
    /// one comparison with the last key, and for a key that is not behind it one look-up by key; each row is put into the index of
    /// keys once.
    pub(super) fn get(&mut self, key: &[u8], handle: Option<RowHandle>, arena: &Arena) -> Option<u32> {
        let known = handle.and_then(|handle| self.get_by_handle(handle));
        known.or_else(|| self.get_by_key(key, handle, arena))
    }

    /// The same for a row whose handle, where it has one, was looked up and is not known.
    pub(super) fn get_by_key(&mut self, key: &[u8], handle: Option<RowHandle>, arena: &Arena) -> Option<u32> {
        let is_told = handle.is_some() && self.by_handle.len() == self.slab.len() as usize;
        if is_told || self.is_behind_all(key, arena) {
            return None;
        }
        self.index_all(arena);
        let row = self.by_key.find(hash(&self.hashes, key), |row| self.slab.key(*row, arena) == key).copied()?;
        self.give(row, handle);
        Some(row)
    }

    fn get_by_handle(&self, handle: RowHandle) -> Option<u32> {
        self.by_handle.find(self.hashes.hash_one(handle), |row| self.handles.of(*row) == Some(handle)).copied()
    }

    /// Gives a row a handle; from then on the row is found by it.
    fn give(&mut self, row: u32, handle: Option<RowHandle>) {
        let Rows { handles, by_handle, hashes, .. } = self;
        if let Some(handle) = handle
            && let Some(known) = handles.get_mut(row)
        {
            assert!(known.is_none(), "BUG: {handle:?} and {known:?} stand for one key");
            *known = Some(handle);
            by_handle.insert_unique(hashes.hash_one(handle), row, |row| {
                handles.of(*row).map_or(0, |handle| hashes.hash_one(handle))
            });
        }
    }

    /// Looks rows up, as many as there are places, which are `None` and hold their numbers then. Where all have handles, those whose
    /// handles are not known stay `None`.
    pub(super) fn look_up(&mut self, sought: &[MemRow<'_>], found: &mut [Option<u32>], arena: &Arena) {
        if sought.iter().all(|row| row.handle.is_some()) {
            self.look_up_handles(sought, found, arena);
        } else {
            self.look_up_keys(sought, |row| row.key, found, arena);
        }
    }

    fn look_up_handles(&mut self, sought: &[MemRow<'_>], found: &mut [Option<u32>], arena: &Arena) {
        for (row, found) in sought.iter().zip(found) {
            *found = row.handle.and_then(|handle| self.look_up_handle(handle));
            let is_it = |number| self.slab.key(number, arena) == row.key;
            debug_assert!(found.is_none_or(is_it), "BUG: a handle of two keys");
        }
    }

    /// The number of a row; `None` where its handle is not known.
    #[inline]
    pub(super) fn look_up_handle(&mut self, handle: RowHandle) -> Option<u32> {
        // Fast path: rows are written in the order in which they first were.
        let is_next = self.handles.of(self.next) == Some(handle);
        let found = if is_next { Some(self.next) } else { self.get_by_handle(handle) };
        self.next = found.map_or(self.next, |number| number + 1);
        found
    }

    /// The same for rows without handles; `key_of` tells the key of one that is sought.
    pub(super) fn look_up_keys<'k, T>(
        &mut self,
        sought: &'k [T],
        key_of: impl Fn(&'k T) -> &'k [u8] + Copy,
        found: &mut [Option<u32>],
        arena: &Arena,
    ) {
        if sought.iter().all(|row| self.is_behind_all(key_of(row), arena)) {
            return;
        }
        let (mut sought, mut found) = (sought, found);
        while !sought.is_empty() {
            // Fast path: as in `look_up_handle`.
            let is_next = |(row, number): (&'k T, u32)| self.slab.key(number, arena) == key_of(row);
            let guessed = sought.iter().zip(self.next..).take_while(|next| is_next(*next)).count();
            found.iter_mut().zip(self.next..).take(guessed).for_each(|(found, number)| *found = Some(number));
            // Where some came in their order, one look-up tells from where on others do. Else all are looked up together.
            let count = if guessed > 0 { sought.len().min(guessed + 1) } else { sought.len() };
            let (done, others) = found.split_at_mut(count);
            let places = done.get_mut(guessed..).unwrap_or_default();
            self.look_up_hashes(sought.get(guessed..count).unwrap_or_default(), key_of, places, arena);
            self.next = done.iter().rev().find_map(|found| *found).map_or(self.next, |number| number + 1);
            (sought, found) = (sought.get(count..).unwrap_or_default(), others);
        }
    }

    fn look_up_hashes<'k, T>(
        &mut self,
        sought: &'k [T],
        key_of: impl Fn(&'k T) -> &'k [u8],
        found: &mut [Option<u32>],
        arena: &Arena,
    ) {
        if sought.is_empty() {
            return;
        }
        self.index_all(arena);
        let Rows { slab, by_key, hashes, .. } = self;
        // The memory of each step is asked for of all rows before the next step, which needs it: so all of them wait for it once
        // and not each for itself.
        let mut hashed = [0; ROWS_AT_ONCE];
        for ((row, hashed), found) in sought.iter().zip(&mut hashed).zip(&mut *found) {
            *hashed = hash(hashes, key_of(row));
            *found = by_key.find(*hashed, |_| true).copied();
        }
        // Only the loads matter here; `black_box` keeps the compiler from removing them.
        let rows = || found.iter().flatten().filter_map(|row| slab.get(*row));
        std::hint::black_box(rows().fold(0, |sum, row| sum ^ row.key_bytes));
        let first_of = |row: &Row| row.key(arena).first().copied().unwrap_or_default();
        std::hint::black_box(rows().fold(0, |sum, row| sum ^ first_of(row)));
        for ((row, hashed), found) in sought.iter().zip(hashed).zip(found) {
            let is_it = |number: &u32| slab.key(*number, arena) == key_of(row);
            *found = found.filter(is_it).or_else(|| by_key.find(hashed, is_it).copied());
        }
    }

    /// Puts cells into rows that are there, in their order.
    ///
    /// The memory that several of them go to is asked for before the first of them needs it.
    pub(super) fn put(&mut self, cells: &[(u32, Entry)], arena: &Arena) {
        let Rows { slab, runs, .. } = self;
        for cells in cells.chunks(ROWS_AT_ONCE) {
            let slots = cells.iter().filter_map(|(row, _)| slab.get(*row)).map(|row| &row.slot);
            // Nobody wants what is read here; it is asked for so that the compiler leaves the loads.
            std::hint::black_box(slots.fold(0, |sum, slot| sum ^ slot.behind(runs)));
            for (row, entry) in cells {
                if let Some(row) = slab.get_mut(*row) {
                    row.slot.insert(entry.again(), runs, arena);
                }
            }
        }
    }

    /// The runs, which hold the cells of every row that has more than one.
    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Adds a row that is not there yet, with its first cell; answers its number.
    pub(super) fn insert(
        &mut self,
        (key, handle): (&[u8], Option<RowHandle>),
        first: NewEntry,
        arena: &mut Arena,
    ) -> u32 {
        let is_behind_all = self.is_behind_all(key, arena);
        let row = Row { key: arena.keep(&[key]), key_bytes: width(key.len()), slot: Slot::One(first.entry()) };
        let number = self.slab.push(row);
        self.handles.push(None);
        self.give(number, handle);
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

    /// Whether a key is greater than those of all rows.
    fn is_behind_all(&self, key: &[u8], arena: &Arena) -> bool {
        let last = self.leaves.last().and_then(|leaf| leaf.rows.last());
        last.is_none_or(|last| self.slab.key(*last, arena) < key)
    }

    /// The place behind the last row.
    fn end(&self) -> At {
        At { leaf: self.leaves.len().saturating_sub(1), row: self.leaves.last().map_or(0, |leaf| leaf.rows.len()) }
    }

    /// Adds to the index of keys all rows that it does not hold yet. It stays empty while keys come in order or with handles, as no
    /// key is looked up then.
    fn index_all(&mut self, arena: &Arena) {
        let Rows { slab, by_key, hashes, .. } = self;
        let hash_of = |row: &u32| hash(hashes, slab.key(*row, arena));
        for row in width(by_key.len())..slab.len() {
            by_key.insert_unique(hash_of(&row), row, hash_of);
        }
    }

    /// Whether a row is there. *Cost*: as of a step to a key in order.
    pub(super) fn has(&self, key: &[u8], arena: &Arena) -> bool {
        self.find(key, arena).is_ok()
    }

    /// Finds a row's place in key order; as an error, the place where it belongs when it is not there.
    fn find(&self, key: &[u8], arena: &Arena) -> Result<At, At> {
        let keys = (&self.slab, arena);
        let leaf = self.heads.search(key, |leaf| first_key(&self.leaves, leaf, keys));
        let leaf = leaf.unwrap_or_else(|behind| behind.saturating_sub(1));
        let Some(found) = self.leaves.get(leaf) else { return Err(At { leaf: 0, row: 0 }) };
        let row = found.heads.search(key, |row| found.key(row, keys));
        row.map(|row| At { leaf, row }).map_err(|row| At { leaf, row })
    }

    /// Makes room for a row: splits its leaf when that is full, or begins a new last leaf. Answers where the row then belongs.
    fn make_room(&mut self, at: At, arena: &Arena) -> At {
        let Rows { leaves, heads, slab, .. } = self;
        let keys = (&*slab, arena);
        let is_last = at.leaf + 1 >= leaves.len();
        // A full last leaf is not split for a key behind all others: keys that come in order leave full leaves.
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

    /// A row by its number: its key and its cells.
    pub(super) fn row<'a>(&'a self, number: u32, arena: &'a Arena) -> Option<(&'a [u8], &'a Slot)> {
        self.slab.row(number, arena)
    }

    /// Rows from a key on, ascending; all rows if there is no key.
    pub(super) fn from<'a>(
        &'a self,
        key: Option<&[u8]>,
        arena: &'a Arena,
    ) -> impl Iterator<Item = (&'a [u8], &'a Slot)> {
        self.numbers_from(key, arena).filter_map(|row| self.slab.row(row, arena))
    }

    /// The numbers of the same rows. A row's number never changes.
    pub(super) fn numbers_from(&self, key: Option<&[u8]>, arena: &Arena) -> impl Iterator<Item = u32> {
        let at = key.map_or(At { leaf: 0, row: 0 }, |key| self.find(key, arena).unwrap_or_else(|at| at));
        let (first, rest) = self.leaves.get(at.leaf..).and_then(<[Leaf]>::split_first).unzip();
        let first = first.and_then(|leaf| leaf.rows.get(at.row..)).unwrap_or_default();
        let rest = rest.unwrap_or_default().iter().flat_map(|leaf| &leaf.rows);
        first.iter().chain(rest).copied()
    }

    /// Rows from a key back, descending; all rows if there is no key.
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

/// Where the keys of rows lie.
type Keys<'a> = (&'a RowSlab, &'a Arena);

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

    /// Splits off the upper half.
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

impl RowSlab {
    fn key<'a>(&self, row: u32, arena: &'a Arena) -> &'a [u8] {
        self.get(row).map_or(&[], |row| row.key(arena))
    }

    fn row<'a>(&'a self, row: u32, arena: &'a Arena) -> Option<(&'a [u8], &'a Slot)> {
        self.get(row).map(|row| (row.key(arena), &row.slot))
    }
}

impl Handles {
    #[inline]
    fn of(&self, row: u32) -> Option<RowHandle> {
        *self.get(row)?
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
    use std::num::NonZeroU64;
    use std::ops::Bound;

    use basalt_store::{CellKind, SeqNo, Timestamp};

    use super::*;
    use crate::id::FamilyId;
    use crate::io::{Rng, SplitMix};
    use crate::mutation::LoggedCell;

    fn entry(number: u64, arena: &mut Arena) -> NewEntry {
        let (family, kind, timestamp) = (FamilyId(1), CellKind::Put, Timestamp(7));
        let cell = LoggedCell { family, kind, timestamp, qualifier: b"q", value: &number.to_be_bytes() };
        NewEntry::keep(&cell, SeqNo(9), arena).0
    }

    fn number(rows: &Rows, slot: &Slot) -> u64 {
        let first = slot.cells_from(&rows.runs, |_| Ordering::Greater).next().unwrap();
        u64::from_be_bytes(first.bytes(&Arena::default()).1.try_into().unwrap())
    }

    fn number_of(rows: &Rows, row: u32) -> u64 {
        number(rows, &rows.slab.get(row).unwrap().slot)
    }

    /// The first cells of rows that are looked up together.
    fn numbers_of(rows: &mut Rows, sought: &[MemRow<'_>], arena: &Arena) -> Vec<Option<u64>> {
        let mut found = [None; ROWS_AT_ONCE];
        rows.look_up(sought, &mut found, arena);
        let is_by_key = sought.iter().any(|row| row.handle.is_none());
        let found = sought.iter().zip(found).map(|(row, found)| {
            // A handle that is not known yet is asked for with its key.
            let found = found.or_else(|| if is_by_key { None } else { rows.get(row.key, row.handle, arena) });
            found.map(|row| number_of(rows, row))
        });
        found.collect()
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
        // Of ten rows so many come with their handles.
        for (seed, shapes, handled) in [(1, 1, 0), (2, 2, 10), (3, 4, 5), (4, 3, 0), (5, 4, 10), (6, 4, 9)] {
            let mut rng = SplitMix::new(seed);
            let (mut rows, mut arena, mut expected) = (Rows::default(), Arena::default(), BTreeMap::new());
            let mut numbers = BTreeMap::new();
            let mut handle = |key: &[u8], rng: &mut SplitMix| {
                let next = numbers.len() as u64 + 1;
                let number = *numbers.entry(key.to_vec()).or_insert(next);
                NonZeroU64::new(number).filter(|_| rng.chance(handled, 10)).map(RowHandle)
            };
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
                let handle = handle(&key, &mut rng);
                if let Some(row) = rows.get(&key, handle, &arena) {
                    assert_eq!(number_of(&rows, row), expected[&key]);
                } else {
                    let first = entry(count, &mut arena);
                    let row = rows.insert((&key, handle), first, &mut arena);
                    assert_eq!(number_of(&rows, row), count);
                    assert!(expected.insert(key, count).is_none());
                }
            }
            for _ in 0..100 {
                let mut drawn = || {
                    let shape = rng.below(4);
                    key(&mut rng, shape)
                };
                let keys: Vec<_> = (0..ROWS_AT_ONCE).map(|_| drawn()).collect();
                let with_handle = |key| MemRow { key, handle: handle(key, &mut rng), sequence: SeqNo(0), cells: &[] };
                let sought: Vec<_> = keys.iter().map(|key| &key[..]).map(with_handle).collect();
                let found = numbers_of(&mut rows, &sought, &arena);
                assert_eq!(found, keys.iter().map(|key| expected.get(key).copied()).collect::<Vec<_>>());
                let shape = rng.below(4);
                let from = key(&mut rng, shape);
                let ascending: Vec<_> =
                    rows.from(Some(&from), &arena).map(|(key, slot)| (key, number(&rows, slot))).collect();
                let known = expected.range::<[u8], _>((Bound::Included(&from[..]), Bound::Unbounded));
                assert_eq!(ascending, known.map(|(key, number)| (&key[..], *number)).collect::<Vec<_>>());
                let descending: Vec<_> =
                    rows.back_from(Some(&from), &arena).map(|(key, slot)| (key, number(&rows, slot))).collect();
                let known = expected.range::<[u8], _>((Bound::Unbounded, Bound::Included(&from[..])));
                assert_eq!(descending, known.rev().map(|(key, number)| (&key[..], *number)).collect::<Vec<_>>());
            }
            assert_eq!(
                (rows.from(None, &arena).count(), rows.back_from(None, &arena).count()),
                (expected.len(), expected.len())
            );
        }
    }

    /// Rows that are looked up by their handles in the order in which they came, for a while.
    #[test]
    fn rows_are_found_behind_each_other_and_not() {
        let (mut rows, mut arena, mut rng) = (Rows::default(), Arena::default(), SplitMix::new(9));
        let handle = |number: u64| NonZeroU64::new(number + 1).map(RowHandle);
        let keys: Vec<_> = (0..40_u64).map(u64::to_be_bytes).collect();
        for (number, key) in (0..).zip(&keys) {
            let first = entry(number, &mut arena);
            rows.insert((key, handle(number)), first, &mut arena);
        }
        for _ in 0..2000 {
            let mut next = rng.below(40);
            let numbers: Vec<u64> = (0..=rng.below(5))
                .map(|_| {
                    next = if rng.chance(4, 5) { next + 1 } else { rng.below(45) };
                    next
                })
                .collect();
            let key = |number: u64| keys.get(usize::try_from(number).unwrap()).map_or(&[9; 8][..], |key| &key[..]);
            let row = |number| MemRow { key: key(number), handle: handle(number), sequence: SeqNo(0), cells: &[] };
            let sought: Vec<_> = numbers.iter().map(|number| row(*number)).collect();
            let mut found = [None; ROWS_AT_ONCE];
            rows.look_up(&sought, &mut found, &arena);
            let found: Vec<_> =
                found.iter().take(numbers.len()).map(|row| row.map(|row| number_of(&rows, row))).collect();
            assert_eq!(found, numbers.iter().map(|number| Some(*number).filter(|n| *n < 40)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn keys_in_order_fill_their_leaves() {
        let (mut rows, mut arena) = (Rows::default(), Arena::default());
        for count in 0..1000_u64 {
            let key = count.to_be_bytes();
            let first = entry(count, &mut arena);
            rows.insert((&key, None), first, &mut arena);
        }
        assert_eq!(rows.leaves.len(), 1000_usize.div_ceil(LEAF_ROWS));
    }
}
