use super::*;
use crate::io::{Rng, SplitMix};

const PUT: LoggedCell<'_> = LoggedCell {
    family: FamilyId(1),
    kind: CellKind::Put,
    timestamp: Timestamp(1 << 40),
    qualifier: b"q",
    value: b"v",
};

#[test]
fn a_batch_comes_back_with_a_number_a_row() {
    let delete = LoggedCell { family: FamilyId(200), kind: CellKind::DeleteFamily, value: b"", ..PUT };
    let of_server = LoggedCell { timestamp: Timestamp(77), ..PUT };
    let mut writer = MutationWriter::begin(TableId(3), Timestamp(77), 0);
    writer.row(b"r1", 2);
    writer.cell(&PUT);
    writer.cell(&delete);
    writer.row(b"r2", 1);
    writer.cell(&of_server);
    assert_eq!(writer.rows(), 2);
    let record = writer.finish();
    let payload = &record[record::HEADER_BYTES..record::HEADER_BYTES + payload_len(&record)];

    let mut batch = LoggedBatch::decode(MUTATIONS, payload, 10).unwrap();
    assert_eq!((batch.table, batch.server_time), (TableId(3), Timestamp(77)));
    let mut cells = Vec::new();
    assert_eq!(batch.next_row(&mut cells), Some(Some((&b"r1"[..], SeqNo(9)))));
    assert_eq!(cells, [PUT, delete]);
    assert_eq!(batch.next_row(&mut cells), Some(Some((&b"r2"[..], SeqNo(10)))));
    assert_eq!(cells, [of_server]);
    assert_eq!(batch.next_row(&mut cells), Some(None));
    for cut in 0..payload.len() {
        assert!(end_of(&payload[..cut]).is_none(), "a payload cut at {cut} reads whole");
    }
    assert!(LoggedBatch::decode(3, payload, 10).is_none(), "a type that is none");
}

/// Rows and cells about as long as what is written as one word.
#[test]
fn rows_and_cells_come_back_whatever_their_lengths() {
    let bytes: Vec<u8> = (1..=200).collect();
    let mut rows: Vec<(&[u8], Vec<LoggedCell<'_>>)> = Vec::new();
    for family in [0, 1, 0x3f, 0x40, 0x7f, 0x80, u32::MAX] {
        let lengths = (0..10).flat_map(|qualifier| (0..10).map(move |value| (qualifier, value)));
        let cells = lengths.map(|(qualifier, value)| LoggedCell {
            family: FamilyId(family),
            timestamp: Timestamp(if value == 3 { 78 } else { 77 }),
            qualifier: &bytes[..qualifier],
            value: &bytes[100..100 + value],
            ..PUT
        });
        rows.push((&bytes[..1], cells.collect()));
    }
    for end in [1, 2, 127, 128, 129, 132, 133, 200] {
        // What they share with the row before, at either end, is short or long.
        rows.push((&bytes[..end], vec![PUT; end]));
        rows.push((&bytes[200 - end..], vec![PUT; 1]));
    }
    rows.push((&bytes[..1], vec![PUT; 128]));
    let mut writer = MutationWriter::begin(TableId(3), Timestamp(77), 0);
    for (key, cells) in &rows {
        writer.row(key, cells.len());
        for cell in cells {
            writer.cell(cell);
        }
    }
    let record = writer.finish();
    let payload = &record[record::HEADER_BYTES..record::HEADER_BYTES + payload_len(&record)];
    let (mut batch, mut found) = (LoggedBatch::decode(MUTATIONS, payload, 1000).unwrap(), Vec::new());
    for (key, cells) in rows {
        assert_eq!(batch.next_row(&mut found).unwrap().unwrap().0, key);
        assert_eq!(found, cells);
    }
    assert!(batch.next_row(&mut found).unwrap().is_none());
}

/// Rows of one cell about as long as what is read at once, and rows that are skipped between those that are read.
#[test]
fn rows_are_read_or_skipped_whatever_their_cells() {
    let bytes: Vec<u8> = (1..=200).collect();
    let of = |family, timestamp| LoggedCell { family: FamilyId(family), timestamp: Timestamp(timestamp), ..PUT };
    let mut rows: Vec<Vec<LoggedCell<'_>>> = vec![Vec::new(), vec![PUT; 128]];
    for (family, timestamp) in [(0, 77), (1, 77), (0x3f, 77), (0x40, 77), (u32::MAX, 77), (1, 78), (1, 1 << 50)] {
        for (qualifier, value) in [(0, 0), (2, 1), (1, 0), (0, 2), (127, 0), (0, 127), (128, 0), (0, 128), (130, 150)] {
            let (qualifier, value) = (&bytes[..qualifier], &bytes[..value]);
            let cell = LoggedCell { qualifier, value, ..of(family, timestamp) };
            rows.extend([vec![cell], vec![cell; 2], vec![LoggedCell { kind: CellKind::DeleteColumn, ..cell }]]);
        }
    }
    let keys: Vec<String> = (0..rows.len()).map(|row| format!("r{:03}s{}", row * 7 % 1000, row % 5)).collect();
    let mut writer = MutationWriter::begin(TableId(3), Timestamp(77), 0);
    for (key, cells) in keys.iter().zip(&rows) {
        writer.row(key.as_bytes(), cells.len());
        for cell in cells {
            writer.cell(cell);
        }
    }
    let record = writer.finish();
    let payload = &record[record::HEADER_BYTES..record::HEADER_BYTES + payload_len(&record)];
    for turn in 0..3 {
        let (mut batch, mut found) = (LoggedBatch::decode(MUTATIONS, payload, 1000).unwrap(), Vec::new());
        for (index, (key, cells)) in keys.iter().zip(&rows).enumerate() {
            let sequence = batch.begin_row().unwrap().unwrap();
            assert_eq!(sequence, SeqNo(1001 - (rows.len() - index) as u64));
            assert_eq!(batch.key(), key.as_bytes());
            if index % 3 == turn {
                batch.skip_cells().unwrap();
            } else {
                batch.cells_into(&mut found).unwrap();
                assert_eq!(&found, cells);
            }
        }
        assert_eq!(batch.begin_row(), Some(None));
    }
    for cut in 0..payload.len() {
        let mut batch = LoggedBatch::decode(MUTATIONS, &payload[..cut], 1000);
        let mut skip = || {
            let batch = batch.as_mut()?;
            while batch.begin_row()?.is_some() {
                batch.skip_cells()?;
            }
            Some(())
        };
        assert!(skip().is_none(), "a payload cut at {cut} reads whole");
    }
}

#[test]
fn keys_come_back_whatever_they_share() {
    let long = [b'x'; 100];
    let mut other = long;
    other[50] = b'y';
    let keys: [&[u8]; 12] =
        [b"abcd", b"abcd", b"abd", b"ab", b"abab", b"b", b"", b"aaaa", b"aaa", &long, &other, &long[..99]];
    let mut writer = MutationWriter::begin(TableId(1), Timestamp(0), 0);
    for key in keys {
        writer.row(key, 0);
    }
    let record = writer.finish();
    let payload = &record[record::HEADER_BYTES..record::HEADER_BYTES + payload_len(&record)];
    let mut batch = LoggedBatch::decode(MUTATIONS, payload, 12).unwrap();
    for key in keys {
        assert_eq!(batch.next_row(&mut Vec::new()).unwrap().unwrap().0, key);
    }
    assert!(record.len() < 300, "{}", record.len());
}

/// Keys that differ from one to the next in a place or two, often the same ones: what they share is all that they share.
#[test]
fn keys_of_one_length_come_back_by_all_that_they_share() {
    let (mut rng, mut key, mut keys) = (SplitMix::new(3), vec![0_u8; 13], Vec::new());
    let mut place = 0;
    for _ in 0..2000 {
        if rng.chance(1, 4) {
            place = usize::try_from(rng.below(13)).unwrap();
        }
        key[place] = rng.below(3).to_le_bytes()[0];
        let other = usize::try_from(rng.below(40)).unwrap();
        if let Some(byte) = key.get_mut(other) {
            *byte = rng.below(3).to_le_bytes()[0];
        }
        keys.push(key.clone());
    }
    let mut writer = MutationWriter::begin(TableId(1), Timestamp(0), 0);
    let mut before: &[u8] = &[];
    for key in &keys {
        writer.row(key, 0);
        let prefix = common_prefix(before, key);
        let rest = (before.get(prefix..).unwrap_or_default(), &key[prefix..]);
        assert_eq!(writer.shared, (prefix, common_suffix(rest.0, rest.1)));
        before = key;
    }
    let record = writer.finish();
    let payload = &record[record::HEADER_BYTES..record::HEADER_BYTES + payload_len(&record)];
    let mut batch = LoggedBatch::decode(MUTATIONS, payload, 2000).unwrap();
    for key in &keys {
        assert_eq!(batch.next_row(&mut Vec::new()).unwrap().unwrap().0, key);
    }
}

/// What version 1 wrote: table 3, server time 77, two rows of one cell each.
#[test]
fn a_batch_with_whole_keys_and_times_is_read() {
    let mut payload = Vec::new();
    payload.extend_from_slice(&3_u32.to_le_bytes());
    payload.extend_from_slice(&77_u64.to_le_bytes());
    payload.extend_from_slice(&2_u32.to_le_bytes());
    payload.extend_from_slice(b"\x02r1\x01\x01\x04\x80\x80\x80\x80\x80\x20\x01q\x01v");
    payload.extend_from_slice(b"\x02r2\x01\x01\x04\x80\x80\x80\x80\x80\x20\x01q\x01v");
    let mut batch = LoggedBatch::decode(WHOLE_KEYS, &payload, 10).unwrap();
    let mut cells = Vec::new();
    assert_eq!((batch.table, batch.server_time), (TableId(3), Timestamp(77)));
    for (key, number) in [(b"r1", 9), (b"r2", 10)] {
        assert_eq!(batch.next_row(&mut cells), Some(Some((&key[..], SeqNo(number)))));
        assert_eq!(cells, [PUT]);
    }
    assert_eq!(batch.next_row(&mut cells), Some(None));
}

/// The second key of version 1, as long as the first, begins as if it shared all of it.
#[test]
fn a_whole_key_is_not_taken_for_what_it_shares() {
    let mut payload = Vec::new();
    payload.extend_from_slice(&3_u32.to_le_bytes());
    payload.extend_from_slice(&77_u64.to_le_bytes());
    payload.extend_from_slice(&2_u32.to_le_bytes());
    payload.extend_from_slice(b"\x02\x05\x05\x01\x01\x04\x07\x01q\x01v");
    payload.extend_from_slice(b"\x02\x00\x00\x01\x01\x04\x07\x01q\x01v");
    for skips in [false, true] {
        let mut batch = LoggedBatch::decode(WHOLE_KEYS, &payload, 10).unwrap();
        let mut cells = Vec::new();
        for key in [[5, 5], [0, 0]] {
            batch.begin_row().unwrap().unwrap();
            assert_eq!(batch.key(), key);
            if skips {
                batch.skip_cells().unwrap();
            } else {
                batch.cells_into(&mut cells).unwrap();
                assert_eq!(cells, [LoggedCell { timestamp: Timestamp(7), ..PUT }]);
            }
        }
        assert_eq!(batch.begin_row(), Some(None));
    }
}

/// What comes after the rows of a payload that may be cut.
fn end_of(payload: &[u8]) -> Option<()> {
    let mut batch = LoggedBatch::decode(MUTATIONS, payload, 10)?;
    let mut cells = Vec::new();
    while batch.next_row(&mut cells)?.is_some() {}
    Some(())
}

fn payload_len(record: &[u8]) -> usize {
    u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize
}
