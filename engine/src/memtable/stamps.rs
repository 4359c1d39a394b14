//! Stamps: when cells were written, and under which sequence numbers.
//!
//! Cells written together have one time, and numbers that follow each other. So a cell holds the place of a stamp, and how
//! much its number is above the first number there: six bytes in place of sixteen.

use basalt_store::{SeqNo, Timestamp};

use super::slab::Slab;

/// Stamps in one piece of the slab.
const PIECE_STAMPS: usize = 1024;

/// A time, and the first of the sequence numbers that have it.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    timestamp: Timestamp,
    first: SeqNo,
}

/// What a stamp costs in memory.
pub(super) const STAMP_BYTES: u64 = size_of::<Stamp>() as u64;

/// A cell's time and number: the place of the stamp, and how much the number is above the stamp's first.
pub(super) type Stamped = (u32, u16);

/// The stamps of a family's cells, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Stamps(Slab<Stamp, PIECE_STAMPS>);

impl Stamps {
    /// Keeps a time and number: as a place in the last stamp if that has the same time and a first number in reach, else as a new
    /// stamp.
    #[inline]
    pub(super) fn keep(&mut self, timestamp: Timestamp, sequence: SeqNo) -> Stamped {
        if let Some(last) = self.0.last()
            && last.timestamp == timestamp
            && let Some(behind) = sequence.0.checked_sub(last.first.0)
            && let Ok(behind) = u16::try_from(behind)
        {
            return (self.0.len() - 1, behind);
        }
        (self.0.push(Stamp { timestamp, first: sequence }), 0)
    }

    /// The time and number that were kept.
    #[inline]
    pub(super) fn get(&self, (place, behind): Stamped) -> (Timestamp, SeqNo) {
        let stamp = self.0.get(place).copied().unwrap_or(Stamp { timestamp: Timestamp(0), first: SeqNo(0) });
        (stamp.timestamp, SeqNo(stamp.first.0 + u64::from(behind)))
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Rng, SplitMix};

    /// Numbers that follow each other, that jump about as far as a stamp reaches, and that go back; times that stay and change.
    #[test]
    fn times_and_numbers_come_back() {
        let (mut rng, mut stamps, mut kept) = (SplitMix::new(1), Stamps::default(), Vec::new());
        let (mut timestamp, mut sequence) = (1_u64 << 40, 100_000_u64);
        for _ in 0..20_000 {
            sequence = match rng.below(40) {
                0 => sequence.saturating_add(65_534 + rng.below(4)),
                1 => sequence.saturating_sub(rng.below(1000)),
                2 => u64::MAX - rng.below(3),
                3 => 200_000,
                _ => sequence.saturating_add(1),
            };
            timestamp = if rng.chance(1, 30) { rng.below(1 << 41) } else { timestamp };
            let stamped = stamps.keep(Timestamp(timestamp), SeqNo(sequence));
            kept.push((stamped, (Timestamp(timestamp), SeqNo(sequence))));
        }
        for (stamped, expected) in kept {
            assert_eq!(stamps.get(stamped), expected);
        }
    }

    /// A change of 65,536 rows at one time is one stamp; the next row begins another.
    #[test]
    fn what_is_written_together_shares_a_stamp() {
        let mut stamps = Stamps::default();
        for number in 0..=65_536 {
            stamps.keep(Timestamp(7), SeqNo(number));
        }
        assert_eq!(stamps.len(), 2);
        stamps.keep(Timestamp(8), SeqNo(65_537));
        stamps.keep(Timestamp(8), SeqNo(65_536));
        assert_eq!(stamps.len(), 4);
    }
}
