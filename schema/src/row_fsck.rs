//! What is wrong in a data row, and what mends it: pure, over one row's cells.
//!
//! ```text
//! key ─ decode ─ names known? ─ cells ─┬─ points of all cells by time ─ duplicates ─ values ─┬─ mend
//!                                      └─ columns and compacted cells that cannot be read ──┘
//! ```
//!
//! A mend is one atomic change of one row. Where a row has a compacted cell, or folding is asked for, the points that are
//! right are written as one cell and all others of the row go; else each cell is mended by itself. A row with an error
//! that may not be mended is not folded. *Source*: OpenTSDB 2.4 `Fsck`, with its words and its counters (rule C-FSCK);
//! it loses integers that need 8 bytes when it folds a row, which must never happen here.

mod options;
mod row;
mod value;

pub use options::{RowFsckCounts, RowFsckOptions};
pub use row::RowMend;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use row::{Dp, Row, turns_of};

use crate::append::AppendedPoints;
use crate::compacted::CompactedPoints;
use crate::{
    ColumnKind, Finding, KeyLayout, LargerOrSmaller, Qualifier, RowCell, Severity, StoredPoint, ValueBytes, hex,
};

/// Checks rows one by one.
///
/// ```
/// use basalt_schema::{KeyLayout, RowCell, RowFsck, RowFsckOptions, Salting, UidWidths};
/// use basalt_store::{SeqNo, Timestamp};
/// let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
/// let mut fsck = RowFsck::new(layout, RowFsckOptions { fix: true, ..RowFsckOptions::default() });
/// // A float of 4 bytes on 8.
/// let cell = RowCell { qualifier: &[0, 0x0B], value: &[0, 0, 0, 0, 0x3F, 0x80, 0, 0], timestamp: Timestamp(1), seq: SeqNo(1) };
/// let mend = fsck.check(&[0, 0, 1, 0x50, 0xE2, 0x27, 0, 0, 0, 1, 0, 0, 1], &[cell]);
/// assert_eq!(mend.puts[&vec![0, 0x0B]].0, [0x3F, 0x80, 0, 0]);
/// assert_eq!((fsck.counts().errors(), fsck.counts().fixed()), (1, 1));
/// ```
#[derive(Debug)]
pub struct RowFsck {
    layout: KeyLayout,
    options: RowFsckOptions,
    counts: RowFsckCounts,
    findings: Vec<Finding>,
}

impl RowFsck {
    /// A check of tables of this layout.
    pub fn new(layout: KeyLayout, options: RowFsckOptions) -> Self {
        Self { layout, options, counts: RowFsckCounts::default(), findings: Vec::new() }
    }

    /// What was met so far.
    pub const fn counts(&self) -> &RowFsckCounts {
        &self.counts
    }

    /// What was found since this was last asked.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// A row whose key is none of points: what becomes of it, and nothing if its key is right.
    pub fn check_key(&mut self, key: &[u8]) -> Option<RowMend> {
        if self.layout.decode(key).is_ok() {
            return None;
        }
        self.counts.rows += 1;
        self.counts.bad_keys += 1;
        self.error(format!("Invalid row key.\n\tKey: {}", hex::upper(key)));
        let delete_row = self.options.fix && self.options.delete_bad_rows;
        self.counts.bad_keys_fixed += u64::from(delete_row);
        Some(RowMend { delete_row, ..RowMend::default() })
    }

    /// A row of a series whose names are gone, and why.
    pub fn orphan(&mut self, key: &[u8], reason: &crate::Error) -> RowMend {
        let what = match reason {
            crate::Error::NoSuchId { kind: crate::UidKind::Metric, .. } => "metric",
            _ => "a tagk or tagv",
        };
        self.counts.rows += 1;
        self.counts.orphans += 1;
        self.error(format!("Unable to resolve the {what} from the row key.\n\tKey: {}\n\t{reason}", hex::upper(key)));
        let delete_row = self.options.fix && self.options.delete_orphans;
        self.counts.orphans_fixed += u64::from(delete_row);
        RowMend { delete_row, ..RowMend::default() }
    }

    /// Checks the cells of a row whose key is right.
    pub fn check(&mut self, key: &[u8], cells: &[RowCell<'_>]) -> RowMend {
        self.counts.rows += 1;
        let has_appended = cells.iter().any(|cell| ColumnKind::of(cell.qualifier) == ColumnKind::Appended);
        let mut row = Row { has_appended, ..Row::default() };
        for cell in cells {
            self.counts.cells += 1;
            self.check_cell(key, *cell, &mut row);
        }
        self.check_points(key, &mut row);
        row.mend
    }

    fn check_cell<'a>(&mut self, key: &[u8], cell: RowCell<'a>, row: &mut Row<'a>) {
        let qualifier = cell.qualifier;
        match ColumnKind::of(qualifier) {
            ColumnKind::Annotation => self.counts.annotations += 1,
            // OpenTSDB's fsck knows no histograms at all; one that can be read is no future object here.
            ColumnKind::Histogram if self.knows_histogram(cell.value) => {}
            ColumnKind::Appended => self.check_appended(key, &cell, row),
            ColumnKind::Compacted => self.check_compacted(key, cell, row),
            ColumnKind::Point => {
                // The kind says that it can be read.
                if let Some((qualifier, _)) = Qualifier::decode_first(qualifier) {
                    row.take(cell, StoredPoint { qualifier, value: cell.value }, false);
                }
            }
            ColumnKind::Histogram => self.future(key, &cell),
            ColumnKind::Unknown if matches!(qualifier.len(), 3 | 5) => self.future(key, &cell),
            ColumnKind::Unknown => {
                let what = if qualifier.len() < 2 {
                    "Invalid qualifier, must be on 2 bytes or more."
                } else {
                    "Unknown qualifier, must be 2, 3, 5 or an even number of bytes."
                };
                self.counts.unknown += 1;
                self.error(format!("{what}\n\t{}", place(key, &cell)));
                if self.options.fix && self.options.delete_unknown_columns {
                    row.mend.delete(qualifier);
                    self.counts.unknown_fixed += 1;
                }
            }
        }
    }

    fn knows_histogram(&self, value: &[u8]) -> bool {
        self.options.histogram_id.is_some() && value.first().copied() == self.options.histogram_id
    }

    fn future(&mut self, key: &[u8], cell: &RowCell<'_>) {
        self.counts.future += 1;
        let text = format!("Found an object possibly from a future version of OpenTSDB\n\t{}", place(key, cell));
        self.tell(Severity::Warning, text);
    }

    /// Append cells are not joined with the others; one that cannot be read fails every query of its row.
    fn check_appended(&mut self, key: &[u8], cell: &RowCell<'_>, row: &mut Row<'_>) {
        self.counts.appends += 1;
        if AppendedPoints::new(cell.value).all(|point| point.is_ok_and(|point| value::is_readable(&point))) {
            return;
        }
        self.error(format!("Unexpected exception processing append data point\n\t{}", place(key, cell)));
        self.bad_value(row, cell.qualifier);
    }

    fn check_compacted<'a>(&mut self, key: &[u8], cell: RowCell<'a>, row: &mut Row<'a>) {
        let points: Result<Vec<_>, _> = CompactedPoints::new(cell.qualifier, cell.value).collect();
        let has_bad_end = cell.value.last().is_none_or(|last| *last > 1);
        let bad_end = || {
            "The last byte of a compacted should be 0 or 1. Either this value is corrupted or it was written by a \
             future version of OpenTSDB."
                .to_owned()
        };
        let problem = match points {
            Ok(points) if points.iter().all(value::is_readable) => {
                // Readers look at no more than its last bit, and the fold writes it right.
                if has_bad_end {
                    self.counts.bad_compacts += 1;
                    row.compacts_folded += 1;
                    self.error(format!("{}\n\t{}", bad_end(), place(key, &cell)));
                }
                return self.take_compacted(key, cell, &points, row);
            }
            _ if has_bad_end => bad_end(),
            Ok(_) => format!("Corrupted value: {}", crate::Damage::ValueLength),
            Err(damage) => format!("Corrupted value: {damage}"),
        };
        self.counts.bad_compacts += 1;
        self.error(format!("{problem}\n\t{}", place(key, &cell)));
        if self.options.fix && self.options.delete_bad_compacts {
            row.mend.delete(cell.qualifier);
            self.counts.bad_compacts_deleted += 1;
        } else {
            row.unmended = true;
        }
    }

    fn take_compacted<'a>(&mut self, key: &[u8], cell: RowCell<'a>, points: &[StoredPoint<'a>], row: &mut Row<'a>) {
        if !points.is_sorted_by_key(|point| point.qualifier.offset_ms) {
            self.counts.fixable_compacts += 1;
            row.compacts_folded += 1;
            self.error(format!("Compacted column was out of order or requires a fixup: \n\t{}", place(key, &cell)));
        }
        row.has_compacted = true;
        for point in points {
            row.take(cell, *point, true);
        }
    }

    fn check_points(&mut self, key: &[u8], row: &mut Row<'_>) {
        let mut columns = BTreeMap::new();
        let mut points = std::mem::take(&mut row.points);
        let turns = turns_of(&points);
        for (offset_ms, same) in &mut points {
            if self.options.first_write_wins {
                same.sort_by_key(|dp| (dp.written(), dp.position));
            } else {
                same.sort_by_key(|dp| (Reverse(dp.written()), turns.get(dp.position).copied()));
            }
            match self.options.data_times {
                Some(LargerOrSmaller::Larger) => same.sort_by(|a, b| b.double().total_cmp(&a.double())),
                Some(LargerOrSmaller::Smaller) => same.sort_by(|a, b| a.double().total_cmp(&b.double())),
                None => {}
            }
            columns.extend(same.iter().map(|dp| (dp.cell.qualifier, dp.cell.value)));
            // The sort is stable. What can be read goes first: no point gives way to what is none.
            same.sort_by_key(Dp::is_bad);
            let readable = same.partition_point(|dp| !dp.is_bad());
            let (same, bad) = same.split_at(if readable > 0 { readable } else { same.len() });
            let Some((keep, others)) = same.split_first() else { continue };
            self.counts.valid_points += 1;
            let has_rivals = (!others.is_empty() && !self.options.resolve_duplicates)
                || (!bad.is_empty() && !self.options.delete_bad_values);
            self.check_value(key, keep, has_rivals, row);
            for dp in bad {
                self.check_value(key, dp, false, row);
            }
            if !others.is_empty() {
                self.check_duplicates(key, *offset_ms, keep, others, row);
            }
        }
        if row.unmended && !columns.is_empty() {
            self.tell(Severity::Warning, "One or more errors found in row that were not marked for repair".to_owned());
        }
        let folds = self.options.fix && (self.options.compact || row.has_compacted);
        if row.unmended || row.has_appended || !folds {
            return;
        }
        self.fold(key, &columns, row);
    }

    fn check_duplicates(&mut self, key: &[u8], offset_ms: u32, keep: &Dp<'_>, others: &[Dp<'_>], row: &mut Row<'_>) {
        let base = self.layout.decode(key).map_or(0, |key| key.base().seconds());
        let time = u64::from(base) * 1000 + u64::from(offset_ms);
        let told = |dp: &Dp<'_>| {
            let (written, compacted, qualifier) = (dp.cell.timestamp.0, dp.compacted, hex::upper(dp.cell.qualifier));
            format!("write time: ({written})  compacted: ({compacted})  qualifier: {qualifier}")
        };
        let lost = others.iter().map(told).collect::<Vec<_>>().join("\n    ");
        let (key, kept) = (hex::upper(key), told(keep));
        self.tell(
            Severity::Info,
            format!(
                "More than one column had a value for the same timestamp: ({time})\n    row key: ({key})\n    {lost}\n    \
                 {kept} <--- keep"
            ),
        );
        self.counts.duplicates += others.len() as u64;
        if !self.options.resolve_duplicates {
            row.unmended = true;
        } else if self.options.fix && row.has_compacted {
            row.duplicates_folded += others.len() as u64;
        } else if self.options.fix {
            for dp in others {
                row.mend.delete(dp.cell.qualifier);
                self.counts.duplicates_fixed += 1;
            }
        }
    }

    /// Checks a value; what is right, or made right, goes into the fold. A point that has rivals, duplicates or values that cannot be
    /// read which are to stay, gets no other column: it might take the place of one, or be newer than they are.
    fn check_value(&mut self, key: &[u8], dp: &Dp<'_>, has_rivals: bool, row: &mut Row<'_>) {
        let qualifier = dp.point.qualifier;
        match value::check(qualifier.kind, dp.point.value) {
            value::Verdict::Good => {
                row.folded.push(dp.point);
            }
            value::Verdict::Shorter { .. } if row.has_appended => {}
            value::Verdict::Shorter { kind, value } => {
                self.counts.vle += 1;
                self.counts.vle_bytes += (dp.point.value.len() - value.len()) as u64;
                if !has_rivals {
                    self.counts.vle_fixed += u64::from(self.options.fix);
                    self.rewrite(dp, Qualifier { kind, ..qualifier }, &value, row);
                }
            }
            value::Verdict::Repaired { value, severity, text } => {
                self.counts.bad_encodings += 1;
                let text = format!("{text}\n\t{}", place(key, &dp.cell));
                self.tell(severity, text);
                self.counts.bad_encodings_fixed += u64::from(self.options.fix);
                self.rewrite(dp, qualifier, &value, row);
            }
            value::Verdict::OfOwnLength { kind, value, text } => {
                self.error(format!("{text}\n\t{}", place(key, &dp.cell)));
                self.counts.bad_values += 1;
                if has_rivals || row.has_appended || !(self.options.fix && self.options.delete_bad_values) {
                    row.unmended = true;
                } else {
                    self.counts.bad_values_deleted += 1;
                    self.rewrite(dp, Qualifier { kind, ..qualifier }, &value, row);
                }
            }
            value::Verdict::Bad { text } => {
                self.error(format!("{text}\n\t{}", place(key, &dp.cell)));
                self.bad_value(row, dp.cell.qualifier);
            }
        }
    }

    fn bad_value(&mut self, row: &mut Row<'_>, qualifier: &[u8]) {
        self.counts.bad_values += 1;
        if self.options.fix && self.options.delete_bad_values {
            row.mend.delete(qualifier);
            self.counts.bad_values_deleted += 1;
        } else {
            row.unmended = true;
        }
    }

    /// Puts a point anew: into the fold, and by itself where its cell is its own.
    fn rewrite(&self, dp: &Dp<'_>, qualifier: Qualifier, value: &ValueBytes, row: &mut Row<'_>) {
        let point = StoredPoint { qualifier, value };
        row.folded.push(point);
        if !self.options.fix || dp.compacted {
            return;
        }
        let column = qualifier.encode();
        // In place the point keeps its time. A column of another name may lie under a tombstone of that time or later.
        let time = (*column == *dp.cell.qualifier).then_some(dp.cell.timestamp);
        row.mend.delete(dp.cell.qualifier);
        row.mend.deletes.remove(&*column);
        row.mend.puts.insert(column.to_vec(), (value.to_vec(), time));
    }

    /// Writes the points that are right as one cell; all columns of points go.
    fn fold(&mut self, key: &[u8], columns: &BTreeMap<&[u8], &[u8]>, row: &mut Row<'_>) {
        if row.folded.points_count() == 0 {
            return;
        }
        row.folded.seal();
        row.mend.puts.clear();
        for column in columns.keys() {
            row.mend.delete(column);
        }
        let (qualifier, value) = (row.folded.qualifier(), row.folded.value());
        row.mend.deletes.remove(qualifier);
        let there = columns.get(qualifier);
        if there != Some(&value) {
            if there.is_some() {
                let (key, name, value) = (hex::upper(key), hex::upper(qualifier), hex::upper(value));
                let text = format!("\n    row key: ({key})\n    qualifier: {name}\n    value: {value}");
                self.tell(Severity::Info, format!("Overwriting compacted column with new value: {text}"));
            }
            row.mend.puts.insert(qualifier.to_vec(), (value.to_vec(), None));
        }
        self.counts.duplicates_fixed += row.duplicates_folded;
        self.counts.compacts_folded += row.compacts_folded;
    }

    fn error(&mut self, text: String) {
        self.tell(Severity::Error, text);
    }

    fn tell(&mut self, severity: Severity, text: String) {
        self.findings.push(Finding { severity, text });
    }
}

/// A cell for people.
fn place(key: &[u8], cell: &RowCell<'_>) -> String {
    format!(
        "KeyValue(key={}, qualifier={}, value={}, timestamp={})",
        hex::upper(key),
        hex::upper(cell.qualifier),
        hex::upper(cell.value),
        cell.timestamp.0
    )
}

#[cfg(test)]
mod tests;
