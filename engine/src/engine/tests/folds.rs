//! The rules by which rows may be folded while writes, tombstones, snapshots, TTL and crashes come in between.
//!
//! A row here is an hour: a point's column is one byte, its value one more; a folded cell has the columns of its points one
//! behind the other, and their values, as OpenTSDB's has.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use basalt_store::{
    CheckAndMutate, Clock as _, Comparison, Durability, FamilyDescriptor, Fold, FoldedRow, KeepDeletedCells,
    ManualClock, MutationBatch, RowPut, SeqNo, Timestamp,
};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, SimFs};
use crate::region::RegionFile;

mod whole_rows;

/// Joins a row's points; of two at one column the newer stays.
#[derive(Debug)]
struct Points;

impl Fold for Points {
    fn name(&self) -> &'static str {
        "points"
    }

    fn fold(&self, cells: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let mut points: BTreeMap<u8, (Timestamp, SeqNo, u8)> = BTreeMap::new();
        for cell in cells {
            for (column, value) in cell.qualifier.iter().zip(cell.value) {
                let point = (cell.timestamp, cell.seq, *value);
                points.entry(*column).and_modify(|newest| *newest = point.max(*newest)).or_insert(point);
            }
        }
        if cells.len() < 2 {
            return false;
        }
        let qualifier: Vec<u8> = points.keys().copied().collect();
        let value: Vec<u8> = points.values().map(|(_, _, value)| *value).collect();
        let timestamp = cells.iter().map(|cell| cell.timestamp).max().unwrap();
        let seq = cells.iter().map(|cell| cell.seq).max().unwrap();
        out.push(RowPut { qualifier: &qualifier, timestamp, seq, value: &value });
        true
    }
}

/// A store with one such table, and the time, which each write moves on by a second.
struct Hours {
    fs: SimFs,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
}

impl Hours {
    fn new(family: FamilyDescriptor) -> Hours {
        Hours::of(family, Arc::new(Points))
    }

    fn of(family: FamilyDescriptor, fold: Arc<dyn Fold>) -> Hours {
        let hours = Hours::open_with(SimFs::new(1), Timestamp(1_000_000), fold);
        let family = FamilyDescriptor { fold: Some("points".into()), ..family };
        hours.engine.create_table(TableDescriptor::new(name(), vec![family]), &[]).unwrap();
        hours
    }

    fn open(fs: SimFs, now: Timestamp) -> Hours {
        Hours::open_with(fs, now, Arc::new(Points))
    }

    fn open_with(fs: SimFs, now: Timestamp, fold: Arc<dyn Fold>) -> Hours {
        let clock = Arc::new(ManualClock::new(now));
        let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
        options.clock = Arc::clone(&clock) as Arc<dyn basalt_store::Clock>;
        options.folds = vec![fold];
        Hours { engine: Engine::open(options).unwrap(), fs, clock }
    }

    fn pass(&self, millis: u64) {
        self.clock.set(Timestamp(self.clock.now().0 + millis));
    }

    fn change(&self, change: impl FnOnce(&mut basalt_store::RowBuilder<'_>)) {
        self.pass(1000);
        let mut batch = MutationBatch::new(Durability::Async);
        change(&mut batch.row(b"hour").unwrap());
        self.engine.apply(&name(), batch).wait().unwrap();
    }

    /// Writes points, `1=a 2=b`, each as a cell of its own.
    fn put(&self, points: &str) {
        for point in points.split(' ') {
            let (column, value) = point.split_once('=').unwrap();
            self.change(|row| {
                row.put(b"f", column.as_bytes(), None, value.as_bytes()).unwrap();
            });
        }
    }

    fn flush(&self) {
        self.engine.flush(&name()).unwrap();
    }

    fn compact(&self) {
        self.engine.compact(&name(), Compaction::Major).unwrap();
    }

    /// The cells as they are stored for a reader: `12=ab 3=c`.
    fn cells(&self) -> String {
        let mut scanner = self.engine.scan(&name(), Scan::all()).unwrap();
        let mut told = Vec::new();
        while let Some(batch) = scanner.next_wait().transpose().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let cells = batch.rows().flat_map(|row| row.cells());
            told.extend(cells.map(|cell| format!("{}={}", text(cell.qualifier), text(cell.value))));
        }
        told.join(" ")
    }

    /// The points that a reader makes of them, which knows what was written when.
    fn points(&self) -> String {
        let mut scanner = self.engine.scan(&name(), Scan::all()).unwrap();
        let mut points: BTreeMap<u8, (Timestamp, u8)> = BTreeMap::new();
        while let Some(batch) = scanner.next_wait().transpose().unwrap() {
            for cell in batch.rows().flat_map(|row| row.cells()) {
                for (column, value) in cell.qualifier.iter().zip(cell.value) {
                    let point = (cell.timestamp, *value);
                    points.entry(*column).and_modify(|newest| *newest = point.max(*newest)).or_insert(point);
                }
            }
        }
        let told = points.iter().map(|(column, (_, value))| format!("{}={}", char::from(*column), char::from(*value)));
        told.collect::<Vec<_>>().join(" ")
    }
}

fn family() -> FamilyDescriptor {
    FamilyDescriptor::new("f")
}

#[test]
fn rule_1_a_late_point_lies_beside_the_folded_row_and_the_newest_write_wins() {
    let hours = Hours::new(family());
    hours.put("1=a 3=c");
    hours.flush();
    assert_eq!(hours.cells(), "13=ac");
    hours.put("2=b");
    assert_eq!(hours.points(), "1=a 2=b 3=c");
    // The same instant again: alike, and another value.
    hours.put("1=a 3=x");
    assert_eq!(hours.points(), "1=a 2=b 3=x");
    hours.flush();
    assert_eq!(hours.points(), "1=a 2=b 3=x");
    hours.compact();
    assert_eq!(hours.cells(), "123=abx");
}

#[test]
fn rule_2_late_points_are_flushed_as_a_short_row_of_their_own() {
    let hours = Hours::new(family());
    hours.put("1=a 2=b 3=c");
    hours.flush();
    hours.put("5=e 4=d");
    hours.flush();
    assert_eq!((hours.cells().as_str(), hours.engine.stats().files_count), ("123=abc 45=de", 2));
}

#[test]
fn rule_3_a_compaction_joins_rows_that_follow_and_rows_that_interleave() {
    for (first, second, joined) in [
        ("1=a 2=b", "3=c 4=d", "1234=abcd"),
        ("3=c 4=d", "1=a 2=b", "1234=abcd"),
        ("1=a 3=c", "2=b 4=d", "1234=abcd"),
        ("1=a 2=b", "2=x 3=c", "123=axc"),
    ] {
        let hours = Hours::new(family());
        hours.put(first);
        hours.flush();
        hours.put(second);
        hours.flush();
        hours.compact();
        assert_eq!((hours.cells().as_str(), hours.engine.stats().files_count), (joined, 1));
        // What was folded stays as it is.
        hours.compact();
        assert_eq!(hours.cells(), joined);
    }
}

/// A tombstone meets the very cells that it was written against, wherever they are, and none that came later.
#[test]
fn rule_4_a_tombstone_applies_before_the_fold() {
    let delete = |hours: &Hours, column: &str| {
        hours.change(|row| {
            row.delete_column(b"f", column.as_bytes(), None).unwrap();
        });
    };
    // In one memtable, across files, and over a folded cell.
    for steps in 0..8_u8 {
        let hours = Hours::new(family());
        let flush = |step: u8| {
            if steps & step != 0 {
                hours.flush();
            }
        };
        hours.put("1=a");
        flush(1);
        delete(&hours, "1");
        flush(2);
        hours.put("2=b 3=c");
        flush(4);
        hours.put("1=x");
        assert_eq!(hours.points(), "1=x 2=b 3=c", "{steps}");
        hours.compact();
        assert_eq!(hours.points(), "1=x 2=b 3=c", "{steps}");
        hours.compact();
        assert_eq!(hours.cells(), "123=xbc", "{steps}: the tombstone is gone, the row folds");
        delete(&hours, "123");
        hours.put("4=d");
        assert_eq!(hours.points(), "4=d", "{steps}");
        hours.compact();
        assert_eq!(hours.points(), "4=d", "{steps}");
    }
}

/// Deletes a column while a pass folds its row, and flushes if it is to, then folds.
#[derive(Debug, Default)]
struct Meanwhile {
    engine: Mutex<Option<Arc<Engine>>>,
    flushes: bool,
}

impl Fold for Meanwhile {
    fn name(&self) -> &'static str {
        Points.name()
    }

    fn fold(&self, cells: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let engine = self.engine.lock().unwrap().take();
        if let Some(engine) = engine {
            let mut batch = MutationBatch::new(Durability::Async);
            batch.row(b"hour").unwrap().delete_column(b"f", b"1", None).unwrap();
            engine.apply(&name(), batch).wait().unwrap();
            if self.flushes {
                engine.flush(&name()).unwrap();
            }
        }
        Points.fold(cells, out)
    }
}

/// The tombstone masks a column, and would miss the folded one: what was deleted would be seen again.
#[test]
fn rule_4_a_delete_during_a_pass_is_not_undone_by_it() {
    // By a flush; by a compaction, in whose time the tombstone stays in the memtable, or comes to a file.
    for (flushes, is_flushed) in [(true, false), (false, false), (false, true)] {
        let meanwhile = Arc::new(Meanwhile { flushes: is_flushed, ..Meanwhile::default() });
        let hours = Hours::of(family(), Arc::clone(&meanwhile) as Arc<dyn Fold>);
        for points in ["1=a", "2=b", "3=c", "4=d", "5=e"] {
            hours.put(points);
            if !flushes {
                hours.flush();
            }
        }
        *meanwhile.engine.lock().unwrap() = Some(Arc::clone(&hours.engine));
        if flushes {
            hours.flush();
        } else {
            hours.engine.compact(&name(), Compaction::Minor).unwrap();
        }
        assert!(meanwhile.engine.lock().unwrap().is_none(), "it was deleted meanwhile");
        assert_eq!(hours.points(), "2=b 3=c 4=d 5=e", "{flushes} {is_flushed}");
        hours.flush();
        hours.compact();
        hours.compact();
        assert_eq!(hours.cells(), "2345=bcde", "{flushes} {is_flushed}: the tombstone is gone, the row folds");
        hours.engine.verify().unwrap();
    }
}

/// A check of a column holds no longer where the row was folded between it and the change: the tombstone would miss the folded
/// column, whose time is the newest of its points.
#[test]
fn rule_4_a_fold_between_a_check_and_its_delete_is_noticed() {
    let hours = Hours::new(family());
    hours.put("1=a");
    let written = hours.clock.now();
    hours.flush();
    hours.put("2=b");
    let mut mutation = MutationBatch::new(Durability::Async);
    mutation.row(b"hour").unwrap().delete_family(b"f", Some(written)).unwrap();
    let check = CheckAndMutate {
        row: Bytes::from_static(b"hour"),
        family: Bytes::from_static(b"f"),
        qualifier: Bytes::from_static(b"1"),
        comparison: Comparison::Equal,
        expected: Some(Bytes::from_static(b"a")),
        mutation,
    };
    let engine = Arc::clone(&hours.engine);
    hours.fs.before_read(move || {
        engine.flush(&name()).unwrap();
        engine.compact(&name(), Compaction::Major).unwrap();
    });
    let changed = hours.engine.check_and_mutate(&name(), check.clone()).wait().unwrap();
    assert_eq!((changed, hours.cells().as_str()), (false, "12=ab"), "asked again, it finds another column");
    let folded =
        CheckAndMutate { qualifier: Bytes::from_static(b"12"), expected: Some(Bytes::from_static(b"ab")), ..check };
    assert!(hours.engine.check_and_mutate(&name(), folded).wait().unwrap());
}

/// The tombstone over the newest version takes its time from the column that it is to be over: a fold of the row waits for it.
#[test]
fn rule_4_a_fold_between_a_look_at_the_newest_version_and_its_delete_waits() {
    let hours = Hours::new(family());
    for points in ["1=a", "2=b", "3=c", "4=d", "5=e"] {
        hours.put(points);
        hours.flush();
    }
    let engine = Arc::clone(&hours.engine);
    let (ended, end) = channel();
    hours.fs.before_read(move || {
        let (folded, fold) = channel();
        std::thread::spawn(move || {
            engine.compact(&name(), Compaction::Minor).unwrap();
            folded.send(()).unwrap_or_default();
            ended.send(()).unwrap();
        });
        // Until it is done, were it not kept from that.
        fold.recv_timeout(Duration::from_millis(300)).unwrap_or_default();
    });
    hours.change(|row| {
        row.delete(b"f", b"1", None).unwrap();
    });
    end.recv().unwrap();
    assert_eq!(hours.points(), "2=b 3=c 4=d 5=e");
}

#[test]
fn rule_4_a_tombstone_that_takes_no_part_in_a_pass_keeps_its_row() {
    let delete = |hours: &Hours| {
        hours.change(|row| {
            row.delete_column(b"f", b"1", None).unwrap();
        });
    };
    // In the memtable; and in a file that is too large to take part, over a point that came later with a time of its own.
    for is_in_file in [false, true] {
        let hours = Hours::new(family());
        if is_in_file {
            delete(&hours);
            let mut batch = MutationBatch::new(Durability::Async);
            let noise: Vec<u8> = (0..20_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
            batch.row(b"other").unwrap().put(b"f", b"0", None, &noise).unwrap();
            hours.engine.apply(&name(), batch).wait().unwrap();
            hours.flush();
        }
        let early = is_in_file.then_some(Timestamp(1_000_000));
        hours.change(|row| {
            row.put(b"f", b"1", early, b"a").unwrap();
        });
        hours.flush();
        for points in ["2=b", "3=c", "4=d"] {
            hours.put(points);
            hours.flush();
        }
        if !is_in_file {
            delete(&hours);
        }
        let files = || hours.engine.stats().files_count;
        let before = files();
        hours.engine.compact(&name(), Compaction::Minor).unwrap();
        assert_eq!(files(), before - 3, "{is_in_file}: four became one");
        assert!(hours.points().ends_with("2=b 3=c 4=d") && !hours.points().contains("1=a"), "{}", hours.points());
    }
}

/// Whether the row may be folded cannot be told then, so it is not; the flush itself needs nothing of that file.
#[test]
fn rule_4_a_file_with_tombstones_that_cannot_be_read_stops_no_flush() {
    type Damage = fn(&SimFs, &Path);
    let damages: [(&str, Damage); 2] = [
        ("checksum", |fs, path| fs.flip_bit(path, 60, 1).unwrap()),
        ("cannot read", |fs, path| fs.open_rw(path).unwrap().set_len(60).unwrap()),
    ];
    for (told, damage) in damages {
        for rows_are_whole in [true, false] {
            let hours = Hours::new(family());
            hours.put("1=a");
            hours.change(|row| {
                row.delete_column(b"f", b"9", None).unwrap();
            });
            hours.flush();
            let name_of_file = |name: &String| name.starts_with("sst-");
            let file = hours.fs.list(Path::new("/d")).unwrap().into_iter().find(name_of_file).unwrap();
            damage(&hours.fs, &Path::new("/d").join(file));
            hours.put("2=b 3=c");
            if !rows_are_whole {
                hours.engine.split_region(&name(), &SplitAt::Key("i".into())).unwrap();
            }
            hours.flush();
            let cells_in =
                |files: &[RegionFile]| files.iter().map(|file| file.table.metadata().cells_count).sum::<u64>();
            let table = hours.engine.core.table(&name()).unwrap();
            let view = table.regions()[0].view();
            assert_eq!((view.files.len(), cells_in(&view.files)), (2, 4), "{told}: both points are cells of their own");
            let read = hours.engine.scan(&name(), Scan::all()).unwrap().next_wait().transpose();
            assert!(read.unwrap_err().to_string().contains(told), "the damage is still told");
        }
    }
}

#[test]
fn rule_4_a_tombstone_on_the_row_drops_it() {
    let hours = Hours::new(family());
    hours.put("1=a 2=b");
    hours.flush();
    hours.change(|row| {
        row.delete_family(b"f", None).unwrap();
    });
    hours.put("3=c");
    assert_eq!(hours.points(), "3=c");
    hours.flush();
    hours.compact();
    assert_eq!(hours.cells(), "3=c");
}

/// Rule 5 for snapshots is `a_fold_does_not_change_a_snapshot`.
#[test]
fn rule_5_families_that_keep_versions_or_deleted_cells_are_not_folded() {
    for kept in [
        FamilyDescriptor { versions: 2, ..family() },
        FamilyDescriptor { keep_deleted: KeepDeletedCells::True, ..family() },
    ] {
        let hours = Hours::new(kept);
        hours.put("1=a 2=b");
        hours.flush();
        hours.put("3=c");
        hours.compact();
        assert_eq!(hours.cells(), "1=a 2=b 3=c");
    }
}

#[test]
fn rule_5_a_folded_cell_bears_the_newest_time_and_number_of_its_parts() {
    let hours = Hours::new(family());
    hours.put("2=b 1=a");
    let written = hours.clock.now();
    hours.pass(60_000);
    hours.compact();
    let get = hours.engine.get(&name(), Get::row(Bytes::from_static(b"hour"))).wait().unwrap();
    let cell = get.row(0).unwrap().cells().next().unwrap();
    assert_eq!((cell.qualifier, cell.timestamp), (&b"12"[..], written));
}

#[test]
fn rule_6_a_folded_row_expires_by_its_newest_write_and_a_whole_file_with_it() {
    let hours = Hours::new(FamilyDescriptor { ttl_seconds: Some(100), ..family() });
    hours.put("1=a");
    hours.pass(50_000);
    hours.put("2=b");
    hours.compact();
    // Alone the first would be gone by now.
    hours.pass(60_000);
    assert_eq!(hours.cells(), "12=ab");
    hours.pass(41_000);
    assert_eq!(hours.cells(), "");
    hours.compact();
    assert_eq!(hours.engine.stats().files_count, 0);
}

/// What expired before the fold is not folded in: nobody sees it again.
#[test]
fn rule_6_an_expired_point_does_not_live_on_in_a_folded_row() {
    let hours = Hours::new(FamilyDescriptor { ttl_seconds: Some(100), ..family() });
    hours.put("1=a");
    hours.flush();
    hours.pass(120_000);
    hours.put("2=b 3=c");
    hours.compact();
    assert_eq!(hours.cells(), "23=bc");
    // And where it expired in the memtable, beside others of its row.
    hours.put("4=d");
    hours.pass(120_000);
    hours.put("5=e 6=f");
    hours.compact();
    assert_eq!(hours.cells(), "56=ef");
}

/// Rows that are taken as a whole, and rows that are taken cell by cell, one behind the other; then the same after a split, by which
/// two regions share their memtable.
#[test]
fn a_flush_folds_what_it_may_and_keeps_the_rest() {
    for is_split in [false, true] {
        let hours = Hours::new(family());
        let mut batch = MutationBatch::new(Durability::Async);
        let rows = [("a", "1"), ("b", "1 22"), ("c", "2 1"), ("d", "3"), ("e", "1 2 3"), ("f", "2 33 1"), ("g", "7")];
        for (key, columns) in rows {
            let mut row = batch.row(key.as_bytes()).unwrap();
            for column in columns.split(' ') {
                row.put(b"f", column.as_bytes(), None, column.as_bytes()).unwrap();
            }
        }
        for key in ["b", "g"] {
            batch.row(key.as_bytes()).unwrap().delete_column(b"f", b"9", None).unwrap();
        }
        hours.engine.apply(&name(), batch).wait().unwrap();
        if is_split {
            hours.engine.split_region(&name(), &SplitAt::Key("d".into())).unwrap();
        }
        hours.flush();
        let folded = "1=1 1=1 22=22 12=12 3=3 123=123 123=123 7=7";
        assert_eq!(hours.cells(), folded, "a tombstone keeps its row from being folded: {is_split}");
        // Once for the tombstones, once for their rows.
        hours.compact();
        hours.compact();
        assert_eq!(hours.cells(), "1=1 12=12 12=12 3=3 123=123 123=123 7=7", "{is_split}");
        hours.engine.verify().unwrap();
    }
}

/// A power loss at each step of flush and compaction, over late points, duplicates and a tombstone: every point is there
/// once, before the next fold and after it.
#[test]
fn a_crash_at_each_step_of_a_fold_loses_no_point_and_brings_none_back() {
    let mut steps = 0;
    for mode in [LossMode::Ordered, LossMode::Hostile] {
        for step in 0.. {
            let hours = Hours::new(family());
            hours.put("1=a 4=d 7=z");
            hours.flush();
            hours.put("2=b 4=x 5=e");
            hours.change(|row| {
                row.delete_column(b"f", b"5", None).unwrap();
            });
            hours.flush();
            hours.put("3=c");
            let synced = hours.engine.sync();
            hours.engine.pump().unwrap();
            synced.wait().unwrap();
            hours.fs.set_fault(Some(Fault { after_calls: step, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            let is_through = hours.engine.flush(&name()).is_ok()
                && hours.engine.compact(&name(), Compaction::Major).is_ok()
                && hours.engine.compact(&name(), Compaction::Major).is_ok();
            let survived = hours.fs.power_loss(mode);
            let now = hours.clock.now();
            drop(hours);
            let hours = Hours::open(survived, now);
            let expected = "1=a 2=b 3=c 4=x 7=z";
            assert_eq!(hours.points(), expected, "step {step}, {mode:?}");
            hours.compact();
            assert_eq!(hours.points(), expected, "step {step}, {mode:?}");
            hours.compact();
            assert_eq!(hours.cells(), "12347=abcxz", "step {step}, {mode:?}");
            steps += 1;
            if is_through {
                break;
            }
        }
    }
    assert!(steps > 20, "{steps} steps");
}
