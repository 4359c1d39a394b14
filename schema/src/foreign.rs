//! What every decoder of a table's bytes keeps to, whatever the bytes: the laws that fuzzing and property tests share.
//!
//! Each law takes any bytes and panics where the decoder breaks its word. It is compiled for tests and for
//! `--cfg fuzzing` alone.

use basalt_store::{Packed, PackedRows, Packing, SeqNo, Timestamp};

use crate::{
    Annotation, Duplicates, KeyLayout, Qualifier, RowCell, RowFold, RowPoints, Salting, Tsb1, Tsuid, UidWidth,
    UidWidths, annotation_offset_ms, ts_meta, uid_meta,
};

/// A law: any bytes are read or refused.
pub type Law = fn(&[u8]);

/// All laws of this crate by the names of their fuzz targets.
pub const LAWS: [(&str, Law); 8] = [
    ("row_key", row_key),
    ("row_cells", row_cells),
    ("qualifier", qualifier),
    ("annotation", annotation),
    ("meta_object", meta_object),
    ("tsb1_block", tsb1_block),
    ("tsb1_columns", tsb1_columns),
    ("series_block", crate::index::series_block),
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

/// A block opened by columns, of any bytes, and of a right block that the bytes change: places and what they become. Rows that
/// come by columns keep what readers build on, and every row comes as a cell or not at all.
fn tsb1_columns(bytes: &[u8]) {
    for image_bytes in [32, 333, 1 << 12, 1 << 16] {
        columns(bytes.to_vec(), image_bytes);
    }
    let (mut stored, image_bytes) = right_block();
    for change in bytes.as_chunks::<3>().0.iter().take(8) {
        let [high, low, to] = *change;
        let place = usize::from(u16::from_be_bytes([high, low])) % stored.len().max(1);
        if let Some(byte) = stored.get_mut(place) {
            *byte = to;
        }
    }
    columns(stored, image_bytes);
}

fn columns(stored: Vec<u8>, image_bytes: usize) {
    let Some(block) = Tsb1.open(stored, image_bytes) else { return };
    let (mut qualifier, mut value) = (Vec::new(), Vec::new());
    for row in 0..block.rows_count() {
        std::hint::black_box((block.row_key(row), block.written(row), block.cell(row, &mut qualifier, &mut value)));
        let mut packed = PackedRows::default();
        if block.pack(row, Packing::Points, &mut packed)
            && let Some(Packed::Points(points)) = packed.row(0)
        {
            let ascends = points.offsets_ms.iter().zip(points.offsets_ms.iter().skip(1)).all(|(a, b)| a < b);
            assert!(ascends && points.offsets_ms.len() == points.words.len(), "BUG: a packed row goes back in time");
        }
        std::hint::black_box(block.pack(row, Packing::Summaries, &mut packed));
    }
    assert!(block.memory_bytes() > 0, "BUG: a block that takes no memory");
}

/// A block of three rows (integers of one byte and of two, floats) as it is stored, and how long its image is.
fn right_block() -> (Vec<u8>, usize) {
    let mut image = [[5; 8], [1; 8]].concat();
    let mut table = Vec::new();
    let heads: [&[u8]; 3] = [&[0, 4, 1, b'k', b'e', b'y', b'0'], &[3, 1, 1, b'1'], &[3, 1, 1, b'2']];
    for (head, (kind, width)) in heads.into_iter().zip([(0_u16, 1), (0xF, 8), (1, 2)]) {
        table.extend(u32::try_from(image.len()).unwrap_or_default().to_le_bytes());
        let qualifier: Vec<u8> = (0..40_u16).flat_map(|n| ((n * 10) << 4 | kind).to_be_bytes()).collect();
        let word = |n: u32| match width {
            8 => (f64::from(n) / 8.0).to_bits(),
            1 => u64::from(n * 7 % 100),
            _ => u64::from(n * 7 % 100 + 1000),
        };
        let mut value: Vec<u8> = (0..40).flat_map(|n| word(n).to_be_bytes().into_iter().skip(8 - width)).collect();
        value.push(0);
        image.extend_from_slice(head);
        image.push(0x26);
        for part in [qualifier, value] {
            crate::tsb1::put_length(&mut image, part.len());
            image.extend(part);
        }
    }
    image.extend(table);
    image.extend([3, 0, 0, 0, 3, 0, 0, 0]);
    let mut stored = Vec::new();
    assert!(Tsb1.encode_into(&image, &mut stored), "BUG: a block that is not taken");
    (stored, image.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_block_that_is_hurt_is_right() {
        let (stored, image_bytes) = right_block();
        let block = Tsb1.open(stored, image_bytes).unwrap();
        let mut packed = PackedRows::default();
        assert!((0..3).all(|row| block.pack(row, Packing::Points, &mut packed)));
        assert!(matches!(packed.row(1), Some(Packed::Points(points)) if points.is_float && points.words.len() == 40));
        assert!(block.pack(2, Packing::Summaries, &mut packed) && matches!(packed.row(3), Some(Packed::Summary(_))));
    }

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
