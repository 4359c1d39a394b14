//! From stored cells to an answer's rows: the one path that every get and scan of every store takes.
//!
//! ```text
//! row key ─► filter ─► cells of each selected family, in cell order ─► columns ─► retention ─► filter ─► RowBatchBuilder
//! ```
//!
//! A store merges whatever it keeps into cell order and feeds it here; [`Advance`] tells it what it may pass over.

use bytes::Bytes;

use crate::retention::is_family_wide;
use crate::{
    Advance, CellKind, CellRef, Columns, Cost, Error, FamilyColumns, Filter, FilterRun, Get, Kept, Packing, Pass,
    Result, Retention, RowBatchBuilder, RowVerdict, Rules, Scan, ScanSender, SeqNo, TableDescriptor, TimeRange,
    Timestamp,
};

/// The families and columns that a read wants, resolved against a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    families: Vec<SelectedFamily>,
}

/// A family that a read wants.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SelectedFamily {
    /// Index in the table's descriptor.
    index: usize,
    /// Sorted; empty: all.
    qualifiers: Vec<Bytes>,
}

impl Selection {
    /// Resolves `columns`. A family named twice is wanted whole if it is once, else with the columns of both.
    ///
    /// # Errors
    /// `NotFound`: a family that the table does not have.
    pub fn new(table: &TableDescriptor, columns: &Columns) -> Result<Self> {
        let mut families: Vec<SelectedFamily> = Vec::new();
        for wanted in &columns.0 {
            let (index, _) = table.family(&wanted.family).ok_or_else(|| table.unknown_family(&wanted.family))?;
            let mut qualifiers = wanted.qualifiers.clone();
            match families.iter_mut().find(|f| f.index == index) {
                Some(family) if family.qualifiers.is_empty() || qualifiers.is_empty() => family.qualifiers.clear(),
                Some(family) => family.qualifiers.append(&mut qualifiers),
                None => families.push(SelectedFamily { index, qualifiers }),
            }
        }
        if families.is_empty() {
            families.extend((0..table.families.len()).map(|index| SelectedFamily { index, qualifiers: Vec::new() }));
        }
        // Families of a descriptor are sorted, so the order of indices is the order of cells.
        families.sort_by_key(|f| f.index);
        for family in &mut families {
            family.qualifiers.sort();
            family.qualifiers.dedup();
        }
        Ok(Self { families })
    }

    /// The wanted families as indices into the table's descriptor, ascending.
    pub fn families(&self) -> impl ExactSizeIterator<Item = usize> {
        self.families.iter().map(|f| f.index)
    }

    /// The wanted qualifiers of the family at this position of [`Selection::families`], sorted; empty: all.
    pub fn qualifiers(&self, position: usize) -> &[Bytes] {
        self.families.get(position).map_or(&[], |f| &f.qualifiers)
    }
}

/// Reads rows for one get or scan. For each row: [`RowReader::begin_row`]; for each selected family in turn
/// [`RowReader::begin_family`] and [`RowReader::feed`] with its cells in cell order; [`RowReader::end_row`].
#[derive(Debug)]
pub struct RowReader {
    selection: Selection,
    retentions: Vec<Retention>,
    filter: Option<FilterRun>,
    /// Where each row is a get of its own, a filter that counts rows begins anew with each.
    anew: Option<Filter>,
    /// How many versions of a column are given after the filter had its say.
    versions: u32,
    batch_cells: Option<u32>,
    /// Where batches go that are full at the end of a piece, and how many bytes those have.
    full: Option<(ScanSender, usize)>,
    rows_left: u64,
    /// No column before this one is wanted; empty: any.
    first_column: Bytes,
    packing: Packing,
    // Where the walk is.
    position: usize,
    wanted: usize,
    piece_cells: u32,
    column: Vec<u8>,
    column_versions: u32,
    cost: Cost,
}

/// A read's settings, which get and scan share.
struct Settings<'a> {
    columns: &'a Columns,
    time_range: TimeRange,
    versions: u32,
    raw: bool,
}

impl RowReader {
    /// A reader for a scan that begins at `now`.
    ///
    /// # Errors
    /// `NotFound`: an unknown family. `Invalid`: no version or no cell asked for; chosen columns in a raw scan (as in
    /// HBase, since tombstones would be missed); rows in pieces with a filter that judges whole rows.
    pub fn for_scan(table: &TableDescriptor, scan: &Scan, now: Timestamp) -> Result<Self> {
        if scan.raw && scan.columns.0.iter().any(|f| !f.qualifiers.is_empty()) {
            return Err(refused("raw scan", "it takes whole families, not chosen columns"));
        }
        if scan.batch_cells == Some(0) {
            return Err(refused("batch_cells", "at least 1 is needed"));
        }
        if scan.batch_cells.is_some() && scan.filter.as_ref().is_some_and(Filter::judges_whole_rows) {
            return Err(refused("batch_cells", "the scan's filter judges whole rows, which cannot come in pieces"));
        }
        let Scan { ref columns, time_range, versions, raw, .. } = *scan;
        let filter = scan.filter.as_ref().map(|filter| FilterRun::new(filter, scan.reversed));
        let mut reader = Self::new(table, &Settings { columns, time_range, versions, raw }, filter, now)?;
        reader.first_column = scan.filter.as_ref().map_or_else(Bytes::new, first_column);
        reader.batch_cells = scan.batch_cells;
        reader.packing = if scan.raw || scan.batch_cells.is_some() { Packing::Cells } else { scan.packing };
        reader.rows_left = scan.limit_rows.unwrap_or(u64::MAX);
        Ok(reader)
    }

    /// The batches that have so many bytes at the end of a piece that is not its row's last go to `sender`, so that a row in pieces may be
    /// longer than memory.
    pub fn hand_on_pieces(&mut self, sender: ScanSender, batch_bytes: usize) {
        self.full = Some((sender, batch_bytes));
    }

    /// A reader for a get at `now`. Its rows come in any order, so a row that the filter does not pass is left out,
    /// whatever else the verdict says.
    ///
    /// # Errors
    /// `NotFound`: an unknown family. `Invalid`: no version asked for.
    pub fn for_get(table: &TableDescriptor, get: &Get, now: Timestamp) -> Result<Self> {
        let Get { ref columns, time_range, versions, .. } = *get;
        let filter = get.filter.as_ref().map(|filter| FilterRun::new(filter, false));
        let mut reader = Self::new(table, &Settings { columns, time_range, versions, raw: false }, filter, now)?;
        reader.first_column = get.filter.as_ref().map_or_else(Bytes::new, first_column);
        reader.packing = get.packing;
        reader.anew = get.filter.clone().filter(Filter::judges_whole_rows);
        Ok(reader)
    }

    /// Refuses what [`RowReader::for_get`] refuses, and makes nothing.
    ///
    /// # Errors
    /// As there.
    pub fn check_get(table: &TableDescriptor, get: &Get) -> Result<()> {
        check_versions(get.versions)?;
        let unknown = |family: &&FamilyColumns| table.family(&family.family).is_none();
        match get.columns.0.iter().find(unknown) {
            Some(columns) => Err(table.unknown_family(&columns.family)),
            None => Ok(()),
        }
    }

    fn new(
        table: &TableDescriptor,
        settings: &Settings<'_>,
        filter: Option<FilterRun>,
        now: Timestamp,
    ) -> Result<Self> {
        let &Settings { columns, time_range, versions, raw } = settings;
        check_versions(versions)?;
        let selection = Selection::new(table, columns)?;
        // A filter may leave out a newer version and so let an older one be seen.
        let counted = if filter.is_some() { u32::MAX } else { versions };
        let pass = if raw {
            Pass::RawRead { time_range, versions: counted }
        } else {
            Pass::Read { time_range, versions: counted }
        };
        let rules = selection.families().filter_map(|index| table.families.get(index)).map(Rules::of);
        Ok(Self {
            first_column: Bytes::new(),
            packing: Packing::Cells,
            retentions: rules.map(|rules| Retention::new(rules, pass, now)).collect(),
            selection,
            filter,
            anew: None,
            versions,
            batch_cells: None,
            full: None,
            rows_left: u64::MAX,
            position: 0,
            wanted: 0,
            piece_cells: 0,
            column: Vec::new(),
            column_versions: 0,
            cost: Cost::default(),
        })
    }

    /// Which families to feed, and which of their columns.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// How a row that is one cell of points may be given: as cells where anything but retention has a say of them, or
    /// where rows have cells of several families.
    pub fn packing(&self) -> Packing {
        let is_whole = self.filter.is_none() && self.selection.families.len() == 1;
        let is_chosen = !self.selection.qualifiers(0).is_empty();
        if is_whole && !is_chosen { self.packing } else { Packing::Cells }
    }

    /// Judges the only cell of the row begun last, a put, instead of [`RowReader::feed`]: whether it is part of the answer.
    /// It is not counted yet.
    ///
    /// # Panics
    /// When the read wants cells ([`RowReader::packing`]).
    pub fn keeps_lone_put(&mut self, timestamp: Timestamp, seq: SeqNo) -> bool {
        assert!(self.packing() != Packing::Cells, "BUG: a read that wants cells gets none");
        self.begin_family(0);
        // Fast path: nothing but its time decides.
        if self.retentions.first().is_some_and(|retention| retention.keeps_lone_puts(timestamp, timestamp)) {
            return true;
        }
        // Of one cell its column says nothing.
        let (row, family, qualifier, value): (&[u8], &[u8], &[u8], &[u8]) = Default::default();
        let cell = CellRef { row, family, qualifier, timestamp, kind: CellKind::Put, seq, value };
        self.retentions.first_mut().is_some_and(|retention| retention.judge(&cell).keeps())
    }

    /// Whether puts of the row and family begun last that come next are part of the answer, if each is its column's only cell
    /// and all were written between these times, both in. They may then be added to the batch without [`RowReader::feed`], and
    /// are to be counted ([`RowReader::count_passed`]). False where only their being fed tells.
    pub fn keeps_lone_puts(&self, oldest: Timestamp, newest: Timestamp) -> bool {
        let is_whole = self.filter.is_none() && self.batch_cells.is_none();
        let retention = self.retentions.get(self.position);
        is_whole
            && self.selection.qualifiers(self.position).is_empty()
            && retention.is_some_and(|retention| retention.keeps_lone_puts(oldest, newest))
    }

    /// Whether the scan has given as many rows as it may, or its filter lets no later row pass.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.rows_left == 0 || (self.anew.is_none() && self.filter.as_ref().is_some_and(FilterRun::is_done))
    }

    /// Begins a row, in `out` too when the filter passes it. Otherwise the row is over.
    ///
    /// # Errors
    /// `Invalid`: a batch over 4 GiB.
    #[inline]
    pub fn begin_row(&mut self, row: &[u8], out: &mut RowBatchBuilder) -> Result<RowVerdict> {
        self.cost.rows += 1;
        if let Some(filter) = &self.anew {
            self.filter = Some(FilterRun::new(filter, false));
        }
        let verdict = self.filter.as_mut().map_or(RowVerdict::Pass, |filter| filter.judge_row(row));
        if verdict == RowVerdict::Pass {
            self.piece_cells = 0;
            out.begin_row(row)?;
        }
        Ok(verdict)
    }

    /// Begins the family at this position of [`Selection::families`].
    #[inline]
    pub fn begin_family(&mut self, position: usize) {
        self.position = position;
        self.wanted = 0;
        self.column_versions = 0;
        self.column.clear();
        if let Some(retention) = self.retentions.get_mut(position) {
            retention.begin_row();
        }
    }

    /// The qualifier to seek to when a cell's answer was [`Advance::NextColumn`]: no smaller one is wanted any longer.
    /// `None` when every column is wanted.
    #[inline]
    pub fn wanted(&self) -> Option<&[u8]> {
        let chosen = self.selection.qualifiers(self.position).get(self.wanted);
        chosen.or(Some(&self.first_column).filter(|column| !column.is_empty())).map(|q| &q[..])
    }

    /// Judges a cell of the family begun last, and adds it to `out` if it is part of the answer. Says what may be
    /// passed over next; a store that goes on with the next cell instead gets the same answer in the end.
    ///
    /// # Errors
    /// `Invalid`: a batch over 4 GiB.
    #[inline]
    pub fn feed(&mut self, cell: &CellRef<'_>, out: &mut RowBatchBuilder) -> Result<Advance> {
        self.cost.cells += 1;
        let advance = self.feed_cell(cell, out)?;
        // The family's tombstones lie among the cells of the empty qualifier: whatever a filter says of a put there,
        // nobody may pass over them.
        let hides_tombstones = cell.qualifier.is_empty() && advance == Advance::NextColumn;
        Ok(if hides_tombstones { Advance::NextCell } else { advance })
    }

    #[inline]
    fn feed_cell(&mut self, cell: &CellRef<'_>, out: &mut RowBatchBuilder) -> Result<Advance> {
        if !is_family_wide(cell.kind) {
            match self.seek_wanted(cell.qualifier) {
                // Even where no column is wanted any more: an empty qualifier comes first.
                Some(_) if cell.qualifier.is_empty() => return Ok(Advance::NextCell),
                Some(advance) => return Ok(advance),
                None => {}
            }
        }
        let Some(retention) = self.retentions.get_mut(self.position) else {
            return Ok(Advance::NextRow);
        };
        let verdict = retention.judge(cell);
        let mut advance = match verdict.ends_column() {
            // No column is wanted behind this one.
            true if self.is_last_wanted() => Advance::NextFamily,
            true => Advance::NextColumn,
            false => Advance::NextCell,
        };
        if !verdict.keeps() {
            return Ok(advance);
        }
        let mut cell = *cell;
        // As in HBase the filter has its say of one version more than is wanted, and of what it leaves out on the way
        // there: it may judge the row by it.
        if self.is_column_over(&cell) {
            return Ok(advance.max(Advance::NextColumn));
        }
        let beyond = self.filter.is_some() && self.has_all_versions(&cell);
        if let Some(filter) = &mut self.filter {
            let told = filter.judge_cell(&cell);
            advance = advance.max(told.advance);
            if told.advance == Advance::NextColumn {
                // The store may go on with the next cell all the same; the filter shall not count it.
                self.end_column(&cell);
            }
            if told.kept == Kept::No {
                return Ok(advance);
            }
            if beyond {
                self.end_column(&cell);
                return Ok(advance.max(Advance::NextColumn));
            }
            if told.kept == Kept::Key {
                cell.value = &[];
            }
            let is_excluded = self.filter.as_ref().is_some_and(|filter| filter.excludes(&cell));
            self.count_version(&cell);
            if is_excluded {
                return Ok(advance);
            }
        }
        self.push(cell, out)?;
        Ok(advance)
    }

    /// Counts cells that the store stepped over instead of feeding them.
    #[inline]
    pub fn count_passed(&mut self, cells: u64) {
        self.cost.cells += cells;
    }

    /// The rows and cells examined since this was asked last; the store adds what else it looked at.
    pub fn take_cost(&mut self) -> Cost {
        std::mem::take(&mut self.cost)
    }

    /// Ends the row begun last. Says whether it is part of the answer; one without cells is not.
    #[inline]
    pub fn end_row(&mut self, out: &mut RowBatchBuilder) -> bool {
        let given = !out.drop_empty_row();
        let kept = given && self.filter.as_mut().is_none_or(FilterRun::keeps_row);
        if given && !kept {
            out.drop_row();
        }
        self.rows_left -= u64::from(kept && self.rows_left > 0);
        kept
    }

    /// Moves on to the first wanted qualifier that is not smaller; says where to go when it is not this one.
    #[inline]
    fn seek_wanted(&mut self, qualifier: &[u8]) -> Option<Advance> {
        let wanted = self.selection.qualifiers(self.position);
        if wanted.is_empty() {
            return None;
        }
        while wanted.get(self.wanted).is_some_and(|q| &q[..] < qualifier) {
            self.wanted += 1;
        }
        match wanted.get(self.wanted) {
            Some(q) if q == qualifier => None,
            Some(_) => Some(Advance::NextColumn),
            None => Some(Advance::NextFamily),
        }
    }

    /// Whether the column that the walk is in is the last of those chosen.
    #[inline]
    fn is_last_wanted(&self) -> bool {
        self.wanted + 1 == self.selection.qualifiers(self.position).len()
    }

    /// Whether the filter let as many versions of the cell's column through as are wanted.
    fn has_all_versions(&self, cell: &CellRef<'_>) -> bool {
        !cell.kind.is_tombstone() && self.column_versions >= self.versions && self.column == cell.qualifier
    }

    /// Nothing more of the cell's column is wanted, nor shown to the filter.
    fn end_column(&mut self, cell: &CellRef<'_>) {
        self.column.clear();
        self.column.extend_from_slice(cell.qualifier);
        self.column_versions = u32::MAX;
    }

    fn is_column_over(&self, cell: &CellRef<'_>) -> bool {
        !cell.kind.is_tombstone() && self.column_versions == u32::MAX && self.column == cell.qualifier
    }

    /// Counts what the filter let through.
    fn count_version(&mut self, cell: &CellRef<'_>) {
        if self.column_versions == 0 || self.column != cell.qualifier {
            self.column.clear();
            self.column.extend_from_slice(cell.qualifier);
            self.column_versions = 0;
        }
        if !cell.kind.is_tombstone() && self.column_versions < u32::MAX {
            self.column_versions += 1;
        }
    }

    #[inline]
    fn push(&mut self, cell: CellRef<'_>, out: &mut RowBatchBuilder) -> Result<()> {
        if self.batch_cells.is_some_and(|max| self.piece_cells >= max) {
            out.mark_partial();
            self.hand_on(out)?;
            out.begin_row(cell.row)?;
            self.piece_cells = 0;
        }
        self.piece_cells = self.piece_cells.saturating_add(1);
        out.push(cell)
    }

    fn hand_on(&mut self, out: &mut RowBatchBuilder) -> Result<()> {
        let Some((sender, _)) = self.full.as_ref().filter(|(_, bytes)| out.data_bytes() >= *bytes) else {
            return Ok(());
        };
        out.set_cost(std::mem::take(&mut self.cost));
        sender.send(Ok(out.take()))
    }
}

/// The first column that a filter may let pass; empty: any. Within a list others count what comes before it.
fn first_column(filter: &Filter) -> Bytes {
    match filter {
        Filter::ColumnRange(range) => range.min.clone().unwrap_or_default(),
        Filter::ColumnPrefix(prefix) => prefix.clone(),
        _ => Bytes::new(),
    }
}

fn check_versions(versions: u32) -> Result<()> {
    if versions == 0 { Err(refused("versions", "at least 1 is needed")) } else { Ok(()) }
}

fn refused(what: &'static str, reason: &str) -> Error {
    Error::InvalidArgument { what, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellKind, FamilyDescriptor, SeqNo};

    #[test]
    fn s_del_4_a_filter_passes_over_no_family_tombstone() {
        let table = TableDescriptor::new("t".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
        let get = Get { filter: Some(Filter::ColumnPrefix("p".into())), ..Get::row("r") };
        let mut reader = RowReader::for_get(&table, &get, Timestamp(100)).unwrap();
        let mut out = RowBatchBuilder::new();
        let cell = |qualifier, time, kind| CellRef {
            row: b"r",
            family: b"f",
            qualifier,
            timestamp: Timestamp(time),
            kind,
            seq: SeqNo(1),
            value: b"",
        };
        reader.begin_row(b"r", &mut out).unwrap();
        reader.begin_family(0);
        let put = cell(b"", 5, CellKind::Put);
        assert_eq!(reader.feed(&put, &mut out).unwrap(), Advance::NextCell);
        reader.feed(&cell(b"", 3, CellKind::DeleteFamily), &mut out).unwrap();
        reader.feed(&cell(b"p", 2, CellKind::Put), &mut out).unwrap();
        assert!(!reader.end_row(&mut out));
    }
}
