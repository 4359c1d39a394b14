//! What changes the maps: assign, rename, delete.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use basalt_store::{CheckAndMutate, Columns, Comparison, Durability, FamilyColumns, Get, Increment, MutationBatch};
use bytes::Bytes;

use super::{COUNTER_ROW, UidTable};
use crate::tables::{UID_ID_FAMILY, UID_NAME_FAMILY};
use crate::{Error, Result, Uid};

/// How often an assignment is tried when the UID it drew turns out to have a name already.
const ASSIGN_ATTEMPTS: u32 = 3;
/// How often where UIDs are drawn at random.
const RANDOM_ATTEMPTS: u32 = 10;

impl UidTable {
    /// Gives `name` a UID, or returns the one that another daemon gave it meanwhile. `durability` is that of the last step;
    /// the log has the earlier ones before it.
    ///
    /// In this process one caller a name comes here at a time, unless the caches are cleared; should two, or one that renames
    /// another to it, the last step decides between them as it does between daemons.
    pub(super) fn assign(&self, name: &str, durability: Durability) -> Result<Uid> {
        self.rules.check_new(self.role(), name)?;
        if !self.filter.allows(self.kind, name) {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return Err(Error::NameFiltered { kind: self.kind, name: name.into() });
        }
        let attempts = if self.dice.is_some() { RANDOM_ATTEMPTS } else { ASSIGN_ATTEMPTS };
        for _attempt in 0..attempts {
            let uid = self.draw()?;
            let row = uid.encode(self.width);
            let is_avoided = self.avoided.get().is_some_and(|avoided| avoided.contains(&uid));
            // A UID that has a name already, or points: someone set the counter back, or the dice fell so. The next may be free.
            if is_avoided || !self.put_reverse(&row, name)? {
                self.collisions.fetch_add(u64::from(self.dice.is_some()), Ordering::Relaxed);
                continue;
            }
            self.put_if_absent(name.as_bytes(), UID_ID_FAMILY, &row, durability)?;
            // Ours, or that of who won the race. None means that the name was deleted again, or that it was put, deleted
            // and put within one millisecond: the tombstone hides the second put too.
            if let Some(stored) = self.put_uid(name)? {
                if stored != uid {
                    // Nobody else knows the UID that was drawn here; OpenTSDB leaves its name, which its fsck then finds.
                    self.delete_row(&row, UID_NAME_FAMILY)?;
                }
                return Ok(stored);
            }
        }
        Err(Error::AssignmentFailed { kind: self.kind, name: name.into(), attempts })
    }

    /// Puts the reverse cell if it is absent, and with it the meta object where names get theirs at once.
    fn put_reverse(&self, row: &[u8], name: &str) -> Result<bool> {
        let qualifier = self.kind.qualifier().as_bytes();
        let mut mutation = MutationBatch::new(Durability::Async);
        let mut cells = mutation.row(row)?;
        cells.put(UID_NAME_FAMILY, qualifier, None, name.as_bytes())?;
        if let Some(clock) = &self.meta_clock {
            let created = i64::try_from(clock.now().0 / 1000).unwrap_or(0);
            let object = crate::uid_meta::new_object(self.kind, created);
            cells.put(UID_NAME_FAMILY, self.kind.meta_qualifier().as_bytes(), None, &object)?;
        }
        self.check_absent(row, UID_NAME_FAMILY, mutation)
    }

    /// What the forward map says of a name whose cell was just put.
    fn put_uid(&self, name: &str) -> Result<Option<Uid>> {
        if let Some(uid) = self.stored_uid(name)? {
            return Ok(Some(uid));
        }
        // Slow path, rare: the cell is another's, put a moment ago and not synced yet, and readers see what is on disk.
        self.store.sync().wait()?;
        self.stored_uid(name)
    }

    /// Gives the UID of `from` the name `to`. Durable when it returns.
    ///
    /// The new forward cell is put first, if absent; then the reverse cell; then the old forward cell goes. A crash between
    /// leaves both names with the UID, and the same call again finishes the work.
    ///
    /// # Errors
    /// `NotFound`: no such name. `Conflict`: `to` has a UID. `Invalid`: `to` is a name that the rules refuse, or too long.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.rules.check_new(self.role(), to)?;
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (uid, from_row) = self.stored_forward(from)?.ok_or_else(|| self.no_such_name(from))?;
        // Where it has a row in Latin-1, a second one would hide that.
        let there = self.stored_uid(to)?;
        if let Some(stored) = there.filter(|stored| *stored != uid || from == to) {
            return Err(self.taken(from, to, stored));
        }
        // A change that fails may have been made all the same, or be made yet.
        let renamed = self.change_name((from, &from_row), to, uid, there.is_none());
        self.forget(&[from, to], uid);
        renamed
    }

    /// The changes of a rename, in their order.
    fn change_name(&self, (from, from_row): (&str, &[u8]), to: &str, uid: Uid, is_new: bool) -> Result<()> {
        let row = uid.encode(self.width);
        if is_new {
            self.put_if_absent(to.as_bytes(), UID_ID_FAMILY, &row, Durability::Async)?;
        }
        match self.put_uid(to)? {
            Some(stored) if stored == uid && from != to => {}
            Some(stored) => return Err(self.taken(from, to, stored)),
            // Hidden by a tombstone of this very millisecond.
            None => return Err(Error::AssignmentFailed { kind: self.kind, name: to.into(), attempts: 1 }),
        }
        let mut batch = MutationBatch::new(Durability::Async);
        batch.row(&row)?.put(UID_NAME_FAMILY, self.kind.qualifier().as_bytes(), None, to.as_bytes())?;
        self.apply(batch)?;
        self.delete_row(from_row, UID_ID_FAMILY)
    }

    fn taken(&self, from: &str, to: &str, stored: Uid) -> Error {
        Error::RenameTaken {
            kind: self.kind,
            from: from.into(),
            to: to.into(),
            table: self.table.to_string().into(),
            width: self.width.bytes(),
            id: stored.encode(self.width).iter().map(|byte| byte.cast_signed()).collect(),
        }
    }

    /// Removes a name, its UID and the UID's meta object; the data stays. Durable when it returns.
    ///
    /// # Errors
    /// `NotFound`: no such name.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (uid, row) = self.stored_forward(name)?.ok_or_else(|| self.no_such_name(name))?;
        // Forward first: a crash between leaves an orphan, as an assignment does.
        let forward = self.delete_row(&row, UID_ID_FAMILY);
        let deleted = forward.and_then(|()| self.delete_row(&uid.encode(self.width), UID_NAME_FAMILY));
        // As in a rename.
        self.forget(&[name], uid);
        deleted
    }

    /// The next UID of the counter, or of the dice.
    fn draw(&self) -> Result<Uid> {
        if let Some(dice) = &self.dice {
            return Ok(dice.roll(self.width));
        }
        // A look in place of a change of the table, for each point with a new name that comes when none is left.
        if self.usage_seen().available == 0 && self.usage()?.available == 0 {
            return Err(self.none_left());
        }
        let mut drawn = self.add_to_counter(1, Durability::Async)?;
        let largest = i64::try_from(self.largest_met.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        if largest > 0 && drawn <= largest {
            // It was behind, as where a repair lost it: names' UIDs, or such as points lie under, would be given out again.
            drawn = self.add_to_counter(largest.saturating_sub(drawn).saturating_add(1), Durability::Async)?;
        }
        self.see_counter(drawn.cast_unsigned());
        match u64::try_from(drawn) {
            Ok(number) if number > 0 && number <= self.width.uid_max().number() => Ok(Uid::new(number)),
            _ => Err(self.none_left()),
        }
    }

    const fn none_left(&self) -> Error {
        Error::UidsExhausted { kind: self.kind, width: self.width.bytes() }
    }

    /// Adds to the counter, and answers what it is then.
    fn add_to_counter(&self, amount: i64, durability: Durability) -> Result<i64> {
        let increment = Increment {
            row: Bytes::from_static(COUNTER_ROW),
            family: Bytes::from_static(UID_ID_FAMILY),
            qualifier: Bytes::from_static(self.kind.qualifier().as_bytes()),
            amount,
            durability,
        };
        Ok(self.store.increment(&self.table, increment).wait()?)
    }

    /// The counter, 0 where it is absent; `None` where the cell is no number.
    pub(crate) fn counter(&self) -> Result<Option<i64>> {
        let cell = self.stored_cell(COUNTER_ROW, UID_ID_FAMILY)?;
        let number = |cell: Vec<u8>| <[u8; 8]>::try_from(cell).ok().map(i64::from_be_bytes);
        Ok(cell.map_or(Some(0), number))
    }

    /// Whether a counter that stands so would give out UIDs up to `largest`: random ones are not counted.
    pub(crate) fn is_behind(&self, counter: i64, largest: Uid) -> bool {
        self.dice.is_none() && counter < i64::try_from(largest.number()).unwrap_or(i64::MAX)
    }

    /// From now on gives out UIDs above this one alone.
    pub(crate) fn begin_after(&self, largest: Uid) {
        self.largest_met.fetch_max(largest.number(), Ordering::Relaxed);
    }

    /// From now on draws none of these at random. Once.
    pub(crate) fn avoid(&self, uids: Vec<Uid>) {
        self.avoided.get_or_init(|| uids.into_iter().collect());
    }

    /// Raises a counter that is behind `largest` to it, durable when it returns; further where somebody draws meanwhile.
    pub(crate) fn raise_counter(&self, largest: Uid) -> Result<()> {
        let Some(counter) = self.counter()?.filter(|counter| self.is_behind(*counter, largest)) else { return Ok(()) };
        let largest = i64::try_from(largest.number()).unwrap_or(i64::MAX);
        self.add_to_counter(largest.saturating_sub(counter), Durability::Fsync).map(drop)
    }

    fn put_if_absent(&self, row: &[u8], family: &'static [u8], value: &[u8], durability: Durability) -> Result<bool> {
        let qualifier = self.kind.qualifier().as_bytes();
        let mut mutation = MutationBatch::new(durability);
        mutation.row(row)?.put(family, qualifier, None, value)?;
        self.check_absent(row, family, mutation)
    }

    /// Applies `mutation` if the row has no cell of this kind's map.
    fn check_absent(&self, row: &[u8], family: &'static [u8], mutation: MutationBatch) -> Result<bool> {
        let check = CheckAndMutate {
            row: Bytes::copy_from_slice(row),
            family: Bytes::from_static(family),
            qualifier: Bytes::from_static(self.kind.qualifier().as_bytes()),
            comparison: Comparison::Equal,
            expected: None,
            mutation,
        };
        Ok(self.store.check_and_mutate(&self.table, check).wait()?)
    }

    /// Deletes this kind's cells of a row and family: the map's own and the meta object. Durable when it returns.
    ///
    /// Each tombstone carries its cell's own time. One of the server's time would hide a put of the same millisecond: the
    /// name that is created again right after it was deleted, or renamed there and back.
    fn delete_row(&self, row: &[u8], family: &'static [u8]) -> Result<()> {
        let qualifiers = [self.kind.qualifier(), self.kind.meta_qualifier()].map(Bytes::from);
        let columns = Columns(vec![FamilyColumns { family: family.into(), qualifiers: qualifiers.into() }]);
        let get = Get::row(Bytes::copy_from_slice(row)).with_columns(columns);
        let found = self.store.get(&self.table, get).wait()?;
        let mut batch = MutationBatch::new(Durability::Fsync);
        for cell in found.rows().flat_map(|row| row.cells()) {
            batch.row(row)?.delete_column(family, cell.qualifier, Some(cell.timestamp))?;
        }
        self.apply(batch)
    }

    fn apply(&self, batch: MutationBatch) -> Result<()> {
        Ok(self.store.apply(&self.table, batch).wait()?.all_stored()?)
    }

    /// Forgets what a change made stale, also what is being read.
    fn forget(&self, names: &[&str], uid: Uid) {
        let mut changes = self.changes();
        *changes += 1;
        for name in names {
            self.uids.remove(*name);
        }
        self.names.remove(&uid);
        drop(changes);
        self.generation.raise();
    }
}
