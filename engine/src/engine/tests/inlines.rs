//! Changes of small cells of rows with handles, beside the same changes without.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_store::{CellKind, Durability, Lane, ManualClock, RowHandle, Scan, SplitAt, Timestamp};

use super::*;
use crate::io::{FileSystem, LossMode, Rng, SimFs, SplitMix};

/// A cell that is changed.
struct Cell {
    kind: CellKind,
    qualifier: Vec<u8>,
    value: Vec<u8>,
    time: Option<Timestamp>,
}

/// A row, and its cells in a family.
type Change = (u8, &'static str, Vec<Cell>);

/// A row key, qualifier, value, time, number and kind.
type Told = (Vec<u8>, Vec<u8>, Vec<u8>, u64, u64, CellKind);

struct Side {
    fs: SimFs,
    engine: Arc<Engine>,
    has_handles: bool,
    /// Bytes behind the first of each key.
    rest: &'static [u8],
}

impl Side {
    fn new(has_handles: bool, rest: &'static [u8]) -> Side {
        let fs = SimFs::new(1);
        let engine = Self::open(&fs);
        engine.create_table(table(), &["k".into(), "t".into()]).unwrap();
        Side { fs, engine, has_handles, rest }
    }

    fn open(fs: &SimFs) -> Arc<Engine> {
        let options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
        let clock = Arc::new(ManualClock::new(Timestamp(1000)));
        Engine::open(EngineOptions { clock, ..options }).unwrap()
    }

    fn key(&self, row: u8) -> Vec<u8> {
        [&[row], self.rest].concat()
    }

    /// Applies a batch that waits for others.
    fn hold(&self, changes: &[Change]) -> Pending<Applied> {
        let mut batch = MutationBatch::new(Durability::Fsync);
        for (row, family, cells) in changes {
            let handle = NonZeroU64::new(u64::from(*row) + 1).map(RowHandle).filter(|_| self.has_handles);
            let mut changes = batch.row_of(&self.key(*row), handle).unwrap();
            for Cell { kind, qualifier, value, time } in cells {
                match kind {
                    CellKind::Put => changes.put(family.as_bytes(), qualifier, *time, value).unwrap(),
                    _ => changes.delete_column(family.as_bytes(), qualifier, *time).unwrap(),
                };
            }
        }
        batch.hold(Lane::default());
        self.engine.apply(&name(), batch)
    }

    fn told(&self) -> Vec<Told> {
        let mut scanner = self.engine.scan(&name(), Scan { versions: u32::MAX, raw: true, ..Scan::all() }).unwrap();
        let mut all = Vec::new();
        while let Some(batch) = scanner.next_wait() {
            for row in batch.unwrap().rows() {
                let told = row.cells().map(|cell| {
                    let bytes = (row.key().to_vec(), cell.qualifier.to_vec(), cell.value.to_vec());
                    (bytes.0, bytes.1, bytes.2, cell.timestamp.0, cell.seq.0, cell.kind)
                });
                all.extend(told);
            }
        }
        all
    }

    /// How many writes each region had.
    fn writes(&self) -> Vec<u64> {
        self.engine.regions(&name()).unwrap().iter().map(|region| region.writes_count).collect()
    }

    /// All files.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let read = |name: String| {
            let file = self.fs.open(&Path::new("/d").join(&name)).unwrap();
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            file.read_exact_at(0, &mut bytes).unwrap();
            (name, bytes)
        };
        self.fs.list(Path::new("/d")).unwrap().into_iter().map(read).collect()
    }
}

fn bytes(rng: &mut SplitMix, len: u64) -> Vec<u8> {
    (0..len).map(|_| rng.below(3).to_le_bytes()[0]).collect()
}

/// What a batch changes: now and then with cells that are not small, have times of their own, are of other families or are deletes,
/// and with rows without any.
fn changes(rng: &mut SplitMix) -> Vec<Change> {
    let value_bytes_end = if rng.chance(1, 8) { 20 } else { 9 };
    let [has_times, has_deletes, has_none] = [1, 1, 1].map(|chance| rng.chance(chance, 16));
    let (first, is_mixed) = (if rng.chance(1, 8) { "g" } else { "f" }, rng.chance(1, 16));
    let rows = (0..=rng.below(40)).map(|_| {
        let row = b'a' + rng.below(26).to_le_bytes()[0];
        let family = if is_mixed && rng.chance(1, 3) { "g" } else { first };
        let count = if rng.chance(1, 5) { 1 + rng.below(4) } else { 1 };
        let cells = (0..if has_none && rng.chance(1, 5) { 0 } else { count }).map(|_| {
            let (qualifier_bytes, value_bytes) = (1 + rng.below(3), rng.below(value_bytes_end));
            let time = (has_times && rng.chance(1, 3)).then(|| Timestamp(rng.below(2000)));
            let is_delete = has_deletes && rng.chance(1, 4);
            let kind = if is_delete { CellKind::DeleteColumn } else { CellKind::Put };
            let (qualifier, value) = (bytes(rng, qualifier_bytes), bytes(rng, value_bytes));
            Cell { kind, qualifier, value: if is_delete { Vec::new() } else { value }, time }
        });
        (row, family, cells.collect())
    });
    rows.collect()
}

/// Whether they go the short way.
fn are_small(batches: &[Vec<Change>]) -> bool {
    let (family, mut cells) = (batches[0][0].1, batches.iter().flatten());
    cells.all(|(_, of, cells)| {
        let is_small = |Cell { kind, qualifier, value, time }: &Cell| {
            *kind == CellKind::Put && time.is_none() && qualifier.len() + value.len() <= 12
        };
        *of == family && !cells.is_empty() && cells.iter().all(is_small)
    })
}

/// Rows that come again in a batch and in others, rows of several cells, cells that are no longer small, over regions that split, through
/// flushes and crashes: times, numbers and bytes are the same, and so is what lies on the disk.
#[test]
fn small_cells_of_rows_with_handles_are_as_others() {
    for seed in 0..30 {
        let rest = if seed % 2 == 0 { &b"k"[..] } else { b"a key as points have" };
        let (mut rng, mut sides, mut inline) =
            (SplitMix::new(seed), [Side::new(false, rest), Side::new(true, rest)], 0);
        for _ in 0..60 {
            let batches: Vec<_> = (0..=rng.below(3)).map(|_| changes(&mut rng)).collect();
            inline += u32::from(are_small(&batches));
            for side in &sides {
                let held: Vec<_> = batches.iter().map(|batch| side.hold(batch)).collect();
                side.engine.push(Lane::default());
                assert!(held.into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
            }
            let [without, with] = sides.each_ref().map(|side| (side.told(), side.writes(), side.files()));
            assert_eq!((&without.0, &without.1), (&with.0, &with.1), "seed {seed}");
            assert!(without.2 == with.2, "seed {seed}: not the same bytes on the disk");
            let (flushes, crashes, splits) = (rng.chance(1, 20), rng.chance(1, 20), rng.chance(1, 20));
            let split = SplitAt::Key(sides[0].key(b'a' + rng.below(26).to_le_bytes()[0]).into());
            for side in &mut sides {
                if flushes {
                    side.engine.flush(&name()).unwrap();
                }
                if splits {
                    // One that is there already is no place to split at.
                    drop(side.engine.split_region(&name(), &split));
                }
                if crashes {
                    side.fs = side.fs.power_loss(LossMode::Hostile);
                    side.engine = Side::open(&side.fs);
                }
            }
            let [without, with] = sides.each_ref().map(Side::told);
            assert_eq!(without, with, "seed {seed}");
        }
        assert!((10..60).contains(&inline), "{inline} changes of small cells");
        let [without, with] = sides.map(|side| side.engine.stats());
        assert_eq!((without.wal_records, without.memtable_bytes), (with.wal_records, with.memtable_bytes));
    }
}

/// Small or not, what a store refuses it refuses.
#[test]
fn a_small_value_above_the_limit_is_refused() {
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    options.limits.value_bytes_max = 5;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    let mut batch = MutationBatch::new(Durability::Fsync);
    for row in 1..=2_u8 {
        let handle = NonZeroU64::new(row.into()).map(RowHandle);
        batch.row_of(&[row], handle).unwrap().put(b"f", b"q", None, &vec![b'v'; 4 + usize::from(row % 2) * 2]).unwrap();
    }
    batch.hold(Lane::default());
    let answer = engine.apply(&name(), batch);
    engine.push(Lane::default());
    let failed = answer.wait().unwrap().failed;
    assert_eq!(failed.iter().map(|failure| failure.row).collect::<Vec<_>>(), [0]);
    assert_eq!(scan(&engine, Scan::all()).len(), 1);
}

/// Who reads a row and then writes it is alone with it: small cells wait, too.
#[test]
fn small_cells_wait_for_a_row_that_somebody_owns() {
    let side = Side::new(true, b"k");
    let table = side.engine.table(&name()).unwrap();
    let (has_begun, is_applied) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let owned = table.row_locks().own(&side.key(b'm'));
        scope.spawn(|| {
            let cell = Cell { kind: CellKind::Put, qualifier: b"q".to_vec(), value: b"v".to_vec(), time: None };
            let held = side.hold(&[(b'm', "f", vec![cell])]);
            has_begun.store(true, Ordering::Release);
            side.engine.push(Lane::default());
            is_applied.store(true, Ordering::Release);
            assert!(held.wait().unwrap().failed.is_empty());
        });
        // Then a few more, until it waits.
        let mut left = 50;
        while left > 0 {
            left -= u32::from(has_begun.load(Ordering::Acquire));
            std::thread::yield_now();
        }
        assert!(!is_applied.load(Ordering::Acquire) && side.told().is_empty());
        drop(owned);
    });
    assert_eq!(side.told().len(), 1);
}
