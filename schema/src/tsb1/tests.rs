//! Blocks come back byte for byte, whatever the rows; foreign bytes are refused or fill the image.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the numbers of these rows are small"
)]

mod columns;
mod golden;

use proptest::prelude::*;

use super::*;
use crate::CompactedCell;
use crate::point::StoredPoint;
use crate::qualifier::{PointKind, Qualifier};
use crate::value::exact_f32;

/// A point: offset in milliseconds, kind, word.
type Point = (u32, PointKind, u64);

/// A row: key, write time, sequence number, cells as they lie in an image or points.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Points(Vec<Point>),
    Verbatim(u64, Vec<u8>),
}

pub(super) type TestRow = (Vec<u8>, u64, u64, Content);

/// The image that the engine's builder makes of rows.
pub(super) fn image(rows: &[TestRow]) -> Vec<u8> {
    let (_, timestamp, seq, _) = rows.first().unwrap();
    let base = Base { timestamp: *timestamp, seq: *seq };
    let first_key = rows.first().unwrap().0.clone();
    let (mut bytes, mut offsets) = (vec![0; 1 << 24], Vec::new());
    let mut writer = ImageWriter::start(&mut bytes, base, &mut offsets).unwrap();
    for (number, (key, timestamp, seq, content)) in rows.iter().enumerate() {
        let shared = if number == 0 { 0 } else { first_key.iter().zip(key).take_while(|(a, b)| a == b).count() };
        let parted = (shared, &key[shared..]);
        match content {
            Content::Verbatim(cells, bytes) => {
                writer.row(parted, *cells).unwrap();
                writer.put(bytes).unwrap();
            }
            Content::Points(points) => {
                writer.row(parted, 1).unwrap();
                let cell = compacted(points);
                let at = Base { timestamp: *timestamp, seq: *seq };
                writer.cell(LoneCell { at, qualifier: cell.qualifier(), value: cell.value() }).unwrap();
            }
        }
    }
    let used = (1 << 24) - writer.bytes_left() + 4 * rows.len() + 8;
    assert!(writer.finish().is_none(), "the buffer is larger than any image here");
    bytes.truncate(used);
    bytes
}

fn compacted(points: &[Point]) -> CompactedCell {
    let mut cell = CompactedCell::default();
    for (offset_ms, kind, word) in points {
        let bytes = if kind.is_float() && kind.value_bytes() == 4 {
            number_of_float(*word).to_be_bytes().to_vec()
        } else {
            word.to_be_bytes()[8 - kind.value_bytes()..].to_vec()
        };
        cell.push(StoredPoint { qualifier: Qualifier { offset_ms: *offset_ms, kind: *kind }, value: &bytes });
    }
    cell.seal();
    cell
}

fn number_of_float(word: u64) -> f32 {
    exact_f32(f64::from_bits(word)).unwrap_or(0.1)
}

/// Encodes, decodes, compares; the stored bytes.
pub(super) fn check(image: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    assert!(Tsb1.encode_into(image, &mut stored), "declined");
    let mut again = vec![0xAA; image.len()];
    assert!(Tsb1.decode_into(&stored, &mut again), "refused");
    assert!(again == image, "another image");
    columns::compare(image, &stored);
    stored
}

const INT: PointKind = PointKind::new(false, 1);
const DOUBLE: PointKind = PointKind::new(true, 8);
const SINGLE: PointKind = PointKind::new(true, 4);

fn int(value: i64) -> (PointKind, u64) {
    let bytes = [1, 2, 4].into_iter().find(|bytes| value << (64 - 8 * bytes) >> (64 - 8 * bytes) == value).unwrap_or(8);
    (PointKind::new(false, bytes), value.cast_unsigned())
}

/// Rows of one metric, hour by hour: keys of a TSBS host with three tags.
pub(super) fn key(row: u32) -> Vec<u8> {
    let mut key = vec![(row / 20) as u8, 0, 0, 1];
    key.extend((1_700_000_400 + row / 100 * 3600).to_be_bytes());
    for tagk in 1_u8..=3 {
        key.extend([0, 0, tagk, 0, (row >> 8) as u8, (row % 251) as u8 ^ tagk]);
    }
    key
}

/// A seeded random walk.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ self.0 >> 29;
        x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 24
    }
}

/// An hour of 10-second points of a gauge between 0 and 100 that walks, `scale` steps to the unit.
pub(super) fn gauge(dice: &mut Dice, scale: i64) -> Vec<Point> {
    let mut level = (dice.roll() % (100 * scale as u64)) as i64;
    let walk = (0..360).map(|number| {
        // The sum of four dice is near a Gaussian of deviation 1.
        let step: i64 = (0..4).map(|_| (dice.roll() % (scale as u64 * 2 + 1)) as i64 - scale).sum::<i64>() * 6 / 10;
        level = (level + step).clamp(0, 100 * scale);
        let (kind, word) = if scale == 1 { int(level) } else { (DOUBLE, (level as f64 / scale as f64).to_bits()) };
        (number * 10_000, kind, word)
    });
    walk.collect()
}

/// A block of `rows` such hours.
pub(super) fn gauges(rows: u32, scale: i64) -> Vec<u8> {
    let mut dice = Dice(7);
    let rows: Vec<_> = (0..rows)
        .map(|row| {
            let written = 1_700_003_990_000 + dice.roll() % 100;
            (key(row), written, 1_000_000 + dice.roll() % 400, Content::Points(gauge(&mut dice, scale)))
        })
        .collect();
    image(&rows)
}

#[test]
fn a_folded_hour_of_gauges_is_as_small_as_promised() {
    let bytes_a_point = |rows: u32, scale| check(&gauges(rows, scale)).len() as f64 / f64::from(rows * 360);
    let integers = bytes_a_point(45, 1);
    let decimals = bytes_a_point(45, 100);
    assert!(integers < 0.35, "{integers} bytes a point of integers");
    assert!(decimals < 1.25, "{decimals} bytes a point of two decimals");
}

#[test]
fn extremes_come_back() {
    let times = |number: usize| number as u32 * 1000;
    let doubles = |values: &[f64]| -> Vec<Point> {
        values.iter().enumerate().map(|(at, value)| (times(at), DOUBLE, value.to_bits())).collect()
    };
    let ints = |values: &[i64]| -> Vec<Point> {
        values.iter().enumerate().map(|(at, value)| (times(at), int(*value).0, int(*value).1)).collect()
    };
    let mut mostly_decimal = vec![20.5; 100];
    mostly_decimal[3] = f64::NAN;
    mostly_decimal[99] = -0.0;
    let wide = PointKind::new(false, 8);
    let contents = [
        ints(&[i64::MIN, i64::MAX, 0, -1, i64::MIN]),
        ints(&[127, 128, -128, -129, 32_767, 32_768, -32_769, i64::from(i32::MAX), i64::from(i32::MIN) - 1]),
        ints(&[42]),
        doubles(&[f64::NAN]),
        doubles(&[f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324]),
        doubles(&mostly_decimal),
        doubles(&[std::f64::consts::PI; 40]),
        // Floats on four bytes: alone, and wherever they fit.
        vec![(0, SINGLE, 42.5_f64.to_bits()), (1000, SINGLE, (-0.0_f64).to_bits())],
        vec![(0, SINGLE, 42.5_f64.to_bits()), (1000, DOUBLE, 42.1_f64.to_bits()), (2000, DOUBLE, 0.3_f64.to_bits())],
        vec![(0, DOUBLE, 42.5_f64.to_bits()), (1000, SINGLE, 42.5_f64.to_bits())],
        // Integers on more bytes than they need, integers among floats.
        vec![(0, wide, 1), (1000, INT, 1)],
        vec![(0, INT, 1), (1000, DOUBLE, 1.25_f64.to_bits()), (2000, int(300).0, 300), (3000, wide, u64::MAX >> 1)],
        // Seconds and milliseconds, gaps, one instant twice, the last offset there is.
        vec![(0, INT, 1), (1500, INT.with_millis(true), 2), (3_599_000, INT, 3)],
        vec![(500, INT.with_millis(true), 1), (500, INT.with_millis(true), 2), (3_599_999, INT.with_millis(true), 3)],
        vec![(0, INT, 1), (0, INT.with_millis(true), 1)],
        (0..500).map(|n| (n * 7_001 + n * n % 13, INT.with_millis(true), 3)).collect(),
        (0..300).filter(|n| n % 17 != 3).map(|n| (n * 10_000, INT, u64::from(n % 5))).collect(),
    ];
    let rows: Vec<TestRow> = contents
        .into_iter()
        .zip(0..)
        .map(|(points, row)| {
            (key(row), 1_700_000_000_000 - u64::from(row), u64::from(row) * 3, Content::Points(points))
        })
        .collect();
    for row in &rows {
        // Alone, and as the second of a block: a lone row may gain nothing, but it comes back.
        let image = image(&[rows[16].clone(), row.clone()]);
        check(&image);
    }
    check(&image(&rows));
}

#[test]
fn other_cells_stay_verbatim_beside_points() {
    let mut dice = Dice(3);
    let mut row = |number: u32| (key(number), 5, 9, Content::Points(gauge(&mut dice, 1)));
    let note = |number: u32| (key(number), 5, 9, Content::Verbatim(1, [&[0x26, 3, 1, 0, 0, 4][..], b"note"].concat()));
    let damaged = |number: u32| (key(number), 5, 9, Content::Verbatim(1, vec![0x26, 4, 0, 0, 0, 16, 2, 7, 7]));
    let two = |number: u32| (key(number), 5, 9, Content::Verbatim(2, vec![0x26, 2, 0, 0, 1, 7, 0x2E, 2, 0, 16, 8]));
    check(&image(&[row(0), note(1), damaged(2), two(3), row(4)]));
    check(&image(&[note(0), row(1)]));
    // Nothing for this encoding to do.
    assert!(!Tsb1.encode_into(&image(&[note(0), two(1)]), &mut Vec::new()));
}

#[test]
fn long_keys_and_keys_of_many_lengths_come_back() {
    let mut dice = Dice(5);
    let rows: Vec<_> = (1..60_usize)
        .map(|row| {
            let key: Vec<u8> = (0..=row * 7 % 300).map(|at| if at == 0 { row as u8 } else { at as u8 % 3 }).collect();
            (key, dice.roll(), dice.roll(), Content::Points(gauge(&mut dice, 10)))
        })
        .collect();
    check(&image(&rows));
}

#[test]
fn no_key_is_longer_than_the_stores() {
    let with_key = |length| {
        let mut dice = Dice(5);
        let mut row = |key| (key, 1, 1, Content::Points(gauge(&mut dice, 10)));
        image(&[row(vec![1; length]), row(vec![2; length])])
    };
    check(&with_key(32_767));
    assert!(!Tsb1.encode_into(&with_key(32_768), &mut Vec::new()));
    for (length, fits) in [(32_767, true), (32_768, false), (u64::MAX, false)] {
        let mut streams = Streams::default();
        streams.put_varint(id::KEY_BYTES, number::fold_sign(length as i64));
        assert_eq!(Keys::default().decode(1, 1 << 20, &mut streams).is_some(), fits, "{length}");
    }
}

/// One long key beside many short ones, of a block that is small itself: a column has only the keys that are so long.
#[test]
fn the_longest_key_costs_the_others_nothing() {
    let rows = 1 << 20;
    let mut streams = Streams::default();
    // The first, and all others.
    for step in [32_767, -32_766] {
        streams.put_varint(id::KEY_BYTES, number::fold_sign(step));
    }
    streams.put_bytes(id::KEY_CHANGES, &[0xFF; 4096]);
    streams.put_bytes(id::KEY_COLUMNS, &[7, 8]);
    let (mut keys, begun) = (Keys::default(), std::time::Instant::now());
    keys.decode(rows, 1 << 24, &mut streams).unwrap();
    // Seconds are a thousand times what it takes; each column of all rows would take minutes.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert_eq!(keys.key(0), vec![0; 32_767]);
    assert_eq!([keys.key(1), keys.key(2), keys.key(3)], [&[7], &[8], &[0]]);
    // Nor is such a block written: its reader of an earlier version would have that time.
    let mut dice = Dice(5);
    let mut row = |key: Vec<u8>| (key, 1, 1, Content::Points(vec![(0, INT, dice.roll() % 100)]));
    let mut rows: Vec<_> = (0..400_u32).map(|number| row(number.to_be_bytes().to_vec())).collect();
    rows.push(row(vec![9; 8000]));
    assert!(!Tsb1.encode_into(&image(&rows), &mut Vec::new()));
}

#[test]
fn what_a_block_claims_is_bounded_by_its_image() {
    let mebibyte = 1 << 20;
    assert_eq!((keys_bytes_max(mebibyte), streams_bytes_max(mebibyte)), (16 * mebibyte, 5 * mebibyte + 4096));
    let most = 512 * mebibyte;
    assert_eq!((keys_bytes_max(most), streams_bytes_max(most)), (768 * mebibyte, 768 * mebibyte));
    // One byte repeated is a claim like any other.
    let claims = |length: usize| {
        let mut stored = vec![VERSION, FLAGS, 0, 0, 0, 0, 3];
        put_length(&mut stored, length);
        stored.extend([1, 0xFF]);
        let mut streams = Streams::default();
        let sections = Sections::new(&stored[5..], id::COUNT, streams_bytes_max(mebibyte));
        Coder::default().decode_into(sections, &mut streams).is_some()
    };
    assert!(claims(5 * mebibyte + 4096) && !claims(5 * mebibyte + 4097));
}

/// A block of the usual length leaves its memory to the next one, a large one does not.
#[test]
fn working_memory_for_a_large_block_is_given_back() {
    let kept = |bytes: usize| {
        let note = (key(1), 5, 9, Content::Verbatim(1, vec![7; bytes]));
        let image = image(&[(key(0), 5, 9, Content::Points(gauge(&mut Dice(3), 1))), note]);
        let stored = check(&image);
        let kept = || SCRATCH.with_borrow(|scratch| scratch.streams.memory_bytes());
        let after_decoding = (Tsb1.decode_into(&stored, &mut vec![0; image.len()]), kept());
        (after_decoding.1, (Tsb1.open(stored, image.len()).is_none(), kept()).1)
    };
    let (decoded, opened) = kept(900 << 10);
    assert!(decoded > 900 << 10 && opened > 900 << 10);
    assert_eq!(kept(4 << 20), (0, 0));
}

#[test]
fn each_byte_of_a_block_may_be_any_other() {
    let image = gauges(3, 1);
    let stored = check(&image);
    let mut given = vec![0; image.len()];
    for at in 0..stored.len() {
        for flip in [1, 0x10, 0x80, 0xFF] {
            let mut hurt = stored.clone();
            hurt[at] ^= flip;
            // No panic; what it gives is the engine's checksum to guard.
            std::hint::black_box(Tsb1.decode_into(&hurt, &mut given));
        }
        assert!(!Tsb1.decode_into(&stored[..at], &mut given), "cut at {at}");
    }
    assert!(!Tsb1.decode_into(&stored, &mut vec![0; image.len() - 1]));
    assert!(!Tsb1.decode_into(&stored, &mut vec![0; image.len() + 1]));
}

#[test]
fn another_version_or_flag_is_refused() {
    let image = gauges(2, 1);
    let stored = check(&image);
    for at in [0, 1] {
        let mut other = stored.clone();
        other[at] += 1;
        assert!(!Tsb1.decode_into(&other, &mut vec![0; image.len()]));
    }
}

fn value() -> impl Strategy<Value = (PointKind, u64)> {
    let width = |value: i64, bytes: u8| (PointKind::new(false, bytes), value.cast_unsigned());
    prop_oneof![
        8 => (-200_i64..200).prop_map(int),
        2 => any::<i64>().prop_map(int),
        1 => any::<i8>().prop_map(move |value| width(value.into(), 8)),
        6 => (-100_000_i32..100_000).prop_map(|value| (DOUBLE, (f64::from(value) / 100.0).to_bits())),
        1 => any::<u64>().prop_map(|bits| (DOUBLE, bits)),
        2 => any::<i16>().prop_map(|value| (SINGLE, (f64::from(value) / 8.0).to_bits())),
        1 => prop_oneof![Just(f64::NAN), Just(-0.0), Just(f64::INFINITY), Just(1e300), Just(5e-324)]
            .prop_map(|value| (DOUBLE, value.to_bits())),
    ]
}

/// A row's points: all of one kind, or mixed; regular, jittered, with gaps and with an instant twice.
fn points() -> impl Strategy<Value = Vec<Point>> {
    let values = prop_oneof![
        3 => proptest::collection::vec((-50_i64..50).prop_map(int), 1..200),
        3 => proptest::collection::vec((0_i32..9999).prop_map(|v| (DOUBLE, (f64::from(v) / 100.0).to_bits())), 1..200),
        2 => proptest::collection::vec(value(), 1..100),
        1 => proptest::collection::vec(any::<u64>().prop_map(|bits| (DOUBLE, bits)), 1..100),
    ];
    (values, 1_u32..20, 0_u32..4, any::<u64>(), 0_u32..3).prop_map(|(values, step, jitter, seed, resolution)| {
        let mut dice = Dice(seed);
        let mut offset = 0_u32;
        let timed = values.into_iter().map(|(kind, word)| {
            offset += step + if jitter == 0 { 0 } else { (dice.roll() % u64::from(jitter)) as u32 };
            let is_millis = resolution == 1 || (resolution == 2 && dice.roll().is_multiple_of(3));
            let at = if is_millis { offset * 901 } else { offset.min(3599) * 1000 };
            (at.min(3_599_999), kind.with_millis(is_millis), word)
        });
        timed.collect()
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        8 => points().prop_map(Content::Points),
        1 => (1_u64..4, proptest::collection::vec(any::<u8>(), 1..60)).prop_map(|(n, bytes)| Content::Verbatim(n, bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_rows_come_back(
        contents in proptest::collection::vec((content(), any::<u64>(), 0_u64..1000), 1..20),
        far in any::<bool>(),
    ) {
        let rows: Vec<TestRow> = contents.into_iter().zip(0..)
            .map(|((content, time, seq), row)| (key(row), if far { time } else { time % 500 }, seq, content))
            .collect();
        let image = image(&rows);
        let mut stored = Vec::new();
        // A block of few points may gain nothing; whatever is written comes back all the same.
        let taken = Tsb1.encode_into(&image, &mut stored);
        if rows.iter().any(|row| matches!(row.3, Content::Points(_))) {
            let mut again = vec![0; image.len()];
            prop_assert!(Tsb1.decode_into(&stored, &mut again));
            prop_assert!(again == image);
            columns::compare(&image, &stored);
        } else {
            prop_assert!(!taken);
        }
    }

    #[test]
    fn hurt_blocks_are_refused_or_fill_the_image(
        seed in any::<u64>(), hurts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut dice = Dice(seed);
        let rows: Vec<TestRow> = (0..6).map(|row| {
            (key(row), dice.roll(), dice.roll(), Content::Points(gauge(&mut dice, [1, 10, 100][row as usize % 3])))
        }).collect();
        let image = image(&rows);
        let mut stored = check(&image);
        for (at, byte) in hurts {
            let at = at.index(stored.len());
            stored[at] = byte;
        }
        let mut given = vec![0; image.len()];
        std::hint::black_box(Tsb1.decode_into(&stored, &mut given));
    }
}
