//! The series of one metric, by tag key and by tag pair.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use roaring::RoaringBitmap;

use super::ascending::Ascending;
use super::id_table::IdTable;
use crate::{TagPair, Uid};

/// As many series of a tag pair stand in a table with those of other values; a bitmap of their own would cost more than all
/// else that is known of them. A host's name often has one series a metric.
const FEW_MAX: usize = 8;

/// An odd number spreads 32 bits, and its inverse takes that back.
pub(super) const SPREAD: u32 = 0x9E37_79B9;
const GATHER: u32 = 0x144C_BC89;
const _: () = assert!(SPREAD.wrapping_mul(GATHER) == 1);

/// The series of a metric.
#[derive(Debug, Default)]
pub(super) struct MetricSeries {
    all: Ascending,
    keys: BTreeMap<Uid, KeySeries>,
    /// How many keys have [`Having::All`].
    whole_count: usize,
    /// Series that went since bitmaps were last copied.
    gone: u64,
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
    many: HashMap<Uid, Ascending, FixedState>,
}

/// Which series have a key.
#[derive(Debug)]
enum Having {
    /// All of the metric's, as is usual: no bitmap is needed.
    All,
    /// These.
    Some(Ascending),
}

impl MetricSeries {
    /// Adds a series, with a number above those that are there.
    pub(super) fn push(&mut self, id: u32, pairs: impl Iterator<Item = TagPair>) {
        let Self { all, keys, whole_count, .. } = self;
        let mut whole_met = 0;
        for pair in pairs {
            let series = keys.entry(pair.key).or_insert_with(|| {
                // The key is new: no series before has it.
                let having = if all.is_empty() { Having::All } else { Having::Some(Ascending::default()) };
                *whole_count += usize::from(all.is_empty());
                KeySeries { having, last: u32::MAX, few: IdTable::default(), many: HashMap::default() }
            });
            // A foreign key may name a tag twice.
            let is_first = std::mem::replace(&mut series.last, id) != id;
            match &mut series.having {
                Having::All => whole_met += usize::from(is_first),
                Having::Some(having) => having.push(id),
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
        all.push(id);
    }

    /// Takes a series out, whose tags these are.
    pub(super) fn remove(&mut self, id: u32, pairs: impl Iterator<Item = TagPair>) {
        for pair in pairs {
            let Some(series) = self.keys.get_mut(&pair.key) else { continue };
            if let Having::Some(having) = &mut series.having {
                having.remove(id);
            }
            series.remove_value(id, pair.value);
        }
        self.all.remove(id);
        self.gone += 1;
    }

    /// Frees what those that went took, and the keys that only they had. *Cost*: a look at each key; where they were many, a copy of all.
    pub(super) fn shrink(&mut self) {
        self.keys.retain(|_, series| !series.few.is_empty() || !series.many.is_empty());
        self.whole_count = self.keys.values().filter(|series| matches!(series.having, Having::All)).count();
        if self.gone <= self.len() / 2 {
            return;
        }
        self.gone = 0;
        self.all.shrink();
        for KeySeries { having, few, many, .. } in self.keys.values_mut() {
            if let Having::Some(having) = having {
                having.shrink();
            }
            few.shrink();
            many.shrink_to_fit();
            many.values_mut().for_each(Ascending::shrink);
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> RoaringBitmap {
        self.all.to_bitmap()
    }

    /// How many.
    pub(super) fn len(&self) -> u64 {
        self.all.len()
    }

    /// Those that have a tag key.
    pub(super) fn with_key(&self, key: Uid) -> RoaringBitmap {
        match self.keys.get(&key).map(|series| &series.having) {
            None => RoaringBitmap::new(),
            Some(Having::All) => self.all(),
            Some(Having::Some(having)) => having.to_bitmap(),
        }
    }

    /// Those that have one of these values of a tag.
    pub(super) fn with_any_value(&self, key: Uid, values: impl IntoIterator<Item = Uid>) -> RoaringBitmap {
        let mut found = RoaringBitmap::new();
        let Some(series) = self.keys.get(&key) else { return found };
        let mut few = Vec::new();
        for value in values {
            match series.many.get(&value) {
                Some(many) => many.add_to(&mut found),
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
            let having = if let Having::Some(having) = &series.having { having.heap_bytes() } else { 0 };
            // A seventh of a map's places stay free, and each has a byte beside it.
            let entry = size_of::<(Uid, Ascending)>() + 1;
            let many =
                series.many.capacity() * entry * 8 / 7 + series.many.values().map(Ascending::heap_bytes).sum::<usize>();
            size_of::<(Uid, KeySeries)>() + having + series.few.memory_bytes() + many
        };
        size_of::<Self>() + self.all.heap_bytes() + self.keys.values().map(of_key).sum::<usize>()
    }

    /// The tag keys, ascending.
    pub(super) fn keys(&self) -> Vec<Uid> {
        self.keys.keys().copied().collect()
    }

    /// The values of a tag, ascending.
    pub(super) fn values(&self, key: Uid) -> Vec<Uid> {
        let Some(series) = self.keys.get(&key) else { return Vec::new() };
        let few = series.few.iter().map(|(word, _)| value(word));
        let mut values: Vec<Uid> = few.chain(series.many.keys().copied()).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

impl KeySeries {
    fn push_value(&mut self, id: u32, value: Uid) {
        if let Some(many) = self.many.get_mut(&value) {
            many.push(id);
            return;
        }
        let word = word(value);
        if let Some(word) = word.filter(|word| self.few.of(*word).count() < FEW_MAX) {
            self.few.insert(word, id);
            return;
        }
        // From here on it has a bitmap. What the table has of it stays there, and is asked for no more.
        let mut few: Vec<u32> = word.into_iter().flat_map(|word| self.few.of(word)).chain([id]).collect();
        few.sort_unstable();
        let mut many = Ascending::default();
        for id in few {
            many.push(id);
        }
        self.many.insert(value, many);
    }

    fn remove_value(&mut self, id: u32, value: Uid) {
        // Also where a bitmap came after it: else it would be asked for again once that is gone.
        if let Some(word) = word(value) {
            self.few.remove(word, id);
        }
        if let Some(many) = self.many.get_mut(&value) {
            many.remove(id);
            if many.is_empty() {
                self.many.remove(&value);
            }
        }
    }
}

/// The word of a value in the table of few, if it has one: UIDs count up, words are spread evenly.
fn word(value: Uid) -> Option<u32> {
    u32::try_from(value.number()).ok().map(|number| number.wrapping_mul(SPREAD))
}

/// The value of a word.
fn value(word: u32) -> Uid {
    Uid::new(word.wrapping_mul(GATHER).into())
}
