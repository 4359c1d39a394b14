//! A position in bytes that somebody wrote, hopefully us: every read is checked and none panics.

use crate::field::put_varint;

/// Bytes ended or made no sense at this position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Where, in bytes from the start of what was read.
    pub(super) position: usize,
}

/// The result of reading a layout.
pub(super) type Parsed<T> = Result<T, Malformed>;

/// Bytes and how far they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Input<'a> {
    /// Reads `bytes` from `position` on.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position }
    }

    /// How far it is read.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// A refusal here.
    #[cold]
    pub(super) fn malformed(&self) -> Malformed {
        Malformed { position: self.position }
    }

    /// The next `length` bytes.
    #[inline]
    pub(super) fn bytes(&mut self, length: usize) -> Parsed<&'a [u8]> {
        let end = self.position.checked_add(length).ok_or(self.malformed())?;
        let bytes = self.bytes.get(self.position..end).ok_or(self.malformed())?;
        self.position = end;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let refusal = self.malformed();
        self.bytes(N)?.first_chunk::<N>().copied().ok_or(refusal)
    }

    /// One byte.
    #[inline]
    pub(super) fn u8(&mut self) -> Parsed<u8> {
        let byte = *self.bytes.get(self.position).ok_or(self.malformed())?;
        self.position += 1;
        Ok(byte)
    }

    /// Two bytes, little-endian.
    #[inline]
    pub(super) fn u16(&mut self) -> Parsed<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    #[inline]
    pub(super) fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub(super) fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of 1 to 10 bytes, 7 bits a byte, lowest first (LEB128).
    #[inline]
    pub(super) fn varint(&mut self) -> Parsed<u64> {
        let start = *self;
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(first.into()); // fast path: nearly all lengths
        }
        // Fast path: nearly all deltas end within eight bytes, and are put together of all eight at once.
        if let Some(word) = start.bytes.get(start.position..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*word);
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                self.position = start.position + ends.trailing_zeros() as usize / 8 + 1;
                return Ok(gather(word & (ends ^ (ends - 1))));
            }
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(start.malformed());
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(start.malformed())
    }

    /// A varint that is a length or a count.
    #[inline]
    pub(super) fn length(&mut self) -> Parsed<usize> {
        let start = *self;
        usize::try_from(self.varint()?).map_err(|_| start.malformed())
    }

    /// Three lengths in a row.
    #[inline]
    pub(super) fn lengths(&mut self) -> Parsed<(usize, usize, usize)> {
        // Fast path: each in one byte.
        if let Some([first, second, third]) = self.bytes.get(self.position..).and_then(<[u8]>::first_chunk::<3>)
            && (first | second | third) < 0x80
        {
            self.position += 3;
            return Ok(((*first).into(), (*second).into(), (*third).into()));
        }
        Ok((self.length()?, self.length()?, self.length()?))
    }

    /// A varint that is a signed step: even numbers up, odd ones down.
    #[inline]
    pub(super) fn step_from(&mut self, base: u64) -> Parsed<u64> {
        let folded = self.varint()?;
        Ok(base.wrapping_add((folded >> 1) ^ (folded & 1).wrapping_neg()))
    }
}

/// Puts the low seven bits of each of eight bytes next to each other.
#[inline]
fn gather(bytes: u64) -> u64 {
    let pairs = (bytes & 0x007f_007f_007f_007f) | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// Appends what [`Input::step_from`] reads.
pub(super) fn put_step(out: &mut Vec<u8>, base: u64, value: u64) {
    let step = value.wrapping_sub(base).cast_signed();
    put_varint(out, ((step << 1) ^ (step >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn numbers_roundtrip(value in prop_oneof![any::<u64>(), 0_u64..300, (0_u32..64).prop_map(|bits| u64::MAX >> bits), Just(u64::MAX)], base: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_step(&mut out, base, value);
            let mut input = Input::new(&out, 0);
            prop_assert_eq!(input.varint(), Ok(value));
            prop_assert_eq!(input.step_from(base), Ok(value));
            prop_assert_eq!(input.position(), out.len());
            // The same where more bytes follow.
            let end = out.len();
            out.extend([0xff; 10]);
            let mut input = Input::new(&out, 0);
            prop_assert_eq!(input.varint(), Ok(value));
            prop_assert_eq!(input.step_from(base), Ok(value));
            prop_assert_eq!(input.position(), end);
        }
    }

    #[test]
    fn a_number_over_64_bits_or_cut_short_is_refused() {
        let check = |bytes: &[u8]| assert!(Input::new(bytes, 0).varint().is_err(), "{bytes:x?}");
        check(&[]);
        check(&[0x80]);
        check(&[0xff; 11]);
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]);
    }
}
