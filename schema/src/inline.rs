//! A few bytes held in place: what qualifiers, values and UIDs are made of on the way in.
//!
//! The road of a point encodes millions of 2- to 8-byte strings a second. They are `Copy` and live on the stack; a heap
//! string would cost an allocation for each.

use std::fmt;
use std::ops::Deref;

/// At most `N` bytes (`N` ≤ 255), stored in place.
///
/// *Shape*: the bytes in order, padded with zeros that are no part of the string. *Cost*: no allocation.
///
/// ```
/// use basalt_schema::InlineBytes;
/// let bytes = InlineBytes::<4>::new(&[0xE0, 0xF0]);
/// assert_eq!(&*bytes, &[0xE0, 0xF0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InlineBytes<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> InlineBytes<N> {
    /// Copies `bytes`.
    ///
    /// # Panics
    /// If `bytes` is longer than `N`: lengths are known where this is called.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        const { assert!(N <= u8::MAX as usize) };
        assert!(bytes.len() <= N, "BUG: {} bytes into an inline string of {N}", bytes.len());
        let mut held = [0; N];
        for (to, from) in held.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self { bytes: held, len: u8::try_from(bytes.len()).unwrap_or(u8::MAX) }
    }

    /// As many bytes as there are: without a loop over them.
    #[inline]
    pub(crate) fn of<const M: usize>(bytes: [u8; M]) -> Self {
        const { assert!(M <= N && N <= u8::MAX as usize) };
        let mut held = [0; N];
        if let Some(place) = held.first_chunk_mut() {
            *place = bytes;
        }
        Self { bytes: held, len: u8::try_from(M).unwrap_or(u8::MAX) }
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

impl InlineBytes<8> {
    /// The last `count` bytes of a big-endian word, at most 8: without a loop over them.
    #[inline]
    pub(crate) fn last_of(word: u64, count: u8) -> Self {
        let len = count.min(8);
        Self { bytes: word.unbounded_shl(64 - 8 * u32::from(len)).to_be_bytes(), len }
    }
}

impl<const N: usize> Deref for InlineBytes<N> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<const N: usize> AsRef<[u8]> for InlineBytes<N> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<const N: usize> fmt::Debug for InlineBytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
