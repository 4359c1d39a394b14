//! Reads that ask for columns: each row means what its cells mean, and comes by columns only where one cell in a file is all of it,
//! or puts of a point each in a memtable.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_store::{
    Clock, Columns, Durability, FamilyDescriptor, Get, ManualClock, MutationBatch, Packed, PackedPoint, PackedRows,
    Packing, RowSummary, RowView, SeqNo, TimeRange, Timestamp,
};
use proptest::prelude::*;

use super::*;
use crate::io::SimFs;
use crate::sstable::{Block, BlockCodec, PackedBlock};

/// A codec that keeps the image, and lends rows of one put as a point each; not to the writer, who looks first and would decline what is
/// wrong.
#[derive(Debug, Default)]
struct Toy {
    is_just_written: AtomicBool,
}

impl BlockCodec for Toy {
    fn name(&self) -> &'static str {
        "TSB1"
    }

    fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
        self.is_just_written.store(true, Ordering::Relaxed);
        out.extend_from_slice(image);
        true
    }

    fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool {
        image.copy_from_slice(stored);
        true
    }

    fn open(&self, stored: &[u8], _image_bytes: usize) -> Option<Arc<dyn PackedBlock>> {
        if self.is_just_written.swap(false, Ordering::Relaxed) {
            return None;
        }
        Some(Arc::new(ToyBlock(Block::lone_puts(stored)?)))
    }

    fn point(&self, qualifier: &[u8], value: &[u8]) -> Option<PackedPoint> {
        let (offset_ms, word) = (qualifier[0].into(), value[0].into());
        // Some cells will not do here either, and some are of another kind.
        (value != b"7").then_some(PackedPoint { offset_ms, word, is_float: value == b"8" })
    }
}

#[derive(Debug)]
struct ToyBlock(Vec<crate::sstable::tests::OwnedCell>);

impl PackedBlock for ToyBlock {
    fn rows_count(&self) -> usize {
        self.0.len()
    }

    fn row_key(&self, row: usize) -> &[u8] {
        &self.0[row].row
    }

    fn written(&self, row: usize) -> (Timestamp, SeqNo) {
        (Timestamp(self.0[row].timestamp), SeqNo(self.0[row].seq))
    }

    fn memory_bytes(&self) -> usize {
        1000
    }

    fn pack(&self, row: usize, packing: Packing, out: &mut PackedRows) -> bool {
        let cell = &self.0[row];
        if packing == Packing::Summaries && cell.value != b"8" {
            let (first_ms, last, sum) = (cell.qualifier[0].into(), cell.value[0].into(), cell.value[0].into());
            // Of some a wrong one, as by a bug of a writer, and of some that will not do.
            let count = 1 + u32::from(cell.value == b"6");
            let (last_ms, min, max, is_float) = (first_ms, last, last, false);
            out.push_summary(RowSummary { count, first_ms, last_ms, is_float, min, max, last, sum });
            return true;
        }
        // Some rows will not do, as in a real codec.
        cell.value != b"7"
            && out.push(1, cell.value == b"8", |offsets_ms, words| {
                (offsets_ms[0], words[0]) = (cell.qualifier[0].into(), cell.value[0].into());
                true
            })
    }

    fn cell(&self, row: usize, qualifier: &mut Vec<u8>, value: &mut Vec<u8>) -> bool {
        qualifier.clone_from(&self.0[row].qualifier);
        value.clone_from(&self.0[row].value);
        true
    }
}

/// A row as its cells tell it: qualifier and value of each; and whether it came by columns.
fn told(row: &RowView<'_>) -> (Vec<u8>, Vec<(u8, u8)>, bool) {
    let mut cells: Vec<_> = row.cells().map(|cell| (cell.qualifier[0], cell.value[0])).collect();
    if let Some(Packed::Points(packed)) = row.packed() {
        assert!(cells.is_empty(), "a packed row has cells");
        assert!(!packed.words.is_empty() && packed.words.iter().all(|word| (*word == b'8'.into()) == packed.is_float));
        let points = packed.offsets_ms.iter().zip(packed.words);
        cells.extend(points.map(|(offset, word)| (u8::try_from(*offset).unwrap(), u8::try_from(*word).unwrap())));
    }
    (row.key().to_vec(), cells, row.packed().is_some())
}

type Told = Vec<(Vec<u8>, Vec<(u8, u8)>)>;

/// The rows of a scan and of a get, which must agree; and how many came by columns.
fn read(engine: &Engine, packing: Packing, time_range: TimeRange) -> (Told, usize) {
    let columns = || Columns::family("f");
    let scan = Scan { batch_bytes: 64, time_range, ..Scan::all() }.with_columns(columns()).with_packing(packing);
    let mut scanner = engine.scan(&name(), scan).unwrap();
    let (mut rows, mut packed) = (Vec::new(), 0);
    while let Some(batch) = scanner.next_wait() {
        for row in batch.unwrap().rows() {
            let (key, cells, is_packed) = told(&row);
            packed += usize::from(is_packed);
            rows.push((key, cells));
        }
    }
    let keys = (0..KEYS).map(|row| key(row).into()).collect();
    let get = Get { time_range, ..Get::rows(keys) }.with_columns(columns()).with_packing(packing);
    let batch = engine.get(&name(), get).wait().unwrap();
    let got: Told = batch.rows().map(|row| told(&row)).map(|(key, cells, _)| (key, cells)).collect();
    assert_eq!(got, rows, "a get and a scan differ");
    (rows, packed)
}

const KEYS: u8 = 40;

fn key(row: u8) -> Vec<u8> {
    // Longer than the head by which a merge orders rows.
    format!("a rather long row key {row:03}").into_bytes()
}

fn engine() -> Arc<Engine> {
    engine_at(&Arc::new(ManualClock::new(Timestamp(1000))))
}

fn engine_at(clock: &Arc<ManualClock>) -> Arc<Engine> {
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    options.clock = Arc::clone(clock) as Arc<dyn Clock>;
    options.codecs.register(Arc::new(Toy::default()));
    options.limits.memtable_bytes = 1 << 20;
    options.limits.memtables_bytes = 4 << 20;
    let engine = Engine::open(options).unwrap();
    let family = FamilyDescriptor { block_encoding: "TSB1".into(), block_bytes: 4096, ..FamilyDescriptor::new("f") };
    engine.create_table(TableDescriptor::new(name(), vec![family]), &[]).unwrap();
    engine
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8, u8),
    DeleteColumn(u8, u8),
    DeleteRow(u8),
    Flush,
    Compact,
    Split(u8),
}

fn run(engine: &Engine, step: &Step) {
    let mut batch = MutationBatch::new(Durability::Async);
    match step {
        Step::Put(row, qualifier, value) => {
            let value = [b'0' + value];
            batch.row(&key(*row)).unwrap().put(b"f", &[b'a' + qualifier], None, &value).unwrap();
        }
        Step::DeleteColumn(row, qualifier) => {
            batch.row(&key(*row)).unwrap().delete_column(b"f", &[b'a' + qualifier], None).unwrap();
        }
        Step::DeleteRow(row) => {
            batch.row(&key(*row)).unwrap().delete_family(b"f", None).unwrap();
        }
        Step::Flush => return engine.flush(&name()).unwrap(),
        Step::Compact => return engine.compact(&name(), Compaction::Major).unwrap(),
        Step::Split(row) => return drop(engine.split_region(&name(), &SplitAt::Key(key(*row).into()))),
    }
    let applied = engine.apply(&name(), batch);
    engine.pump().unwrap();
    assert!(applied.wait().unwrap().failed.is_empty());
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..KEYS, 0_u8..3, 0_u8..9).prop_map(|(row, qualifier, value)| Step::Put(row, qualifier, value)),
        1 => (0..KEYS, 0_u8..3).prop_map(|(row, qualifier)| Step::DeleteColumn(row, qualifier)),
        1 => (0..KEYS).prop_map(Step::DeleteRow),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => (0..KEYS).prop_map(Step::Split),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever was written, deleted, flushed, merged and split: columns tell what cells tell.
    #[test]
    fn columns_tell_what_cells_tell(steps in proptest::collection::vec(step(), 1..120)) {
        let engine = engine();
        for step in &steps {
            run(&engine, step);
            let (cells, none) = read(&engine, Packing::Cells, TimeRange::ALL);
            prop_assert_eq!(none, 0);
            let (rows, _) = read(&engine, Packing::Points, TimeRange::ALL);
            prop_assert_eq!(&rows, &cells);
            let (rows, _) = read(&engine, Packing::Newest, TimeRange::ALL);
            let newest = |rows: &Told| -> Told {
                rows.iter().map(|(key, cells)| (key.clone(), cells.last().copied().into_iter().collect())).collect()
            };
            prop_assert_eq!(newest(&rows), newest(&cells));
        }
    }
}

/// A row's newest point comes alone where nothing else in the row has a say of it, and with the others elsewhere.
#[test]
fn of_rows_in_memtables_and_files_the_newest_point_comes() {
    let (put, flush) = (Step::Put, Step::Flush);
    for (steps, expected) in [
        (vec![put(1, 0, 1)], vec![(b'a', b'1')]),
        (vec![put(1, 0, 1), put(1, 2, 3), put(1, 1, 2)], vec![(b'c', b'3')]),
        (vec![put(1, 0, 1), flush.clone(), put(1, 1, 2)], vec![(b'b', b'2')]),
        (vec![put(1, 1, 1), flush.clone(), put(1, 0, 2)], vec![(b'b', b'1')]),
        (vec![put(1, 0, 1), flush.clone(), put(1, 1, 2), flush.clone(), put(1, 2, 8)], vec![(b'c', b'8')]),
        // The same column in both, two versions, a tombstone, no point at the end.
        (vec![put(1, 0, 1), put(1, 1, 1), flush.clone(), put(1, 1, 2)], vec![(b'a', b'1'), (b'b', b'2')]),
        (vec![put(1, 0, 1), put(1, 1, 1), put(1, 1, 2)], vec![(b'a', b'1'), (b'b', b'2')]),
        (vec![put(1, 0, 1), put(1, 1, 1), Step::DeleteColumn(1, 2)], vec![(b'a', b'1'), (b'b', b'1')]),
        (vec![put(1, 0, 1), put(1, 1, 7)], vec![(b'a', b'1'), (b'b', b'7')]),
    ] {
        let engine = engine();
        for step in &steps {
            run(&engine, step);
        }
        let (rows, _) = read(&engine, Packing::Newest, TimeRange::ALL);
        assert_eq!(rows, [(key(1), expected)], "{steps:?}");
    }
}

/// Steps, and which rows come by columns afterwards.
fn check(steps: &[Step], expected: &[u8]) {
    let engine = engine();
    for step in steps {
        run(&engine, step);
    }
    let (rows, packed) = read(&engine, Packing::Points, TimeRange::ALL);
    assert_eq!((rows, 0), read(&engine, Packing::Cells, TimeRange::ALL));
    assert_eq!(packed, expected.len(), "{steps:?}");
}

const BOTH: [Step; 3] = [Step::Put(1, 0, 1), Step::Put(2, 0, 2), Step::Flush];

fn after_both(steps: &[Step], expected: &[u8]) {
    check(&[&BOTH[..], steps].concat(), expected);
}

#[test]
fn rows_of_one_cell_in_one_file_come_by_columns() {
    after_both(&[], &[1, 2]);
    after_both(&[Step::Compact, Step::Split(2)], &[1, 2]);
}

#[test]
fn a_row_with_a_newer_cell_of_a_column_comes_as_cells() {
    after_both(&[Step::Put(1, 0, 5)], &[2]);
    after_both(&[Step::Put(1, 0, 5), Step::Flush], &[2]);
    after_both(&[Step::Put(1, 0, 5), Step::Flush, Step::Compact], &[1, 2]);
}

#[test]
fn a_row_that_was_flushed_while_it_grew_comes_by_columns() {
    after_both(&[Step::Put(1, 1, 5)], &[1, 2]);
    after_both(&[Step::Put(1, 1, 5), Step::Flush, Step::Put(1, 2, 6), Step::Put(1, 3, 6)], &[1, 2]);
    // In the middle of two cells in a file, before what is in the file, no point, of another kind, a tombstone.
    after_both(&[Step::Put(1, 1, 5), Step::Put(1, 3, 5), Step::Flush, Step::Put(1, 2, 6)], &[2]);
    check(&[Step::Put(1, 2, 5), Step::Flush, Step::Put(1, 1, 6)], &[]);
    after_both(&[Step::Put(1, 1, 7)], &[2]);
    after_both(&[Step::Put(1, 1, 8)], &[2]);
    after_both(&[Step::Put(1, 1, 5), Step::DeleteColumn(1, 2)], &[2]);
    after_both(&[Step::DeleteColumn(1, 2), Step::Flush, Step::Put(1, 1, 5)], &[2]);
}

#[test]
fn rows_of_puts_in_one_memtable_come_by_columns() {
    let puts = [Step::Put(1, 1, 1), Step::Put(1, 0, 2), Step::Put(1, 2, 3), Step::Put(2, 0, 8), Step::Put(2, 2, 8)];
    check(&puts, &[1, 2]);
    check(&[&puts[..], &[Step::Flush]].concat(), &[]);
    for (more, expected) in [
        // No point, points of both kinds, two versions of a column, a tombstone.
        (Step::Put(1, 3, 7), &[2][..]),
        (Step::Put(2, 1, 3), &[1]),
        (Step::Put(1, 1, 1), &[2]),
        (Step::DeleteColumn(2, 5), &[1]),
        (Step::DeleteRow(3), &[1, 2]),
        (Step::Put(3, 1, 1), &[1, 2, 3]),
    ] {
        check(&[&puts[..], &[more]].concat(), expected);
    }
}

#[test]
fn a_row_under_a_tombstone_comes_as_cells() {
    after_both(&[Step::DeleteRow(1)], &[2]);
    after_both(&[Step::DeleteColumn(2, 0), Step::Flush], &[1]);
}

#[test]
fn a_row_that_its_codec_cannot_lend_comes_as_cells() {
    check(&[Step::Put(1, 0, 7), Step::Put(2, 0, 2), Step::Flush], &[2]);
}

/// Under checksums that fit, as by a bug of a writer.
#[test]
fn a_row_whose_summary_is_not_that_of_its_points_is_damage() {
    for (value, is_whole) in [(5, true), (6, false), (7, false), (8, true)] {
        let engine = engine();
        for step in [Step::Put(1, 0, 1), Step::Put(2, 0, value), Step::Put(3, 0, 1), Step::Flush] {
            run(&engine, &step);
        }
        let told = engine.verify().map_or_else(|damage| damage.to_string(), |_| String::new());
        let place = "/d/sst-0000000000000001.sst is damaged at offset 24: ";
        let expected = format!("{place}the summary of row {} is not that of its points", key(2).escape_ascii());
        assert_eq!(told, if is_whole { "" } else { &expected });
    }
}

/// A cell that TTL or the read's times hide is not there, by columns either.
#[test]
fn a_packed_row_obeys_the_times_of_a_read() {
    let clock = Arc::new(ManualClock::new(Timestamp(1000)));
    let engine = engine_at(&clock);
    for step in &BOTH {
        run(&engine, step);
    }
    let none = TimeRange { min: Timestamp(0), max: Timestamp(5) };
    assert_eq!(read(&engine, Packing::Points, none), (Vec::new(), 0));
    let family = FamilyDescriptor {
        ttl_seconds: Some(10),
        block_encoding: "TSB1".into(),
        block_bytes: 4096,
        ..FamilyDescriptor::new("f")
    };
    engine.alter_table(TableDescriptor::new(name(), vec![family])).unwrap();
    assert_eq!(read(&engine, Packing::Points, TimeRange::ALL).1, 2);
    // The same of rows in a memtable, one of whose cells is older than the others.
    run(&engine, &Step::Put(3, 0, 3));
    clock.set(Timestamp(8_000));
    run(&engine, &Step::Put(3, 1, 4));
    run(&engine, &Step::Put(2, 1, 4));
    assert_eq!(read(&engine, Packing::Points, none), (Vec::new(), 0));
    assert_eq!(read(&engine, Packing::Points, TimeRange::ALL).1, 3);
    clock.set(Timestamp(13_000));
    let left = |row| (key(row), vec![(b'b', b'4')]);
    // Of row 2 a file's cell is gone; of row 3 one of a memtable's, which takes a look at each.
    assert_eq!(read(&engine, Packing::Points, TimeRange::ALL), (vec![left(2), left(3)], 1));
    clock.set(Timestamp(20_000));
    assert_eq!(read(&engine, Packing::Points, TimeRange::ALL), (Vec::new(), 0));
}
