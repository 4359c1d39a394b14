//! Known series: from the bytes a series is spelled with to its row keys, by one look-up.
//!
//! A collector writes the same metric and tags in every body, byte for byte. So a series is known by a fingerprint of
//! those bytes, and only a new spelling has its names taken apart, checked and resolved.
//!
//! The fingerprint has 128 bits from two hashes whose keys are random for each process: two spellings that share one by
//! chance are not to be expected before 2^64 of them, and nobody outside can look for a pair. The bytes themselves are
//! not kept, which halves the memory of a series.
//!
//! A rename, a delete or a drop of caches raises the schema's generation; what was resolved before it is resolved again.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use basalt_schema::{SeriesId, SeriesKey};
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::raw_point::{RawPoint, RawText};

/// A spelling's fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

/// A series whose names were checked and resolved, and which the index knows.
#[derive(Debug)]
pub(crate) struct KnownSeries {
    /// The schema's generation before its names were resolved.
    pub(crate) generation: u64,
    /// Its place in the index; one series has one, whatever its spellings.
    pub(crate) id: SeriesId,
    /// Its row keys.
    pub(crate) key: SeriesKey,
}

/// The spellings met lately, bounded by their number.
#[derive(Debug)]
pub(crate) struct SeriesCache {
    known: Cache<Fingerprint, Arc<KnownSeries>, UnitWeighter, BuildHasherDefault<Folded>>,
    high: SeedableRandomState,
    low: SeedableRandomState,
}

/// The two hashes' own keys; foldhash wants them to live as long as the process.
static SEEDS: LazyLock<[SharedSeed; 2]> =
    LazyLock::new(|| [SharedSeed::from_u64(random()), SharedSeed::from_u64(random())]);

/// 64 bits from the keys that the standard library draws from the operating system.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

impl SeriesCache {
    pub(crate) fn new(spellings_max: usize) -> Self {
        let [high, low] = &*SEEDS;
        Self {
            known: Cache::with(
                spellings_max,
                spellings_max as u64,
                UnitWeighter,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            ),
            high: SeedableRandomState::with_seed(random(), high),
            low: SeedableRandomState::with_seed(random(), low),
        }
    }

    /// The fingerprint of a point's metric and tags as they were written. *Cost*: two passes over them.
    pub(crate) fn fingerprint(&self, point: &RawPoint<'_>) -> Fingerprint {
        let high = hash(self.high.build_hasher(), point);
        let low = hash(self.low.build_hasher(), point);
        Fingerprint(u128::from(high) << 64 | u128::from(low))
    }

    /// The series of a fingerprint, if it is known and no name changed since.
    pub(crate) fn get(&self, fingerprint: Fingerprint, generation: u64) -> Option<Arc<KnownSeries>> {
        self.known.get(&fingerprint).filter(|series| series.generation == generation)
    }

    /// Remembers a series; another leaves when there is no room.
    pub(crate) fn insert(&self, fingerprint: Fingerprint, series: Arc<KnownSeries>) {
        self.known.insert(fingerprint, series);
    }

    /// Spellings remembered.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

fn hash(mut hasher: impl Hasher, point: &RawPoint<'_>) -> u64 {
    let metric = point.metric.map_or("", RawText::raw);
    // The form tells an escape of JSON from a backslash of a line; the length tells where the metric ends.
    hasher.write_u8(point.form as u8);
    hasher.write_usize(metric.len());
    hasher.write(metric.as_bytes());
    hasher.write(point.tags.raw().as_bytes());
    hasher.finish()
}

/// Hashes a fingerprint, which is as random as any hash of it.
#[derive(Debug, Default)]
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "one half of a fingerprint is random enough")]
    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::{KeyLayout, Salting, Tsuid, UidWidths};

    use super::*;
    use crate::{IngestLimits, parse_put, parse_put_line};

    fn series(generation: u64) -> Arc<KnownSeries> {
        let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
        let tsuid = Tsuid::parse("000001000001000001", layout.widths).unwrap();
        Arc::new(KnownSeries { generation, id: SeriesId(0), key: layout.series_key(&tsuid) })
    }

    fn fingerprint(cache: &SeriesCache, fields: &str) -> Fingerprint {
        cache.fingerprint(&parse_put(&format!("{{{fields}}}"), &IngestLimits::default()).unwrap()[0])
    }

    #[test]
    fn a_series_is_known_by_its_bytes_alone() {
        let cache = SeriesCache::new(10);
        let of = |fields| fingerprint(&cache, fields);
        let known = of(r#""metric":"m","tags":{"a":"b"},"timestamp":1,"value":1"#);
        assert_eq!(of(r#""value":2,"tags":{"a":"b"},"metric":"m","timestamp":2"#), known);
        for other in [
            r#""metric":"m","tags":{"a": "b"}"#,
            r#""metric":"m{","tags":{"a":"b"}"#,
            r#""metric":"n","tags":{"a":"b"}"#,
            r#""metric":"m","tags":{"a":"c"}"#,
        ] {
            assert_ne!(of(other), known, "{other}");
        }
        // The same bytes say other things on a line.
        let line = parse_put_line(r"put a\u0041 1 1 a=b").unwrap();
        let body = RawPoint { form: crate::Form::Object, ..line };
        assert_ne!(cache.fingerprint(&line), cache.fingerprint(&body));
    }

    #[test]
    fn fingerprints_differ_from_process_to_process() {
        let fields = r#""metric":"m","tags":{"a":"b"}"#;
        assert_ne!(fingerprint(&SeriesCache::new(1), fields), fingerprint(&SeriesCache::new(1), fields));
    }

    #[test]
    fn a_raised_generation_forgets() {
        let cache = SeriesCache::new(10);
        let known = fingerprint(&cache, r#""metric":"m""#);
        cache.insert(known, series(7));
        assert!(cache.get(known, 7).is_some());
        assert!(cache.get(known, 8).is_none());
    }

    #[test]
    fn the_number_of_spellings_is_bounded() {
        let cache = SeriesCache::new(100);
        for n in 0..10_000 {
            cache.insert(fingerprint(&cache, &format!(r#""metric":"m{n}""#)), series(1));
        }
        assert!(cache.len() <= 100, "{}", cache.len());
    }
}
