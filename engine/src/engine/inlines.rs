//! Changes of small cells of rows with handles, beside the same changes without.

use std::num::NonZeroU64;
use std::path::Path;

use basalt_store::{CellKind, Durability, ManualClock, RowHandle, Scan, Timestamp};

use super::tests::{name, options, table};
use super::*;
use crate::io::{LossMode, Rng, SimFs, SplitMix};

/// A row, its qualifiers and values.
type Change = (u8, Vec<(Vec<u8>, Vec<u8>)>);

/// A row key, qualifier, value, time, number and kind.
type Told = (Vec<u8>, Vec<u8>, Vec<u8>, u64, u64, CellKind);

struct Side {
    fs: SimFs,
    engine: Arc<Engine>,
    has_handles: bool,
}

impl Side {
    fn new(has_handles: bool) -> Side {
        let fs = SimFs::new(1);
        let engine = Self::open(&fs);
        engine.create_table(table(), &["k".into(), "t".into()]).unwrap();
        Side { fs, engine, has_handles }
    }

    fn open(fs: &SimFs) -> Arc<Engine> {
        let options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
        let clock = Arc::new(ManualClock::new(Timestamp(1000)));
        Engine::open(EngineOptions { clock, ..options }).unwrap()
    }

    /// Applies a batch that waits for others.
    fn hold(&self, changes: &[Change]) -> Pending<Applied> {
        let mut batch = MutationBatch::new(Durability::Fsync);
        for (row, cells) in changes {
            let handle = NonZeroU64::new(u64::from(*row) + 1).map(RowHandle).filter(|_| self.has_handles);
            let mut changes = batch.row_of(&[*row, b'k'], handle).unwrap();
            for (qualifier, value) in cells {
                changes.put(b"f", qualifier, None, value).unwrap();
            }
        }
        batch.hold();
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
}

fn bytes(rng: &mut SplitMix, len: u64) -> Vec<u8> {
    (0..len).map(|_| rng.below(3).to_le_bytes()[0]).collect()
}

/// What a batch changes: now and then with cells that are not small.
fn changes(rng: &mut SplitMix) -> Vec<Change> {
    let value_bytes_end = if rng.chance(1, 8) { 20 } else { 9 };
    let rows = (0..=rng.below(40)).map(|_| {
        let row = b'a' + rng.below(26).to_le_bytes()[0];
        let count = if rng.chance(1, 5) { 1 + rng.below(4) } else { 1 };
        let cells = (0..count).map(|_| {
            let (qualifier_bytes, value_bytes) = (1 + rng.below(3), rng.below(value_bytes_end));
            (bytes(rng, qualifier_bytes), bytes(rng, value_bytes))
        });
        (row, cells.collect())
    });
    rows.collect()
}

/// Rows that come again in a batch and in others, rows of several cells, cells that are no longer small, over three regions, through
/// flushes and crashes: times, numbers and bytes are the same.
#[test]
fn small_cells_of_rows_with_handles_are_as_others() {
    for seed in 0..30 {
        let (mut rng, mut sides, mut inline) = (SplitMix::new(seed), [Side::new(false), Side::new(true)], 0);
        for _ in 0..60 {
            let batches: Vec<_> = (0..=rng.below(3)).map(|_| changes(&mut rng)).collect();
            let is_small =
                |(_, cells): &Change| cells.iter().all(|(qualifier, value)| qualifier.len() + value.len() <= 12);
            inline += u32::from(batches.iter().flatten().all(is_small));
            for side in &sides {
                let held: Vec<_> = batches.iter().map(|batch| side.hold(batch)).collect();
                side.engine.push();
                assert!(held.into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
            }
            let (flushes, crashes) = (rng.chance(1, 20), rng.chance(1, 20));
            for side in &mut sides {
                if flushes {
                    side.engine.flush(&name()).unwrap();
                }
                if crashes {
                    side.fs = side.fs.power_loss(LossMode::Hostile);
                    side.engine = Side::open(&side.fs);
                }
            }
            let [without, with] = sides.each_ref().map(Side::told);
            assert_eq!(without, with, "seed {seed}");
        }
        assert!((20..60).contains(&inline), "{inline} changes of small cells");
        let [without, with] = sides.map(|side| side.engine.stats());
        assert_eq!((without.wal_records, without.memtable_bytes), (with.wal_records, with.memtable_bytes));
    }
}
