//! Row keys of a block, column by column: a byte that all keys share at one place is kept once.

use std::ops::Range;

use super::section::{Streams, id};

/// No row key is longer; the store's bound.
const KEY_BYTES_MAX: usize = i16::MAX as usize;

/// Keys one after the other. Reusable.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a key that shares so many bytes with the first; `None` if that is not as long, or the key is too long.
    pub(super) fn push(&mut self, shared: usize, suffix: &[u8]) -> Option<()> {
        let first_end = self.ends.first().copied().unwrap_or(0);
        if shared > first_end || shared + suffix.len() > KEY_BYTES_MAX {
            return None;
        }
        self.bytes.extend_from_within(..shared);
        self.bytes.extend_from_slice(suffix);
        self.ends.push(self.bytes.len());
        Some(())
    }

    /// Bytes of all keys.
    pub(super) fn bytes_count(&self) -> usize {
        self.bytes.len()
    }

    /// The longest key's length times how many keys there are.
    pub(super) fn places_count(&self) -> usize {
        self.columns_count().saturating_mul(self.ends.len())
    }

    /// A row's key, parted where it stops to share bytes with the first row's; the first shares none.
    pub(super) fn parted(&self, row: usize) -> (usize, &[u8]) {
        let key = self.key(row);
        let shared = if row == 0 { 0 } else { self.key(0).iter().zip(key).take_while(|(a, b)| a == b).count() };
        (shared, key.get(shared..).unwrap_or_default())
    }

    pub(super) fn key(&self, row: usize) -> &[u8] {
        self.bytes.get(self.range(row)).unwrap_or_default()
    }

    /// Where a row's key lies in [`Keys::bytes`].
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        self.start(row)..self.ends.get(row).copied().unwrap_or(0)
    }

    /// All keys, one behind the other.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).and_then(|before| self.ends.get(before).copied()).unwrap_or(0)
    }

    /// The bytes at one place of all keys that are so long.
    fn column(&self, place: usize) -> impl Iterator<Item = u8> {
        (0..self.ends.len()).filter_map(move |row| self.key(row).get(place).copied())
    }

    /// The longest key's length.
    fn columns_count(&self) -> usize {
        (0..self.ends.len()).map(|row| self.length(row)).max().unwrap_or(0)
    }

    pub(super) fn encode(&self, streams: &mut Streams) {
        for row in 0..self.ends.len() {
            streams.put_number(id::KEY_BYTES, self.length(row) as u64);
        }
        let mut changes = 0_u8;
        let columns = self.columns_count();
        for place in 0..columns {
            let head = self.column(place).next().unwrap_or(0);
            streams.put_byte(id::KEY_HEADS, head);
            if self.column(place).any(|byte| byte != head) {
                changes |= 1 << (place % 8);
                self.column(place).skip(1).for_each(|byte| streams.put_byte(id::KEY_COLUMNS, byte));
            }
            if place % 8 == 7 || place + 1 == columns {
                streams.put_byte(id::KEY_CHANGES, std::mem::take(&mut changes));
            }
        }
    }

    /// Reads the keys of so many rows, which are at most `bytes_max` bytes in all.
    ///
    /// *Cost*: a visit to each of those bytes, whatever the keys' lengths are.
    pub(super) fn decode(&mut self, rows: usize, bytes_max: usize, streams: &mut Streams) -> Option<()> {
        self.clear();
        let mut end = 0_usize;
        for _ in 0..rows {
            let length =
                usize::try_from(streams.number(id::KEY_BYTES)?).ok().filter(|length| *length <= KEY_BYTES_MAX)?;
            end = end.checked_add(length).filter(|end| *end <= bytes_max)?;
            self.ends.push(end);
        }
        let columns = self.columns_count();
        let heads = streams.bytes(id::KEY_HEADS, columns)?;
        for row in 0..rows {
            self.bytes.extend_from_slice(heads.get(..self.length(row))?);
        }
        // Where the keys begin that are longer than the place, and their lengths.
        let mut longer: Vec<(usize, usize)> = (0..rows).map(|row| (self.start(row), self.length(row))).collect();
        let shortest = |longer: &[(usize, usize)]| longer.iter().map(|(_, length)| *length).min().unwrap_or(0);
        let mut all_are_longer_to = shortest(&longer);
        let mut changes = 0;
        for place in 0..columns {
            if place >= all_are_longer_to {
                longer.retain(|(_, length)| *length > place);
                all_are_longer_to = shortest(&longer);
            }
            if place % 8 == 0 {
                changes = streams.byte(id::KEY_CHANGES);
            }
            if changes >> (place % 8) & 1 == 1 {
                self.fill_column(place, &longer, streams);
            }
        }
        Some(())
    }

    /// Writes a column that changes, but for its first byte, which is the head.
    fn fill_column(&mut self, place: usize, longer: &[(usize, usize)], streams: &mut Streams) {
        for (start, _) in longer.iter().skip(1) {
            if let Some(byte) = self.bytes.get_mut(start + place) {
                *byte = streams.byte(id::KEY_COLUMNS);
            }
        }
    }

    fn length(&self, row: usize) -> usize {
        self.ends.get(row).copied().unwrap_or(0) - self.start(row)
    }
}
