//! A wrong byte is never a wrong cell: bit flips, cuts, moved blocks, other versions, files under a wrong name.

use basalt_store::{BloomFilter, Compression, FamilyDescriptor};

use super::super::block::{BlockCursor, Next};
use super::super::format::Layout;
use super::super::remains::Remains;
use super::*;
use crate::loss::Loss;

/// A file of several blocks in about 3 kB; every section is there, the index in one.
fn small_file() -> (Vec<OwnedCell>, Vec<u8>) {
    small_file_of(1 << 20)
}

fn small_file_of(leaf_bytes: usize) -> (Vec<OwnedCell>, Vec<u8>) {
    let mut cells = Vec::new();
    for row in 0..14_u32 {
        for column in 0..4_u8 {
            cells.push(OwnedCell::put(format!("row{row:02}"), &[column], 1000 + u64::from(row), &[column; 500]));
        }
    }
    let mut tombstone = OwnedCell::put("row03", b"", 2000, b"");
    tombstone.kind = CellKind::DeleteFamily;
    cells.push(tombstone);
    let cells = sorted(cells);
    let bytes = write_as(&cells, options(), |writer| writer.leaf_bytes = leaf_bytes);
    (cells, bytes)
}

/// All that a reader may learn of a file: cells both ways, and which rows the filter excludes.
fn learn(bytes: &[u8]) -> Result<Vec<OwnedCell>> {
    let table = open(bytes)?;
    let mut cells = read_all(&table, Direction::Forward)?;
    cells.extend(read_all(&table, Direction::Reverse)?);
    cells.retain(|cell| table.may_contain_column(&cell.row, &cell.qualifier));
    Ok(cells)
}

fn assert_corrupt<T: std::fmt::Debug>(result: Result<T>, how: &str) {
    match result {
        Err(Error::Corrupt { file, .. } | Error::Version { file, .. }) => assert_eq!(file, Path::new(PATH)),
        other => panic!("{how}: {other:?}"),
    }
}

/// reliability.md row 6: every bit of every byte is under a checksum or compared with a constant. No answer depends on the filter: without
/// it all is read, and its damage is told by whoever proves the file.
#[test]
fn every_flipped_bit_is_noticed() {
    let (cells, bytes) = small_file();
    flip_every_bit(cells, &bytes);
}

#[test]
fn every_flipped_bit_of_a_file_of_several_leaves_is_noticed() {
    let (cells, bytes) = small_file_of(100);
    assert!(matches!(open(&bytes).unwrap().index, BlockIndex::Root(_)));
    flip_every_bit(cells, &bytes);
}

fn flip_every_bit(cells: Vec<OwnedCell>, bytes: &[u8]) {
    let table = open(bytes).unwrap();
    assert!(table.metadata().blocks_count > 2);
    let all = [cells.clone(), reversed(cells)].concat();
    assert_eq!(learn(bytes).unwrap(), all);
    let filter = table.footer.bloom_offset..table.footer.metadata_offset;
    assert!(!filter.is_empty());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let how = format!("bit {bit} of {}", bytes.len() * 8);
        if !filter.contains(&(bit as u64 / 8)) {
            assert_corrupt(learn(&damaged), &how);
            continue;
        }
        assert_eq!(learn(&damaged).unwrap(), all, "{how}");
        let table = open(&damaged).unwrap();
        assert!(table.may_contain_row(b"row055") && !table.may_contain_row(b"row99"), "{how}");
        assert_corrupt(table.check_filter(), &how);
        assert_corrupt(table.verify(), &how);
    }
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let (_, bytes) = small_file();
    for length in 0..bytes.len() {
        assert_corrupt(open(&bytes[..length]), &format!("cut at {length}"));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_corrupt(open(&longer), "a byte more");
}

/// What can be had of a file of so many bytes that does not open; `None` where nothing tells its layout.
fn remains(bytes: &[u8], file_bytes: u64) -> Option<(Vec<OwnedCell>, Vec<Loss>)> {
    let (file, family) = (Arc::new(MemoryFile::of(bytes)), FamilyDescriptor::new(FAMILY));
    let found =
        Remains::find(file, Path::new(PATH), (ID, file_bytes), Some(&family), &BlockCodecs::default()).unwrap()?;
    let mut taken = Vec::new();
    let lost = found.salvage(&mut |cell| {
        taken.push(OwnedCell::of(cell));
        Ok(())
    });
    Some((taken, lost.unwrap()))
}

/// The data blocks of a file, each with the range of its cells.
fn blocks_of(bytes: &[u8]) -> Vec<(Range<u64>, Range<usize>)> {
    let (table, mut cells) = (open(bytes).unwrap(), 0);
    let figures = table.block_figures().unwrap().into_iter();
    let range = |block: BlockFigures| {
        let start = cells;
        cells += usize::try_from(block.cells_count).unwrap();
        (block.offset..block.offset + block.bytes, start..cells)
    };
    figures.map(range).collect()
}

/// By its frames alone, and also where the index is damaged beside.
#[test]
fn of_a_file_that_does_not_open_no_block_that_is_whole_is_lost() {
    let (cells, bytes) = small_file();
    let (file_bytes, blocks) = (bytes.len() as u64, blocks_of(&bytes));
    let index_at = usize::try_from(blocks.last().unwrap().0.end).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        for index_too in [false, true] {
            if index_too {
                damaged[index_at + 3 * usize::from(bit % 5 != 0)] ^= 2;
            }
            let (taken, lost) = remains(&damaged, file_bytes).unwrap();
            let hit = blocks.iter().find(|(place, _)| place.contains(&(bit as u64 / 8)));
            let (place, gone) = hit.cloned().unwrap_or((0..0, 0..0));
            assert_eq!(taken, [&cells[..gone.start], &cells[gone.end..]].concat(), "bit {bit}");
            let told: Vec<_> = lost.iter().map(|loss| (loss.offset, loss.bytes, loss.cells_count)).collect();
            let expected = hit.map(|_| (place.start, place.end - place.start, Some(gone.len() as u64)));
            assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "bit {bit}");
        }
    }
}

#[test]
fn of_a_file_that_is_cut_no_block_that_is_whole_is_lost() {
    let (cells, bytes) = small_file();
    let (file_bytes, blocks) = (bytes.len() as u64, blocks_of(&bytes));
    let index_bytes = open(&bytes).unwrap().footer.bloom_offset;
    for length in 0..bytes.len() {
        let Some((taken, lost)) = remains(&bytes[..length], file_bytes) else {
            assert!(length < HEADER_BYTES, "cut at {length}");
            continue;
        };
        let whole = blocks.iter().take_while(|(place, _)| place.end <= length as u64).last();
        let (end, count) = whole.map_or((HEADER_BYTES as u64, 0), |(place, cells)| (place.end, cells.end));
        assert_eq!(taken, cells[..count], "cut at {length}");
        let told: u64 = lost.iter().map(|loss| loss.bytes).sum();
        let expected = if length as u64 >= index_bytes { 0 } else { file_bytes - FOOTER_BYTES as u64 - end };
        assert_eq!(told, expected, "cut at {length}: {lost:?}");
        assert!(lost.iter().all(|loss| loss.cells_count.is_none()), "cut at {length}");
    }
}

/// An intact block at another offset, or of another file, has a checksum that does not fit.
#[test]
fn a_block_at_the_wrong_place_is_noticed() {
    // Incompressible cells of one shape: all blocks have one length.
    let cells: Vec<_> = (0..40_u8).map(|row| OwnedCell::put([b'r', row], b"q", 1000, &[row; 1200])).collect();
    let plain = || SstableOptions { compression: Compression::None, bloom: BloomFilter::None, ..options() };
    let bytes = write(&cells, plain());
    let table = open(&bytes).unwrap();
    let blocks = table.block_figures().unwrap();
    let (first, second) = (&blocks[1], &blocks[2]);
    assert_eq!(first.bytes, second.bytes);
    let range = |block: &BlockFigures| {
        let [start, end] = [block.offset, block.offset + block.bytes].map(|offset| usize::try_from(offset).unwrap());
        start..end
    };
    let mut swapped = bytes.clone();
    swapped[range(first)].copy_from_slice(&bytes[range(second)]);
    swapped[range(second)].copy_from_slice(&bytes[range(first)]);
    assert_corrupt(learn(&swapped), "swapped");
    assert_corrupt(open(&swapped).unwrap().verify(), "swapped, verified");

    let other = write(&cells, SstableOptions { file_id: FileId(8), ..plain() });
    let mut stale = bytes.clone();
    stale[range(first)].copy_from_slice(&other[range(first)]);
    assert_corrupt(learn(&stale), "of another file");
    assert_corrupt(open(&other), "another file under this name");
}

#[test]
fn another_version_is_told_by_its_number() {
    let (_, mut bytes) = small_file();
    bytes[8] = 9;
    assert!(matches!(open(&bytes).unwrap_err(), Error::Version { found: 9, supported: 4, .. }));
}

/// A section whose checksum is right and whose layout is not, as a bug of a writer would leave.
#[test]
fn a_malformed_section_under_a_right_checksum_is_refused() {
    let (_, bytes) = small_file();
    let table = open(&bytes).unwrap();
    let block = &table.block_figures().unwrap()[0];
    let [start, end] = [block.offset, block.offset + block.bytes].map(|offset| usize::try_from(offset).unwrap());
    let place = table.place(block.offset);
    let frame = Frame::open(&place, SectionKind::Data, &bytes[start..end]).unwrap();
    let image = codec::decode(&place, &frame, None).unwrap();
    for byte in 0..image.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = image.clone();
            damaged[byte] ^= mask;
            walk_block(&damaged.into());
        }
    }
}

/// A root and a leaf that tell different things, under checksums that fit.
#[test]
fn a_leaf_that_is_not_what_the_root_tells_is_refused() {
    let cells = many_blocks();
    let plain = SstableOptions { compression: Compression::None, ..options() };
    let bytes = write_as(&cells, plain, |writer| writer.leaf_bytes = 1);
    let read = open(&bytes).unwrap();
    let blocks = read.block_figures().unwrap();
    let leaf = blocks[0].offset + blocks[0].bytes..blocks[1].offset;
    // Of its only block: the count of cells, which the root does not have; then a time, the first row, the last row.
    for (byte, told) in [(8, "number of cells"), (12, "leaf of the"), (39, "leaf of the"), (45, "leaf of the")] {
        let table = open(&bytes).unwrap();
        rewrite_section(&table, SectionKind::IndexLeaf, leaf.clone(), |image| {
            assert_eq!(image[34..37], *b"row");
            image[byte] ^= 1;
        });
        let damage = read_all(&table, Direction::Forward).unwrap_err().to_string();
        assert!(damage.contains(told), "byte {byte}: {damage}");
        assert!(table.verify().is_err());
    }
}

/// A damaged leaf costs the rows of its blocks, and no read that ends before it.
#[test]
fn rows_before_a_damaged_leaf_are_read() {
    let cells = many_blocks();
    let plain = SstableOptions { compression: Compression::None, ..options() };
    let bytes = write_as(&cells, plain, |writer| writer.leaf_bytes = 1);
    let table = open(&bytes).unwrap();
    let blocks = table.block_figures().unwrap();
    let mut damaged = bytes.clone();
    damaged[usize::try_from(blocks[1].offset + blocks[1].bytes).unwrap() + 20] ^= 4;
    let table = open(&damaged).unwrap();
    let mut reverse = cursor(&table, Direction::Reverse);
    reverse.seek(&blocks[0].last_row, b"").unwrap();
    let before = cells.iter().filter(|cell| cell.row <= blocks[0].last_row).cloned().collect();
    assert_eq!(rest(&mut reverse).unwrap(), reversed(before));
    let mut forward = cursor(&table, Direction::Forward);
    forward.seek(&blocks[2].last_row, b"").unwrap();
    let behind: Vec<_> = cells.iter().filter(|cell| cell.row >= blocks[2].last_row).cloned().collect();
    assert_eq!(rest(&mut forward).unwrap(), behind);
    assert_corrupt(read_all(&table, Direction::Reverse), "reverse, to the end");
}

/// A frame tells how long it is; a leaf is never long.
#[test]
fn a_leaf_that_is_too_long_is_refused() {
    let cells: Vec<_> = (0..100_u8).map(|row| OwnedCell::put(vec![row; ROW_BYTES_MAX], b"q", 1, b"v")).collect();
    let read = |leaf_bytes| {
        let bytes = write_as(&cells, options(), |writer| writer.leaf_bytes = leaf_bytes);
        let read = read_all(&open(&bytes).unwrap(), Direction::Forward);
        read.map(|read| assert!(read == cells)).map_err(|damage| damage.to_string())
    };
    assert_eq!(read(1 << 19), Ok(()));
    assert!(read(5 << 18).unwrap_err().contains("length of a leaf"));
}

/// One row a cell, and a last row over several blocks.
fn many_blocks() -> Vec<OwnedCell> {
    let mut cells: Vec<_> =
        (0..40_u8).map(|row| OwnedCell::put(format!("row{row:03}"), b"q", 1000, &[row; 500])).collect();
    for column in 0..60_u32 {
        cells.push(OwnedCell::put("wide", &column.to_be_bytes(), 1000, &[1; 500]));
    }
    sorted(cells)
}

/// A bug of a writer, or of memory, under a checksum that fits: what of a file can be had is had, and can be written again.
#[test]
fn a_block_whose_cells_are_not_in_order_costs_itself_and_no_more() {
    let cells = many_blocks();
    let key_of = |row: u8| format!("row{row:03}").into_bytes();
    // Which block, and what becomes of it; it is told the block's first row as a number, and the number of its cells.
    let check = |block: usize, what: &str, edit: &dyn Fn(&mut [u8], u8, u8)| {
        let plain = SstableOptions { compression: Compression::None, ..options() };
        let table = open(&write(&cells, plain)).unwrap();
        let blocks = table.block_figures().unwrap();
        assert!(blocks.len() > 6, "{}", blocks.len());
        let counts: Vec<_> = blocks.iter().map(|block| usize::try_from(block.cells_count).unwrap()).collect();
        let start: usize = counts[..block].iter().sum();
        rewrite_block(&table, block, |image| {
            edit(image, u8::try_from(start).unwrap(), u8::try_from(counts[block]).unwrap());
        });
        let damage = table.verify().unwrap_err().to_string();
        let mut taken = Vec::new();
        let lost = table.salvage(&mut |cell| {
            taken.push(OwnedCell::of(cell));
            Ok(())
        });
        let lost: Vec<_> = lost.unwrap().into_iter().map(|loss| (loss.offset, loss.damage.to_string())).collect();
        assert_eq!(lost.len(), 1, "{what}: {lost:?}");
        assert!(lost[0].0 == blocks[block].offset && lost[0].1.contains(what), "{lost:?}, {damage}");
        assert_eq!(taken, [&cells[..start], &cells[start + counts[block]..]].concat(), "{what}");
        open(&write(&taken, options())).unwrap().verify().unwrap();
    };
    // A row twice.
    check(1, "cell order", &|image, first, _| {
        let at = rest_of_key(image, &key_of(first), &key_of(first + 2));
        let rest = 1 + usize::from(first % 10 > 7);
        image[at + rest - 1] = key_of(first + 1)[5];
    });
    // In order, but behind all later blocks.
    check(1, "keys in the block index", &|image, first, count| {
        let at = rest_of_key(image, &key_of(first), &key_of(first + count - 1));
        image[at] = b'z';
    });
    check(1, "last readable position", &|image, first, _| {
        let at = rest_of_key(image, &key_of(first), &key_of(first + 1));
        let rest = 1 + usize::from(first % 10 == 9);
        image[at + rest] |= 0x80;
    });
    // In order, but before the end of the block before.
    let plain = SstableOptions { compression: Compression::None, ..options() };
    let wide = open(&write(&cells, plain)).unwrap().block_figures().unwrap().len() - 2;
    check(wide, "cell order", &|image, first, _| {
        let column = [&[4][..], &u32::from(first - 40).to_be_bytes()].concat();
        let at = image.windows(5).position(|window| window == column).unwrap();
        image[at + 4] = 0;
    });
}

/// A payload that decodes to fewer or more bytes than the frame says, under a right checksum.
#[test]
fn a_payload_of_another_length_than_promised_is_refused() {
    let place = Place { path: Path::new(PATH), file_id: ID, offset: 24 };
    let image = [7; 1000];
    for (encoder, encoding) in [(true, "zstd"), (false, "plain")] {
        let mut encoder = codec::Encoder::new(None, encoder);
        let frame = encoder.encode_block(&image);
        assert_eq!(codec::decode(&place, &frame, None).unwrap(), image);
        for raw_bytes in [0, 999, 1001] {
            assert_corrupt(codec::decode(&place, &Frame { raw_bytes, ..frame }, None), encoding);
        }
    }
    let unknown = Frame { encoding: 0, raw_bytes: 1000, payload: &image };
    assert_corrupt(codec::decode(&place, &unknown, None), "encoding 0");
}

/// Whatever the bytes: no panic, an end, and every answer within the image.
pub(super) fn walk_block(image: &Bytes) {
    let most = image.len();
    for layout in [Layout::V1, Layout::V2] {
        if let Ok(block) = Block::parse(image.clone(), layout) {
            walk(block, most);
        }
    }
}

fn walk(block: Block, most: usize) {
    assert!(block.cells_end() <= most);
    if block.find_row(b"row3").is_err() {
        return;
    }
    let Ok(mut cursor) = BlockCursor::at_row(block, 0, Vec::new()) else { return };
    let mut cells_count = 1;
    while let Ok(Next::InRow | Next::NewRow) = cursor.next() {
        cells_count += 1;
        assert!(cells_count <= most);
    }
}
