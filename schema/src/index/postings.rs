//! The series of one tag pair.

use roaring::RoaringBitmap;

/// A set of series ids. Where a tag is unique to a series, as a host's name often is, a bitmap of its own would cost more
/// than all else that is known of the series; so one id stands alone.
#[derive(Debug, Clone, Default)]
pub(super) enum Postings {
    /// None yet.
    #[default]
    Empty,
    /// One series.
    One(u32),
    /// Two or more.
    Many(RoaringBitmap),
}

impl Postings {
    /// Adds an id; twice is once.
    pub(super) fn insert(&mut self, id: u32) {
        match self {
            Self::Empty => *self = Self::One(id),
            Self::One(first) if *first == id => {}
            Self::One(first) => *self = Self::Many([*first, id].into_iter().collect()),
            Self::Many(bitmap) => {
                bitmap.insert(id);
            }
        }
    }

    /// The set.
    pub(super) fn to_bitmap(&self) -> RoaringBitmap {
        match self {
            Self::Many(bitmap) => bitmap.clone(),
            Self::One(_) | Self::Empty => {
                let mut bitmap = RoaringBitmap::new();
                self.add_to(&mut bitmap);
                bitmap
            }
        }
    }

    /// Adds the set to another.
    pub(super) fn add_to(&self, bitmap: &mut RoaringBitmap) {
        match self {
            Self::Empty => {}
            Self::One(id) => {
                bitmap.insert(*id);
            }
            Self::Many(ids) => *bitmap |= ids,
        }
    }
}
