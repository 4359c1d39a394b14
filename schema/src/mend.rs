//! The checks of `uid_fsck` and `row_fsck` over a store's tables, and what mends them applied.

use basalt_store::{Durability, ErrorKind, Increment, MutationBatch, RowBatch, RowView, Scan, Scanner, Timestamp};
use bytes::Bytes;

use crate::tables::UID_ID_FAMILY;
use crate::uid_table::COUNTER_ROW;
use crate::{
    DATA_FAMILY, Result, RowCell, RowFsck, RowFsckOptions, RowMend, Schema, UidFsck, UidFsckOptions, UidMend, UidReport,
};

impl Schema {
    /// A check of these tables' rows, by their layout, their histogram codec, and who wins of two points at one instant.
    pub fn row_fsck(&self, options: RowFsckOptions) -> RowFsck {
        let (histogram_id, data_times) = (self.config().histogram_id, self.config().data_times);
        RowFsck::new(self.layout(), RowFsckOptions { data_times, histogram_id, ..options })
    }

    /// Checks the UID table, by how its UIDs are drawn, and, where the options say so, mends it; durable when it returns. Nobody should assign names
    /// meanwhile.
    ///
    /// *Cost*: a scan of the table, which is held in memory.
    ///
    /// # Errors
    /// The store's own. Mends are applied one by one, each useful without the later ones.
    pub fn fsck_uids(&self, options: UidFsckOptions) -> Result<UidReport> {
        let random_metrics = self.config().random_metrics.is_some();
        let mut fsck = UidFsck::new(self.layout().widths, UidFsckOptions { random_metrics, ..options });
        let mut scanner = self.store().scan(&self.tables().uid, Scan::all())?;
        while let Some(batch) = next(&mut scanner)? {
            for row in batch.rows() {
                for cell in row.cells() {
                    fsck.add(row.key(), cell.family, cell.qualifier, cell.value);
                }
            }
        }
        let report = fsck.finish();
        for mend in &report.mends {
            self.mend_uid(mend)?;
        }
        self.uids().drop_caches();
        Ok(report)
    }

    /// Checks data rows and applies what mends them; durable when it returns. Nothing should be mended where cells bear the times of
    /// their points: what is put again later would stay behind a tombstone. Each row is mended by one atomic change, made
    /// of what was read: nobody should write the rows meanwhile. Rows of global annotations are passed over, as OpenTSDB
    /// does.
    ///
    /// # Errors
    /// The store's own. Rows before the failing batch are mended.
    pub fn fsck_rows(&self, fsck: &mut RowFsck, rows: &[RowView<'_>]) -> Result<()> {
        let mut batch = MutationBatch::new(Durability::Fsync);
        let mut cells = Vec::new();
        for row in rows {
            cells.clear();
            cells.extend(row.cells().map(RowCell::from));
            let mend = self.check_row(fsck, row.key(), &cells)?;
            if !mend.is_empty() {
                let newest = cells.iter().map(|cell| cell.timestamp).max();
                add_mend(&mut batch, row.key(), newest, &mend)?;
            }
        }
        self.apply(&self.tables().data, batch)
    }

    fn check_row(&self, fsck: &mut RowFsck, key: &[u8], cells: &[RowCell<'_>]) -> Result<RowMend> {
        if let Some(mend) = fsck.check_key(key) {
            return Ok(mend);
        }
        let decoded = self.layout().decode(key)?;
        if decoded.is_global_annotations() {
            return Ok(RowMend::default());
        }
        match self.names(&decoded.tsuid()) {
            Ok(_) => Ok(fsck.check(key, cells)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(fsck.orphan(key, &error)),
            Err(error) => Err(error),
        }
    }

    fn mend_uid(&self, mend: &UidMend) -> Result<()> {
        let mut batch = MutationBatch::new(Durability::Fsync);
        match mend {
            UidMend::Put { row, family, kind, value } => {
                batch.row(row)?.put(family, kind.qualifier().as_bytes(), None, value)?;
            }
            UidMend::Delete { row, family, qualifiers } => {
                for qualifier in qualifiers {
                    batch.row(row)?.delete_column(family, qualifier, None)?;
                }
            }
            UidMend::Raise { kind, by } => {
                let increment = Increment {
                    row: Bytes::from_static(COUNTER_ROW),
                    family: Bytes::from_static(UID_ID_FAMILY),
                    qualifier: Bytes::from_static(kind.qualifier().as_bytes()),
                    amount: *by,
                    durability: Durability::Fsync,
                };
                self.store().increment(&self.tables().uid, increment).wait()?;
                return Ok(());
            }
        }
        self.apply(&self.tables().uid, batch)
    }
}

/// A row's mend as a change; of a whole row goes what was read of it, up to `newest`.
fn add_mend(batch: &mut MutationBatch, key: &[u8], newest: Option<Timestamp>, mend: &RowMend) -> Result<()> {
    let mut row = batch.row(key)?;
    if mend.delete_row {
        row.delete_family(DATA_FAMILY, newest)?;
        return Ok(());
    }
    for qualifier in &mend.deletes {
        row.delete_column(DATA_FAMILY, qualifier, None)?;
    }
    for (qualifier, (value, time)) in &mend.puts {
        row.put(DATA_FAMILY, qualifier, *time, value)?;
    }
    Ok(())
}

/// The next batch of a scan.
fn next(scanner: &mut Scanner) -> Result<Option<RowBatch>> {
    Ok(scanner.next_wait().transpose()?)
}
