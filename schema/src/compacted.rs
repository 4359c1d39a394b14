//! Compacted cells: many points of a row in one.
//!
//! Qualifier: the points' qualifiers joined, in time order. Value: the points' values joined, then one byte: `00` when all
//! are of one resolution, `01` when seconds and milliseconds are mixed. A single point has neither: it is a plain cell.
//!
//! *Source*: OpenTSDB 2.4 `CompactionQueue`, `Internal.extractDataPoints` (rules S-COMPACT-READ, -WRITE, -MIXED).

use crate::{Damage, Qualifier, StoredPoint};

/// Bytes after the values.
pub(crate) const META_BYTES: usize = 1;
/// The points are of one resolution.
const META_ONE_RESOLUTION: u8 = 0;
/// Seconds and milliseconds are mixed.
const META_MIXED: u8 = 1;

/// Walks the points of a compacted cell in stored order. Ends after the first damage.
#[derive(Debug, Clone)]
pub(crate) struct CompactedPoints<'a> {
    qualifiers: &'a [u8],
    values: &'a [u8],
    value_bytes: usize,
    ended: bool,
}

impl<'a> CompactedPoints<'a> {
    pub(crate) const fn new(qualifiers: &'a [u8], values: &'a [u8]) -> Self {
        Self { qualifiers, values, value_bytes: values.len(), ended: false }
    }

    /// The next point, or the end: all but the last byte of the value must be consumed by then.
    fn step(&mut self) -> Result<Option<StoredPoint<'a>>, Damage> {
        if self.qualifiers.is_empty() {
            let consumed = self.value_bytes - self.values.len();
            return if self.values.len() == META_BYTES { Ok(None) } else { Err(Damage::ValueEnd { consumed }) };
        }
        let (qualifier, used) = Qualifier::decode_first(self.qualifiers).ok_or(Damage::Qualifiers)?;
        let needed = qualifier.kind.value_bytes();
        let consumed = self.value_bytes - self.values.len();
        let (value, rest) = self.values.split_at_checked(needed).ok_or(Damage::ValueEnd { consumed })?;
        self.values = rest;
        self.qualifiers = self.qualifiers.get(used..).unwrap_or_default();
        Ok(Some(StoredPoint { qualifier, value }))
    }
}

impl<'a> Iterator for CompactedPoints<'a> {
    type Item = Result<StoredPoint<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step().transpose();
        self.ended = !matches!(step, Some(Ok(_)));
        step
    }
}

/// Builds one cell from points that come in time order; reusable.
#[derive(Debug, Default)]
pub struct CompactedCell {
    qualifier: Vec<u8>,
    value: Vec<u8>,
    points: usize,
    seconds: bool,
    millis: bool,
}

impl CompactedCell {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.qualifier.clear();
        self.value.clear();
        self.points = 0;
        self.seconds = false;
        self.millis = false;
    }

    /// Adds a point; points come in time order, one an instant.
    ///
    /// # Panics
    /// If the value is not as long as its qualifier says.
    pub fn push(&mut self, point: StoredPoint<'_>) {
        assert_eq!(point.value.len(), point.qualifier.kind.value_bytes(), "BUG: a value not as long as told");
        self.qualifier.extend_from_slice(&point.qualifier.encode());
        self.value.extend_from_slice(point.value);
        self.points += 1;
        if point.qualifier.kind.is_millis() {
            self.millis = true;
        } else {
            self.seconds = true;
        }
    }

    /// Ends the value with its last byte, if there is more than one point. Call it once, after the last point.
    pub fn seal(&mut self) {
        if self.points > 1 {
            let mixed = self.seconds && self.millis;
            self.value.push(if mixed { META_MIXED } else { META_ONE_RESOLUTION });
        }
    }

    /// Number of points.
    pub const fn points_count(&self) -> usize {
        self.points
    }

    /// The cell's qualifier.
    pub fn qualifier(&self) -> &[u8] {
        &self.qualifier
    }

    /// The cell's value, whole once sealed.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(qualifiers: &[u8], values: &[u8]) -> Option<Damage> {
        CompactedPoints::new(qualifiers, values).find_map(Result::err)
    }

    #[test]
    fn a_cell_must_be_consumed_to_its_last_byte() {
        // S-COMPACT-READ
        let qualifiers = [0x00, 0x00, 0x00, 0x10];
        assert_eq!(damage(&qualifiers, &[1, 2, 0]), None);
        assert_eq!(damage(&qualifiers, &[1, 2]), Some(Damage::ValueEnd { consumed: 2 }));
        assert_eq!(damage(&qualifiers, &[1]), Some(Damage::ValueEnd { consumed: 1 }));
        assert_eq!(damage(&qualifiers, &[1, 2, 3, 0]), Some(Damage::ValueEnd { consumed: 2 }));
        assert_eq!(damage(&[0x00, 0x00, 0xF0, 0x00], &[1, 2, 0]), Some(Damage::Qualifiers));
    }
}
