//! The series of one metric, by tag key and by tag pair.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use roaring::RoaringBitmap;

use super::id_table::IdTable;
use crate::{TagPair, Uid};

/// As many series of a tag pair stand in a table with those of other values; a bitmap of their own would cost more than all
/// else that is known of them. A host's name often has one series a metric.
const FEW_MAX: usize = 8;

/// The series of a metric.
#[derive(Debug, Default)]
pub(super) struct MetricSeries {
    all: RoaringBitmap,
    keys: BTreeMap<Uid, KeySeries>,
    /// How many keys have [`Having::All`].
    whole_count: usize,
}

/// The series of a metric that have a tag key.
#[derive(Debug)]
struct KeySeries {
    having: Having,
    /// The series added last.
    last: u32,
    /// Series of values that few have, by the value's number.
    few: IdTable,
    /// Series of the other values, and of those whose number is no word.
    many: HashMap<Uid, RoaringBitmap, FixedState>,
}

/// Which series have a key.
#[derive(Debug)]
enum Having {
    /// All of the metric's, as is usual: no bitmap is needed.
    All,
    /// These.
    Some(RoaringBitmap),
}

impl MetricSeries {
    /// Adds a series, with a number above those that are there.
    pub(super) fn push(&mut self, id: u32, pairs: impl Iterator<Item = TagPair>) {
        let Self { all, keys, whole_count } = self;
        let mut whole_met = 0;
        for pair in pairs {
            let series = keys.entry(pair.key).or_insert_with(|| {
                // The key is new: no series before has it.
                let having = if all.is_empty() { Having::All } else { Having::Some(RoaringBitmap::new()) };
                *whole_count += usize::from(all.is_empty());
                KeySeries { having, last: u32::MAX, few: IdTable::default(), many: HashMap::default() }
            });
            // A foreign key may name a tag twice.
            let is_first = std::mem::replace(&mut series.last, id) != id;
            match &mut series.having {
                Having::All => whole_met += usize::from(is_first),
                Having::Some(having) => {
                    having.insert(id);
                }
            }
            series.push_value(id, pair.value);
        }
        if whole_met < *whole_count {
            for series in keys.values_mut().filter(|series| series.last != id) {
                if let Having::All = series.having {
                    series.having = Having::Some(all.clone());
                    *whole_count -= 1;
                }
            }
        }
        all.insert(id);
    }

    /// All of them.
    pub(super) const fn all(&self) -> &RoaringBitmap {
        &self.all
    }

    /// Those that have a tag key.
    pub(super) fn with_key(&self, key: Uid) -> RoaringBitmap {
        match self.keys.get(&key).map(|series| &series.having) {
            None => RoaringBitmap::new(),
            Some(Having::All) => self.all.clone(),
            Some(Having::Some(having)) => having.clone(),
        }
    }

    /// Those that have one of these values of a tag.
    pub(super) fn with_any_value(&self, key: Uid, values: impl IntoIterator<Item = Uid>) -> RoaringBitmap {
        let mut found = RoaringBitmap::new();
        let Some(series) = self.keys.get(&key) else { return found };
        let mut few = Vec::new();
        for value in values {
            match series.many.get(&value) {
                Some(many) => found |= many,
                None => few.extend(word(value).into_iter().flat_map(|word| series.few.of(word))),
            }
        }
        few.sort_unstable();
        found.extend(few);
        found
    }

    /// Bytes of memory, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_key = |series: &KeySeries| {
            let having = if let Having::Some(having) = &series.having { bitmap_bytes(having) } else { 0 };
            // A seventh of a map's places stay free, and each has a byte beside it.
            let entry = size_of::<(Uid, RoaringBitmap)>() + 1;
            let many = series.many.capacity() * entry * 8 / 7 + series.many.values().map(bitmap_bytes).sum::<usize>();
            size_of::<(Uid, KeySeries)>() + having + series.few.memory_bytes() + many
        };
        size_of::<Self>() + bitmap_bytes(&self.all) + self.keys.values().map(of_key).sum::<usize>()
    }

    /// The tag keys, ascending.
    pub(super) fn keys(&self) -> Vec<Uid> {
        self.keys.keys().copied().collect()
    }

    /// The values of a tag, ascending.
    pub(super) fn values(&self, key: Uid) -> Vec<Uid> {
        let Some(series) = self.keys.get(&key) else { return Vec::new() };
        let few = series.few.iter().map(|(word, _)| Uid::new(u64::from(word)));
        let mut values: Vec<Uid> = few.chain(series.many.keys().copied()).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

impl KeySeries {
    fn push_value(&mut self, id: u32, value: Uid) {
        if let Some(many) = self.many.get_mut(&value) {
            many.insert(id);
            return;
        }
        let word = word(value);
        if let Some(word) = word.filter(|word| self.few.of(*word).count() < FEW_MAX) {
            self.few.insert(word, id);
            return;
        }
        // From here on it has a bitmap. What the table has of it stays there, and is asked for no more.
        let mut many: RoaringBitmap = word.into_iter().flat_map(|word| self.few.of(word)).collect();
        many.insert(id);
        self.many.insert(value, many);
    }
}

/// What a bitmap keeps on the heap.
fn bitmap_bytes(bitmap: &RoaringBitmap) -> usize {
    /// A container's own place in its list.
    const CONTAINER_BYTES: u64 = 40;
    let statistics = bitmap.statistics();
    let kept =
        [statistics.n_bytes_array_containers, statistics.n_bytes_run_containers, statistics.n_bytes_bitset_containers];
    let bytes = kept.iter().sum::<u64>() + u64::from(statistics.n_containers) * CONTAINER_BYTES;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The word of a value in the table of few, if it has one.
fn word(value: Uid) -> Option<u32> {
    u32::try_from(value.number()).ok()
}
