//! Append cells: points joined as they came, `[qualifier][value]` after `[qualifier][value]`, under one qualifier.
//!
//! The store appends, so nobody reads before writing and no row needs compacting; the reader sorts, and of two points at one
//! instant the later one counts. *Source*: OpenTSDB 2.4 `AppendDataPoints` (rules S-APPEND-READ, -WRITE).

use std::collections::BTreeMap;

use crate::{ColumnKind, Damage, Qualifier, StoredPoint};

/// The qualifier that append cells are written under; they are read whatever the last two bytes are.
pub const APPEND_QUALIFIER: [u8; 3] = [ColumnKind::APPENDED, 0, 0];

/// Adds a point in the form in which it is appended.
///
/// # Panics
/// If the value is not as long as its qualifier says.
pub fn append_point_into(point: StoredPoint<'_>, out: &mut Vec<u8>) {
    assert_eq!(point.value.len(), point.qualifier.kind.value_bytes(), "BUG: a value not as long as told");
    out.extend_from_slice(&point.qualifier.encode());
    out.extend_from_slice(point.value);
}

/// The value of an append cell with its points in time order and of each instant the last alone; `None` where it is so
/// already. *Source*: OpenTSDB 2.4 `AppendDataPoints.parseKeyValue` (rule S-APPEND-REPAIR).
///
/// # Errors
/// The value is no sequence of points.
pub fn mended_append(value: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
    let mut last = None;
    let mut ascending = true;
    for point in AppendedPoints::new(value) {
        let offset_ms = point?.qualifier.offset_ms;
        ascending &= last.is_none_or(|last| last < offset_ms);
        last = Some(offset_ms);
    }
    if ascending {
        return Ok(None);
    }
    let mut points = BTreeMap::new();
    for point in AppendedPoints::new(value) {
        let point = point?;
        points.insert(point.qualifier.offset_ms, point);
    }
    let mut mended = Vec::with_capacity(value.len());
    for point in points.into_values() {
        append_point_into(point, &mut mended);
    }
    Ok(Some(mended))
}

/// Walks the points of an append cell in the order they were appended. Ends after the first damage.
#[derive(Debug, Clone)]
pub(crate) struct AppendedPoints<'a> {
    rest: &'a [u8],
    bytes: usize,
}

impl<'a> AppendedPoints<'a> {
    pub(crate) const fn new(value: &'a [u8]) -> Self {
        Self { rest: value, bytes: value.len() }
    }

    fn step(&mut self) -> Option<StoredPoint<'a>> {
        let (qualifier, used) = Qualifier::decode_first(self.rest)?;
        let (value, rest) = self.rest.get(used..)?.split_at_checked(qualifier.kind.value_bytes())?;
        self.rest = rest;
        Some(StoredPoint { qualifier, value })
    }
}

impl<'a> Iterator for AppendedPoints<'a> {
    type Item = Result<StoredPoint<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let consumed = self.bytes - self.rest.len();
        Some(self.step().ok_or_else(|| {
            self.rest = &[];
            Damage::ValueEnd { consumed }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_walked_in_order() {
        // S-APPEND-READ
        let value = [0x00, 0x00, 0x2A, 0x00, 0xA0, 0x2B];
        let points: Vec<_> = AppendedPoints::new(&value).map(Result::unwrap).collect();
        assert_eq!(
            points.iter().map(|p| (p.qualifier.offset_ms, p.value)).collect::<Vec<_>>(),
            [(0, &[0x2A][..]), (10_000, &[0x2B][..])]
        );
        let mut written = Vec::new();
        for point in points {
            append_point_into(point, &mut written);
        }
        assert_eq!(written, value);
    }

    #[test]
    fn mending_sorts_and_keeps_the_last_of_an_instant() {
        const MENDED: &str = "31b0ff3200013211012d322f4045400000000000f30fb10f400921fb54442d18";
        // S-APPEND-REPAIR: section 11 of the dump, whose cell the real one left as it was.
        let dump = include_str!("../../tests/golden/raw-rows.txt");
        let cell = dump.lines().skip_while(|line| *line != "## appends-tsdb as written").nth(1).unwrap();
        let value = crate::hex::decode(cell.rsplit(' ').next().unwrap()).unwrap();
        let mended = mended_append(&value).unwrap().unwrap();
        // What the real one writes where `repair_appends` is on, seen in the same cell.
        assert_eq!(crate::hex::lower(&mended), MENDED);
        assert_eq!(mended_append(&mended), Ok(None));
        assert_eq!(mended_append(&[]), Ok(None));
        assert_eq!(mended_append(&[0]), Err(Damage::ValueEnd { consumed: 0 }));
    }

    #[test]
    fn a_pair_cut_short_is_damage() {
        fn cut(value: &[u8]) -> Option<Result<StoredPoint<'_>, Damage>> {
            AppendedPoints::new(value).last()
        }
        for value in [&[0x00, 0x00][..], &[0x00], &[0x00, 0x01, 0x01], &[0xF0, 0, 0]] {
            assert_eq!(cut(value), Some(Err(Damage::ValueEnd { consumed: 0 })), "{value:02x?}");
        }
    }
}
