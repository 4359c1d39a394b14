//! The index against a look at all series, and from many threads.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const WIDTHS: UidWidths =
    UidWidths { metric: crate::UidWidth::DEFAULT, tagk: crate::UidWidth::DEFAULT, tagv: crate::UidWidth::DEFAULT };

fn pair(key: u64, value: u64) -> TagPair {
    TagPair { key: Uid::new(key), value: Uid::new(value) }
}

fn tsuid(metric: u64, pairs: &[(u64, u64)]) -> Tsuid {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| pair(*key, *value)).collect();
    Tsuid::new(Uid::new(metric), &pairs, WIDTHS)
}

#[test]
fn a_series_is_added_once() {
    let index = SeriesIndex::new(WIDTHS, 10);
    let first = index.add(&tsuid(1, &[(1, 1), (2, 2)])).unwrap();
    assert_eq!(index.add(&tsuid(1, &[(2, 2), (1, 1)])).unwrap(), first);
    let second = index.add(&tsuid(1, &[(1, 1)])).unwrap();
    assert_ne!(first, second);
    assert_eq!((index.len(), index.metrics()), (2, vec![Uid::new(1)]));
    assert_eq!(index.id(&tsuid(1, &[(1, 1)])), Some(second));
    assert_eq!(index.id(&tsuid(2, &[(1, 1)])), None);
    assert_eq!(index.tsuid(first), Some(tsuid(1, &[(1, 1), (2, 2)])));
    assert_eq!(index.tsuid(SeriesId(2)), None);
}

#[test]
fn a_full_index_refuses_new_series_and_finds_known_ones() {
    let index = SeriesIndex::new(WIDTHS, 1);
    let known = index.add(&tsuid(1, &[(1, 1)])).unwrap();
    assert!(matches!(index.add(&tsuid(1, &[(1, 2)])), Err(Error::IndexFull { max: 1 })));
    assert_eq!(index.add(&tsuid(1, &[(1, 1)])).unwrap(), known);
    assert!(index.with_tag(Uid::new(1), pair(1, 2)).is_empty());
}

#[test]
fn tsuids_come_in_their_order_not_in_that_of_arrival() {
    let index = SeriesIndex::new(WIDTHS, 10);
    let late = index.add(&tsuid(1, &[(1, 9)])).unwrap();
    let early = index.add(&tsuid(1, &[(1, 3)])).unwrap();
    let found = index.tsuids(&index.series(Uid::new(1)));
    assert_eq!(found, [(early, tsuid(1, &[(1, 3)])), (late, tsuid(1, &[(1, 9)]))]);
}

/// M-LOOKUP: a page of many, whichever of them came first.
#[test]
fn the_first_tsuids_of_many_are_those_of_the_lowest_order() {
    const SERIES_COUNT: u64 = 10_007;
    let index = SeriesIndex::new(WIDTHS, 20_000);
    for at in 0..SERIES_COUNT {
        index.add(&tsuid(1, &[(1, at * 7_919 % SERIES_COUNT + 1)])).unwrap();
    }
    let ids = index.series(Uid::new(1));
    let all: Vec<Tsuid> = (1..=SERIES_COUNT).map(|value| tsuid(1, &[(1, value)])).collect();
    for count in [0, 1, 25, 3_000, 10_006, 10_007, usize::MAX] {
        let expected = &all[..count.min(all.len())];
        assert!(index.first_tsuids(&ids, count) == expected, "{count}");
    }
}

#[test]
fn readers_and_writers_at_once_see_whole_series() {
    let index = SeriesIndex::new(WIDTHS, 10_000);
    std::thread::scope(|scope| {
        for _writer in 0..3 {
            scope.spawn(|| {
                for value in 1..500 {
                    index.add(&tsuid(value % 7 + 1, &[(1, value), (2, 1)])).unwrap();
                }
            });
        }
        for metric in (1..8).cycle().take(200) {
            let metric = Uid::new(metric);
            let ids = index.with_tag(metric, pair(2, 1));
            assert_eq!(index.tsuids(&ids).len() as u64, ids.len());
            assert!(ids.is_subset(&index.with_key(metric, Uid::new(1))));
        }
    });
    assert_eq!(index.len(), 499);
}

/// Whether a series with these tags is asked for.
type Wanted<'a> = &'a dyn Fn(&[(u64, u64)]) -> bool;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every answer is the one that a look at all series gives, also after some left and came again.
    #[test]
    fn answers_agree_with_a_look_at_all_series(
        rounds in proptest::collection::vec(
            (
                proptest::collection::vec((1u64..4, proptest::collection::btree_map(1u64..4, 1u64..6, 0..4)), 0..100),
                proptest::collection::vec(any::<bool>(), 1..9),
            ),
            1..5,
        ),
        asked in (1u64..4, 1u64..4, 1u64..6),
    ) {
        let index = SeriesIndex::new(WIDTHS, 1000);
        let mut all = BTreeSet::new();
        for (added, leave) in rounds {
            for (metric, tags) in added {
                let tags: Vec<_> = tags.into_iter().collect();
                index.add(&tsuid(metric, &tags)).unwrap();
                all.insert((tsuid(metric, &tags), metric, tags));
            }
            agree(&index, &all, asked)?;
            let mut leaves = leave.into_iter().cycle();
            let leaving: Vec<_> = all.iter().filter(|_| leaves.next().unwrap()).cloned().collect();
            index.set_leaving(leaving.iter().map(|(tsuid, ..)| index.id(tsuid).unwrap().0).collect());
            agree(&index, &all, asked)?;
            // Whoever is met again stays.
            let (again, gone) = leaving.split_at(leaving.len() / 3);
            for (tsuid, ..) in again {
                index.add(tsuid).unwrap();
            }
            prop_assert_eq!(index.let_leave(), gone.len() as u64);
            all.retain(|series| !gone.contains(series));
            agree(&index, &all, asked)?;
        }
    }
}

/// A series: what it is known as, its metric, its tags.
type Told = (Tsuid, u64, Vec<(u64, u64)>);

/// Checks what the index says of a metric, a key and a value.
fn agree(
    index: &SeriesIndex,
    all: &BTreeSet<Told>,
    (metric, key, value): (u64, u64, u64),
) -> std::result::Result<(), TestCaseError> {
    let check = |found: &RoaringBitmap, wanted: Wanted<'_>| {
        let tsuids = index.tsuids(found);
        let expected = all.iter().filter(|(_, of, tags)| *of == metric && wanted(tags)).map(|(tsuid, ..)| tsuid);
        tsuids.len() as u64 == found.len() && tsuids.iter().map(|(_, tsuid)| tsuid).eq(expected)
    };
    let (of, tagk) = (Uid::new(metric), Uid::new(key));
    prop_assert!(check(&index.series(of), &|_| true));
    prop_assert!(check(&index.with_tag(of, pair(key, value)), &|tags| tags.contains(&(key, value))));
    prop_assert!(check(&index.with_key(of, tagk), &|tags| tags.iter().any(|(k, _)| *k == key)));
    let both = index.with_any_value(of, tagk, [Uid::new(value), Uid::new(1)]);
    prop_assert!(check(&both, &|tags| tags.contains(&(key, value)) || tags.contains(&(key, 1))));
    let pairs = || all.iter().filter(|(_, of, _)| *of == metric).flat_map(|(.., tags)| tags);
    let values: BTreeSet<Uid> = pairs().filter(|(k, _)| *k == key).map(|(_, value)| Uid::new(*value)).collect();
    prop_assert!(index.tag_values(of, tagk).into_iter().eq(values));
    let keys: BTreeSet<Uid> = pairs().map(|(key, _)| Uid::new(*key)).collect();
    prop_assert!(index.tag_keys(of).into_iter().eq(keys));
    let metrics: BTreeSet<Uid> = all.iter().map(|(_, metric, _)| Uid::new(*metric)).collect();
    prop_assert!(index.metrics().into_iter().eq(metrics));
    prop_assert_eq!(index.len(), all.len());
    for (tsuid, ..) in all {
        let found = index.id(tsuid).and_then(|id| index.tsuid(id));
        prop_assert_eq!(found.as_ref(), Some(tsuid));
    }
    Ok(())
}

/// Hosts of eight tags as TSBS has them, of which one is the host's own.
fn tags_of_host(host: u64) -> Vec<(u64, u64)> {
    vec![
        (1, host + 200),
        (2, host % 5 + 1),
        (3, host % 15 + 6),
        (4, host % 100 + 21),
        (5, host % 3 + 121),
        (6, 124),
        (7, host % 4 + 126),
        (8, host % 20 + 131),
    ]
}

/// An index of `series` series of `metrics` metrics a host.
fn filled(series: u64, metrics: u64) -> SeriesIndex {
    let index = SeriesIndex::new(WIDTHS, u32::MAX);
    for host in 0..series / metrics {
        for metric in 1..=metrics {
            index.add(&tsuid(metric, &tags_of_host(host))).unwrap();
        }
    }
    index
}

/// What `SeriesIndex` promises to take, whatever the number of series is between two growths.
#[test]
fn the_bytes_of_a_series_are_bounded() {
    for (metrics, bytes_max) in [(10, 110), (1, 190)] {
        for series in [100_000, 140_000, 190_000] {
            let bytes = filled(series, metrics).memory_bytes() / series;
            assert!(bytes <= bytes_max, "{bytes} bytes a series of {series}, {metrics} metrics a host");
        }
    }
}

/// Hosts come and go, a few of each generation stay: the index takes no more for all that were ever there.
#[test]
fn what_left_takes_no_memory() {
    const HOSTS: u64 = 6_000;
    for metrics in [10, 1] {
        let (index, mut most) = (SeriesIndex::new(WIDTHS, u32::MAX), Vec::new());
        for generation in 0..6 {
            for host in generation * HOSTS..(generation + 1) * HOSTS {
                for metric in 1..=metrics {
                    index.add(&tsuid(metric, &tags_of_host(host))).unwrap();
                }
            }
            most.push(index.memory_bytes());
            let before = index.ids_before(u32::try_from(index.ids_end()).unwrap());
            let stay = |id: &u32| u64::from(*id) / metrics % 100 == 0;
            let leaving: RoaringBitmap = before.iter().filter(|id| !stay(id)).collect();
            assert_eq!(index.let_leave(), 0, "only those that are said to");
            index.set_leaving(leaving.clone());
            assert_eq!(index.let_leave(), leaving.len());
            assert_eq!(index.len() as u64, (generation + 1) * HOSTS / 100 * metrics);
            // What grows for ever is a few bytes for thousands of series, beside those that stay.
            let left = index.memory_bytes();
            let bound = 700_000 + index.len() as u64 * 300;
            assert!(left < bound, "{metrics} metrics, generation {generation}: {left} bytes of {most:?}, {bound}");
        }
        assert!(most[5] < most[0] * 5 / 4, "{most:?}");
    }
}

/// Prints what a series costs in memory and what it takes to add and find it:
/// `cargo test -p basalt-schema --release -- --ignored memory_of --nocapture`; `SERIES=10000000` for more.
#[test]
#[ignore = "a measurement, not a check"]
fn memory_of_a_million_series() {
    let series = std::env::var("SERIES").map_or(1_000_000, |series| series.parse().unwrap());
    let statm = || std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident = || statm().split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096;
    for metrics in [10, 1] {
        let before = resident();
        let begun = std::time::Instant::now();
        let index = filled(series, metrics);
        let added = begun.elapsed();
        let (taken, told) = ((resident() - before) / series, index.memory_bytes() / series);
        println!("{metrics} metrics a host: {taken} bytes a series resident, {told} told; added in {added:?}");
        let ask = |what: &str, ask: &dyn Fn() -> u64| {
            let begun = std::time::Instant::now();
            let found = ask();
            println!("  {what}: {found} in {:?}", begun.elapsed());
        };
        let metric = Uid::new(1);
        ask("one host", &|| index.with_tag(metric, pair(1, 205)).len());
        ask("one rack", &|| index.with_tag(metric, pair(4, 50)).len());
        ask("a region and a rack", &|| {
            (index.with_tag(metric, pair(2, 1)) & index.with_tag(metric, pair(4, 26))).len()
        });
        ask("1,000 hosts", &|| index.with_any_value(metric, Uid::new(1), (200..1200).map(Uid::new)).len());
        ask("all hosts' names", &|| index.tag_values(metric, Uid::new(1)).len() as u64);
        ask("all series", &|| index.series(metric).len());
        ask("the TSUIDs of a rack", &|| index.tsuids(&index.with_tag(metric, pair(4, 50))).len() as u64);
    }
}
