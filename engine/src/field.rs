//! Little-endian fields and varints of the engine's own formats.
//!
//! Reading never panics: a field that is not wholly there is `None`, and the
//! caller says which file and offset that makes corrupt.

/// The longest varint: ten groups of seven bits hold 64.
const VARINT_BYTES_MAX: usize = 10;

/// Reads fields one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left, which stays.
    #[inline]
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// LEB128, at most 64 bits.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        // Fast path: nearly all are small.
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Some((*byte).into());
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for index in 0..VARINT_BYTES_MAX {
            let byte = self.u8()?;
            let group = u64::from(byte & 0x7f);
            let shift = 7 * index;
            if group << shift >> shift != group {
                return None;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A varint length, then as many bytes.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.bytes(len)
    }
}

/// Appends a LEB128 varint.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends varints; small ones at once.
#[inline]
pub(crate) fn put_varints<const N: usize>(out: &mut Vec<u8>, values: [u64; N]) {
    if values.iter().all(|value| *value < 0x80) {
        out.extend_from_slice(&values.map(|value| value.to_le_bytes()[0]));
    } else {
        for value in values {
            put_varint(out, value);
        }
    }
}

/// Appends a varint length and the bytes.
#[inline]
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn varints_and_strings_come_back(value: u64, shift in 0..64_u32, bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_varint(&mut out, value >> shift);
            put_string(&mut out, &bytes);
            let mut fields = Fields::new(&out);
            prop_assert_eq!(fields.varint(), Some(value >> shift));
            prop_assert_eq!(fields.string(), Some(&bytes[..]));
            prop_assert!(fields.is_empty());
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let mut fields = Fields::new(&bytes);
            while fields.varint().and_then(|_| fields.string()).is_some() {}
        }
    }

    #[test]
    fn overlong_varints_are_refused() {
        assert_eq!(Fields::new(&[0xff; 10]).varint(), None);
        assert_eq!(Fields::new(&[0xff; 9]).varint(), None);
        let mut max = vec![0xff; 9];
        max.push(1);
        assert_eq!(Fields::new(&max).varint(), Some(u64::MAX));
    }
}
