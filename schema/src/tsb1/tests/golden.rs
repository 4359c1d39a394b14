//! A block as each version wrote it, kept beside this file: it must be read for ever, and written so until the version
//! changes.

use super::*;
use crate::hex;

const V1: &str = include_str!("golden_v1.hex");
const V2: &str = include_str!("golden_v2.hex");

/// Rows of every form and predictor, in sections of every mode. A new release of zstd may write its sections otherwise: then,
/// and with no other difference, the file may be taken anew.
fn rows() -> Vec<TestRow> {
    let mut dice = Dice(11);
    let every = |step_ms: u32, kind: PointKind, words: &[u64]| -> Content {
        Content::Points(words.iter().zip(0..).map(|(word, number)| (number * step_ms, kind, *word)).collect())
    };
    let doubles = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let squares: Vec<u64> = (0..60).map(|n| n * n / 8).collect();
    let mut decimals: Vec<f64> = (0..48).map(|n| f64::from(n * 37 % 101) / 4.0).collect();
    decimals[7] = f64::NAN;
    let contents = [
        Content::Points(gauge(&mut dice, 1)),
        Content::Points(gauge(&mut dice, 100)),
        Content::Points(gauge(&mut dice, 1).into_iter().filter(|point| point.0 % 170_000 != 0).collect()),
        every(10_000, INT, &[5; 30]),
        every(10_000, INT, &[1, 3, 5, 7, 9]),
        every(60_000, INT.with_value_bytes(8), &squares),
        every(1_500, DOUBLE.with_millis(true), &doubles(&decimals)),
        every(1_000, SINGLE, &doubles(&[0.5, 42.5, -3.25])),
        every(1_000, DOUBLE, &doubles(&[std::f64::consts::PI, std::f64::consts::E])),
        Content::Points(vec![(0, INT, 1), (1_500, DOUBLE.with_millis(true), 1.5_f64.to_bits()), (9_000, INT, 9)]),
        Content::Verbatim(2, vec![0x26, 2, 0, 0, 1, 7, 0x2E, 2, 0, 16, 8]),
    ];
    let rows = contents.into_iter().zip(0..);
    rows.map(|(content, row)| (key(row), 1_700_003_990_000 + u64::from(row), 900 - u64::from(row), content)).collect()
}

fn read(text: &str) -> Vec<u8> {
    let golden = hex::decode(&text.split_whitespace().collect::<String>()).unwrap();
    let image = image(&rows());
    let mut again = vec![0; image.len()];
    assert!(Tsb1.decode_into(&golden, &mut again) && again == image, "it is read as something else");
    columns::compare(&image, &golden);
    golden
}

#[test]
fn version_1_is_read_as_it_always_was() {
    assert_eq!(read(V1)[0], 1);
}

#[test]
fn version_2_is_read_and_written_as_it_always_was() {
    let stored = check(&image(&rows()));
    assert!(stored == read(V2), "version 2 is written otherwise:\n{}", hex::lower(&stored));
}

/// A version has its own streams and no more.
#[test]
fn version_1_has_no_summaries() {
    let image = gauges(2, 1);
    let mut stored = check(&image);
    stored[0] = 1;
    assert!(!Tsb1.decode_into(&stored, &mut vec![0; image.len()]));
    assert!(Tsb1.open(stored, image.len()).is_none());
}
