//! How fast a core decodes blocks of folded rows straight to columns: the entropy coding of a block of 96 KiB and its points, as a
//! query that finds nothing cached does, and the points alone, as one does that finds the block open.
//!
//! `cd benches && cargo run --release --example decode`. TSBS's `cpu-only` as it walks itself, a point each 10 seconds, a block's
//! rows of one metric and hour and 8 tags a host: integers, and two decimals. CPU seconds of the process, which has one thread.

use std::hint::black_box;

use basalt_schema::{BaseTime, CompactedCell, Door, PointTime, StoredPoint, Tsb1, Tsb1Block, Value, point_cell};
use basalt_store::{Packed, Packing, RowBatchBuilder};

/// As in the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As a data block of the store.
const BLOCK_BYTES: usize = 96 << 10;
const BLOCKS: usize = 100;
const POINTS: i64 = 360;
const START: u32 = 1_699_999_200;
const ROUNDS: usize = 7;
/// Clock ticks a second in /proc.
const TICKS_A_SECOND: f64 = 100.0;

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A step of TSBS's walk.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.next().max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
    }
}

fn varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A host's row key.
fn key(host: usize) -> Vec<u8> {
    let mut key = [&[3, 0, 0, 1][..], &START.to_be_bytes()].concat();
    for tag in 1..=8_u8 {
        let value = if tag == 1 { host } else { host % (7 * usize::from(tag)) };
        key.extend([&[0, 0, tag][..], &(value as u32).to_be_bytes()[1..]].concat());
    }
    key
}

/// A block of rows as its writer lays it out (`docs/formats/sstable.md`), and how many rows.
fn image(random: &mut Random, decimals: bool) -> (Vec<u8>, usize) {
    let mut image = [7_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat();
    let mut rows: Vec<u32> = Vec::new();
    let first = key(0);
    while image.len() < BLOCK_BYTES {
        let key = key(rows.len());
        let shared = key.iter().zip(&first).take_while(|(a, b)| a == b).count();
        let shared = if rows.is_empty() { 0 } else { shared };
        let mut cell = CompactedCell::default();
        let mut walk = random.next() * 100.0;
        for at in 0..POINTS {
            walk = (walk + random.normal()).clamp(0.0, 100.0);
            let value = if decimals { Value::Float((walk * 100.0).round() / 100.0) } else { Value::Int(walk as i64) };
            let time =
                PointTime::from_number(i64::from(BaseTime::of_seconds(START).seconds()) + at * 10).expect("a time");
            let point = point_cell(time, value, Door::Http).expect("a finite value");
            cell.push(StoredPoint { qualifier: point.qualifier, value: &point.value() });
        }
        cell.seal();
        rows.push(image.len() as u32);
        for length in [shared, key.len() - shared, 1] {
            varint(&mut image, length);
        }
        image.extend(&key[shared..]);
        image.push(0x26);
        for part in [cell.qualifier(), cell.value()] {
            varint(&mut image, part.len());
            image.extend(part);
        }
    }
    let count = rows.len();
    rows.iter().for_each(|row| image.extend(row.to_le_bytes()));
    [count, count].iter().for_each(|count| image.extend((*count as u32).to_le_bytes()));
    (image, count)
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let rest = stat.rsplit_once(')').expect("a command").1;
    rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>()
        / TICKS_A_SECOND
}

/// All points of a block as a batch of rows, the way a scan makes one; gives how many.
fn columns(block: &Tsb1Block, builder: &mut RowBatchBuilder) -> usize {
    for row in 0..block.rows_count() {
        builder.begin_row(block.row_key(row)).expect("room");
        assert!(builder.push_packed(|rows| block.pack(row, Packing::Points, rows)), "a row that is not packed");
    }
    let batch = builder.take();
    let points = |row: basalt_store::RowView<'_>| match row.packed() {
        Some(Packed::Points(points)) => black_box(points.words).len(),
        _ => 0,
    };
    batch.rows().map(points).sum()
}

/// Millions of points a CPU second: least, median and greatest of the rounds.
fn rate(name: &str, mut round: impl FnMut() -> usize) {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (began, mut points) = (cpu_seconds(), 0);
            while cpu_seconds() - began < 1.0 {
                points += round();
            }
            points as f64 / (cpu_seconds() - began) / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{name}: {:.0} / {:.0} / {:.0} M points a core-second", rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
}

fn main() {
    for (name, decimals) in [("integers", false), ("two decimals", true)] {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let (mut blocks, mut points, mut bytes) = (Vec::new(), 0, 0);
        for _ in 0..BLOCKS {
            let (image, rows) = image(&mut random, decimals);
            let mut stored = Vec::new();
            assert!(Tsb1.encode_into(&image, &mut stored), "an image that is none");
            points += rows * POINTS as usize;
            bytes += stored.len();
            blocks.push((stored, image.len()));
        }
        println!("{name}: {points} points in {BLOCKS} blocks, {:.3} bytes each", bytes as f64 / points as f64);
        let open = |(stored, length): &(Vec<u8>, usize)| Tsb1.open(stored.clone(), *length).expect("a block of points");
        let mut builder = RowBatchBuilder::new();
        rate(&format!("{name}, from stored bytes"), || {
            blocks.iter().map(|block| columns(&open(block), &mut builder)).sum()
        });
        let opened: Vec<Tsb1Block> = blocks.iter().map(open).collect();
        rate(&format!("{name}, of open blocks"), || opened.iter().map(|block| columns(block, &mut builder)).sum());
    }
}
