//! A list in pieces of fixed length: its elements stay where they were put, and nothing is copied when it grows.

/// Elements in the order in which they were pushed, `PIECE` of them in each piece.
#[derive(Debug)]
pub(super) struct Slab<T, const PIECE: usize>(Vec<Vec<T>>);

impl<T, const PIECE: usize> Default for Slab<T, PIECE> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const PIECE: usize> Slab<T, PIECE> {
    /// Adds an element at the end; answers its number.
    pub(super) fn push(&mut self, one: T) -> u32 {
        if self.0.last().is_none_or(|last| last.len() == PIECE) {
            // The first piece grows as a vector does, so that a small memtable does not cost a whole piece.
            self.0.push(Vec::with_capacity(if self.0.is_empty() { 0 } else { PIECE }));
        }
        let before = (self.0.len() - 1) * PIECE;
        let mut place = 0;
        if let Some(last) = self.0.last_mut() {
            place = last.len();
            last.push(one);
        }
        width(before + place)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        width(self.0.len().saturating_sub(1) * PIECE + self.0.last().map_or(0, Vec::len))
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.0.last()?.last()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.0.get(number as usize / PIECE)?.get(number as usize % PIECE)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.0.get_mut(number as usize / PIECE)?.get_mut(number as usize % PIECE)
    }
}

/// A count or offset within a memtable as 32 bits: a memtable is bounded far below 4 GiB.
pub(super) fn width(number: usize) -> u32 {
    assert!(u32::try_from(number).is_ok(), "BUG: {number} in a memtable");
    u32::try_from(number).unwrap_or(u32::MAX)
}
