//! What every decoder of a table's bytes keeps to, whatever the bytes: the laws that fuzzing and property tests share.
//!
//! Each law takes any bytes and panics where the decoder breaks its word. It is compiled for tests and for
//! `--cfg fuzzing` alone.

use basalt_store::{SeqNo, Timestamp};

use crate::{
    Annotation, Duplicates, KeyLayout, Qualifier, RowCell, RowFold, RowPoints, Salting, Tsb1, Tsuid, UidWidth,
    UidWidths, annotation_offset_ms, ts_meta, uid_meta,
};

/// A law: any bytes are read or refused.
pub type Law = fn(&[u8]);

/// All laws of this crate by the names of their fuzz targets.
pub const LAWS: [(&str, Law); 6] = [
    ("row_key", row_key),
    ("row_cells", row_cells),
    ("qualifier", qualifier),
    ("annotation", annotation),
    ("meta_object", meta_object),
    ("tsb1_block", tsb1_block),
];

fn layouts() -> impl Iterator<Item = KeyLayout> {
    let wide = UidWidth::new(4).map(|width| UidWidths { metric: width, tagk: width, tagv: width });
    let plain = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
    [Some(plain), wide.ok().map(|widths| KeyLayout { widths, ..plain })].into_iter().flatten()
}

/// Row keys: what is read is written as the same bytes. TSUIDs too.
fn row_key(bytes: &[u8]) {
    for layout in layouts() {
        if let Ok(key) = layout.decode(bytes)
            && !key.is_global_annotations()
        {
            let pairs = key.pairs().count();
            assert_eq!(pairs * (layout.widths.tagk.bytes() + layout.widths.tagv.bytes()), key.tags_bytes().len());
            let again = layout.series_key(&key.tsuid()).row_key(key.base());
            assert_eq!(again, bytes, "BUG: another key");
        }
        drop(Tsuid::parse(&String::from_utf8_lossy(bytes), layout.widths));
    }
}

/// A row's cells: single, compacted and appended points, read, joined, and joined again.
///
/// A cell is a length, a qualifier as long, a length, a value as long.
fn row_cells(bytes: &[u8]) {
    let mut rest = bytes;
    let mut part = || {
        let (length, after) = rest.split_first()?;
        let (part, after) = after.split_at_checked(usize::from(*length)).unwrap_or((after, &[]));
        rest = after;
        Some(part)
    };
    let mut cells = Vec::new();
    while let (Some(qualifier), Some(value)) = (part(), part()) {
        let number = cells.len() as u64 + 1;
        cells.push(RowCell { qualifier, value, timestamp: Timestamp(number), seq: SeqNo(number) });
    }
    for cell in &cells {
        let mut taken = 0;
        let read = cell.for_each_point(|point| taken += point.value.len());
        assert!(read.is_err() || taken <= cell.value.len(), "BUG: more bytes in points than in their cell");
    }
    cells.sort_by_key(|cell| cell.qualifier);
    cells.dedup_by_key(|cell| cell.qualifier);
    let points = |cells: &[RowCell<'_>]| {
        let mut points = RowPoints::default();
        let read = points.decode(cells.iter().copied(), Duplicates::NewestWins);
        read.ok().map(|()| (points.offsets_ms().to_vec(), points.values().to_vec()))
    };
    let before = points(&cells);
    let mut fold = RowFold::default();
    let Ok(Some(joined)) = fold.fold(&cells, Duplicates::NewestWins) else { return };
    let (qualifier, value) = (joined.qualifier.to_vec(), joined.value.to_vec());
    let joined = RowCell { qualifier: &qualifier, value: &value, ..joined };
    let others = cells.iter().filter(|cell| !RowFold::joins(cell.qualifier));
    let after: Vec<RowCell<'_>> = others.copied().chain([joined]).collect();
    if let Some(before) = before {
        assert_eq!(points(&after), Some(before), "BUG: other points after the fold");
    }
    assert!(
        matches!(RowFold::default().fold(&after, Duplicates::NewestWins), Ok(None)),
        "BUG: a fold that is not done"
    );
}

/// Qualifiers.
fn qualifier(bytes: &[u8]) {
    if let Some((qualifier, length)) = Qualifier::decode_first(bytes) {
        assert!(length <= bytes.len(), "BUG: longer than there is");
        let again = Qualifier::decode_first(&qualifier.encode()).map(|(again, _)| again);
        assert_eq!(again, Some(qualifier), "BUG: another qualifier");
    }
    std::hint::black_box(annotation_offset_ms(bytes));
}

/// Annotations: what is read is written as something that reads the same.
fn annotation(bytes: &[u8]) {
    if let Ok(note) = Annotation::decode(bytes) {
        assert_eq!(Annotation::decode(&note.encode()).ok(), Some(note), "BUG: another annotation");
    }
}

/// The JSON of names' and series' meta objects.
fn meta_object(bytes: &[u8]) {
    uid_meta::foreign(bytes);
    ts_meta::foreign(bytes);
}

/// Blocks of `TSB1`: as a block they fill an image or not, whatever its length; as an image they are taken or not, and what
/// comes back is taken again as the same.
fn tsb1_block(bytes: &[u8]) {
    let mut image = vec![0; 1 << 12];
    for image_bytes in [0, 32, 333, 1 << 12] {
        let image = image.get_mut(..image_bytes).unwrap_or_default();
        std::hint::black_box(Tsb1.decode_into(bytes, image));
    }
    let mut stored = Vec::new();
    let mut given = vec![0; bytes.len()];
    if Tsb1.encode_into(bytes, &mut stored) && Tsb1.decode_into(&stored, &mut given) {
        let (mut again, mut last) = (Vec::new(), vec![0; bytes.len()]);
        let done = Tsb1.encode_into(&given, &mut again) && Tsb1.decode_into(&again, &mut last);
        assert!(!done || last == given, "BUG: an image of its writer's form comes back in another");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_bytes_of_a_table_are_read_or_refused(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..60),
                // Lengths that hold, second qualifiers and those with the mark of milliseconds.
                proptest::collection::vec(prop_oneof![0_u8..10, Just(0xF0), any::<u8>()], 0..120),
            ],
            object in r#"\{("(tsuid|startTime|endTime|description|custom|uid|type|name|created|max)":("a"|1|-1|1\.5|null|\{\}|\[\]),){0,4}"notes":""\}"#,
        ) {
            for (_, law) in LAWS {
                law(&bytes);
                law(object.as_bytes());
            }
        }
    }
}
