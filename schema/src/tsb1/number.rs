//! Numbers of a block: LEB128 varints, signed ones folded so that small magnitudes are short.

/// Appends a varint: 7 bits a byte, lowest first, the top bit set on all bytes but the last.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// A signed number as an unsigned one: 0, −1, 1, −2 … become 0, 1, 2, 3 ….
pub(super) const fn fold_sign(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The number that [`fold_sign`] took.
pub(super) const fn unfold_sign(folded: u64) -> i64 {
    ((folded >> 1) ^ (folded & 1).wrapping_neg()).cast_signed()
}

/// The lowest eight bits.
#[expect(clippy::cast_possible_truncation, reason = "the lowest byte is what is asked for")]
pub(super) const fn low_byte(value: u64) -> u8 {
    value as u8
}

/// The lowest 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the lowest half is what is asked for")]
pub(super) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// Bytes that may be anything, read from the front; each read says `None` where they end or make no sense.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    /// A varint of at most 64 bits.
    #[inline]
    pub(super) fn varint(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(first.into()); // fast path: nearly all
        }
        let mut value = u64::from(first & 0x7F);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if (bits << shift) >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A varint that is a length or a count.
    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// A varint that steps up or down from `base`, wrapping in 64 bits.
    pub(super) fn step_from(&mut self, base: u64) -> Option<u64> {
        Some(base.wrapping_add(unfold_sign(self.varint()?).cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn numbers_are_read_as_written(value in prop_oneof![any::<u64>(), 0_u64..300, Just(u64::MAX)]) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(Input::new(&out).varint(), Some(value));
            prop_assert_eq!(fold_sign(unfold_sign(value)), value);
        }
    }
}
