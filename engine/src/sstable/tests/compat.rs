//! Files of earlier days stay readable. `tests/compat/v1/000007.sst` was written by the first version of the format.

use super::*;

const V1: &[u8] = include_bytes!("../../../../tests/compat/v1/000007.sst");

/// What the file holds: a row of each kind of cell, a row of many versions, rows of two blocks.
fn cells() -> Vec<OwnedCell> {
    let mut cells = vec![];
    let kinds = [CellKind::Put, CellKind::Delete, CellKind::DeleteColumn];
    for (kind, seq) in kinds.into_iter().zip(1..) {
        let value: &[u8] = if kind.is_tombstone() { b"" } else { b"value" };
        cells.push(OwnedCell { kind, seq, ..OwnedCell::put("kinds", b"qualifier", 1_700_000_000_000, value) });
    }
    for kind in [CellKind::DeleteFamily, CellKind::DeleteFamilyVersion] {
        cells.push(OwnedCell { kind, ..OwnedCell::put("kinds", b"", 1_700_000_000_000, b"") });
    }
    for time in 0..50 {
        cells.push(OwnedCell::put("versions", b"", time * 1000, &time.to_be_bytes()));
    }
    for row in 0..30_u8 {
        cells.push(OwnedCell::put([&b"blocks"[..], &[row]].concat(), &[row, 1], u64::MAX >> 1, &[row; 200]));
    }
    sorted(cells)
}

#[test]
fn a_file_of_version_1_reads_as_it_was_written() {
    let table = open(V1).unwrap();
    assert_eq!(table.metadata().blocks_count, 2);
    assert_eq!(read_all(&table, Direction::Forward).unwrap(), cells());
    assert_eq!(read_all(&table, Direction::Reverse).unwrap(), reversed(cells()));
    table.verify(|_| ()).unwrap();
    assert!(cells().iter().all(|cell| table.may_contain_column(&cell.row, &cell.qualifier)));
    assert!(!table.may_contain_row(b"blocks-none"));
}

/// While version 1 is the newest, writing gives the very bytes; only the sizes of zstd's output may differ between its
/// releases, so the data is stored plainly here and the sections after it are left out.
#[test]
fn what_is_written_today_is_version_1() {
    let options = SstableOptions { compression: Compression::None, ..options() };
    let written = write(&cells(), options);
    let table = open(V1).unwrap();
    let blocks_end = usize::try_from(table.index.blocks_end()).unwrap();
    assert!(written[..blocks_end] == V1[..blocks_end]);
}

/// How the file was made, once: `cargo test -p basalt-engine write_version_1 -- --ignored`.
#[test]
#[ignore = "writes the fixture of version 1, which is never written again"]
fn write_version_1() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/compat/v1/000007.sst");
    std::fs::write(path, write(&cells(), SstableOptions { compression: Compression::None, ..options() })).unwrap();
}
