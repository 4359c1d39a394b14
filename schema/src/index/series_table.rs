//! Series by their numbers, and numbers by series. A host sends many metrics with the same tags, so each set of tags is kept
//! once, and a series is a metric and the number of its tags.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;
use roaring::RoaringBitmap;

use super::block::TaggedMetrics;
use super::id_table::IdTable;
use super::pieces::{Element, PIECE, Pieces};
use super::postings::SPREAD;
use crate::Uid;

/// Bytes of tags are kept in chunks of this size; a larger set gets one of its own.
const CHUNK_BYTES: usize = 64 * 1024;

/// Every series, each with a number, in order of arrival. The number of one that went is not given again, nor is that of a set of tags.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    metrics: Vec<Uid>,
    tags: TagSets,
    series: Pieces<Series>,
    /// How many there are.
    count: usize,
    /// Those that are about to go: none that was asked for since.
    leaving: RoaringBitmap,
    /// Series by half a hash of metric and tags.
    index: IdTable,
    hashes: RandomState,
}

/// A series: which metric, which tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Series {
    metric: u32,
    tags: u32,
}

impl Element for Series {
    const GONE: Self = Self { metric: u32::MAX, tags: u32::MAX };
}

/// The sets of tags: the bytes of their pairs, as in row keys.
#[derive(Debug, Default)]
struct TagSets {
    chunks: Vec<Chunk>,
    /// Chunks of which sets went since they were last packed.
    holed: BTreeSet<u32>,
    places: Pieces<Place>,
    /// Sets by half a hash of their bytes.
    index: IdTable,
    hashes: RandomState,
}

/// Sets that came one after the other.
#[derive(Debug)]
struct Chunk {
    /// The number of its first set.
    first: u32,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    chunk: u32,
    offset: u32,
    bytes: u32,
    /// How many series have the set.
    series: u32,
}

impl Element for Place {
    const GONE: Self = Self { chunk: u32::MAX, offset: u32::MAX, bytes: u32::MAX, series: u32::MAX };
}

impl SeriesTable {
    /// Adds a metric; answers its number.
    pub(super) fn add_metric(&mut self, metric: Uid) -> u32 {
        self.metrics.push(metric);
        width(self.metrics.len() - 1)
    }

    /// How many series.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The number of the next series.
    pub(super) fn end(&self) -> usize {
        self.series.end()
    }

    /// The numbers of some that there are.
    pub(super) fn numbers(&self, numbers: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        numbers.filter(|number| self.series.get(*number).is_some())
    }

    /// Says which are about to go, in the place of those said before.
    pub(super) fn set_leaving(&mut self, leaving: RoaringBitmap) {
        self.leaving = leaving;
    }

    /// Those that are about to go.
    pub(super) const fn leaving(&self) -> &RoaringBitmap {
        &self.leaving
    }

    /// Lets a series stay that was about to go.
    pub(super) fn stay(&mut self, number: u32) {
        self.leaving.remove(number);
    }

    /// Takes a series out, and its tags if no other has them.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(series) = self.series.get(number).copied() else { return };
        let word = self.word(series);
        self.index.remove(word, number);
        self.series.remove(number);
        self.tags.let_go(series.tags);
        self.leaving.remove(number);
        self.count -= 1;
    }

    /// Frees what series took that went, whose numbers these are, ascending.
    pub(super) fn shrink_near(&mut self, numbers: &[u32]) {
        numbers
            .chunk_by(|a, b| a / PIECE == b / PIECE)
            .filter_map(<[u32]>::first)
            .for_each(|number| self.series.shrink(*number));
    }

    /// Packs one chunk of tags that has holes; whether there may be more.
    pub(super) fn pack_tags(&mut self) -> bool {
        self.tags.pack_one()
    }

    /// Frees what the tables of hashes need not hold any more. *Cost*: a look at all where most went.
    pub(super) fn shrink(&mut self) {
        self.index.shrink();
        self.tags.index.shrink();
    }

    /// The series of some numbers, by their tags.
    pub(super) fn sets(&self, numbers: Range<u32>) -> Vec<TaggedMetrics> {
        let metric = |series: Series| self.metrics.get(series.metric as usize).copied();
        let series = numbers.filter_map(|number| self.series.get(number).copied());
        let mut series: Vec<(u32, Uid)> = series.filter_map(|series| Some((series.tags, metric(series)?))).collect();
        series.sort_unstable();
        let sets = series.chunk_by(|(tags, _), (other, _)| tags == other);
        sets.filter_map(|set| {
            let tags = self.tags.get(set.first()?.0)?.to_vec();
            Some(TaggedMetrics { tags, metrics: set.iter().map(|(_, metric)| *metric).collect() })
        })
        .collect()
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let TagSets { chunks, places, index, .. } = &self.tags;
        let tags = chunks.iter().map(|chunk| chunk.bytes.capacity() + size_of::<Chunk>()).sum::<usize>();
        tags + places.memory_bytes() + index.memory_bytes() + self.series.memory_bytes() + self.index.memory_bytes()
    }

    /// The number of a series.
    pub(super) fn find(&self, metric: u32, tags: &[u8]) -> Option<u32> {
        self.find_in(metric, self.set(tags)?)
    }

    /// The number of a set of tags.
    pub(super) fn set(&self, tags: &[u8]) -> Option<u32> {
        self.tags.find(tags)
    }

    /// Whether a set of tags that was there is there still.
    pub(super) fn has_set(&self, set: u32) -> bool {
        self.tags.places.get(set).is_some()
    }

    /// Adds a set of tags that is not there; answers its number. Some series of it is to come.
    pub(super) fn add_set(&mut self, tags: &[u8]) -> u32 {
        self.tags.push(tags)
    }

    /// The number of the series of a set of tags.
    pub(super) fn find_in(&self, metric: u32, tags: u32) -> Option<u32> {
        let wanted = Series { metric, tags };
        self.index.of(self.word(wanted)).find(|number| self.series.get(*number) == Some(&wanted))
    }

    /// Adds a series of a set of tags that is not there; answers its number.
    pub(super) fn push(&mut self, metric: u32, tags: u32) -> u32 {
        let (series, number) = (Series { metric, tags }, width(self.series.end()));
        let word = self.word(series);
        self.series.push(series);
        self.count += 1;
        self.tags.places.get_mut(tags).into_iter().for_each(|place| place.series += 1);
        self.index.insert(word, number);
        number
    }

    /// Metric and tags of a number.
    pub(super) fn get(&self, number: u32) -> Option<(Uid, &[u8])> {
        let series = self.series.get(number)?;
        Some((*self.metrics.get(series.metric as usize)?, self.tags.get(series.tags)?))
    }

    /// The set of tags of a number: its own number, and its bytes.
    pub(super) fn tags(&self, number: u32) -> Option<(u32, &[u8])> {
        let Series { tags, .. } = *self.series.get(number)?;
        Some((tags, self.tags.get(tags)?))
    }

    fn word(&self, series: Series) -> u32 {
        let mut hasher = self.hashes.build_hasher();
        hasher.write_u64(u64::from(series.metric) << 32 | u64::from(series.tags));
        word(hasher.finish())
    }
}

impl TagSets {
    fn find(&self, tags: &[u8]) -> Option<u32> {
        self.index.of(self.word(tags)).find(|number| self.get(*number) == Some(tags))
    }

    fn push(&mut self, tags: &[u8]) -> u32 {
        let number = width(self.places.end());
        if self.chunks.last().is_none_or(|Chunk { bytes, .. }| bytes.capacity() - bytes.len() < tags.len()) {
            // The first chunk grows: an index of few series is not to cost a whole one.
            let room = if self.chunks.is_empty() { 256 } else { CHUNK_BYTES };
            self.chunks.push(Chunk { first: number, bytes: Vec::with_capacity(tags.len().max(room)) });
        }
        let chunk = width(self.chunks.len() - 1);
        let mut offset = 0;
        if let Some(Chunk { bytes, .. }) = self.chunks.last_mut() {
            offset = width(bytes.len());
            bytes.extend_from_slice(tags);
        }
        self.places.push(Place { chunk, offset, bytes: width(tags.len()), series: 0 });
        self.index.insert(self.word(tags), number);
        number
    }

    fn get(&self, number: u32) -> Option<&[u8]> {
        let Place { chunk, offset, bytes, .. } = *self.places.get(number)?;
        self.chunks.get(chunk as usize)?.bytes.get(offset as usize..)?.get(..bytes as usize)
    }

    /// One series less has a set; it goes with the last.
    fn let_go(&mut self, number: u32) {
        let Some(place) = self.places.get_mut(number) else { return };
        assert!(place.series > 0, "BUG: a set of tags of fewer than no series");
        place.series -= 1;
        let Place { chunk, series, .. } = *place;
        if series > 0 {
            return;
        }
        let word = self.get(number).map(|tags| self.word(tags));
        if let Some(word) = word {
            self.index.remove(word, number);
        }
        self.places.remove(number);
        self.holed.insert(chunk);
    }

    /// Packs one chunk that has holes; whether there may be more. The last one is left, as it grows.
    fn pack_one(&mut self) -> bool {
        let last = width(self.chunks.len().saturating_sub(1));
        let Some(number) = self.holed.first().copied().filter(|number| *number < last) else { return false };
        self.holed.remove(&number);
        let first_of = |number: u32| self.chunks.get(number as usize).map(|chunk| chunk.first);
        let (Some(first), Some(end)) = (first_of(number), first_of(number + 1)) else { return false };
        let bytes = (first..end).filter_map(|set| self.places.get(set)).map(|place| place.bytes as usize).sum();
        let mut packed = Vec::with_capacity(bytes);
        for set in first..end {
            let Some(tags) = self.get(set) else { continue };
            let offset = width(packed.len());
            packed.extend_from_slice(tags);
            self.places.get_mut(set).into_iter().for_each(|place| place.offset = offset);
        }
        assert!(packed.len() == bytes, "BUG: tags of {} bytes for {bytes}", packed.len());
        self.chunks.get_mut(number as usize).into_iter().for_each(|chunk| chunk.bytes = std::mem::take(&mut packed));
        (first..end).step_by(PIECE as usize).chain([end - 1]).for_each(|set| self.places.shrink(set));
        true
    }

    fn word(&self, tags: &[u8]) -> u32 {
        let mut hasher = self.hashes.build_hasher();
        hasher.write(tags);
        word(hasher.finish())
    }
}

/// The word of a hash. Of numbers that count up the hasher gives ones that are evenly apart, by chance very close: the product spreads them.
fn word(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or(0).wrapping_mul(SPREAD)
}

/// A count that is bounded by that of the series.
fn width(count: usize) -> u32 {
    assert!(u32::try_from(count).is_ok(), "BUG: {count} in the series index");
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_kept_once_however_many_metrics_have_them() {
        let mut table = SeriesTable::default();
        let metrics: Vec<u32> = (1..11).map(|metric| table.add_metric(Uid::new(metric))).collect();
        // Short sets, and one that needs a chunk of its own.
        let sets: Vec<Vec<u8>> = (0..2000_u32)
            .map(|set| set.to_be_bytes().repeat(if set == 77 { CHUNK_BYTES } else { set as usize % 5 + 1 }))
            .collect();
        for (number, (tags, metric)) in
            sets.iter().flat_map(|tags| metrics.iter().map(move |metric| (tags, *metric))).enumerate()
        {
            assert_eq!(table.find(metric, tags), None);
            let set = table.set(tags).unwrap_or_else(|| table.add_set(tags));
            assert_eq!(table.push(metric, set) as usize, number);
        }
        assert_eq!((table.len(), table.tags.places.end()), (20_000, 2000));
        for (number, (tags, metric)) in
            (0..).zip(sets.iter().flat_map(|tags| metrics.iter().map(move |metric| (tags, *metric))))
        {
            assert_eq!(table.find(metric, tags), Some(number));
            assert_eq!(table.get(number), Some((Uid::new(u64::from(metric) + 1), &tags[..])));
            assert_eq!(table.tags(number), Some((number / 10, &tags[..])));
        }
        assert_eq!(table.get(20_000), None);
    }
}
