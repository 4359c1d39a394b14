//! Sorted keys, told apart by the eight bytes behind those that all of them share.
//!
//! A search goes over a plain list of numbers; keys, which lie anywhere in memory, are looked at only where their heads
//! are equal. The keys themselves are kept by the owner.

use std::cmp::Ordering;
use std::ops::Range;

/// How many bytes that keys share are passed over; where they share more, heads are equal and keys are compared.
const SHARED_BYTES_MAX: usize = 32;

/// The heads of sorted keys.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    shared: [u8; SHARED_BYTES_MAX],
    shared_bytes: usize,
    all: Vec<u64>,
}

impl Heads {
    fn shared(&self) -> &[u8] {
        self.shared.get(..self.shared_bytes).unwrap_or_default()
    }

    /// Heads of sorted keys, all at once.
    pub(crate) fn of<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Heads {
        let mut heads = Heads::default();
        let Some(first) = keys.clone().next() else { return heads };
        let shared_bytes = keys.clone().last().map_or(0, |last| common_bytes(first, last));
        heads.share(first.get(..shared_bytes).unwrap_or_default());
        heads.all = keys.map(|key| head(key, heads.shared_bytes)).collect();
        heads
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.all.len() * size_of::<u64>()
    }

    /// The places of keys that only a comparison tells from this one: all before come before it, all behind behind it.
    pub(crate) fn candidates(&self, key: &[u8]) -> Range<usize> {
        let len = self.all.len();
        let (start, _) = key.split_at(self.shared_bytes.min(key.len()));
        match start.cmp(self.shared()) {
            Ordering::Less => return 0..0,
            Ordering::Greater => return len..len,
            Ordering::Equal => {}
        }
        let head = head(key, self.shared_bytes);
        let from = self.all.partition_point(|other| *other < head);
        let rest = self.all.get(from..).unwrap_or_default();
        // Fast path: at most one key has this head.
        let equal = match rest {
            [first, second, ..] if first == second => rest.partition_point(|other| *other == head),
            [first, ..] => usize::from(*first == head),
            [] => 0,
        };
        from..from + equal
    }

    /// The place of a key, or where it belongs; `key_of` answers the key at a place.
    pub(crate) fn search<'a>(&self, key: &[u8], key_of: impl Fn(usize) -> &'a [u8]) -> Result<usize, usize> {
        let Range { start: mut from, end: mut to } = self.candidates(key);
        while from < to {
            let middle = from + (to - from) / 2;
            match key_of(middle).cmp(key) {
                Ordering::Equal => return Ok(middle),
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// Adds a place at the end whose key is told by [`Heads::set`].
    pub(crate) fn push_unset(&mut self) {
        self.all.push(0);
    }

    /// Adds a key; `key_of` answers the other keys by their places so far.
    pub(crate) fn insert<'a>(&mut self, at: usize, key: &[u8], key_of: impl Fn(usize) -> &'a [u8]) {
        if self.all.is_empty() {
            self.share(key);
        } else {
            self.narrow(key, key_of);
        }
        self.all.insert(at, head(key, self.shared_bytes));
    }

    /// Puts a key in the place of another; `key_of` answers the keys as they are now.
    pub(crate) fn set<'a>(&mut self, at: usize, key: &[u8], key_of: impl Fn(usize) -> &'a [u8]) {
        if self.all.len() == 1 {
            self.share(key);
        } else {
            self.narrow(key, key_of);
        }
        if let Some(place) = self.all.get_mut(at) {
            *place = head(key, self.shared_bytes);
        }
    }

    /// Passes over only what a key shares with all others.
    fn narrow<'a>(&mut self, key: &[u8], key_of: impl Fn(usize) -> &'a [u8]) {
        let shared_bytes = common_bytes(self.shared(), key);
        if shared_bytes < self.shared_bytes {
            self.shared_bytes = shared_bytes;
            self.take_anew(key_of);
        }
    }

    /// Takes the heads from a place on off.
    pub(crate) fn split_off(&mut self, at: usize) -> Heads {
        Heads { shared: self.shared, shared_bytes: self.shared_bytes, all: self.all.split_off(at) }
    }

    /// Passes over more bytes where the heads have begun to be alike.
    pub(crate) fn deepen<'a>(&mut self, key_of: impl Fn(usize) -> &'a [u8]) {
        let (Some(first), Some(last)) = (self.all.first(), self.all.last()) else { return };
        if (first ^ last) >> 32 != 0 {
            return;
        }
        let (first, last) = (key_of(0), key_of(self.all.len() - 1));
        let shared_bytes = common_bytes(first, last);
        self.share(first.get(..shared_bytes).unwrap_or_default());
        self.take_anew(key_of);
    }

    fn share(&mut self, bytes: &[u8]) {
        self.shared_bytes = bytes.len().min(SHARED_BYTES_MAX);
        for (place, byte) in self.shared.iter_mut().zip(bytes) {
            *place = *byte;
        }
    }

    fn take_anew<'a>(&mut self, key_of: impl Fn(usize) -> &'a [u8]) {
        for (place, taken) in self.all.iter_mut().enumerate() {
            *taken = head(key_of(place), self.shared_bytes);
        }
    }
}

/// Eight bytes of a key as a number that orders as they do; keys that end sooner come first or equal.
pub(crate) fn head(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    if let Some(head) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut padded = [0; 8];
    for (place, byte) in padded.iter_mut().zip(rest) {
        *place = *byte;
    }
    u64::from_be_bytes(padded)
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
