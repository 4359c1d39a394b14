//! D rows: where the seeds contradict themselves or HBase, what is so by the store's own answer. Those that fall
//! together with a rule of another code are tested there, under both; `docs/data-model.md` says where.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::Fixture;
use super::scene::Scene;
use crate::{FamilyDescriptor, Get, RowBatch, Scan, TableDescriptor, TableName};

/// Sixteen bytes for a number, spread by it, as a hash's are.
fn hash(number: u64) -> [u8; 16] {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (u128::from(mixed) << 64 | u128::from(!mixed)).to_be_bytes()
}

/// A table split at these keys, with a cell in each of the rows.
fn split<'a>(fixture: &'a mut dyn Fixture, splits: &[&[u8]], rows: &[Vec<u8>]) -> Scene<'a> {
    let mut scene = Scene::versions(fixture, 1);
    scene.table = "regions".parse::<TableName>().unwrap();
    let table = TableDescriptor::new(scene.table.clone(), vec![FamilyDescriptor::new("d")]);
    let splits: Vec<Bytes> = splits.iter().map(|key| Bytes::copy_from_slice(key)).collect();
    scene.store().create_table(table, &splits).unwrap();
    for row in rows {
        scene.put(row, "d:n", 1, "v");
    }
    scene.flush();
    scene
}

/// How many rows lie in each region, by what a scan of its keys gives.
fn rows_by_region(scene: &Scene<'_>) -> Vec<usize> {
    let regions = scene.store().regions(&scene.table).unwrap();
    regions.iter().map(|region| scene.keys(Scan::range(region.start.clone(), region.end.clone())).len()).collect()
}

/// D-3: a hash of the user before the key is a function of the user, so it spreads users and never one user's rows.
pub fn d_3_a_hash_of_the_user_spreads_users_not_one_users_rows(fixture: &mut dyn Fixture) {
    let row = |user: u64, time: u64| [&hash(user)[..], &time.to_be_bytes()].concat();
    let rows: Vec<_> = (0..8).flat_map(|user| (0..4).map(move |time| row(user, time))).collect();
    let scene = split(fixture, &[&[0x40], &[0x80], &[0xc0]], &rows);
    let counts = rows_by_region(&scene);
    assert_eq!(counts.iter().sum::<usize>(), rows.len());
    assert!(counts.iter().all(|count| count % 4 == 0), "a user lies in one region: {counts:?}");
    assert!(counts.iter().filter(|count| **count > 0).count() >= 3, "users do not: {counts:?}");
    assert_eq!(scene.keys(Scan::prefix(&hash(5))).len(), 4, "a user's rows are one scan");
}

/// D-4: a salt of time modulo the buckets uses few of them where times are aligned: 3,600 and the count share divisors.
pub fn d_4_aligned_times_fall_in_few_buckets(fixture: &mut dyn Fixture) {
    let used = [(4_u64, 1), (7, 7), (10, 1), (16, 1), (20, 1), (32, 2), (64, 4), (100, 1), (101, 101)];
    let hours = (0..202_u64).map(|hour| 1_352_822_400 + hour * 3600);
    let row = |buckets: u64, time: u64| [buckets.to_be_bytes(), (time % buckets).to_be_bytes()].concat();
    let rows: BTreeSet<Vec<u8>> = hours.flat_map(|time| used.map(move |(buckets, _)| row(buckets, time))).collect();
    let scene = split(fixture, &[], &rows.into_iter().collect::<Vec<_>>());
    for (buckets, used) in used {
        assert_eq!(scene.keys(Scan::prefix(&buckets.to_be_bytes())).len(), used, "of {buckets} buckets");
    }
}

/// D-5: behind a bucket of the time's, a time that is known is one get; only a range of times is a scan a bucket.
pub fn d_5_a_known_time_is_one_get_whatever_the_buckets(fixture: &mut dyn Fixture) {
    const BUCKETS: u64 = 10;
    let row = |bucket: u64, time: u64| [bucket.to_be_bytes(), time.to_be_bytes()].concat();
    let rows: Vec<_> = (100..140_u64).map(|time| row(time % BUCKETS, time)).collect();
    let scene = split(fixture, &[], &rows);
    assert_eq!(scene.get(Get::row(row(123 % BUCKETS, 123))), ["d:n@1=v"]);
    let range = |bucket| scene.keys(Scan::range(row(bucket, 110), row(bucket, 130))).len();
    assert_eq!((0..BUCKETS).map(range).collect::<Vec<_>>(), [2; 10], "each bucket has its part of the range");
}

/// D-6: of ten regions between hexadecimal keys, split by bytes, three can hold a key: the second, third and ninth.
pub fn d_6_hexadecimal_keys_fall_in_three_of_ten_regions(fixture: &mut dyn Fixture) {
    let splits: Vec<[u8; 2]> = (0..9_u32)
        .map(|nth| (0x3030 + (0x6666 - 0x3030) * nth / 8).to_be_bytes())
        .map(|[_, _, high, low]| [high, low])
        .collect();
    let splits: Vec<&[u8]> = splits.iter().map(|key| &key[..]).collect();
    let rows: Vec<_> = (0..=0xfe_u32).map(|n| format!("{n:02x}00").into_bytes()).collect();
    let scene = split(fixture, &splits, &rows);
    let counts = rows_by_region(&scene);
    let held: Vec<_> = (1..).zip(&counts).filter(|(_, count)| **count > 0).map(|(nth, _)| nth).collect();
    assert_eq!((counts.len(), held), (10, vec![2, 3, 9]), "{counts:?}");
}

/// D-9: something random after a hot beginning makes rows apart, and leaves them in one region.
pub fn d_9_a_random_ending_spreads_nothing(fixture: &mut dyn Fixture) {
    let rows: Vec<_> = (0..16).map(|n| [&b"hot"[..], &hash(n)].concat()).collect();
    let scene = split(fixture, &[b"d", b"j", b"q"], &rows);
    assert_eq!(rows_by_region(&scene), [0, 16, 0, 0]);
}

/// D-12: an index by another key must hold what else the row's key is made of, or it leads nowhere.
pub fn d_12_an_index_holds_the_rest_of_the_key(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.put("user7/order42", "f:total", 1, "99");
    scene.put("index/order42", "f:user", 1, "user7");
    scene.at_every_stage(|scene| {
        assert_eq!(scene.row("order42"), [""; 0], "the order's number alone is no key");
        let entry = scene.row("index/order42");
        let user = entry[0].rsplit('=').next().unwrap();
        assert_eq!(scene.row(&format!("{user}/order42")), ["f:total@1=99"]);
    });
}

/// D-13: padding with a letter puts 10 before 9 and lets two numbers share a key; zeros do neither.
pub fn d_13_padding_with_a_letter_breaks_the_order(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for user in ["1", "9", "10", "x1"] {
        scene.put(format!("{user:x>4}"), "f:user", 1, user);
        scene.put(format!("{user:0>4}"), "f:user", 1, user);
    }
    scene.at_every_stage(|scene| {
        let users = |from: &'static str, to: &'static str| -> Vec<String> {
            scene.scan(Scan::range(from, to)).iter().map(|cell| cell.rsplit('=').next().unwrap().to_owned()).collect()
        };
        assert_eq!(users("00", "01"), ["1", "9", "10", "x1"]);
        assert_eq!(users("x", "y"), ["10", "x1", "9"], "1 was overwritten by x1");
    });
}

/// D-34: as text a long takes up to 20 bytes for 8: two and a half times, not three.
pub fn d_34_a_long_as_text_is_two_and_a_half_times_as_long(fixture: &mut dyn Fixture) {
    let (text, bytes) = (i64::MIN.to_string().into_bytes(), i64::MIN.to_be_bytes().to_vec());
    let scene = split(fixture, &[], &[text, bytes]);
    let mut lengths: Vec<_> =
        scene.batches(Scan::all()).iter().flat_map(RowBatch::rows).map(|row| row.key().len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [8, 20]);
}
