//! Known series: one look-up leads from the *spelling* of a series (the bytes of its metric and tags) to its row keys.
//!
//! A collector writes the same metric and tags in every body, byte for byte. So a series is known by a fingerprint of
//! those bytes. Only the names of a new spelling are parsed, checked and resolved.
//!
//! The fingerprint has 128 bits, from two hashes whose keys are random for each process. Two spellings with one fingerprint
//! are not to be expected among fewer than 2^64 spellings, and nobody outside can search for such a pair. The bytes
//! themselves are not kept, which halves the memory of a series.
//!
//! The table's read lock is taken once for a body or batch, so that a point costs neither a lock nor a reference count. When
//! the table is full, a new spelling replaces one that was not asked for lately (the clock algorithm).
//!
//! A rename, a delete or a drop of caches raises the schema's generation. Series of an older generation are resolved again. Of series that
//! leave the index the spellings are forgotten, and new ones come into their places.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard};

use basalt_schema::{IdTable, SeriesId, SeriesKey};
use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use crate::raw_point::{Form, RawPoint};
use crate::raw_text::RawText;
use crate::spelling::{Fingerprint, Spelled};

/// A series whose names were checked and resolved, and which the index knows.
#[derive(Debug, Clone)]
pub(crate) struct KnownSeries {
    /// Its place in the index. A series has one place, whatever its spellings.
    pub(crate) id: SeriesId,
    /// Its row keys.
    pub(crate) key: SeriesKey,
}

/// Tags with their hashes, kept for the next spelling: senders write the metrics of a host one after the other, with the same tags.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedTags<'a> {
    pub(crate) text: &'a str,
    fingerprint: Fingerprint,
}

/// The spellings met lately, bounded by their number.
#[derive(Debug)]
pub(crate) struct SeriesCache {
    /// Leaf lock: read for a body or batch, written for each new spelling.
    known: RwLock<Known>,
    spellings_max: usize,
    /// The process's keys of the two hashes.
    seeds: &'static [SharedSeed; 2],
    /// This cache's keys of them.
    keys: [u64; 2],
}

#[derive(Debug, Default)]
struct Known {
    /// Places of spellings, by half of their fingerprints: 8 bytes a slot, where a map of whole ones would take 25.
    places: IdTable,
    spellings: Vec<Spelling>,
    /// Places of spellings that were forgotten; those forgotten together descend, so that new ones come one behind the other.
    free: Vec<u32>,
    /// The clock's hand: where the search for a spelling to replace begins.
    hand: usize,
}

#[derive(Debug)]
struct Spelling {
    fingerprint: Fingerprint,
    /// Of a place that is free, that of who had it.
    series: KnownSeries,
    /// Twice the schema's generation, read before the names were resolved, and 1 more where it was asked for since the hand last
    /// passed it. Relaxed.
    state: AtomicU64,
}

/// There is one for each series that writes.
const _: () = assert!(size_of::<Spelling>() == 56);

/// In a spelling's state: it was asked for.
const ASKED: u64 = 1;
/// The state of a place that is free, of no generation.
const FREE: u64 = u64::MAX;
/// Places looked at before the lock is free for others.
const PLACES_AT_ONCE: usize = 4096;

/// The spellings under the read lock. No name may be resolved while this is held, as that takes the write lock.
#[derive(Debug)]
pub(crate) struct KnownGuard<'a> {
    cache: &'a SeriesCache,
    known: RwLockReadGuard<'a, Known>,
    generation: u64,
}

/// The process's keys of the two hashes; foldhash needs them to live as long as the process.
static SEEDS: LazyLock<[SharedSeed; 2]> =
    LazyLock::new(|| [SharedSeed::from_u64(random()), SharedSeed::from_u64(random())]);

/// 64 bits from the keys that the standard library draws from the operating system.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

impl SeriesCache {
    pub(crate) fn new(spellings_max: usize) -> Self {
        Self {
            known: RwLock::default(),
            spellings_max: spellings_max.clamp(1, u32::MAX as usize),
            seeds: &SEEDS,
            keys: [random(), random()],
        }
    }

    /// The fingerprint of a metric and tags as they were written. *Cost*: two passes over them.
    pub(crate) fn fingerprint(&self, form: Form, metric: &str, tags: &str) -> Fingerprint {
        self.with_metric(self.of_tags(form, tags), metric)
    }

    fn of_tags(&self, form: Form, tags: &str) -> Fingerprint {
        let half = |mut hasher: FoldHasher<'_>| {
            // The form distinguishes an escape of JSON from a backslash in a line.
            hasher.write_u8(form as u8);
            hasher.write(tags.as_bytes());
            hasher.finish()
        };
        let [high, low] = self.seeds;
        let [high_key, low_key] = self.keys;
        Fingerprint {
            high: half(FoldHasher::with_seed(high_key, high)),
            low: half(FoldHasher::with_seed(low_key, low)),
        }
    }

    /// Hashes a metric, going on from the hashes of its tags.
    #[inline]
    fn with_metric(&self, tags: Fingerprint, metric: &str) -> Fingerprint {
        let [high, low] = self.seeds;
        let half = |tags, seed| {
            let mut hasher = FoldHasher::with_seed(tags, seed);
            hasher.write(metric.as_bytes());
            hasher.finish()
        };
        Fingerprint { high: half(tags.high, high), low: half(tags.low, low) }
    }

    /// The fingerprint of a point.
    pub(crate) fn fingerprint_of(&self, point: &RawPoint<'_>) -> Fingerprint {
        self.fingerprint(point.form, point.metric.map_or("", RawText::raw), point.tags.raw())
    }

    /// Takes the read lock for look-ups, which find only series of this generation.
    pub(crate) fn read(&self, generation: u64) -> KnownGuard<'_> {
        KnownGuard { cache: self, known: self.known.read().unwrap_or_else(PoisonError::into_inner), generation }
    }

    /// Remembers a series, whose names were resolved after this generation was read; it replaces another one when there is no room.
    pub(crate) fn insert(&self, fingerprint: Fingerprint, generation: u64, series: KnownSeries) {
        let spelling = Spelling { fingerprint, series, state: AtomicU64::new(generation << 1) };
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(spelling, self.spellings_max);
    }

    /// Forgets the spellings of some series.
    pub(crate) fn forget(&self, goes: &dyn Fn(SeriesId) -> bool) {
        let known = || self.known.write().unwrap_or_else(PoisonError::into_inner);
        let places = known().spellings.len();
        for start in (0..places).step_by(PLACES_AT_ONCE).rev() {
            known().forget(start..places.min(start + PLACES_AT_ONCE), goes);
        }
        known().shrink();
    }

    /// How many spellings are remembered.
    pub(crate) fn len(&self) -> usize {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.spellings.len() - known.free.len()
    }
}

impl Known {
    /// The place of a spelling, if it is there.
    #[inline]
    fn place(&self, fingerprint: Fingerprint) -> Option<u32> {
        let is_it =
            |place: &u32| self.spellings.get(*place as usize).is_some_and(|other| other.fingerprint == fingerprint);
        self.places.of(fingerprint.word()).find(is_it)
    }

    /// The same, but tries place `next` first: senders write series in the order in which they wrote them first.
    #[inline]
    fn place_from(&self, next: u32, fingerprint: Fingerprint) -> Option<u32> {
        let is_next = self.spellings.get(next as usize).is_some_and(|next| next.fingerprint == fingerprint);
        if is_next { Some(next) } else { self.place(fingerprint) }
    }

    fn insert(&mut self, spelling: Spelling, spellings_max: usize) {
        let fingerprint = spelling.fingerprint;
        let known = self.place(fingerprint).and_then(|place| self.spellings.get_mut(place as usize));
        if let Some(known) = known {
            *known = spelling;
        } else if let Some(place) = self.free.pop() {
            self.places.insert(fingerprint.word(), place);
            if let Some(free) = self.spellings.get_mut(place as usize) {
                *free = spelling;
            }
        } else if self.spellings.len() < spellings_max {
            let place = u32::try_from(self.spellings.len()).unwrap_or(u32::MAX);
            self.places.insert(fingerprint.word(), place);
            self.spellings.push(spelling);
        } else {
            self.replace(spelling);
        }
    }

    /// Puts a spelling in the place of one that was not asked for since the hand last passed it.
    fn replace(&mut self, spelling: Spelling) {
        let count = self.spellings.len();
        let mut places = (self.hand..count).chain(0..count).chain(0..count);
        let is_idle = |place: &usize| {
            let state = self.spellings.get(*place).map(|spelling| spelling.state.fetch_and(!ASKED, Ordering::Relaxed));
            state.is_some_and(|state| state & ASKED == 0)
        };
        let Some(place) = places.find(is_idle) else { return };
        self.hand = place + 1;
        if let Some(left) = self.spellings.get_mut(place) {
            let number = u32::try_from(place).unwrap_or(u32::MAX);
            self.places.remove(left.fingerprint.word(), number);
            self.places.insert(spelling.fingerprint.word(), number);
            *left = spelling;
        }
    }

    /// Forgets the spellings of some series, of those in these places.
    fn forget(&mut self, places: Range<usize>, goes: &dyn Fn(SeriesId) -> bool) {
        let [first, end] = [places.start, places.end].map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        for (place, spelling) in (first..end).zip(self.spellings.get_mut(places).unwrap_or_default().iter_mut()).rev() {
            let state = spelling.state.get_mut();
            if *state != FREE && goes(spelling.series.id) {
                *state = FREE;
                self.places.remove(spelling.fingerprint.word(), place);
                self.free.push(place);
            }
        }
    }

    /// Gives back what was forgotten takes, as far as it is the last.
    fn shrink(&mut self) {
        while self.spellings.last_mut().is_some_and(|last| *last.state.get_mut() == FREE) {
            self.spellings.pop();
        }
        let places = self.spellings.len();
        self.free.retain(|place| (*place as usize) < places);
        self.places.shrink();
        if places < self.spellings.capacity() / 4 {
            self.spellings.shrink_to(places * 2);
            self.free.shrink_to_fit();
        }
    }
}

impl KnownGuard<'_> {
    /// Looks up a spelling; finds only a series of this generation.
    pub(crate) fn find(&self, form: Form, metric: &str, tags: &str) -> Option<Spelled> {
        let mut spelled = self.guess(form, metric, tags);
        self.find_guessed(&mut spelled).then_some(spelled)
    }

    /// A spelling as if it were known: it is hashed, and not looked up yet.
    pub(crate) fn guess(&self, form: Form, metric: &str, tags: &str) -> Spelled {
        self.guess_with(metric, self.hashed(form, tags))
    }

    /// The tags of such spellings, hashed.
    pub(crate) fn hashed<'t>(&self, form: Form, text: &'t str) -> HashedTags<'t> {
        HashedTags { text, fingerprint: self.cache.of_tags(form, text) }
    }

    /// As [`KnownGuard::guess`].
    #[inline]
    pub(crate) fn guess_with(&self, metric: &str, tags: HashedTags<'_>) -> Spelled {
        Spelled { fingerprint: self.cache.with_metric(tags.fingerprint, metric), place: Spelled::NOWHERE, value: None }
    }

    /// Looks up all guessed spellings; false when any is not known. They are looked up in one loop, so that the processor waits for
    /// the memory of several at the same time.
    pub(crate) fn find_all<'s>(&self, mut spelled: impl Iterator<Item = &'s mut Spelled>) -> bool {
        let mut next = 0;
        spelled.all(|spelled| {
            let Some(place) = self.known.place_from(next, spelled.fingerprint) else { return false };
            (spelled.place, next) = (place, place + 1);
            let series = self.at(*spelled);
            // Loads the series' key, which is needed next.
            series.inspect(|series| series.key.touch()).is_some()
        })
    }

    /// Looks up a guessed spelling; false when it is not known.
    pub(crate) fn find_guessed(&self, spelled: &mut Spelled) -> bool {
        self.find_all(std::iter::once(spelled))
    }

    /// The series of a point, if its spelling is known and no name changed since.
    #[inline]
    pub(crate) fn series_of(&self, point: &RawPoint<'_>) -> Option<&KnownSeries> {
        // Fast path: the series was found when the point was read.
        if let Some(series) = point.spelled.and_then(|spelled| self.at(spelled)) {
            return Some(series);
        }
        let fingerprint = self.cache.fingerprint_of(point);
        let place = self.known.place(fingerprint)?;
        self.at(Spelled { fingerprint, place, value: None })
    }

    #[inline]
    fn at(&self, spelled: Spelled) -> Option<&KnownSeries> {
        let spelling = self.known.spellings.get(spelled.place as usize)?;
        let state = spelling.state.load(Ordering::Relaxed);
        if spelling.fingerprint != spelled.fingerprint || state >> 1 != self.generation {
            return None;
        }
        // Only where it changes: a cache line that nobody writes stays in the cache of every core.
        if state & ASKED == 0 {
            spelling.state.store(state | ASKED, Ordering::Relaxed);
        }
        Some(&spelling.series)
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::{KeyLayout, Salting, Tsuid, UidWidths};

    use super::*;
    use crate::{IngestLimits, parse_put, parse_put_line};

    fn series() -> KnownSeries {
        let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
        let tsuid = Tsuid::parse("000001000001000001", layout.widths).unwrap();
        KnownSeries { id: SeriesId(0), key: layout.series_key(&tsuid) }
    }

    fn fingerprint(cache: &SeriesCache, fields: &str) -> Fingerprint {
        cache.fingerprint_of(&parse_put(&format!("{{{fields}}}"), &IngestLimits::default()).unwrap()[0])
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
        let body = RawPoint { form: Form::Object, ..line };
        assert_ne!(cache.fingerprint_of(&line), cache.fingerprint_of(&body));
    }

    #[test]
    fn fingerprints_differ_from_process_to_process() {
        let fields = r#""metric":"m","tags":{"a":"b"}"#;
        assert_ne!(fingerprint(&SeriesCache::new(1), fields), fingerprint(&SeriesCache::new(1), fields));
    }

    /// Of series that leave every spelling goes; the others are found, and new ones take the places.
    #[test]
    fn spellings_of_series_that_leave_are_forgotten() {
        let cache = SeriesCache::new(20_000);
        let of = |number: u32| cache.fingerprint(Form::Line, "m", &format!("h={number}"));
        let insert = |number: u32| cache.insert(of(number), 7, KnownSeries { id: SeriesId(number / 2), ..series() });
        let known = |number: u32| cache.read(7).find(Form::Line, "m", &format!("h={number}")).is_some();
        (0..10_000).for_each(insert);
        cache.forget(&|SeriesId(id)| id % 3 == 0);
        assert_eq!(cache.len(), (0..10_000).filter(|number| number / 2 % 3 > 0).count());
        assert!((0..10_000).all(|number| known(number) == (number / 2 % 3 > 0)));
        // Also those that are known at a place already.
        let spelled = cache.read(7).find(Form::Line, "m", "h=2").unwrap();
        cache.forget(&|SeriesId(id)| id == 1);
        assert!(cache.read(7).at(spelled).is_none());
        (10_000..12_000).for_each(insert);
        assert_eq!(cache.known.read().unwrap().spellings.len(), 10_000, "places are used again");
        assert!((10_000..12_000).all(known) && !known(0) && known(5));
        cache.forget(&|SeriesId(id)| id >= 10);
        assert!((4..20).all(|number| known(number) == (number / 2 % 3 > 0)) && !known(11_000));
        assert!(cache.known.read().unwrap().spellings.capacity() < 100);
        (12_000..12_500).for_each(insert);
        assert!((12_000..12_500).all(known));
    }

    #[test]
    fn a_raised_generation_forgets() {
        let cache = SeriesCache::new(10);
        let body = r#"{"metric":"m"}"#;
        let point = parse_put(body, &IngestLimits::default()).unwrap()[0];
        cache.insert(cache.fingerprint_of(&point), 7, series());
        assert!(cache.read(7).series_of(&point).is_some());
        assert!(cache.read(8).series_of(&point).is_none());
        assert!(cache.read(7).find(Form::Object, "m", "").is_some());
        assert!(cache.read(8).find(Form::Object, "m", "").is_none());
    }

    #[test]
    fn the_number_of_spellings_is_bounded_and_those_asked_for_stay() {
        let cache = SeriesCache::new(100);
        for n in 0..10_000 {
            cache.insert(fingerprint(&cache, &format!(r#""metric":"m{n}""#)), 1, series());
            assert!(cache.read(1).find(Form::Object, "m0", "").is_some(), "{n}");
        }
        assert_eq!(cache.len(), 100);
    }

    #[test]
    fn a_place_that_another_took_is_not_taken_for_the_first() {
        let cache = SeriesCache::new(1);
        let first = fingerprint(&cache, r#""metric":"a""#);
        cache.insert(first, 1, series());
        let found = cache.read(1).find(Form::Object, "a", "");
        cache.insert(fingerprint(&cache, r#""metric":"b""#), 1, series());
        assert!(found.is_some_and(|spelled| cache.read(1).at(spelled).is_none()));
    }
}
