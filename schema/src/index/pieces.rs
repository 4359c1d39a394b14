//! A list that grows at its end, in pieces: what is in it keeps its number, and growing takes no second copy of it. Elements may go; a
//! full piece that lost most of its own keeps what is left and nothing else.

/// Elements of a piece.
pub(super) const PIECE: u32 = 4096;
/// A full piece with no more elements than these has each beside its place.
const SPARSE_MAX: usize = PIECE as usize / 2;

/// What a list is of.
pub(super) trait Element: Copy + PartialEq {
    /// Stands where an element went; no element is alike.
    const GONE: Self;
}

/// Elements by their numbers, in order of arrival.
#[derive(Debug)]
pub(super) struct Pieces<T>(Vec<Piece<T>>);

#[derive(Debug)]
enum Piece<T> {
    Dense(Vec<T>),
    /// Places, ascending, and what is there.
    Sparse(Vec<u16>, Vec<T>),
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Element> Pieces<T> {
    /// Adds an element.
    pub(super) fn push(&mut self, element: T) {
        match self.0.last_mut() {
            Some(Piece::Dense(last)) if last.len() < PIECE as usize => last.push(element),
            // The first piece grows: an index of few series is not to cost a whole one.
            last => {
                let room = if last.is_none() { 0 } else { PIECE as usize };
                let mut piece = Vec::with_capacity(room);
                piece.push(element);
                self.0.push(Piece::Dense(piece));
            }
        }
    }

    /// The element of a number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let place = (number % PIECE) as usize;
        match self.0.get((number / PIECE) as usize)? {
            Piece::Dense(elements) => elements.get(place).filter(|element| **element != T::GONE),
            Piece::Sparse(places, elements) => elements.get(at(places, place)?),
        }
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let place = (number % PIECE) as usize;
        match self.0.get_mut((number / PIECE) as usize)? {
            Piece::Dense(elements) => elements.get_mut(place).filter(|element| **element != T::GONE),
            Piece::Sparse(places, elements) => elements.get_mut(at(places, place)?),
        }
    }

    /// Takes the element of a number out. Its memory is free after [`Pieces::shrink`].
    pub(super) fn remove(&mut self, number: u32) {
        let place = (number % PIECE) as usize;
        match self.0.get_mut((number / PIECE) as usize) {
            Some(Piece::Dense(elements)) => elements.get_mut(place).into_iter().for_each(|gone| *gone = T::GONE),
            Some(Piece::Sparse(places, elements)) => {
                if let Some(at) = at(places, place) {
                    places.remove(at);
                    elements.remove(at);
                }
            }
            None => {}
        }
    }

    /// Frees what the piece of a number need not hold. *Cost*: a look at each of its elements.
    pub(super) fn shrink(&mut self, number: u32) {
        // The last piece still grows.
        let full = self.0.len().saturating_sub(1);
        let Some(piece) = self.0.get_mut(..full).and_then(|full| full.get_mut((number / PIECE) as usize)) else {
            return;
        };
        match piece {
            Piece::Dense(elements) => {
                let left = || (0_u16..).zip(elements.iter()).filter(|(_, element)| **element != T::GONE);
                if left().count() <= SPARSE_MAX {
                    let (places, elements) = left().map(|(place, element)| (place, *element)).unzip();
                    *piece = Piece::Sparse(places, elements);
                }
            }
            Piece::Sparse(places, elements) => {
                places.shrink_to_fit();
                elements.shrink_to_fit();
            }
        }
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let bytes = |piece: &Piece<T>| match piece {
            Piece::Dense(elements) => elements.capacity() * size_of::<T>(),
            Piece::Sparse(places, elements) => {
                places.capacity() * size_of::<u16>() + elements.capacity() * size_of::<T>()
            }
        };
        self.0.iter().map(|piece| bytes(piece) + size_of::<Piece<T>>()).sum()
    }

    /// The number of the next element.
    pub(super) fn end(&self) -> usize {
        let last = self.0.last().map_or(0, |last| match last {
            Piece::Dense(elements) => elements.len(),
            Piece::Sparse(..) => PIECE as usize,
        });
        self.0.len().saturating_sub(1) * PIECE as usize + last
    }
}

/// Where a place is in a list of them.
fn at(places: &[u16], place: usize) -> Option<usize> {
    places.binary_search(&u16::try_from(place).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl Element for u32 {
        const GONE: Self = Self::MAX;
    }

    #[test]
    fn elements_are_found_by_their_numbers() {
        let mut pieces = Pieces::default();
        for number in 0..10_000_u32 {
            assert_eq!(pieces.end(), number as usize);
            assert_eq!(pieces.get(number), None);
            pieces.push(number);
        }
        assert!((0..10_000).all(|number| pieces.get(number) == Some(&number)));
    }

    /// Whole pieces go, parts of pieces, all but one; others come; what is left keeps its number and nothing else its memory.
    #[test]
    fn what_goes_gives_its_memory_back_and_the_rest_keeps_its_number() {
        let (mut pieces, mut expected) = (Pieces::default(), BTreeMap::new());
        for round in 0..4_u32 {
            for _ in 0..20_000 {
                let number = u32::try_from(pieces.end()).unwrap();
                expected.insert(number, number * 3);
                pieces.push(number * 3);
            }
            let goes = |number: &u32| number % 4096 > round || number / 4096 % 3 == 1;
            let gone: Vec<u32> = expected.keys().copied().filter(goes).collect();
            for number in &gone {
                pieces.remove(*number);
                expected.remove(number);
            }
            gone.iter().step_by(1000).chain(gone.last()).for_each(|number| pieces.shrink(*number));
            let end = u32::try_from(pieces.end()).unwrap();
            assert_eq!(end, (round + 1) * 20_000);
            assert!((0..end + 9).all(|number| pieces.get(number) == expected.get(&number)));
            assert!((0..end + 9).all(|number| pieces.get_mut(number).copied() == expected.get(&number).copied()));
            assert!(pieces.memory_bytes() < PIECE as usize * 4 + 20 * 100, "{}", pieces.memory_bytes());
        }
    }
}
