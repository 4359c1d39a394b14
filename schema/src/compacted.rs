//! Compacted cells: many points of a row in one.
//!
//! Qualifier: the points' qualifiers joined, in time order. Value: the points' values joined, then one byte: `00` when all
//! are of one resolution, `01` when seconds and milliseconds are mixed. A single point has neither: it is a plain cell.
//!
//! *Source*: OpenTSDB 2.4 `CompactionQueue`, `Internal.extractDataPoints` (rules S-COMPACT-READ, -WRITE, -MIXED).

use crate::qualifier::{MILLI_MARK_BYTE, SECOND_SHIFT, UNUSED_BITS, point_kind};
use crate::{Damage, PointKind, Qualifier, StoredPoint};

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
        self.put(&point.qualifier.encode(), point.value);
    }

    #[inline]
    fn put(&mut self, qualifier: &[u8], value: &[u8]) {
        extend(&mut self.qualifier, qualifier);
        extend(&mut self.value, value);
        self.points += 1;
        let is_millis = qualifier.len() == MILLIS_BYTES;
        self.millis |= is_millis;
        self.seconds |= !is_millis;
    }

    /// Replaces the points by those of lone cells, whose bytes are copied; false, with the points unspecified, unless the cells are
    /// in time order and each holds what it would if it was written anew.
    ///
    /// *Cost*: some nanoseconds a point; nothing is decoded.
    pub(crate) fn join<'a>(&mut self, cells: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> bool {
        self.clear();
        let mut before_ms = None;
        for (qualifier, value) in cells {
            let Some(offset_ms) = clean_point(qualifier, value) else { return false };
            if before_ms.is_some_and(|before_ms| before_ms >= offset_ms) {
                return false;
            }
            before_ms = Some(offset_ms);
            self.put(qualifier, value);
        }
        true
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

/// Whether a compacted cell is what a fold makes of its points: in seconds, in time order, of values that any bits may be. False
/// also where only a look at each point tells.
///
/// *Cost*: about a nanosecond a point.
pub(crate) fn is_clean(qualifiers: &[u8], values: &[u8]) -> bool {
    let (all, rest) = qualifiers.as_chunks::<2>();
    let (mut is_clean, mut value_bytes, mut next_s) = (rest.is_empty() && all.len() > 1, META_BYTES, 0);
    for [high, low] in all {
        let kind = point_kind(*low);
        let offset_s = u16::from_be_bytes([*high, *low]) >> SECOND_SHIFT;
        is_clean &= (high & MILLI_MARK_BYTE != MILLI_MARK_BYTE) & (CLEAN_FLAGS >> kind.flags() & 1 == 1);
        is_clean &= next_s <= offset_s;
        value_bytes += kind.value_bytes();
        next_s = offset_s + 1;
    }
    is_clean && values.len() == value_bytes && values.last() == Some(&META_ONE_RESOLUTION)
}

/// The flags of integers, and of floats of 8 bytes, a bit each.
const CLEAN_FLAGS: u16 = 1 | 1 << 1 | 1 << 3 | 1 << 7 | 1 << 15;

/// Bytes of a qualifier in milliseconds.
const MILLIS_BYTES: usize = 4;

/// The offset of a lone point that holds what it would if it was written anew; `None` for any other cell.
#[inline]
fn clean_point(qualifier: &[u8], value: &[u8]) -> Option<u32> {
    let (Qualifier { offset_ms, kind }, used) = Qualifier::decode_first(qualifier)?;
    let is_whole = used == qualifier.len() && value.len() == kind.value_bytes();
    (is_whole && has_clean_bits(qualifier) && survives(kind, value)).then_some(offset_ms)
}

/// Whether the bits that no writer sets are zeros.
#[inline]
fn has_clean_bits(qualifier: &[u8]) -> bool {
    !matches!(qualifier, [_, _, _, last] if last & UNUSED_BITS != 0)
}

/// Whether a value of this length is written back as it is: the payload of a 4-byte NaN is not.
#[inline]
fn survives(kind: PointKind, value: &[u8]) -> bool {
    match value {
        [_] | [_, _] => !kind.is_float(),
        [a, b, c, d] => !kind.is_float() || !f32::from_be_bytes([*a, *b, *c, *d]).is_nan(),
        _ => value.len() == 8,
    }
}

/// Appends bytes; those of most points by one store each.
#[inline]
fn extend(out: &mut Vec<u8>, bytes: &[u8]) {
    match *bytes {
        [a] => out.push(a),
        [a, b] => out.extend_from_slice(&[a, b]),
        [a, b, c, d] => out.extend_from_slice(&[a, b, c, d]),
        _ => out.extend_from_slice(bytes),
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
