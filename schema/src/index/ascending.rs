//! A set to which ever larger numbers are added.

use roaring::RoaringBitmap;
use smallvec::SmallVec;

/// As many numbers wait beside a bitmap.
const LATE_MAX: usize = 6;

/// A bitmap, and the numbers that came last.
///
/// *Cost*: an addition is a store beside the bitmap; every seventh goes into it with those before. A bitmap alone would be
/// searched for the place of each, which is at its end, and a series has ten tags whose bitmaps are in no cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Ascending {
    kept: RoaringBitmap,
    /// Above all that are in the bitmap, ascending; empty where the bitmap is.
    late: SmallVec<[u32; LATE_MAX]>,
}

impl Ascending {
    /// Adds a number that is not below those that are there.
    pub(super) fn push(&mut self, number: u32) {
        let last = self.late.last().copied();
        assert!(last <= Some(number), "BUG: {number} comes after {last:?}");
        if last == Some(number) {
            return;
        }
        if self.late.len() == LATE_MAX {
            let appended = self.kept.append(self.late.drain(..));
            assert!(appended.is_ok(), "BUG: {appended:?}");
        }
        self.late.push(number);
    }

    /// Takes a number out, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        match self.late.iter().position(|late| *late == number) {
            Some(at) => drop(self.late.remove(at)),
            None => drop(self.kept.remove(number)),
        }
        if let (true, Some(last)) = (self.late.is_empty(), self.kept.max()) {
            self.kept.remove(last);
            self.late.push(last);
        }
    }

    /// Gives back what numbers took that were taken out. *Cost*: a copy.
    pub(super) fn shrink(&mut self) {
        // A bitmap keeps its lists as long as they were; a copy has them as long as they are.
        self.kept = self.kept.clone();
    }

    /// How many.
    pub(super) fn len(&self) -> u64 {
        self.kept.len() + self.late.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.late.is_empty()
    }

    /// Adds all of them to a bitmap.
    pub(super) fn add_to(&self, bitmap: &mut RoaringBitmap) {
        *bitmap |= &self.kept;
        bitmap.extend(&self.late);
    }

    pub(super) fn to_bitmap(&self) -> RoaringBitmap {
        let mut bitmap = self.kept.clone();
        bitmap.extend(&self.late);
        bitmap
    }

    /// What the bitmap keeps on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        /// A container's own place in its list.
        const CONTAINER_BYTES: u64 = 40;
        let statistics = self.kept.statistics();
        let kept = [
            statistics.n_bytes_array_containers,
            statistics.n_bytes_run_containers,
            statistics.n_bytes_bitset_containers,
        ];
        let bytes = kept.iter().sum::<u64>() + u64::from(statistics.n_containers) * CONTAINER_BYTES;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_there_once_and_counted() {
        let mut numbers = Ascending::default();
        let mut expected = RoaringBitmap::new();
        for number in (0..300_u32).map(|place| place * place * 7) {
            assert_eq!(numbers.is_empty(), expected.is_empty());
            numbers.push(number);
            numbers.push(number);
            expected.insert(number);
            assert_eq!((numbers.len(), &numbers.to_bitmap()), (expected.len(), &expected));
            let mut united = RoaringBitmap::from_iter([1, 2]);
            numbers.add_to(&mut united);
            assert_eq!(united, &expected | RoaringBitmap::from_iter([1, 2]));
        }
    }

    #[test]
    fn what_is_taken_out_is_gone_and_what_comes_then_is_there() {
        for goes in [|number: u32| number & 1 == 0, |number: u32| number > 40, |number: u32| number != 7, |_| true] {
            let (mut numbers, mut expected) = (Ascending::default(), RoaringBitmap::new());
            for number in 0..300_u32 {
                numbers.push(number * 500);
                expected.insert(number * 500);
                if number % 60 == 59 {
                    let gone = || (0..=number).filter(|number| goes(*number)).map(|number| number * 500);
                    gone().for_each(|gone| numbers.remove(gone));
                    expected -= gone().collect::<RoaringBitmap>();
                    numbers.remove(3);
                }
                assert_eq!((numbers.len(), &numbers.to_bitmap()), (expected.len(), &expected));
                assert_eq!(numbers.is_empty(), expected.is_empty());
            }
        }
    }
}
