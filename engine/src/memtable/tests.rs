use std::sync::Arc;

use basalt_store::{
    CellKind, CellRef, Packed, PackedPoint, PackedRow, PackedRows, Packing, RowHandle, SeqNo, Timestamp,
};

use super::family::TAIL_CELLS_MAX;
use super::stamps::STAMP_BYTES;
use super::*;
use crate::io::{Rng, SplitMix};
use crate::merge::{CellSource, Direction, Step};
use crate::sstable::BlockCodec;

const FAMILY: FamilyId = FamilyId(1);

type Held = (Vec<u8>, Vec<u8>, u64, u8, u64, Vec<u8>);

fn held(cell: &CellRef<'_>) -> Held {
    (
        cell.row.to_vec(),
        cell.qualifier.to_vec(),
        u64::MAX - cell.timestamp.0,
        u8::MAX - cell.kind.code(),
        u64::MAX - cell.seq.0,
        cell.value.to_vec(),
    )
}

fn insert(memtable: &Memtable, row: &MemRow<'_>) {
    let mut writer = memtable.insert();
    writer.rows(std::slice::from_ref(row));
    writer.finish();
}

fn drain(cursor: &mut MemtableCursor) -> Vec<Held> {
    let mut all = Vec::new();
    while let Some(cell) = cursor.cell() {
        all.push(held(&cell));
        cursor.advance().unwrap();
    }
    all
}

fn all(memtable: Memtable) -> Vec<Held> {
    let mut cursor = cursor(&Arc::new(memtable), Direction::Forward, u64::MAX);
    cursor.rewind().unwrap();
    drain(&mut cursor)
}

fn cursor(memtable: &Arc<Memtable>, direction: Direction, read_point: u64) -> MemtableCursor {
    MemtableCursor::new(Arc::clone(memtable), FAMILY, "f".into(), direction, read_point)
}

/// Columns of four bytes, of which so many stand for one offset after the other, and values of one, which is the word.
#[derive(Debug)]
struct Offsets(u32);

impl BlockCodec for Offsets {
    fn name(&self) -> &'static str {
        "offsets"
    }

    fn encode_into(&self, _image: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    fn decode_into(&self, _stored: &[u8], _image: &mut [u8]) -> bool {
        false
    }

    fn point(&self, qualifier: &[u8], value: &[u8]) -> Option<PackedPoint> {
        let offset_ms = u32::from_be_bytes(qualifier.try_into().ok()?) / self.0;
        Some(PackedPoint { offset_ms, word: value[0].into(), is_float: false })
    }
}

/// How many cells of the row that it stands on it walks; then it stands on the next.
fn unpacked(rows: &mut MemtableRowCursor) -> usize {
    let row = rows.row().unwrap().to_vec();
    rows.unpack().unwrap();
    let mut count = 0;
    while let Some(cell) = rows.cell() {
        assert_eq!(cell.row, row);
        count += 1;
        let step = rows.advance().unwrap();
        assert_eq!(step == Step::SameRow, rows.cell().is_some(), "{step:?}");
    }
    count
}

/// By columns and then by cells, from any row on: what is seen at the read point, and by columns only if that is all there is.
#[test]
fn rows_come_by_columns_up_to_the_read_point() {
    let (memtable, mut last) = (Arc::new(Memtable::new(Arc::default())), 0);
    // The cells of row 10 are the last ones that come.
    for row in (0..=300_u32).filter(|row| *row != 10).chain([10]) {
        for offset in 0..=row % 40 {
            last += 1;
            let (qualifier, timestamp) = (offset.to_be_bytes(), Timestamp(offset.into()));
            let (family, kind) = (FAMILY, CellKind::Put);
            let cell = LoggedCell { family, kind, timestamp, qualifier: &qualifier, value: b"v" };
            let key = row.to_be_bytes();
            insert(&memtable, &MemRow { key: &key, handle: None, sequence: SeqNo(last), cells: &[cell] });
        }
    }
    let all = |of_row_10| move |row: u32| if row == 10 { of_row_10 } else { row as usize % 40 + 1 };
    for (read_point, of_row_10) in [(last, 11), (last - 1, 10), (last - 11, 0)] {
        let (expected, whole) = (all(of_row_10), all(11));
        for from in [0, 9, 10, 11, 299, 301_u32] {
            let cells = cursor(&memtable, Direction::Forward, read_point);
            let mut rows = MemtableRowCursor::new(cells, Arc::new(Offsets(1)), false);
            let key = from.to_be_bytes();
            if from == 0 { rows.rewind() } else { rows.seek(&key, b"") }.unwrap();
            let (mut packed, mut found) = (PackedRows::default(), Vec::new());
            while let Some(row) = rows.row().map(|row| u32::from_be_bytes(row.try_into().unwrap())) {
                assert!(rows.cell().is_none());
                found.push(row);
                for packing in [Packing::Points, Packing::Newest] {
                    assert_eq!(rows.pack(packing, |_, _| false, &mut packed), 0);
                }
                let is_all = |oldest: Timestamp, newest: Timestamp| (oldest.0, newest.0) == (0, (row % 40).into());
                let count = rows.pack(Packing::Points, is_all, &mut packed);
                assert_eq!(count, if expected(row) == whole(row) { whole(row) } else { 0 });
                // Where the newest is not seen, or not kept, all are looked at.
                let is_newest = |oldest: Timestamp, newest: Timestamp| oldest == newest;
                let mut newest = PackedRows::default();
                assert_eq!(rows.pack(Packing::Newest, is_newest, &mut newest), count);
                let (offsets_ms, words) = (&[row % 40][..], &[u64::from(b'v')][..]);
                let only = Packed::Points(PackedRow { offsets_ms, words, is_float: false });
                assert_eq!(newest.row(0), (count > 0).then_some(only));
                assert_eq!(unpacked(&mut rows), expected(row));
            }
            assert_eq!(found, (from..=300).filter(|row| expected(*row) > 0).collect::<Vec<_>>());
            assert_eq!(packed.len(), found.iter().filter(|row| expected(**row) == whole(**row)).count());
        }
    }
    let mut none = MemtableRowCursor::new(cursor(&memtable, Direction::Forward, 0), Arc::new(Offsets(1)), false);
    none.rewind().unwrap();
    assert_eq!(none.row(), None);
}

/// What was written together shares a time and numbers, and counts them once.
#[test]
fn a_time_of_its_own_takes_memory_of_its_own() {
    let bytes_with = |times: [u64; 3]| {
        let memtable = Memtable::new(Arc::default());
        let cell_at = |(timestamp, qualifier): (u64, &'static [u8])| {
            let (family, kind, timestamp) = (FAMILY, CellKind::Put, Timestamp(timestamp));
            LoggedCell { family, kind, timestamp, qualifier, value: b"v" }
        };
        let cells = times.into_iter().zip([&b"a"[..], b"b", b"c"]).map(cell_at).collect::<Vec<_>>();
        insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(1), cells: &cells });
        memtable.bytes()
    };
    assert_eq!(bytes_with([1, 2, 3]) - bytes_with([1, 1, 1]), 2 * STAMP_BYTES);
}

/// Two qualifiers at one instant: which of them is meant takes a look at both.
#[test]
fn the_newest_point_is_none_alone_where_another_is_at_its_instant() {
    for (offsets, expected) in
        [(vec![7_u32], 1), (vec![2, 4, 6], 3), (vec![1, 2, 3], 0), (vec![2, 3], 0), (vec![3, 2], 0)]
    {
        let memtable = Arc::new(Memtable::new(Arc::default()));
        for (sequence, offset) in (1..).zip(&offsets) {
            let (family, kind, qualifier) = (FAMILY, CellKind::Put, offset.to_be_bytes());
            let cell = LoggedCell { family, kind, timestamp: Timestamp(1), qualifier: &qualifier, value: b"v" };
            insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(sequence), cells: &[cell] });
        }
        let cells = cursor(&memtable, Direction::Forward, u64::MAX);
        let mut rows = MemtableRowCursor::new(cells, Arc::new(Offsets(2)), true);
        rows.seek(b"r", b"").unwrap();
        let packed = rows.pack(Packing::Newest, |_, _| true, &mut PackedRows::default());
        assert_eq!(packed, expected, "{offsets:?}");
    }
}

/// Writers wait as long as a row is looked at.
#[test]
fn a_very_long_row_comes_as_cells() {
    let memtable = Arc::new(Memtable::new(Arc::default()));
    for offset in 1..=8193_u32 {
        let (family, kind, qualifier) = (FAMILY, CellKind::Put, offset.to_be_bytes());
        let cell = LoggedCell { family, kind, timestamp: Timestamp(1), qualifier: &qualifier, value: b"v" };
        insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(offset.into()), cells: &[cell] });
        if offset < 8191 {
            continue;
        }
        let cells = cursor(&memtable, Direction::Forward, u64::MAX);
        let mut rows = MemtableRowCursor::new(cells, Arc::new(Offsets(1)), true);
        rows.seek(b"r", b"").unwrap();
        let count = offset as usize;
        let packed = rows.pack(Packing::Points, |_, _| true, &mut PackedRows::default());
        assert_eq!((packed, unpacked(&mut rows)), (if count > 8192 { 0 } else { count }, count));
    }
}

/// Within a row from a column on, and behind the row where there is none.
#[test]
fn rows_that_are_sought_by_a_column_are_cells() {
    let (memtable, expected) = filled(3, 2000);
    let cells = cursor(&memtable, Direction::Forward, u64::MAX);
    let mut rows = MemtableRowCursor::new(cells, Arc::new(Offsets(1)), false);
    for (row, qualifier) in [(1, 20_u64), (1, 300), (3, 5), (3, 7), (2, 399), (4, 1000), (1, 1000)] {
        let (row, qualifier) = ([b'r', row], qualifier.to_be_bytes());
        rows.seek(&row, &qualifier).unwrap();
        let next = expected.iter().find(|cell| (&cell.0[..], &cell.1[..]) >= (&row[..], &qualifier[..]));
        assert_eq!(rows.row(), next.map(|cell| &cell.0[..]));
        let is_within = next.is_some_and(|cell| cell.0 == row);
        assert_eq!(rows.cell().map(|cell| held(&cell)).as_ref(), next.filter(|_| is_within));
    }
}

/// Random cells: few rows with many cells each, out of order, so that runs split.
fn filled(seed: u64, cells: u64) -> (Arc<Memtable>, Vec<Held>) {
    let mut rng = SplitMix::new(seed);
    let memtable = Arc::new(Memtable::new(Arc::default()));
    let mut expected = Vec::new();
    for sequence in 1..=cells {
        let key = vec![b'r', rng.below(5).to_le_bytes()[0]];
        let qualifier = rng.below(400).to_be_bytes();
        let kind = if rng.chance(1, 10) { CellKind::DeleteColumn } else { CellKind::Put };
        let value = vec![7; usize::try_from(rng.below(60)).unwrap()];
        let timestamp = Timestamp(rng.below(4));
        let cell = LoggedCell { family: FAMILY, kind, timestamp, qualifier: &qualifier, value: &value };
        insert(&memtable, &MemRow { key: &key, handle: None, sequence: SeqNo(sequence), cells: &[cell] });
        expected.push(held(&CellRef {
            row: &key,
            family: b"f",
            qualifier: &qualifier,
            timestamp,
            kind,
            seq: SeqNo(sequence),
            value: &value,
        }));
    }
    expected.sort();
    (memtable, expected)
}

#[test]
fn cells_come_in_cell_order_up_to_the_read_point() {
    for seed in 0..4 {
        let (memtable, expected) = filled(seed, 6000);
        for read_point in [0, 1, 3000, u64::MAX] {
            let seen: Vec<_> = expected.iter().filter(|cell| u64::MAX - cell.4 <= read_point).cloned().collect();
            let whole = cursor(&memtable, Direction::Forward, read_point);
            for mut forward in [whole, cursor(&memtable, Direction::Forward, read_point).of_first_cells()] {
                forward.rewind().unwrap();
                assert_eq!(drain(&mut forward), seen);
            }
            let mut rows: Vec<_> = seen.chunk_by(|a, b| a.0 == b.0).collect();
            rows.reverse();
            let mut reverse = cursor(&memtable, Direction::Reverse, read_point);
            reverse.rewind().unwrap();
            assert_eq!(drain(&mut reverse), rows.concat());
        }
    }
}

/// Of a few rows and of many, read whenever: a full tail, a half full one, none.
#[test]
fn readers_see_what_is_in_no_row_yet() {
    for rows in [3, 5000] {
        let (mut rng, memtable) = (SplitMix::new(rows), Arc::new(Memtable::new(Arc::default())));
        let (mut expected, mut most) = (Vec::new(), 0);
        for sequence in 1..=3 * TAIL_CELLS_MAX as u64 {
            let (key, qualifier) = (rng.below(rows).to_be_bytes(), sequence.to_be_bytes());
            let (timestamp, kind, seq, value) = (Timestamp(7), CellKind::Put, SeqNo(sequence), &b"v"[..]);
            let cell = LoggedCell { family: FAMILY, kind, timestamp, qualifier: &qualifier, value };
            let handle = std::num::NonZeroU64::new(u64::from_be_bytes(key) + 1).map(RowHandle);
            insert(&memtable, &MemRow { key: &key, handle, sequence: seq, cells: &[cell] });
            let cell = CellRef { row: &key, family: b"f", qualifier: &qualifier, timestamp, kind, seq, value };
            expected.push(held(&cell));
            let waiting = memtable.read_unsettled()[0].tail.len();
            assert!(waiting < TAIL_CELLS_MAX);
            most = most.max(waiting);
            if rng.chance(1, 3000) || sequence == 3 * TAIL_CELLS_MAX as u64 {
                let read_point = sequence - rng.below(2);
                let mut cursor = cursor(&memtable, Direction::Forward, read_point);
                cursor.rewind().unwrap();
                let mut seen = expected[..usize::try_from(read_point).unwrap()].to_vec();
                seen.sort();
                assert_eq!(drain(&mut cursor), seen);
                assert!(memtable.read_unsettled()[0].tail.is_empty());
            }
        }
        assert!(most > TAIL_CELLS_MAX / 4, "{most}");
    }
}

#[test]
fn a_seek_finds_the_first_cell_not_before_the_column() {
    let (memtable, expected) = filled(9, 3000);
    let mut rng = SplitMix::new(1);
    let mut kept = cursor(&memtable, Direction::Forward, u64::MAX);
    let mut first = cursor(&memtable, Direction::Forward, u64::MAX).of_first_cells();
    for _ in 0..300 {
        let row = vec![b'r', rng.below(7).to_le_bytes()[0]];
        let qualifier = if rng.chance(1, 3) { Vec::new() } else { rng.below(450).to_be_bytes().to_vec() };
        let from = expected.partition_point(|cell| (&cell.0, &cell.1) < (&row, &qualifier));
        kept.seek(&row, &qualifier).unwrap();
        assert_eq!(kept.cell().map(|cell| held(&cell)), expected.get(from).cloned());
        first.seek(&row, &qualifier).unwrap();
        assert_eq!(first.cell().map(|cell| held(&cell)), expected.get(from).cloned());
        let mut one = cursor(&memtable, Direction::Forward, u64::MAX).of_one_row(false);
        one.seek(&row, &qualifier).unwrap();
        let rest: Vec<_> = expected[from..].iter().filter(|cell| cell.0 == row).cloned().collect();
        assert_eq!(drain(&mut one), rest);
    }
}

#[test]
fn the_later_of_two_cells_with_one_address_and_number_stays() {
    let memtable = Arc::new(Memtable::new(Arc::default()));
    assert!(memtable.is_empty());
    let cell =
        |value| LoggedCell { family: FAMILY, kind: CellKind::Put, timestamp: Timestamp(5), qualifier: b"q", value };
    insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(3), cells: &[cell(b"old"), cell(b"new")] });
    let mut cursor = cursor(&memtable, Direction::Forward, u64::MAX);
    cursor.rewind().unwrap();
    assert_eq!(drain(&mut cursor).into_iter().map(|cell| cell.5).collect::<Vec<_>>(), [b"new"]);
    assert_eq!(memtable.first_sequence(), Some(3));
    assert!(memtable.bytes() > 0);
}

/// The same in a row that is there, whose cells wait together for their places: small ones, and those whose bytes lie elsewhere.
#[test]
fn the_later_of_two_such_cells_stays_where_both_wait_for_their_row() {
    let cell = |qualifier, value| {
        let (family, kind, timestamp) = (FAMILY, CellKind::Put, Timestamp(5));
        LoggedCell { family, kind, timestamp, qualifier, value }
    };
    let (small, long) = (&b"small"[..], &[7; 40][..]);
    for (old, new) in [(&b"old"[..], small), (small, long), (long, small), (&[8; 40], long)] {
        let memtable = Arc::new(Memtable::new(Arc::default()));
        let rows = [&[cell(b"a", b"1")][..], &[cell(b"q", old), cell(b"q", new)], &[cell(b"b", b"2")]];
        for (sequence, cells) in (1..).zip(rows) {
            insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(sequence), cells });
        }
        assert_eq!(memtable.read_unsettled()[0].tail.len(), 3);
        let mut cursor = cursor(&memtable, Direction::Forward, u64::MAX);
        cursor.rewind().unwrap();
        assert_eq!(drain(&mut cursor).into_iter().map(|cell| cell.5).collect::<Vec<_>>(), [b"1", &b"2"[..], new]);
    }
}

/// Each family's cells wait for themselves; whoever reads one of them finds its own in their rows.
#[test]
fn readers_of_any_family_see_what_is_in_no_row_yet() {
    let families = [1, 2, 3].map(FamilyId);
    for last in families {
        let memtable = Arc::new(Memtable::new(Arc::default()));
        let mut writes = families.to_vec();
        writes.push(last);
        for (sequence, family) in (1_u64..).zip(writes) {
            let (kind, timestamp, qualifier) = (CellKind::Put, Timestamp(5), sequence.to_be_bytes());
            let cell = LoggedCell { family, kind, timestamp, qualifier: &qualifier, value: b"v" };
            insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(sequence), cells: &[cell] });
        }
        for family in families {
            let memtable = Arc::clone(&memtable);
            let mut cursor = MemtableCursor::new(memtable, family, "f".into(), Direction::Forward, u64::MAX);
            cursor.rewind().unwrap();
            assert_eq!(drain(&mut cursor).len(), if family == last { 2 } else { 1 });
        }
    }
}

/// As many as are put at once: what waits is bounded all the same.
#[test]
fn a_change_of_many_cells_makes_no_longer_tail() {
    let cells_count = 3 * TAIL_CELLS_MAX + 5;
    let qualifiers: Vec<_> = (0..u32::try_from(cells_count).unwrap()).map(u32::to_be_bytes).collect();
    let (kind, timestamp, value) = (CellKind::Put, Timestamp(7), &b"v"[..]);
    let of_cell = |qualifier| LoggedCell { family: FAMILY, kind, timestamp, qualifier, value };
    let cells: Vec<_> = qualifiers.iter().map(|qualifier| of_cell(&qualifier[..])).collect();
    let handle = RowHandle(std::num::NonZeroU64::MIN);
    let inline = qualifiers.iter().map(|qualifier| Inline::of(kind, qualifier, value).unwrap());
    let inline: Vec<_> = inline.map(|inline| InlineCell { handle, row: 0, inline }).collect();
    let by_rows = Arc::new(Memtable::new(Arc::default()));
    insert(&by_rows, &MemRow { key: b"r", handle: Some(handle), sequence: SeqNo(1), cells: &cells });
    let by_cells = Arc::new(Memtable::new(Arc::default()));
    let mut writer = by_cells.insert();
    writer.inline_cells(&InlineCells { family: FAMILY, stamp: (timestamp, 1), cells: &inline }, |_| b"r");
    writer.finish();
    for memtable in [&by_rows, &by_cells] {
        let bounds = |tail: &Vec<_>| (tail.len(), tail.capacity());
        let (len, capacity) = bounds(&memtable.read_unsettled()[0].tail);
        assert!(len < TAIL_CELLS_MAX && capacity <= TAIL_CELLS_MAX, "{len} of {capacity}");
        let mut cursor = cursor(memtable, Direction::Forward, u64::MAX);
        cursor.rewind().unwrap();
        assert_eq!(drain(&mut cursor).len(), cells_count);
    }
    assert_eq!(by_rows.bytes(), by_cells.bytes());
}

/// Of a change a region takes some rows: not always the first, and not all that follow. What is held, and since which number, is as
/// if they came as rows. The key of none is asked for more than once a cell: it has to be searched for.
#[test]
fn small_cells_are_as_rows() {
    for seed in 0..40 {
        let mut rng = SplitMix::new(seed);
        let (by_rows, by_cells) = (Memtable::new(Arc::default()), Memtable::new(Arc::default()));
        let mut first = 1 + rng.below(100);
        for time in 0..20 {
            let timestamp = Timestamp(time / 2);
            let (mut rows, mut row) = (Vec::new(), 0);
            for _ in 0..=rng.below(40) {
                let step = if rng.chance(1, 20) { 70_000 } else { 3 };
                row += u32::try_from(rng.below(step)).unwrap() + 1;
                let cells = (0..=rng.below(3)).map(|_| [0, rng.below(200).to_le_bytes()[0]]).collect::<Vec<_>>();
                rows.push((row, rng.below(50).to_be_bytes(), cells));
            }
            let handle_of = |key: &[u8; 8]| RowHandle(std::num::NonZeroU64::new(u64::from_be_bytes(*key) + 1).unwrap());
            let (kind, value) = (CellKind::Put, &b"v"[..]);
            let inline = rows.iter().flat_map(|(row, key, cells)| {
                let of_row = move |inline| InlineCell { handle: handle_of(key), row: *row, inline };
                cells.iter().map(move |qualifier| of_row(Inline::of(kind, qualifier, value).unwrap()))
            });
            let inline: Vec<_> = inline.collect();
            let asked = std::cell::Cell::new(0);
            let key_of = |row| {
                asked.set(asked.get() + 1);
                rows.iter().find(|known| known.0 == row).map_or(&[][..], |known| &known.1)
            };
            let mut writer = by_cells.insert();
            writer.inline_cells(&InlineCells { family: FAMILY, stamp: (timestamp, first), cells: &inline }, key_of);
            writer.finish();
            assert!(asked.get() <= inline.len(), "{} keys for {} cells", asked.get(), inline.len());
            for (row, key, cells) in &rows {
                let of_cell = |qualifier| LoggedCell { family: FAMILY, kind, timestamp, qualifier, value };
                let cells: Vec<_> = cells.iter().map(|qualifier| of_cell(&qualifier[..])).collect();
                let sequence = SeqNo(first + u64::from(*row));
                insert(&by_rows, &MemRow { key, handle: Some(handle_of(key)), sequence, cells: &cells });
            }
            assert_eq!(by_rows.first_sequence(), by_cells.first_sequence());
            assert_eq!(by_rows.bytes(), by_cells.bytes(), "seed {seed}");
            first += u64::from(row) + 1;
        }
        assert_eq!(all(by_rows), all(by_cells), "seed {seed}");
    }
}

/// Else writers of other tables would be throttled for it for ever.
#[test]
fn what_comes_after_its_table_was_dropped_is_in_no_gauge() {
    let gauge = Arc::<AtomicU64>::default();
    let memtable = Memtable::new(Arc::clone(&gauge));
    let (kind, timestamp) = (CellKind::Put, Timestamp(5));
    let cells = [LoggedCell { family: FAMILY, kind, timestamp, qualifier: b"q", value: b"v" }];
    let write =
        |sequence| insert(&memtable, &MemRow { key: b"r", handle: None, sequence: SeqNo(sequence), cells: &cells });
    write(1);
    memtable.share();
    memtable.release();
    write(2);
    assert_eq!(gauge.load(Ordering::Relaxed), memtable.bytes());
    memtable.release();
    write(3);
    assert_eq!(gauge.load(Ordering::Relaxed), 0);
}

/// Rows that come many at once, in batches that name a row again, with cells in order and out of it.
#[test]
fn rows_inserted_together_are_as_rows_inserted_one_by_one() {
    for seed in 0..8 {
        let mut rng = SplitMix::new(seed);
        let (one_by_one, together) = (Memtable::new(Arc::default()), Memtable::new(Arc::default()));
        let mut sequence = 0;
        for batch in 0..60_u64 {
            let keys: Vec<[u8; 2]> = (0..rng.below(100)).map(|_| [b'r', rng.below(40).to_le_bytes()[0]]).collect();
            let late = rng.chance(1, 5);
            let qualifiers: Vec<[u8; 2]> = keys
                .iter()
                .map(|_| u16::try_from(if late { rng.below(600) } else { batch * 10 }).unwrap().to_be_bytes())
                .collect();
            let of_cell = |qualifier| LoggedCell {
                family: FAMILY,
                kind: CellKind::Put,
                timestamp: Timestamp(7),
                qualifier,
                value: b"v",
            };
            let cells: Vec<[LoggedCell<'_>; 1]> = qualifiers.iter().map(|qualifier| [of_cell(qualifier)]).collect();
            let rows = keys.iter().zip(&cells).enumerate();
            let rows: Vec<MemRow<'_>> = rows
                .map(|(index, (key, cells))| MemRow {
                    key,
                    handle: None,
                    sequence: SeqNo(sequence + 1 + index as u64),
                    cells,
                })
                .collect();
            sequence += rows.len() as u64;
            for row in &rows {
                insert(&one_by_one, row);
            }
            let mut writer = together.insert();
            writer.rows(&rows);
            writer.finish();
        }
        assert_eq!((one_by_one.bytes(), one_by_one.first_sequence()), (together.bytes(), together.first_sequence()));
        let (one_by_one, together) = (all(one_by_one), all(together));
        assert!(!together.is_empty() && one_by_one.is_sorted() && one_by_one == together, "seed {seed}");
    }
}

/// Rows of one small cell, of two families, with times that change and numbers that jump, of which some are there and some come again.
#[test]
fn small_rows_are_as_other_rows() {
    for seed in 0..8 {
        let mut rng = SplitMix::new(seed);
        let (others, small) = (Memtable::new(Arc::default()), Memtable::new(Arc::default()));
        let (mut sequence, mut first) = (100, 0_u8);
        for _ in 0..80 {
            let mut rows = Vec::new();
            for _ in 0..rng.below(100) {
                // Mostly in the order in which they first came.
                first = if rng.chance(1, 20) { rng.below(60).to_le_bytes()[0] } else { (first + 1) % 60 };
                sequence += if rng.chance(1, 40) { 65_530 + rng.below(10) } else { 1 + rng.below(2) };
                let timestamp = Timestamp(if rng.chance(1, 30) { rng.below(9) } else { 7 });
                let family = FamilyId(if rng.chance(1, 30) { 2 } else { FAMILY.0 });
                let (qualifier, value) = (rng.below(300).to_be_bytes(), rng.below(300).to_be_bytes());
                rows.push(([b'r', first], sequence, family, timestamp, (qualifier, value)));
            }
            let bytes = |bytes: &[u8; 8], row: usize| bytes[4 + row % 4..].to_vec();
            let (mut keys, mut as_small) = (b"other".to_vec(), Vec::new());
            for (row, (key, sequence, family, timestamp, (qualifier, value))) in rows.iter().enumerate() {
                let (qualifier, value) = (bytes(qualifier, 2), bytes(value, row));
                let (family, kind, timestamp) = (*family, CellKind::Put, *timestamp);
                let cell = LoggedCell { family, kind, timestamp, qualifier: &qualifier, value: &value };
                insert(&others, &MemRow { key, handle: None, sequence: SeqNo(*sequence), cells: &[cell] });
                let start = keys.len();
                keys.extend_from_slice(key);
                as_small.push(SmallRow::of(start..keys.len(), SeqNo(*sequence), &cell).unwrap());
            }
            let mut writer = small.insert();
            writer.small_rows(&as_small, &keys);
            writer.finish();
        }
        assert_eq!((others.bytes(), others.first_sequence()), (small.bytes(), small.first_sequence()));
        let (others, small) = (Arc::new(others), Arc::new(small));
        for family in [FAMILY, FamilyId(2)] {
            let all = |memtable| {
                let (memtable, direction) = (Arc::clone(memtable), Direction::Forward);
                let mut cursor = MemtableCursor::new(memtable, family, "f".into(), direction, u64::MAX);
                cursor.rewind().unwrap();
                drain(&mut cursor)
            };
            let (others, small) = (all(&others), all(&small));
            assert!(!small.is_empty() && others == small, "seed {seed}");
        }
    }
}

#[test]
fn a_row_whose_cell_is_long_is_not_small() {
    let cell = LoggedCell {
        family: FAMILY,
        kind: CellKind::Put,
        timestamp: Timestamp(7),
        qualifier: b"qq",
        value: &[7; Inline::BYTES_MAX - 2],
    };
    assert!(SmallRow::of(0..2, SeqNo(1), &cell).is_some());
    assert!(SmallRow::of(0..2, SeqNo(1), &LoggedCell { qualifier: b"qqq", ..cell }).is_none());
}
