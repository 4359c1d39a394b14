//! Tombstones that lie beside a pass: in memtables and files that take no part in it.
//!
//! A tombstone masks cells by their column and time. A folded cell has another column than what it holds, and the newest of
//! the times, so the tombstone would miss it, and what was deleted would be seen again. Rows with such a tombstone stay as they
//! are. One that is applied while the pass writes is looked for when its file takes its place ([`Region::stop_deletes`]).
//!
//! [`Region::stop_deletes`]: crate::region::Region::stop_deletes

use std::collections::HashMap;
use std::sync::{Arc, RwLockWriteGuard};

use basalt_store::Timestamp;

use crate::core::Core;
use crate::error::Result;
use crate::id::FamilyId;
use crate::memtable::Memtable;
use crate::merge::CellSource as _;
use crate::output::Output;
use crate::region::{Frozen, Region, RegionFile, View};
use crate::source::{FamilyRead, Source};

/// What a pass over a family's memtables or files must know of the rest of the region.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    read: FamilyRead<'a>,
    /// Rows with tombstones in memtables, and the largest time of these.
    rows: HashMap<Box<[u8]>, Timestamp>,
    /// Files with tombstones, and where they were read last.
    files: Vec<(RegionFile, Source)>,
}

impl<'a> Beside<'a> {
    /// What lies in `view` beside these memtables and files of the family that `read` is for.
    pub(crate) fn of(read: FamilyRead<'a>, view: &View, memtables: &[Frozen], files: &[RegionFile]) -> Beside<'a> {
        let takes_part = |file: &RegionFile| files.iter().any(|one| Arc::ptr_eq(&one.table, &file.table));
        let has_tombstones = |file: &&RegionFile| file.family == read.id && file.table.metadata().tombstones_count > 0;
        let others = view.files.iter().filter(has_tombstones).filter(|file| !takes_part(file));
        let files = others.map(|file| (file.clone(), read.open_file(file))).collect();
        Beside { rows: deleted_rows(&read, view, memtables), files, read }
    }

    /// The largest time of a row's tombstones.
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// Cost: none where nothing was deleted lately; otherwise a look into the filter of each file with tombstones.
    pub(crate) fn newest(&mut self, row: &[u8]) -> Result<Option<Timestamp>> {
        let mut newest = self.rows.get(row).copied();
        for (file, source) in &mut self.files {
            if !file.table.may_contain_row(row) {
                continue;
            }
            source.seek(row, b"")?;
            while let Some(cell) = source.cell().filter(|cell| cell.row == row) {
                newest = newest.max(cell.kind.is_tombstone().then_some(cell.timestamp));
                source.advance()?;
            }
        }
        Ok(newest)
    }

    /// The family that it is of.
    pub(crate) fn family(&self) -> FamilyId {
        self.read.id
    }

    /// Whether a row of the pass's output was deleted in since: its file may have folded what a tombstone masks. `view` is the
    /// present one, and no delete is under way.
    fn has_grown(&self, view: &View, memtables: &[Frozen], output: &Output) -> bool {
        let is_new = |(row, until): &(Box<[u8]>, Timestamp)| self.rows.get(row) != Some(until);
        let now = deleted_rows(&self.read, view, memtables);
        output.entry.family == self.read.id
            && now.into_iter().filter(is_new).any(|(row, _)| output.file.table.may_contain_row(&row))
    }
}

impl Core {
    /// Writes what a pass over some memtables or files makes, so that its folds undo no delete. No delete begins until the guard is
    /// dropped, which is to be when the files are in the region's view.
    ///
    /// `write` is called again, to fold nothing, where a row of its first output was deleted in meanwhile.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn write_beside<'r>(
        &self,
        region: &'r Region,
        memtables: &[Frozen],
        mut beside: Vec<Beside<'_>>,
        mut write: impl FnMut(&mut [Beside<'_>]) -> Result<Vec<Output>>,
    ) -> Result<(Vec<Output>, RwLockWriteGuard<'r, ()>)> {
        let outputs = write(&mut beside)?;
        let no_deletes = region.stop_deletes();
        let view = region.view();
        if !outputs.iter().any(|output| beside.iter().any(|beside| beside.has_grown(&view, memtables, output))) {
            return Ok((outputs, no_deletes));
        }
        drop(no_deletes);
        for output in outputs {
            self.delete_file(output.entry.id);
        }
        let outputs = write(&mut [])?;
        Ok((outputs, region.stop_deletes()))
    }
}

/// Rows with tombstones in all memtables but some.
fn deleted_rows(read: &FamilyRead<'_>, view: &View, but: &[Frozen]) -> HashMap<Box<[u8]>, Timestamp> {
    let mut rows = HashMap::new();
    let takes_part = |memtable: &Arc<Memtable>| but.iter().any(|one| Arc::ptr_eq(&one.memtable, memtable));
    for memtable in view.memtables().filter(|memtable| !takes_part(memtable)) {
        memtable.deleted_rows(read.id, |row, until| {
            let newest = rows.entry(row.into()).or_insert(until);
            *newest = until.max(*newest);
        });
    }
    rows
}
