//! What a cell's fate is: HBase's rules of deletes, versions and TTL in one telling, used alike by get, scan, flush and
//! compaction of every store.
//!
//! The rules, in the order they are checked, are told at [`Retention`].
//!
//! Source of behaviour: HBase 2.4, package `regionserver.querymatcher`.

mod epochs;
mod tombstones;

use epochs::Epochs;
use tombstones::{Mask, Tombstones};

use crate::{CellKind, CellRef, FamilyDescriptor, KeepDeletedCells, TimeRange, Timestamp};

/// A family's settings as retention needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// VERSIONS.
    pub versions: u32,
    /// `MIN_VERSIONS`.
    pub min_versions: u32,
    /// TTL in milliseconds; `None` keeps for ever.
    pub ttl_ms: Option<u64>,
    /// `KEEP_DELETED_CELLS`.
    pub keep_deleted: KeepDeletedCells,
    /// How long after its time a tombstone outlives major compactions, in milliseconds; 0: not at all (S-DEL-11,
    /// HBase's `hbase.hstore.time.to.purge.deletes`).
    pub purge_delay_ms: u64,
    /// `NEW_VERSION_BEHAVIOR`: tombstones mask only what was written before them (rule U-4).
    pub new_version_behavior: bool,
}

impl Rules {
    /// A family's rules, without a purge delay.
    pub fn of(family: &FamilyDescriptor) -> Self {
        Self {
            versions: family.versions,
            min_versions: family.min_versions,
            ttl_ms: family.ttl_seconds.map(|s| s.saturating_mul(1000)),
            keep_deleted: family.keep_deleted,
            purge_delay_ms: 0,
            new_version_behavior: family.new_version_behavior,
        }
    }

    /// The same rules with tombstones that outlive major compactions for so long.
    #[must_use]
    pub fn with_purge_delay(self, purge_delay_ms: u64) -> Self {
        Self { purge_delay_ms, ..self }
    }

    /// The earliest time that TTL lets live at `now`; everything below is expired.
    pub fn oldest_live(&self, now: Timestamp) -> Timestamp {
        Timestamp(self.ttl_ms.map_or(0, |ttl| now.0.saturating_sub(ttl)))
    }

    /// Whether a file whose newest cell has this time may go whole (S-TTL-1).
    pub fn is_file_expired(&self, newest: Timestamp, now: Timestamp) -> bool {
        self.min_versions == 0 && newest < self.oldest_live(now)
    }
}

/// What the cells are walked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// A get or scan.
    Read {
        /// Which cell times.
        time_range: TimeRange,
        /// How many versions at most; the family's VERSIONS bounds it further.
        versions: u32,
    },
    /// A raw scan: tombstones, and whatever is still stored, TTL or not (S-KEEP-3).
    RawRead {
        /// Which cell times.
        time_range: TimeRange,
        /// How many versions at most, the family's VERSIONS notwithstanding.
        versions: u32,
    },
    /// A flush or a minor compaction: cells that no reader sees any longer go, tombstones stay, as they may mask what
    /// lies in files that take no part.
    Retain,
    /// A major compaction: every cell of the row and family takes part (memtables flushed, all files merged), so
    /// tombstones may go too (S-DEL-1).
    Major {
        /// No put in the files is older than this; `Timestamp(0)` when not known. Where deleted cells are kept,
        /// a tombstone goes when it is older (S-DEL-10).
        earliest_put: Timestamp,
    },
}

/// A cell's fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is seen, or stays.
    Keep,
    /// It is seen, and is its column's last: the reader may go on at the next column.
    KeepLast,
    /// It is not seen, or goes.
    Drop,
    /// It is not seen, nor is any cell of its column that follows: the reader may go on at the next column.
    DropColumn,
}

impl Verdict {
    /// Whether the cell is seen, or stays.
    pub const fn keeps(self) -> bool {
        matches!(self, Self::Keep | Self::KeepLast)
    }

    /// Whether the rest of the column may be passed over. It need not: fed on, it is judged the same.
    pub const fn ends_column(self) -> bool {
        matches!(self, Self::KeepLast | Self::DropColumn)
    }
}

/// Judges the cells of one family, row after row.
///
/// It is fed one row-and-family's cells at a time, in cell order ([`CellRef::order`]), and answers each
/// with a [`Verdict`]. It is a pure state machine: time comes as an argument, and after it has warmed up nothing is
/// allocated. A cell passes these checks, in HBase's order:
///
/// 1. **TTL**: past it, and with no `MIN_VERSIONS` to save it, the cell and all older ones of its column are gone.
/// 2. **Tombstones** are noted before the puts they mask, since they sort before them. A put at or below a column's or
///    a family's tombstone is masked even when it was written later (S-DEL-7), until the tombstone is purged.
/// 3. **Time range** of the read. It comes before versions are counted (U-8), after tombstones.
/// 4. **Same address**: of cells with one time and kind only the last written is taken (S-VERS-3).
/// 5. **VERSIONS**, `MIN_VERSIONS`.
///
/// With `NEW_VERSION_BEHAVIOR` the second, fourth and fifth are one, and come before the range: a put is hidden by what
/// was written after it and by VERSIONS newer ones at any time of its life. Raw reads know nothing of it. What is not a
/// major compaction then drops nothing but what TTL took, since a hidden put may still hide others.
///
/// Where HBase's own scanners might differ from each other we take the rule as documented: a family's tombstones are
/// found although the column of the empty qualifier, among whose cells they lie, is done with (HBase 2.6.4 was asked by
/// `cargo xtask truth`, and keeps it as well); tombstones survive
/// a minor compaction that drops excess versions above them; `MIN_VERSIONS` counts alike for chosen and for all columns.
///
/// ```
/// # use basalt_store::*;
/// let family = FamilyDescriptor::new("f").with_versions(2);
/// let pass = Pass::Read { time_range: TimeRange::ALL, versions: 1 };
/// let mut retention = Retention::new(Rules::of(&family), pass, Timestamp(100));
/// let cell = |time, kind| CellRef {
///     row: b"r", family: b"f", qualifier: b"q", timestamp: Timestamp(time), kind, seq: SeqNo(1), value: b"",
/// };
/// retention.begin_row();
/// assert_eq!(retention.judge(&cell(9, CellKind::Delete)), Verdict::Drop);
/// assert_eq!(retention.judge(&cell(9, CellKind::Put)), Verdict::Drop);
/// assert_eq!(retention.judge(&cell(8, CellKind::Put)), Verdict::KeepLast);
/// ```
#[derive(Debug)]
pub struct Retention {
    rules: Rules,
    pass: Pass,
    now: Timestamp,
    /// Below it a cell is expired.
    oldest_live: Timestamp,
    versions_max: u32,
    tombstones: Tombstones,
    /// In use where the family has the new version behaviour and the pass is not raw.
    epochs: Option<Epochs>,
    column: Column,
}

/// Where in its column the walk is.
#[derive(Debug, Default)]
struct Column {
    /// Whether `qualifier` is of this row.
    entered: bool,
    qualifier: Vec<u8>,
    versions_count: u32,
    /// The puts that follow are not seen.
    done: bool,
    /// Time and kind of the cell kept last, by which its older twins are known.
    last: Option<(Timestamp, CellKind)>,
}

impl Retention {
    /// A judge for one pass at `now`. Call [`Retention::begin_row`] before each row's first cell.
    pub fn new(rules: Rules, pass: Pass, now: Timestamp) -> Self {
        let (oldest_live, versions_max) = match pass {
            Pass::Read { versions, .. } => (rules.oldest_live(now), versions.min(rules.versions)),
            Pass::RawRead { versions, .. } => (Timestamp(0), versions),
            Pass::Retain | Pass::Major { .. } => (rules.oldest_live(now), rules.versions),
        };
        Self {
            rules,
            pass,
            now,
            oldest_live,
            versions_max,
            tombstones: Tombstones::default(),
            epochs: (rules.new_version_behavior && !matches!(pass, Pass::RawRead { .. })).then(Epochs::default),
            column: Column::default(),
        }
    }

    /// Forgets the row before.
    pub fn begin_row(&mut self) {
        self.tombstones.clear();
        if let Some(epochs) = &mut self.epochs {
            epochs.clear();
        }
        self.column.entered = false;
    }

    /// Judges the row's next cell in cell order. All cells of the family are to be fed, but for columns the reader
    /// does not want and for what [`Verdict::ends_column`] lets pass over; never may the column of the empty qualifier
    /// be left out, since the family's tombstones lie there.
    ///
    /// Cost: two comparisons of qualifiers at most; a copy of the qualifier when the column changes.
    #[inline]
    pub fn judge(&mut self, cell: &CellRef<'_>) -> Verdict {
        self.enter_column(cell.qualifier);
        let verdict = if self.rules.min_versions == 0 && self.is_expired(cell) {
            Verdict::DropColumn
        } else if cell.kind.is_tombstone() {
            self.judge_tombstone(cell)
        } else {
            self.judge_put(cell)
        };
        // The family's tombstones lie among the cells of the empty qualifier: nobody may pass over them.
        match verdict {
            Verdict::KeepLast if cell.qualifier.is_empty() => Verdict::Keep,
            Verdict::DropColumn if cell.qualifier.is_empty() => Verdict::Drop,
            verdict => verdict,
        }
    }

    /// Whether puts that come next are all seen, if each is its column's only cell and none was written at times but these.
    pub fn keeps_lone_puts(&self, oldest: Timestamp, newest: Timestamp) -> bool {
        let is_in_range = match self.pass {
            Pass::Read { time_range, .. } => time_range.contains(oldest) && time_range.contains(newest),
            Pass::Retain | Pass::Major { .. } => true,
            Pass::RawRead { .. } => false,
        };
        is_in_range && oldest >= self.oldest_live && self.tombstones.are_none() && self.epochs.is_none()
    }

    #[inline]
    fn enter_column(&mut self, qualifier: &[u8]) {
        if self.column.entered && self.column.qualifier == qualifier {
            return;
        }
        debug_assert!(
            !self.column.entered || *self.column.qualifier < *qualifier,
            "BUG: cells come in cell order and rows are begun"
        );
        self.column.entered = true;
        self.column.qualifier.clear();
        self.column.qualifier.extend_from_slice(qualifier);
        self.column.versions_count = 0;
        self.column.done = false;
        self.column.last = None;
        self.tombstones.leave_column();
        if let Some(epochs) = &mut self.epochs {
            epochs.enter_column();
        }
    }

    #[inline]
    fn is_expired(&self, cell: &CellRef<'_>) -> bool {
        cell.timestamp < self.oldest_live
    }

    fn judge_tombstone(&mut self, cell: &CellRef<'_>) -> Verdict {
        let keep = match self.pass {
            Pass::Read { time_range, .. } => {
                // A family that keeps deleted cells lets a read see past the tombstones after its range (S-KEEP-1).
                let counts = match self.rules.keep_deleted {
                    KeepDeletedCells::False => time_range.min <= cell.timestamp,
                    KeepDeletedCells::True | KeepDeletedCells::Ttl => time_range.contains(cell.timestamp),
                };
                if counts {
                    self.add_tombstone(cell);
                }
                false
            }
            Pass::RawRead { time_range, .. } => time_range.contains(cell.timestamp) && !self.column.done,
            Pass::Retain if self.epochs.is_some() => return Verdict::Keep,
            Pass::Retain => {
                self.note_tombstone(cell);
                true
            }
            Pass::Major { earliest_put } => {
                self.note_tombstone(cell);
                self.outlives_major(cell, earliest_put)
            }
        };
        if keep && !self.is_twin(cell) { Verdict::Keep } else { Verdict::Drop }
    }

    /// In a compaction a tombstone masks puts unless deleted cells are kept: then versions and TTL alone take them.
    fn note_tombstone(&mut self, cell: &CellRef<'_>) {
        let masks = match self.rules.keep_deleted {
            KeepDeletedCells::False => true,
            KeepDeletedCells::True => false,
            KeepDeletedCells::Ttl => self.is_expired(cell),
        };
        if masks {
            self.add_tombstone(cell);
        }
    }

    fn add_tombstone(&mut self, cell: &CellRef<'_>) {
        match &mut self.epochs {
            Some(epochs) => epochs.add(cell),
            None => self.tombstones.add(cell),
        }
    }

    /// Whether a tombstone stays although every cell it could mask takes part.
    fn outlives_major(&self, cell: &CellRef<'_>, earliest_put: Timestamp) -> bool {
        // Puts it masks may still be on their way (S-DEL-11, U-11); a time to come is not past by any measure.
        let delay_ms = self.rules.purge_delay_ms;
        if delay_ms > 0 && self.now.0.saturating_sub(cell.timestamp.0) <= delay_ms {
            return true;
        }
        let kept = match self.rules.keep_deleted {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => !self.is_expired(cell),
        };
        if !kept || cell.timestamp < earliest_put {
            return false;
        }
        if is_family_wide(cell.kind) {
            return true;
        }
        // A column's tombstone counts with the put above it, so that all but the last go in the end.
        !self.column.done && (self.column.versions_count <= self.rules.min_versions || !self.is_expired(cell))
    }

    fn judge_put(&mut self, cell: &CellRef<'_>) -> Verdict {
        if self.column.done {
            return Verdict::DropColumn;
        }
        if let Some(epochs) = &mut self.epochs {
            if self.pass == Pass::Retain {
                return Verdict::Keep;
            }
            // Older ones of the column may have been written since: nothing is said of them.
            if epochs.hides(cell, self.rules.versions) {
                return Verdict::Drop;
            }
        }
        match self.tombstones.mask(cell.timestamp) {
            Mask::AndAllOlder => return self.end_column(),
            Mask::ThisVersion => return Verdict::Drop,
            Mask::None => {}
        }
        if let Pass::Read { time_range, .. } | Pass::RawRead { time_range, .. } = self.pass {
            if cell.timestamp >= time_range.max {
                return Verdict::Drop;
            }
            if cell.timestamp < time_range.min {
                return self.end_column();
            }
        }
        if self.is_twin(cell) {
            return Verdict::Drop;
        }
        self.count_version(cell)
    }

    fn count_version(&mut self, cell: &CellRef<'_>) -> Verdict {
        self.column.versions_count = self.column.versions_count.saturating_add(1);
        let count = self.column.versions_count;
        if count > self.versions_max || (count > self.rules.min_versions && self.is_expired(cell)) {
            return self.end_column();
        }
        // Only a plain read may stop here: other passes have tombstones to show or to keep.
        if count == self.versions_max && matches!(self.pass, Pass::Read { .. }) {
            self.column.done = true;
            return Verdict::KeepLast;
        }
        Verdict::Keep
    }

    /// The column's puts from here on are not seen. Its tombstones are still judged in the passes that have a use for
    /// them, so only a plain read may pass over the rest.
    fn end_column(&mut self) -> Verdict {
        self.column.done = true;
        if matches!(self.pass, Pass::Read { .. }) { Verdict::DropColumn } else { Verdict::Drop }
    }

    /// Whether the cell has the address and kind of the one kept before it, which was then written after it. If not,
    /// it is itself remembered.
    fn is_twin(&mut self, cell: &CellRef<'_>) -> bool {
        let this = Some((cell.timestamp, cell.kind));
        let twin = self.column.last == this;
        self.column.last = this;
        twin
    }
}

/// Whether a tombstone is over a family, not over one column of it.
pub(crate) const fn is_family_wide(kind: CellKind) -> bool {
    matches!(kind, CellKind::DeleteFamily | CellKind::DeleteFamilyVersion)
}

#[cfg(test)]
mod tests;
