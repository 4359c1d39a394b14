//! SSTables written, read, walked both ways, and damaged in every way that fits a test.

mod compat;
mod damage;
mod faults;
mod memory;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use basalt_store::{BloomFilter, CellKind, CellRef, Compression, Packing, SeqNo, TimeRange, Timestamp};
use bytes::Bytes;
use proptest::prelude::*;

use super::format::SECTION_BYTES_MAX;
use super::*;
use crate::key_range::KeyRange;
use crate::merge::{CellSource, Direction};

use memory::MemoryFile;

const FAMILY: &[u8] = b"t";
const PATH: &str = "000007.sst";
const ID: FileId = FileId(7);

/// A cell that owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedCell {
    pub(crate) row: Vec<u8>,
    pub(crate) qualifier: Vec<u8>,
    pub(crate) timestamp: u64,
    pub(crate) kind: CellKind,
    pub(crate) seq: u64,
    pub(crate) value: Vec<u8>,
}

impl OwnedCell {
    pub(crate) fn put(row: impl Into<Vec<u8>>, qualifier: &[u8], timestamp: u64, value: &[u8]) -> Self {
        Self {
            row: row.into(),
            qualifier: qualifier.to_vec(),
            timestamp,
            kind: CellKind::Put,
            seq: timestamp,
            value: value.to_vec(),
        }
    }

    pub(crate) fn of(cell: &CellRef<'_>) -> Self {
        assert_eq!(cell.family, FAMILY);
        Self {
            row: cell.row.to_vec(),
            qualifier: cell.qualifier.to_vec(),
            timestamp: cell.timestamp.0,
            kind: cell.kind,
            seq: cell.seq.0,
            value: cell.value.to_vec(),
        }
    }

    pub(crate) fn borrow(&self) -> CellRef<'_> {
        CellRef {
            row: &self.row,
            family: FAMILY,
            qualifier: &self.qualifier,
            timestamp: Timestamp(self.timestamp),
            kind: self.kind,
            seq: SeqNo(self.seq),
            value: &self.value,
        }
    }
}

/// Cells in cell order, no two of one address and sequence number.
pub(crate) fn sorted(mut cells: Vec<OwnedCell>) -> Vec<OwnedCell> {
    cells.sort_by(|a, b| a.borrow().order(&b.borrow()));
    cells.dedup_by(|a, b| a.borrow().order(&b.borrow()).is_eq());
    cells
}

/// The same, rows descending.
pub(crate) fn reversed(mut cells: Vec<OwnedCell>) -> Vec<OwnedCell> {
    cells.sort_by(|a, b| Direction::Reverse.order(&a.borrow(), &b.borrow()));
    cells
}

/// Few different parts, so that rows, columns and times meet.
pub(crate) fn any_cell() -> impl Strategy<Value = OwnedCell> {
    let key = || proptest::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(0xff)], 0..4);
    let kind = prop_oneof![
        4 => Just(CellKind::Put),
        1 => Just(CellKind::Delete),
        1 => Just(CellKind::DeleteColumn),
        1 => Just(CellKind::DeleteFamily),
        1 => Just(CellKind::DeleteFamilyVersion),
    ];
    let number = || prop_oneof![0_u64..6, Just(1_500_000_000_123), Just(u64::MAX >> 1)];
    (key(), key(), number(), kind, number(), proptest::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(mut row, mut qualifier, timestamp, kind, seq, mut value)| {
            row.insert(0, b'r');
            if kind.is_tombstone() {
                value.clear();
            }
            if matches!(kind, CellKind::DeleteFamily | CellKind::DeleteFamilyVersion) {
                qualifier.clear();
            }
            OwnedCell { row, qualifier, timestamp, kind, seq, value }
        },
    )
}

fn options() -> SstableOptions {
    SstableOptions {
        file_id: ID,
        family: Bytes::from_static(FAMILY),
        bloom: BloomFilter::RowColumn,
        compression: Compression::Zstd,
        codec: None,
        block_bytes: 4096,
    }
}

fn write(cells: &[OwnedCell], options: SstableOptions) -> Vec<u8> {
    write_as(cells, options, |_| ())
}

fn write_as(cells: &[OwnedCell], options: SstableOptions, set: impl FnOnce(&mut SstableWriter)) -> Vec<u8> {
    let file = Arc::new(MemoryFile::default());
    let mut writer = SstableWriter::create(Arc::clone(&file) as Arc<dyn File>, Path::new(PATH), options).unwrap();
    set(&mut writer);
    for cell in cells {
        writer.push(&cell.borrow()).unwrap();
    }
    assert_eq!(writer.cells_count(), cells.len() as u64);
    assert_eq!(writer.finish().unwrap(), file.contents().len() as u64);
    file.contents()
}

fn open_with(bytes: &[u8], codecs: &BlockCodecs) -> Result<Arc<Sstable>> {
    let file = Arc::new(MemoryFile::of(bytes));
    let cache = Arc::new(BlockCache::new(1 << 20, 1 << 20));
    Sstable::open(file, Path::new(PATH), ID, codecs, cache).map(Arc::new)
}

/// A filter that memory has no room for is read when there is.
#[test]
fn s_perf_1_a_filter_is_held_once_there_is_room() {
    let cells: Vec<_> = (0..100).map(|row| OwnedCell::put(format!("row{row:02}"), b"q", 1, b"v")).collect();
    let bytes = write(&cells, options());
    let filter_bytes = open(&bytes).unwrap().filter_bytes();
    // One may have an eighth.
    let cache = Arc::new(BlockCache::new(0, filter_bytes * 8));
    let open = || {
        let file = Arc::new(MemoryFile::of(&bytes));
        Sstable::open(file, Path::new(PATH), ID, &BlockCodecs::default(), Arc::clone(&cache)).unwrap()
    };
    let mut held: Vec<_> = (0..8).map(|_| open()).collect();
    let late = open();
    let state = |table: &Sstable| (table.is_without_filter(), table.may_contain_row(b"row50x"));
    assert!(held.iter().all(|table| state(table) == (false, false)));
    late.hold_filter().unwrap();
    assert_eq!(state(&late), (true, true));
    held.pop();
    late.hold_filter().unwrap();
    assert_eq!(state(&late), (false, false));
    assert_eq!((state(&open()), late.damage_of_filter().is_none()), ((true, true), true));
}

fn open(bytes: &[u8]) -> Result<Arc<Sstable>> {
    open_with(bytes, &BlockCodecs::default())
}

/// Changes the image of a block that is stored plainly, under a checksum that fits, as a bug of a writer would.
pub(crate) fn rewrite_block(table: &Sstable, block: usize, edit: impl FnOnce(&mut [u8])) {
    let block = &table.block_figures().unwrap()[block];
    rewrite_section(table, SectionKind::Data, block.offset..block.offset + block.bytes, edit);
}

/// Likewise what a file tells of itself.
pub(crate) fn rewrite_metadata(table: &Sstable, edit: impl FnOnce(&mut [u8])) {
    let end = table.place(table.file_bytes - FOOTER_BYTES as u64);
    let footer = Footer::decode(&end, &end.read_array(&*table.file).unwrap(), table.version).unwrap();
    rewrite_section(table, SectionKind::Metadata, footer.metadata_offset..end.offset, edit);
}

fn rewrite_section(table: &Sstable, kind: SectionKind, range: Range<u64>, edit: impl FnOnce(&mut [u8])) {
    let place = table.place(range.start);
    let length = usize::try_from(range.end - range.start).unwrap();
    let mut bytes = place.read_vec(&*table.file, length).unwrap();
    let mut image = codec::decode(&place, &Frame::open(&place, kind, &bytes).unwrap(), None).unwrap();
    edit(&mut image);
    bytes.clear();
    codec::plain(&image).seal_into(&place, kind, &mut bytes);
    assert_eq!(bytes.len(), length);
    table.file.write_at(range.start, &bytes).unwrap();
}

/// Where in a block's image the rest of a row's key lies, behind what it shares with the block's first row. The row has one cell, whose
/// flags come next.
pub(crate) fn rest_of_key(image: &[u8], first: &[u8], row: &[u8]) -> usize {
    let shared = first.iter().zip(row).take_while(|(a, b)| a == b).count();
    let rest = &row[shared..];
    let record = [&[shared, rest.len(), 1].map(|length| u8::try_from(length).unwrap())[..], rest].concat();
    image.windows(record.len()).position(|window| window == record).unwrap() + 3
}

fn cursor(table: &Arc<Sstable>, direction: Direction) -> SstableCursor {
    let options =
        ReadOptions { direction, time_range: TimeRange::ALL, caching: Caching::Normal, packing: Packing::Cells };
    SstableCursor::new(Arc::clone(table), options)
}

fn rest(source: &mut impl CellSource) -> Result<Vec<OwnedCell>> {
    let mut cells = Vec::new();
    while let Some(cell) = source.cell() {
        cells.push(OwnedCell::of(&cell));
        source.advance()?;
    }
    Ok(cells)
}

fn read_all(table: &Arc<Sstable>, direction: Direction) -> Result<Vec<OwnedCell>> {
    let mut cursor = cursor(table, direction);
    cursor.rewind()?;
    rest(&mut cursor)
}

/// Rows of one cell, a row over many blocks, rows of tombstones.
fn mixed_cells() -> Vec<OwnedCell> {
    let mut cells = Vec::new();
    for row in 0..300_u32 {
        let value = row.wrapping_mul(2_654_435_761).to_le_bytes().repeat(10);
        cells.push(OwnedCell::put(format!("row{row:05}"), b"q", 1000 + u64::from(row), &value));
    }
    for column in 0..2000_u32 {
        let value = column.wrapping_mul(2_246_822_519).to_le_bytes().repeat(8);
        cells.push(OwnedCell::put("row00100-wide", &column.to_be_bytes(), 5000 + u64::from(column % 7), &value));
    }
    for row in 150..160_u32 {
        let mut tombstone = OwnedCell::put(format!("row{row:05}"), b"", 9000, b"");
        tombstone.kind = CellKind::DeleteFamily;
        cells.push(tombstone);
    }
    sorted(cells)
}

#[test]
fn metadata_counts_what_was_written() {
    let cells = mixed_cells();
    let table = open(&write(&cells, options())).unwrap();
    let metadata = table.metadata();
    assert_eq!(metadata.cells_count, cells.len() as u64);
    assert_eq!((metadata.rows_count, metadata.tombstones_count), (301, 10));
    assert_eq!((&metadata.first_row[..], &metadata.last_row[..]), (&b"row00000"[..], &b"row00299"[..]));
    // A family tombstone reaches down to time 0.
    assert_eq!(metadata.times, TimeSpan { min: 0, max: 9000 });
    assert_eq!((metadata.seq_min, metadata.seq_max), (SeqNo(1000), SeqNo(9000)));
    assert!(metadata.blocks_count > 10, "{metadata:?}");
    assert!(table.memory_bytes() > 0 && table.file_id() == ID && table.path == Path::new(PATH));
}

#[test]
fn a_row_longer_than_a_block_is_found_and_walked_both_ways() {
    let cells = mixed_cells();
    let table = open(&write(&cells, options())).unwrap();
    assert_eq!(read_all(&table, Direction::Forward).unwrap(), cells);
    assert_eq!(read_all(&table, Direction::Reverse).unwrap(), reversed(cells.clone()));
    let mut forward = cursor(&table, Direction::Forward);
    for column in [0_u32, 1, 777, 1999] {
        forward.seek(b"row00100-wide", &column.to_be_bytes()).unwrap();
        assert_eq!(forward.cell().unwrap().qualifier, column.to_be_bytes());
    }
    forward.seek(b"row00100-wide", b"\xff").unwrap();
    assert_eq!(forward.cell().unwrap().row, b"row00101");
}

#[test]
fn blocks_outside_a_time_range_are_passed_by_but_not_tombstones_over_it() {
    let mut cells = Vec::new();
    for row in 0..2000_u32 {
        cells.push(OwnedCell::put(format!("row{row:05}"), b"q", u64::from(row), &row.to_le_bytes().repeat(8)));
    }
    let mut tombstone = OwnedCell::put("row01999", b"q", 5000, b"");
    tombstone.kind = CellKind::DeleteColumn;
    cells.push(tombstone);
    let cells = sorted(cells);
    let table = open(&write(&cells, options())).unwrap();
    let time_range = TimeRange { min: Timestamp(400), max: Timestamp(410) };
    for direction in [Direction::Forward, Direction::Reverse] {
        let options = ReadOptions { direction, time_range, caching: Caching::Bypass, packing: Packing::Cells };
        let mut cursor = SstableCursor::new(Arc::clone(&table), options);
        cursor.rewind().unwrap();
        let read = rest(&mut cursor).unwrap();
        assert!(read.len() < 500, "{} cells of {}", read.len(), cells.len());
        assert!((400..410).all(|time| read.iter().any(|cell| cell.timestamp == time)));
        assert!(read.iter().any(|cell| cell.kind == CellKind::DeleteColumn));
    }
}

#[test]
fn verify_reads_every_block_and_asks_behind_each_whether_it_goes_on() {
    let bytes = write(&mixed_cells(), options());
    let table = open(&bytes).unwrap();
    assert_eq!(table.file_bytes(), bytes.len() as u64);
    assert_eq!(table.metadata().cells_count, mixed_cells().len() as u64);
    let ask = |asked_max| {
        let mut asked = 0;
        let proved = table.verify_while(|_| {
            asked += 1;
            if asked < asked_max { Ok(()) } else { Err(Error::Closed) }
        });
        (proved, asked)
    };
    assert!(matches!(ask(u32::MAX), (Ok(()), asked) if asked == table.metadata().blocks_count));
    assert!(matches!(ask(2), (Err(Error::Closed), 2)));
}

#[test]
fn the_cache_answers_the_second_read() {
    let bytes = write(&mixed_cells(), options());
    let file = Arc::new(MemoryFile::of(&bytes));
    let cache = Arc::new(BlockCache::new(64 << 20, 64 << 20));
    let shared = Arc::clone(&file) as Arc<dyn File>;
    let table =
        Arc::new(Sstable::open(shared, Path::new(PATH), ID, &BlockCodecs::default(), Arc::clone(&cache)).unwrap());
    read_all(&table, Direction::Forward).unwrap();
    let reads = file.reads();
    assert_eq!(read_all(&table, Direction::Forward).unwrap(), mixed_cells());
    assert_eq!(file.reads(), reads);
    assert!(cache.bytes() > 80_000 && cache.bytes() <= 64 << 20);
}

#[test]
fn a_cell_or_row_key_over_its_bound_is_refused() {
    let check = |cell: OwnedCell| {
        let file = Arc::new(MemoryFile::default());
        let mut writer = SstableWriter::create(file, Path::new(PATH), options()).unwrap();
        let refused = writer.push(&cell.borrow()).unwrap_err();
        assert!(matches!(refused, Error::Store(basalt_store::Error::TooLarge { .. })), "{refused}");
    };
    check(OwnedCell::put(vec![b'r'; ROW_BYTES_MAX + 1], b"", 1, b""));
    check(OwnedCell::put("", b"", 1, b""));
    check(OwnedCell::put("r", b"", 1, &vec![0; CELL_BYTES_MAX]));
}

#[test]
fn a_family_name_that_the_metadata_cannot_hold_is_refused() {
    let create = |bytes: usize| {
        let options = SstableOptions { family: vec![b'f'; bytes].into(), ..options() };
        SstableWriter::create(Arc::new(MemoryFile::default()), Path::new(PATH), options)
    };
    create(0xffff).unwrap();
    assert!(matches!(create(0x10000), Err(Error::Store(basalt_store::Error::TooLarge { .. }))));
}

#[test]
#[should_panic(expected = "BUG: cells of 000007.sst come out of order")]
fn cells_out_of_order_are_a_bug() {
    let mut cells = mixed_cells();
    cells.swap(3, 4);
    write(&cells, options());
}

#[test]
fn the_longest_row_key_and_qualifiers_of_any_length_are_kept() {
    let mut cells = vec![OwnedCell::put(vec![b'z'; ROW_BYTES_MAX], &vec![1; 100_000], 5, &vec![7; 300_000])];
    for last in 0..200_u8 {
        // Alike in far more bytes than the index keeps of a qualifier.
        let qualifier = [&[b'q'; 1000][..], &[last]].concat();
        cells.push(OwnedCell::put("wide", &qualifier, 5, &[last; 100]));
    }
    let cells = sorted(cells);
    let table = open(&write(&cells, SstableOptions { compression: Compression::None, ..options() })).unwrap();
    assert_eq!(read_all(&table, Direction::Forward).unwrap(), cells);
    let mut forward = cursor(&table, Direction::Forward);
    for cell in &cells {
        forward.seek(&cell.row, &cell.qualifier).unwrap();
        assert_eq!(OwnedCell::of(&forward.cell().unwrap()), *cell);
    }
    table.verify().unwrap();
}

/// Where two bytes do not tell a row's place, four do.
#[test]
fn rows_of_a_block_beyond_64_kib_are_found() {
    let row = |number: u32| [&b"row"[..], &number.to_be_bytes()].concat();
    let cells: Vec<OwnedCell> =
        (0..6000_u32).map(|number| OwnedCell::put(row(number), b"q", u64::from(number), &[1; 30])).collect();
    for block_bytes in [32 << 10, 64 << 10, 1 << 20] {
        let options = SstableOptions { compression: Compression::None, block_bytes, ..options() };
        let table = open(&write(&cells, options)).unwrap();
        assert_eq!(table.metadata().blocks_count == 1, block_bytes == 1 << 20);
        let mut forward = cursor(&table, Direction::Forward);
        for cell in cells.iter().rev() {
            forward.seek(&cell.row, b"").unwrap();
            assert_eq!(OwnedCell::of(&forward.cell().unwrap()), *cell);
        }
        assert_eq!(read_all(&table, Direction::Reverse).unwrap(), reversed(cells.clone()));
        table.verify().unwrap();
    }
}

/// What is merged must find room in one file, however many blocks it would be.
#[test]
fn blocks_grow_where_the_root_of_the_index_would_not_fit() {
    let row = |number: u32| [&b"row"[..], &number.to_be_bytes()].concat();
    let cells: Vec<OwnedCell> =
        (0..4000_u32).map(|number| OwnedCell::put(row(number), b"q", u64::from(number), &[1; 100])).collect();
    let written = |root_bytes_max| {
        let file = Arc::new(MemoryFile::default());
        let options = SstableOptions { compression: Compression::None, ..options() };
        let mut writer = SstableWriter::create(Arc::clone(&file) as Arc<dyn File>, Path::new(PATH), options)?;
        (writer.leaf_bytes, writer.root_bytes_max) = (1, root_bytes_max);
        cells.iter().try_for_each(|cell| writer.push(&cell.borrow()))?;
        writer.finish()?;
        let table = open(&file.contents())?;
        table.verify()?;
        assert_eq!(read_all(&table, Direction::Forward)?, cells);
        table.block_figures()
    };
    let small = written(SECTION_BYTES_MAX).unwrap();
    // A leaf has one block, and 53 bytes of the root.
    let grown = written(small.len() * 53 / 2).unwrap();
    assert!(grown.len() < small.len() / 2, "{} of {}", grown.len(), small.len());
    assert_eq!(grown[1].cells_count, small[1].cells_count);
    assert!(matches!(written(200), Err(Error::Store(basalt_store::Error::TooLarge { .. }))));
}

/// A file of many blocks has an index in leaves; one is read where a row is looked for, and kept by the cache.
#[test]
fn s_size_2_a_leaf_of_the_index_is_read_where_its_rows_are() {
    let cells: Vec<_> = (0..2000_u32)
        .map(|row| OwnedCell::put(format!("row{row:05}"), b"q", 1, &row.to_le_bytes().repeat(40)))
        .collect();
    let sizes = [256, 2048, 1 << 20].map(|leaf_bytes| {
        let plain = SstableOptions { compression: Compression::None, ..options() };
        let file = Arc::new(MemoryFile::of(&write_as(&cells, plain, |writer| writer.leaf_bytes = leaf_bytes)));
        let cache = Arc::new(BlockCache::new(1 << 20, 0));
        let table =
            Sstable::open(Arc::clone(&file) as Arc<dyn File>, Path::new(PATH), ID, &BlockCodecs::default(), cache);
        let table = Arc::new(table.unwrap());
        let mut reads = file.reads();
        let mut seek = |row: u32| {
            let mut cursor = cursor(&table, Direction::Forward);
            cursor.seek(format!("row{row:05}").as_bytes(), b"").unwrap();
            assert_eq!(OwnedCell::of(&cursor.cell().unwrap()), cells[row as usize]);
            file.reads() - std::mem::replace(&mut reads, file.reads())
        };
        // Far away, once more, and beside.
        let told = [1910, 1910, 1911, 0].map(&mut seek);
        assert_eq!(told, if leaf_bytes == 1 << 20 { [1, 0, 0, 1] } else { [2, 0, 0, 2] });
        // A leaf of other times is not looked into.
        for direction in [Direction::Forward, Direction::Reverse] {
            let time_range = TimeRange { min: Timestamp(5), max: Timestamp(6) };
            let options = ReadOptions { direction, time_range, caching: Caching::Bypass, packing: Packing::Cells };
            let before = file.reads();
            let mut cursor = SstableCursor::new(Arc::clone(&table), options);
            cursor.seek(b"row00700", b"").unwrap();
            assert!(cursor.cell().is_none());
            assert_eq!(file.reads(), before);
        }
        table.verify().unwrap();
        table.memory_bytes()
    });
    assert!(sizes[0] < sizes[2] / 2 && sizes[1] < sizes[2] / 10, "{sizes:?}");
}

/// Where a file is parted: between blocks, or between leaves where there are many.
#[test]
fn a_file_of_many_leaves_is_parted_between_them() {
    let cells: Vec<_> = (0..2000_u32).map(|row| OwnedCell::put(format!("row{row:05}"), b"q", 1, &[1; 100])).collect();
    let range = KeyRange { start: "row00200".into(), end: "row01900".into() };
    let table = |leaf_bytes| {
        let plain = SstableOptions { compression: Compression::None, ..options() };
        open(&write_as(&cells, plain, |writer| writer.leaf_bytes = leaf_bytes)).unwrap()
    };
    let parted = |leaf_bytes| {
        let table = table(leaf_bytes);
        let borders = table.borders_within(&range).unwrap();
        assert!(borders.is_sorted());
        (borders.len(), borders.iter().map(|(_, bytes)| bytes).sum::<u64>(), table.bytes_within(&range))
    };
    let (blocks, bytes, exact) = parted(1 << 20);
    assert!(bytes == exact && blocks > 40, "{blocks} of {bytes}");
    // Leaves across a border are looked into; those between are counted with what they take themselves.
    let (count, read, told) = parted(256);
    assert!(count == blocks && read == bytes && told > exact && told < exact / 10 * 11, "{count} of {read} and {told}");
    // So many leaves are not parted.
    let (leaves, read, told) = parted(1);
    assert!(leaves == blocks && read > exact && told > exact, "{leaves} of {read} and {told}");
    // Or else a region in a leaf would be split for ever.
    let narrow = KeyRange { start: "row00300".into(), end: "row00310".into() };
    let told = [256, 1 << 20].map(|leaf_bytes| table(leaf_bytes).bytes_within(&narrow));
    assert!(told[0] == told[1] && told[0] < 2 * 4200, "{told:?}");
}

/// Where all leaves reach into a time range and no block does, a reader sees from the next leaf's first block that it is beyond its row.
#[test]
fn s_scan_6_a_time_range_that_no_block_has_costs_no_walk_over_the_index() {
    let time = |row: u32| if (row / 20).is_multiple_of(2) { 1 } else { 1000 };
    let cells: Vec<_> =
        (0..2000_u32).map(|row| OwnedCell::put(format!("row{row:05}"), b"q", time(row), &[1; 200])).collect();
    let plain = SstableOptions { compression: Compression::None, ..options() };
    let file = Arc::new(MemoryFile::of(&write(&cells, plain)));
    let cache = Arc::new(BlockCache::new(0, 0));
    let shared = Arc::clone(&file) as Arc<dyn File>;
    let table = Arc::new(Sstable::open(shared, Path::new(PATH), ID, &BlockCodecs::default(), cache).unwrap());
    for direction in [Direction::Forward, Direction::Reverse] {
        let time_range = TimeRange { min: Timestamp(500), max: Timestamp(501) };
        let options = ReadOptions { direction, time_range, caching: Caching::Bypass, packing: Packing::Cells };
        let before = file.reads();
        let mut cursor = SstableCursor::new(Arc::clone(&table), options);
        cursor.seek(b"row01000", b"").unwrap();
        assert!(cursor.cell().is_none_or(|cell| cell.row != b"row01000"));
        assert!(file.reads() - before <= 5, "{}", file.reads() - before);
    }
}

/// A scan that keeps no blocks keeps leaves: else each row would cost one.
#[test]
fn s_perf_5_leaves_are_kept_where_blocks_are_not() {
    let bytes = write(&mixed_cells(), options());
    let reads = [Caching::IndexOnly, Caching::Bypass].map(|caching| {
        let file = Arc::new(MemoryFile::of(&bytes));
        let cache = Arc::new(BlockCache::new(1 << 20, 0));
        let shared = Arc::clone(&file) as Arc<dyn File>;
        let table = Arc::new(Sstable::open(shared, Path::new(PATH), ID, &BlockCodecs::default(), cache).unwrap());
        let opened = file.reads();
        for _ in 0..10 {
            let options = ReadOptions {
                direction: Direction::Forward,
                time_range: TimeRange::ALL,
                caching,
                packing: Packing::Cells,
            };
            SstableCursor::new(Arc::clone(&table), options).seek(b"row00200", b"").unwrap();
        }
        file.reads() - opened
    });
    assert_eq!(reads, [11, 20]);
}

/// Rows alike in qualifier and length of value keep neither but once a block.
#[test]
fn a_row_keeps_nothing_that_the_first_cell_of_its_block_has_too() {
    let bytes_of = |qualifier: &[u8]| {
        let cell = |row: u32| OwnedCell::put(row.to_be_bytes(), qualifier, 7, &[0; 8]);
        let cells: Vec<OwnedCell> = (0..1000_u32).map(cell).collect();
        let table = open(&write(&cells, SstableOptions { compression: Compression::None, ..options() })).unwrap();
        assert_eq!(read_all(&table, Direction::Forward).unwrap(), cells);
        table.block_figures().unwrap().iter().map(|block| block.bytes).sum::<u64>()
    };
    let blocks = bytes_of(b"q").div_ceil(4096);
    assert!(bytes_of(&[b'q'; 101]) <= bytes_of(b"q") + 200 * blocks);
}

#[test]
fn a_named_codec_lays_out_blocks_and_may_decline() {
    let mut codecs = BlockCodecs::default();
    codecs.register(Arc::new(Complement));
    let codec = codecs.find("COMPLEMENT").map(Arc::clone);
    let bytes = write(&mixed_cells(), SstableOptions { codec, ..options() });
    let table = open_with(&bytes, &codecs).unwrap();
    assert_eq!(read_all(&table, Direction::Forward).unwrap(), mixed_cells());
    assert_eq!(&*table.metadata().codec, "COMPLEMENT");
    assert_eq!(table.version, Version::V3, "block codecs know the image of version 1");
    table.verify().unwrap();
    let unknown = open(&bytes).unwrap_err();
    assert!(
        unknown.to_string().ends_with("blocks of encoding COMPLEMENT, which this program does not know"),
        "{unknown}"
    );
}

/// Turns every bit; declines every block of odd length; writes blocks of a length divisible by four wrongly.
#[derive(Debug)]
struct Complement;

impl BlockCodec for Complement {
    fn name(&self) -> &'static str {
        "COMPLEMENT"
    }

    fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend(image.iter().map(|byte| !byte));
        if image.len().is_multiple_of(4) {
            out[0] ^= 1;
        }
        image.len().is_multiple_of(2)
    }

    fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool {
        image.iter_mut().zip(stored).for_each(|(to, from)| *to = !from);
        stored.len() == image.len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// S-SCAN-6, S-SCAN-7, S-MAP-5: what was written comes back, in order, from both ends and from anywhere.
    #[test]
    fn cells_roundtrip_and_are_found(
        cells in proptest::collection::vec(any_cell(), 1..400),
        targets in proptest::collection::vec(any_cell(), 1..8),
        compress: bool,
        bloom in prop_oneof![Just(BloomFilter::None), Just(BloomFilter::Row), Just(BloomFilter::RowColumn)],
    ) {
        let cells = sorted(cells);
        let compression = if compress { Compression::Zstd } else { Compression::None };
        let table = open(&write(&cells, SstableOptions { bloom, compression, ..options() })).unwrap();
        let back = reversed(cells.clone());
        prop_assert_eq!(&read_all(&table, Direction::Forward).unwrap(), &cells);
        prop_assert_eq!(&read_all(&table, Direction::Reverse).unwrap(), &back);
        table.verify().unwrap();
        let mut forward = cursor(&table, Direction::Forward);
        let mut backward = cursor(&table, Direction::Reverse);
        for target in &targets {
            let at = cells.partition_point(|c| (&c.row, &c.qualifier) < (&target.row, &target.qualifier));
            forward.seek(&target.row, &target.qualifier).unwrap();
            prop_assert_eq!(&rest(&mut forward).unwrap(), &cells[at..]);
            let at = back.partition_point(|c| c.row > target.row);
            backward.seek(&target.row, b"").unwrap();
            prop_assert_eq!(&rest(&mut backward).unwrap(), &back[at..]);
        }
        for cell in &cells {
            prop_assert!(table.may_contain_row(&cell.row));
            prop_assert!(table.may_contain_column(&cell.row, &cell.qualifier));
        }
    }

    /// No bytes make a block panic, whatever checksum stands over them.
    #[test]
    fn any_bytes_as_a_block_are_read_or_refused(mut image in proptest::collection::vec(any::<u8>(), 0..200), rows in 0_u32..4, wide: bool) {
        let table_at = image.len();
        for row in 0..rows {
            image.extend_from_slice(&(16 + row * 8).to_le_bytes());
        }
        image.extend_from_slice(&(rows | u32::from(wide) << 31).to_le_bytes());
        image.extend_from_slice(&u32::try_from(table_at).unwrap().to_le_bytes());
        damage::walk_block(&image.into());
    }
}
