//! Series by their numbers, and numbers by series. A host sends many metrics with the same tags, so each set of tags is kept
//! once, and a series is a metric and the number of its tags.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::block::TaggedMetrics;
use super::id_table::IdTable;
use super::pieces::Pieces;
use super::postings::SPREAD;
use crate::Uid;

/// Bytes of tags are kept in chunks of this size; a larger set gets one of its own.
const CHUNK_BYTES: usize = 64 * 1024;

/// Every series, each with a number; numbers are dense, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    metrics: Vec<Uid>,
    tags: TagSets,
    series: Pieces<Series>,
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

/// The sets of tags: the bytes of their pairs, as in row keys.
#[derive(Debug, Default)]
struct TagSets {
    chunks: Vec<Vec<u8>>,
    places: Pieces<Place>,
    /// Sets by half a hash of their bytes.
    index: IdTable,
    hashes: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    chunk: u32,
    offset: u32,
    bytes: u32,
}

impl SeriesTable {
    /// Adds a metric; answers its number.
    pub(super) fn add_metric(&mut self, metric: Uid) -> u32 {
        self.metrics.push(metric);
        width(self.metrics.len() - 1)
    }

    /// How many series.
    pub(super) fn len(&self) -> usize {
        self.series.len()
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
        let tags = chunks.iter().map(|chunk| chunk.capacity() + size_of::<Vec<u8>>()).sum::<usize>();
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

    /// Adds a set of tags that is not there; answers its number.
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
        let (series, number) = (Series { metric, tags }, width(self.series.len()));
        let word = self.word(series);
        self.series.push(series);
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
        if self.chunks.last().is_none_or(|last| last.capacity() - last.len() < tags.len()) {
            // The first chunk grows: an index of few series is not to cost a whole one.
            let room = if self.chunks.is_empty() { 256 } else { CHUNK_BYTES };
            self.chunks.push(Vec::with_capacity(tags.len().max(room)));
        }
        let chunk = width(self.chunks.len() - 1);
        let mut offset = 0;
        if let Some(last) = self.chunks.last_mut() {
            offset = width(last.len());
            last.extend_from_slice(tags);
        }
        let number = width(self.places.len());
        self.places.push(Place { chunk, offset, bytes: width(tags.len()) });
        self.index.insert(self.word(tags), number);
        number
    }

    fn get(&self, number: u32) -> Option<&[u8]> {
        let Place { chunk, offset, bytes } = *self.places.get(number)?;
        self.chunks.get(chunk as usize)?.get(offset as usize..)?.get(..bytes as usize)
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
        assert_eq!((table.len(), table.tags.places.len()), (20_000, 2000));
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
