//! A list that only grows, in pieces: what is in it never moves, and growing takes no second copy of it.

/// Elements of a piece.
const PIECE: usize = 4096;

/// Elements by their numbers, in order of arrival.
#[derive(Debug)]
pub(super) struct Pieces<T>(Vec<Vec<T>>);

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Pieces<T> {
    /// Adds an element.
    pub(super) fn push(&mut self, element: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < PIECE => last.push(element),
            // The first piece grows: an index of few series is not to cost a whole one.
            last => {
                let room = if last.is_none() { 0 } else { PIECE };
                let mut piece = Vec::with_capacity(room);
                piece.push(element);
                self.0.push(piece);
            }
        }
    }

    /// The element of a number.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        self.0.get(number / PIECE)?.get(number % PIECE)
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.iter().map(|piece| piece.capacity() * size_of::<T>() + size_of::<Vec<T>>()).sum()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len().saturating_sub(1) * PIECE + self.0.last().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_their_numbers() {
        let mut pieces = Pieces::default();
        for number in 0..10_000_u32 {
            assert_eq!(pieces.len(), number as usize);
            assert_eq!(pieces.get(number), None);
            pieces.push(number);
        }
        assert!((0..10_000).all(|number| pieces.get(number) == Some(&number)));
    }
}
