//! What is wrong in a UID table, and what mends it: pure, over the table's cells.
//!
//! Each kind's two maps must be each other's inverse, and its counter must not be behind the largest UID given out.
//! A name without a reverse cell gets it back. A name without a forward cell, or whose cell is no UID, as its length is another,
//! gets the UID that alone bears the name in the reverse map: that may be the last that knows the name. A reverse cell whose name
//! has another UID is an orphan and goes; two names with one
//! UID have mixed their series for good, so both are dropped and the UID keeps what was written under a name
//! `fsck.<name>.<name>`; new points of either name then begin a clean series, or go on with that of the UID that bears it alone.
//! *Source*: OpenTSDB 2.4 `UidManager.fsck`, with its texts (rule C-UIDFSCK).
//!
//! It holds the whole map in memory, as OpenTSDB's does.

mod joined;

use std::collections::{BTreeMap, BTreeSet};

use self::joined::{NAME_BYTES_MAX, joined_name};
use crate::tables::{UID_ID_FAMILY, UID_NAME_FAMILY};
use crate::ts_meta::{COUNTER_QUALIFIER, META_QUALIFIER};
use crate::uid_table::{COUNTER_ROW, decode_name};
use crate::{Uid, UidKind, UidWidth, UidWidths, hex};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Told for information, or a mend.
    Info,
    /// Harmless.
    Warning,
    /// Damage.
    Error,
}

/// One line of what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is, in OpenTSDB's words.
    pub text: String,
}

/// One change that mends a UID table; they are applied in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UidMend {
    /// Puts a cell of either map or of the counters.
    Put {
        /// Row.
        row: Vec<u8>,
        /// Family.
        family: &'static [u8],
        /// Which kind's cell.
        kind: UidKind,
        /// Its value.
        value: Vec<u8>,
    },
    /// Deletes cells of a row.
    Delete {
        /// Row.
        row: Vec<u8>,
        /// Family.
        family: Vec<u8>,
        /// Their qualifiers.
        qualifiers: Vec<Vec<u8>>,
    },
    /// Adds to a kind's counter, so that a UID given out meanwhile is not given out again.
    Raise {
        /// Whose counter.
        kind: UidKind,
        /// By how much.
        by: i64,
    },
}

/// What may be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UidFsckOptions {
    /// Mends what is damaged.
    pub fix: bool,
    /// With `fix`: removes columns that no version knows.
    pub delete_unknown: bool,
    /// UIDs of metrics are drawn at random (`uid.random_metrics`): their counter stays behind, and nobody reads it.
    pub random_metrics: bool,
}

/// What was found and what mends it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UidReport {
    /// In the order met.
    pub findings: Vec<Finding>,
    /// Empty without `fix`.
    pub mends: Vec<UidMend>,
    /// Cells looked at.
    pub cells_count: u64,
    /// Findings that are damage.
    pub errors_count: u64,
}

/// The maps of one kind as they are read.
#[derive(Debug, Default)]
struct Maps {
    counter: Option<i64>,
    counter_broken: bool,
    /// Of either map: a UID that only a reverse cell knows may have points.
    largest: u64,
    name_to_id: BTreeMap<Vec<u8>, Vec<u8>>,
    id_to_name: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Reads a UID table's cells and tells what is wrong.
///
/// ```
/// use basalt_schema::{UidFsck, UidFsckOptions, UidWidths};
/// let mut fsck = UidFsck::new(UidWidths::default(), UidFsckOptions { fix: true, ..UidFsckOptions::default() });
/// fsck.add(b"sys.cpu", b"id", b"metrics", &[0, 0, 1]);
/// let report = fsck.finish();
/// assert_eq!(report.findings[0].text, "Forward metrics mapping is missing reverse mapping: sys.cpu -> 000001");
/// assert_eq!(report.errors_count, 2); // the counter is behind, too
/// ```
#[derive(Debug)]
pub struct UidFsck {
    widths: UidWidths,
    options: UidFsckOptions,
    report: UidReport,
    kinds: BTreeMap<UidKind, Maps>,
}

impl UidFsck {
    /// A check of a table of these widths.
    pub fn new(widths: UidWidths, options: UidFsckOptions) -> Self {
        Self { widths, options, report: UidReport::default(), kinds: BTreeMap::new() }
    }

    /// Takes one cell; cells may come in any order.
    pub fn add(&mut self, row: &[u8], family: &[u8], qualifier: &[u8], value: &[u8]) {
        self.report.cells_count += 1;
        if is_meta(qualifier) {
            return;
        }
        let Some(kind) = UidKind::ALL.into_iter().find(|kind| kind.qualifier().as_bytes() == qualifier) else {
            return self.unknown(row, family, qualifier);
        };
        if row == COUNTER_ROW {
            return self.counter(kind, value);
        }
        let width = self.widths.of(kind).bytes();
        let maps = self.kinds.entry(kind).or_default();
        let id = if family == UID_ID_FAMILY {
            maps.name_to_id.insert(row.to_vec(), value.to_vec());
            value
        } else {
            maps.id_to_name.insert(row.to_vec(), value.to_vec());
            row
        };
        if id.len() == width {
            maps.largest = maps.largest.max(Uid::decode(id).map_or(0, Uid::number));
        } else {
            let text = format!("Invalid {kind} ID of length {} (expected: {width})", id.len());
            self.report.error(format!("{text}: row {} -> {}", hex::upper(row), hex::upper(value)));
        }
    }

    /// Matches the maps and tells everything.
    pub fn finish(self) -> UidReport {
        let Self { widths, options, mut report, kinds } = self;
        for (kind, mut maps) in kinds {
            let before = report.errors_count;
            let mut check = KindCheck {
                kind,
                width: widths.of(kind),
                fix: options.fix,
                gone: BTreeSet::new(),
                report: &mut report,
            };
            let collided = check.forward(&mut maps);
            check.collisions(&mut maps, collided);
            check.reverse(&mut maps);
            check.drop_gone();
            if kind != UidKind::Metric || !options.random_metrics {
                check.counter(&maps);
            }
            let errors = report.errors_count - before;
            if errors > 0 {
                report.tell(Severity::Error, format!("{kind}: Found {errors} errors."));
            }
        }
        report
    }

    fn counter(&mut self, kind: UidKind, value: &[u8]) {
        let maps = self.kinds.entry(kind).or_default();
        if let Ok(bytes) = <[u8; 8]>::try_from(value) {
            let counter = i64::from_be_bytes(bytes);
            maps.counter = Some(counter);
            self.report.tell(Severity::Info, format!("Maximum ID for {kind}: {counter}"));
        } else {
            maps.counter_broken = true;
            let found = value.len();
            self.report.error(format!("Invalid maximum ID for {kind}: should be on 8 bytes, is on {found}"));
        }
    }

    fn unknown(&mut self, row: &[u8], family: &[u8], qualifier: &[u8]) {
        let place = format!("{} in row {}", hex::upper(qualifier), hex::upper(row));
        self.report.tell(Severity::Warning, format!("Unknown qualifier {place}"));
        if self.options.fix && self.options.delete_unknown {
            let qualifiers = vec![qualifier.to_vec()];
            self.report.mends.push(UidMend::Delete { row: row.to_vec(), family: family.to_vec(), qualifiers });
            self.report.tell(Severity::Info, format!("FIX: Removed unknown qualifier {place}"));
        }
    }
}

/// How many names each UID has.
fn names_counts_of(name_to_id: &BTreeMap<Vec<u8>, Vec<u8>>) -> BTreeMap<&Vec<u8>, usize> {
    let mut counts = BTreeMap::new();
    for id in name_to_id.values() {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// Columns that are no part of the maps.
fn is_meta(qualifier: &[u8]) -> bool {
    [META_QUALIFIER, COUNTER_QUALIFIER].contains(&qualifier)
        || UidKind::ALL.iter().any(|kind| kind.meta_qualifier().as_bytes() == qualifier)
}

impl UidReport {
    fn tell(&mut self, severity: Severity, text: String) {
        self.findings.push(Finding { severity, text });
    }

    fn error(&mut self, text: String) {
        self.errors_count += 1;
        self.tell(Severity::Error, text);
    }
}

/// The checks of one kind's maps.
struct KindCheck<'a> {
    kind: UidKind,
    width: UidWidth,
    fix: bool,
    /// Names whose forward cells go.
    gone: BTreeSet<Vec<u8>>,
    report: &'a mut UidReport,
}

impl KindCheck<'_> {
    /// Every name must be what its UID says. Answers whether two names may have one UID.
    fn forward(&mut self, maps: &mut Maps) -> bool {
        let kind = self.kind;
        let (name_to_id, id_to_name) = (&maps.name_to_id, &mut maps.id_to_name);
        let mut names_counts = None;
        let mut collided = false;
        for (name, id) in name_to_id {
            let (name_text, id_text) = (decode_name(name), hex::upper(id));
            let Some(found) = id_to_name.get(id).cloned() else {
                self.report
                    .error(format!("Forward {kind} mapping is missing reverse mapping: {name_text} -> {id_text}"));
                self.restore_reverse(id_to_name, name, id);
                continue;
            };
            if found == *name {
                continue;
            }
            let found_text = decode_name(&found);
            self.report.error(format!(
                "Forward {kind} mapping {name_text} -> {id_text} is different than reverse mapping: \
                 {id_text} -> {found_text}"
            ));
            let other = name_to_id.get(&found);
            let other_text = other.map_or_else(|| "null".to_owned(), |id| hex::upper(id));
            if other.is_some() {
                self.report.error(format!(
                    "Inconsistent forward {kind} mapping {name_text} -> {id_text} vs {name_text} -> {found_text} / \
                     {found_text} -> {other_text}"
                ));
                // Counted once, and not at all in a table that is whole.
                let counts = names_counts.get_or_insert_with(|| names_counts_of(name_to_id));
                if counts.get(id).is_some_and(|count| *count > 1) {
                    collided = true;
                    continue;
                }
            } else {
                self.report.error(format!(
                    "Duplicate forward {kind} mapping {name_text} -> {id_text} and {other_text} -> {found_text}"
                ));
            }
            self.restore_reverse(id_to_name, name, id);
        }
        collided
    }

    fn restore_reverse(&mut self, id_to_name: &mut BTreeMap<Vec<u8>, Vec<u8>>, name: &[u8], id: &[u8]) {
        if !self.fix || id.len() != self.width.bytes() {
            return;
        }
        self.put(id, UID_NAME_FAMILY, name);
        id_to_name.insert(id.to_vec(), name.to_vec());
        let (kind, id, name) = (self.kind, hex::upper(id), decode_name(name));
        self.report.tell(Severity::Info, format!("FIX: Restoring {kind} reverse mapping: {id} -> {name}"));
    }

    /// Gives each UID of several names one name of its own, and drops theirs.
    fn collisions(&mut self, maps: &mut Maps, collided: bool) {
        if !collided || !self.fix {
            return;
        }
        let mut names_of: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        // What is of another width is no UID: its names have nothing in common.
        for (name, id) in maps.name_to_id.iter().filter(|(_, id)| id.len() == self.width.bytes()) {
            names_of.entry(id.clone()).or_default().push(name.clone());
        }
        for (id, names) in names_of.into_iter().filter(|(_, names)| names.len() > 1) {
            self.join(maps, &id, &names);
        }
    }

    /// The new name is put into both maps before the old ones go: wherever that is cut off, the UID has a name.
    fn join(&mut self, maps: &mut Maps, id: &[u8], names: &[Vec<u8>]) {
        let (kind, id_text) = (self.kind, hex::upper(id));
        let joined = joined_name(names, id, &maps.name_to_id);
        let joined_text = decode_name(&joined);
        let gone = || names.iter().filter(|name| **name != joined);
        for name in gone() {
            let name = decode_name(name);
            self.report.tell(Severity::Info, format!("FIX: Removed forward {kind} mapping for {name} -> {id_text}"));
        }
        self.put(&joined, UID_ID_FAMILY, id);
        self.report.tell(
            Severity::Info,
            format!("FIX: Created forward {kind} mapping for fsck'd UID {joined_text} -> {id_text}"),
        );
        self.restore_reverse(&mut maps.id_to_name, &joined, id);
        for name in gone() {
            maps.name_to_id.remove(name);
        }
        self.gone.extend(gone().cloned());
        self.report
            .tell(Severity::Error, format!("UID collision: corrupted UID [{id_text}] renamed to [{joined_text}]"));
        maps.name_to_id.insert(joined, id.to_vec());
    }

    /// Drops the names that gave way. Not before: the tombstone of one would hide the UID that it gets back.
    fn drop_gone(&mut self) {
        for name in std::mem::take(&mut self.gone) {
            self.delete(&name, UID_ID_FAMILY, &[self.kind.qualifier()]);
        }
    }

    /// Every UID must be what its name says; one whose name is another's is an orphan.
    fn reverse(&mut self, maps: &mut Maps) {
        let kind = self.kind;
        let claims = self.claims(maps);
        for (id, name) in &maps.id_to_name {
            let (id_text, name_text) = (hex::upper(id), decode_name(name));
            match maps.name_to_id.get(name) {
                Some(found) if found == id => continue,
                None => self.report.tell(
                    Severity::Warning,
                    format!("Reverse {kind} mapping is missing forward mapping: {name_text} -> {id_text}"),
                ),
                Some(found) => {
                    let found_text = hex::upper(found);
                    self.report.error(match maps.id_to_name.get(found) {
                        Some(other) => format!(
                            "Inconsistent reverse {kind} mapping {id_text} -> {name_text} vs {found_text} -> \
                             {name_text} / {} -> {found_text}",
                            decode_name(other)
                        ),
                        None => format!(
                            "Duplicate reverse {kind} mapping {id_text} -> {name_text} and {found_text} -> null"
                        ),
                    });
                }
            }
            if !self.fix {
                continue;
            }
            let is_uid = id.len() == self.width.bytes();
            match claims.get(name) {
                Some(ids) if *ids == [id.clone()] => {
                    self.put(name, UID_ID_FAMILY, id);
                    self.gone.remove(name);
                    maps.name_to_id.insert(name.clone(), id.clone());
                    self.report.tell(
                        Severity::Info,
                        format!("FIX: Restored forward {kind} mapping: {name_text} -> {id_text}"),
                    );
                }
                // Which of them it was nobody can say any more.
                Some(_) if is_uid || maps.name_to_id.contains_key(name) => {}
                _ => {
                    self.delete(id, UID_NAME_FAMILY, &[kind.qualifier(), kind.meta_qualifier()]);
                    self.report
                        .tell(Severity::Info, format!("FIX: Removed {kind} reverse mapping: {id_text} -> {name_text}"));
                }
            }
        }
    }

    /// The UIDs that bear, in the reverse map, the names whose forward cells are absent or no UIDs.
    fn claims(&self, maps: &Maps) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut claims: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for (id, name) in &maps.id_to_name {
            let is_damaged = |found: &Vec<u8>| found != id && found.len() != self.width.bytes();
            let is_row = !name.is_empty() && name != COUNTER_ROW && name.len() <= NAME_BYTES_MAX;
            if is_row && maps.name_to_id.get(name).is_none_or(is_damaged) {
                let ids = claims.entry(name.clone()).or_default();
                ids.extend((id.len() == self.width.bytes()).then(|| id.clone()));
            }
        }
        claims
    }

    /// The counter must not be behind the largest UID. One beyond the largest of the width is what assignments in vain leave behind:
    /// put back, it would give out UIDs again whose names are deleted and whose data stay.
    fn counter(&mut self, maps: &Maps) {
        let kind = self.kind;
        let (largest, counter) = (i64::try_from(maps.largest).unwrap_or(i64::MAX), maps.counter.unwrap_or(0));
        if maps.counter_broken {
            // OpenTSDB leaves it; but then every assignment fails.
            return self.restore_counter(largest);
        }
        if counter < 0 {
            self.report
                .error(format!("The max ID for {kind} is {counter}, which is no ID of {} bytes!", self.width.bytes()));
            return self.restore_counter(largest);
        }
        if u64::try_from(counter).is_ok_and(|counter| counter > self.width.uid_max().number()) {
            let bytes = self.width.bytes();
            self.report.tell(
                Severity::Warning,
                format!(
                    "Max ID for {kind} is {counter}: every ID of {bytes} bytes was given out, and new names get none"
                ),
            );
        }
        if counter < largest {
            self.report.error(format!(
                "We found an ID of {largest} for {kind} but the max ID is only {counter}!  Future IDs may be \
                 double-assigned!"
            ));
            if self.fix {
                self.report.mends.push(UidMend::Raise { kind, by: largest - counter });
                self.report.tell(Severity::Info, format!("FIX: Updated max ID for {kind} to {largest}"));
            }
        }
        let entries = maps.name_to_id.len().max(maps.id_to_name.len());
        let gone = counter.saturating_sub(i64::try_from(entries).unwrap_or(i64::MAX));
        if gone > 0 {
            self.report.tell(
                Severity::Warning,
                format!(
                    "Max ID for {kind} is {counter} but only {entries} entries were found.  Maybe {gone} IDs were \
                     deleted?"
                ),
            );
        }
    }

    /// Puts a counter that is no number of a UID to the largest one.
    fn restore_counter(&mut self, largest: i64) {
        if self.fix {
            self.put(COUNTER_ROW, UID_ID_FAMILY, &largest.to_be_bytes());
            let kind = self.kind;
            self.report.tell(Severity::Info, format!("FIX: Restored max ID for {kind} to {largest}"));
        }
    }

    fn put(&mut self, row: &[u8], family: &'static [u8], value: &[u8]) {
        self.report.mends.push(UidMend::Put { row: row.to_vec(), family, kind: self.kind, value: value.to_vec() });
    }

    fn delete(&mut self, row: &[u8], family: &'static [u8], qualifiers: &[&str]) {
        let qualifiers = qualifiers.iter().map(|qualifier| qualifier.as_bytes().to_vec()).collect();
        self.report.mends.push(UidMend::Delete { row: row.to_vec(), family: family.to_vec(), qualifiers });
    }
}

#[cfg(test)]
mod tests;
