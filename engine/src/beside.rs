//! What lies beside a pass, in memtables and files that take no part in it: tombstones, and where a fold asks for that, rows.
//!
//! A tombstone masks cells by their column and time. A folded cell has another column than what it holds, and the newest of
//! the times, so the tombstone would miss it, and what was deleted would be seen again. Rows with such a tombstone stay as they
//! are, and so do rows that may have one in a file that cannot be read: damage there keeps no pass from being written. One that is
//! applied while the pass writes is looked for when its file takes its place ([`Region::stop_deletes`]).
//!
//! A fold that cannot tell which of two puts is newer ([`Fold::needs_whole_rows`]) gets no row that is also elsewhere. A put that comes
//! there while the pass writes counts as one that came after it.
//!
//! [`Region::stop_deletes`]: crate::region::Region::stop_deletes

use std::collections::HashMap;
use std::sync::Arc;

use basalt_store::{Fold, Timestamp, with_causes};

use crate::error::{Error, Result};
use crate::id::FamilyId;
use crate::memtable::Memtable;
use crate::merge::CellSource as _;
use crate::region::{Frozen, RegionFile, View};
use crate::source::{FamilyRead, Source};

/// What a pass over a family's memtables or files must know of the rest of the region.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    read: FamilyRead<'a>,
    /// What takes part.
    memtables: &'a [Frozen],
    taken: &'a [RegionFile],
    /// Rows with tombstones in memtables, and the largest time of these.
    rows: HashMap<Box<[u8]>, Timestamp>,
    /// Files with tombstones.
    files: Vec<Deleted>,
    /// What takes no part, where only rows of which nothing lies there are folded.
    elsewhere: Option<Elsewhere>,
}

/// Memtables and files.
#[derive(Debug)]
struct Elsewhere {
    memtables: Vec<Arc<Memtable>>,
    files: Vec<RegionFile>,
}

impl Elsewhere {
    /// Whether it may have cells of a row. No I/O.
    fn may_have(&self, family: FamilyId, row: &[u8]) -> bool {
        self.memtables.iter().any(|memtable| memtable.has_row(family, row))
            || self.files.iter().any(|file| file.table.may_contain_row(row))
    }
}

/// A file with tombstones.
#[derive(Debug)]
struct Deleted {
    file: RegionFile,
    /// Where it was read last.
    source: Source,
    /// A read failed: it is not tried again in this pass, as a bad disk may take seconds to say so.
    is_unreadable: bool,
}

impl Deleted {
    /// The largest time of a row's tombstones; the end of time where that cannot be read.
    fn newest(&mut self, row: &[u8]) -> Option<Timestamp> {
        if !self.file.table.may_contain_row(row) {
            return None;
        }
        if !self.is_unreadable {
            match self.read_newest(row) {
                Ok(newest) => return newest,
                Err(error) => {
                    self.is_unreadable = true;
                    let error = with_causes(&error);
                    tracing::warn!(error, "rows that may have been deleted in this file are not folded");
                }
            }
        }
        Some(Timestamp(u64::MAX))
    }

    fn read_newest(&mut self, row: &[u8]) -> Result<Option<Timestamp>> {
        let mut newest = None;
        self.source.seek(row, b"")?;
        while let Some(cell) = self.source.cell().filter(|cell| cell.row == row) {
            newest = newest.max(cell.kind.is_tombstone().then_some(cell.timestamp));
            self.source.advance()?;
        }
        Ok(newest)
    }
}

impl<'a> Beside<'a> {
    /// What lies in `view` beside these memtables and files of the family that `read` is for, which a pass folds.
    pub(crate) fn of(
        (read, fold): (FamilyRead<'a>, &dyn Fold),
        view: &View,
        memtables: &'a [Frozen],
        taken: &'a [RegionFile],
    ) -> Beside<'a> {
        let mut beside = Beside { read, memtables, taken, rows: HashMap::new(), files: Vec::new(), elsewhere: None };
        beside.rows = beside.deleted_rows(view);
        let deleted = |file: &RegionFile| {
            let source = beside.read.open_file(file);
            Deleted { file: file.clone(), source, is_unreadable: false }
        };
        beside.files = beside.deleted_files(view).map(deleted).collect();
        beside.elsewhere = fold.needs_whole_rows().then(|| Elsewhere {
            memtables: beside.memtables_of(view).cloned().collect(),
            files: beside.files_of(view).cloned().collect(),
        });
        beside
    }

    /// The files of a view that take no part.
    fn files_of<'v>(&self, view: &'v View) -> impl Iterator<Item = &'v RegionFile> {
        view.files.iter().filter(|file| file.family == self.read.id && !is_among(file, self.taken))
    }

    /// Those of them that have tombstones.
    fn deleted_files<'v>(&self, view: &'v View) -> impl Iterator<Item = &'v RegionFile> {
        self.files_of(view).filter(|file| file.table.metadata().tombstones_count > 0)
    }

    /// The memtables of a view that take no part.
    fn memtables_of<'v>(&self, view: &'v View) -> impl Iterator<Item = &'v Arc<Memtable>> {
        let takes_part =
            |memtable: &Arc<Memtable>| self.memtables.iter().any(|one| Arc::ptr_eq(&one.memtable, memtable));
        view.memtables().filter(move |memtable| !takes_part(memtable))
    }

    /// Rows with tombstones in the memtables of a view that take no part.
    fn deleted_rows(&self, view: &View) -> HashMap<Box<[u8]>, Timestamp> {
        let mut rows = HashMap::new();
        for memtable in self.memtables_of(view) {
            memtable.deleted_rows(self.read.id, |row, until| {
                let newest = rows.entry(row.into()).or_insert(until);
                *newest = until.max(*newest);
            });
        }
        rows
    }

    /// Up to which time a row's cells are not folded: the largest of its tombstones', or the end of time where a file that may have some
    /// cannot be read, or a whole row is asked for and more of it may lie elsewhere.
    ///
    /// Cost: none where nothing was deleted lately; otherwise a look into the filter of each file with tombstones, or into a
    /// block where it is not in memory.
    pub(crate) fn unfolded_until(&mut self, row: &[u8]) -> Option<Timestamp> {
        if self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.may_have(self.read.id, row)) {
            return Some(Timestamp(u64::MAX));
        }
        let in_files = self.files.iter_mut().filter_map(|deleted| deleted.newest(row)).max();
        self.rows.get(row).copied().max(in_files)
    }

    /// The family that it is of.
    pub(crate) fn family(&self) -> FamilyId {
        self.read.id
    }

    /// Whether the file that the pass made may have folded what a tombstone masks that came since: into a row of the file, or into a
    /// memtable that is a file by now. `view` is the present one, and no delete is under way.
    pub(crate) fn may_undo_delete(&self, view: &View, made: &RegionFile) -> bool {
        let was_there = |file: &RegionFile| self.files.iter().any(|known| Arc::ptr_eq(&known.file.table, &file.table));
        let is_new = |(row, until): &(Box<[u8]>, Timestamp)| self.rows.get(row) != Some(until);
        let mut now = self.deleted_rows(view).into_iter().filter(is_new);
        self.deleted_files(view).any(|file| !was_there(file)) || now.any(|(row, _)| self.is_in(made, &row))
    }

    /// Whether the file that the pass made has a row; also where it cannot be read.
    fn is_in(&self, made: &RegionFile, row: &[u8]) -> bool {
        let is_there = || {
            let mut source = self.read.open_file(made);
            source.seek(row, b"")?;
            Ok::<_, Error>(source.cell().is_some_and(|cell| cell.row == row))
        };
        // A file may be without its filter.
        made.table.may_contain_row(row) && is_there().unwrap_or(true)
    }
}

fn is_among(file: &RegionFile, files: &[RegionFile]) -> bool {
    files.iter().any(|one| Arc::ptr_eq(&one.table, &file.table))
}
