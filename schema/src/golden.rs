//! The codecs against cells dumped from OpenTSDB 2.4.1: `tests/golden/raw-rows.txt`, sections 1 to 12.
//!
//! The file tells what was put and which cells the server wrote. The puts are encoded with the UIDs that the dump shows;
//! every cell must come out byte for byte, and every dumped cell must be read back as the points that were put.

use std::collections::BTreeMap;

use basalt_store::{SeqNo, Timestamp};

use crate::{
    APPEND_QUALIFIER, ColumnKind, Door, Duplicates, KeyLayout, PointCell, PointTime, RowCell, RowFold, RowPoints,
    Salting, StoredPoint, TagPair, Tsuid, Uid, UidKind, UidWidths, Value, annotation_column, append_point_into, hex,
    point_cell,
};

const WIDTHS: UidWidths =
    UidWidths { metric: crate::UidWidth::DEFAULT, tagk: crate::UidWidth::DEFAULT, tagv: crate::UidWidth::DEFAULT };
const PLAIN: KeyLayout = KeyLayout { salting: Salting::NONE, widths: WIDTHS };

/// Row, qualifier → value.
type Cells = BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>;
/// Kind, name → UID.
type Uids = BTreeMap<(UidKind, String), Uid>;

fn dump() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/raw-rows.txt");
    std::fs::read_to_string(path).unwrap()
}

/// The lines after the one that begins with `from` and before the one that begins with `to`.
fn between<'a>(dump: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let lines = dump.lines().skip_while(|line| !line.starts_with(from)).skip(1);
    let found: Vec<_> = lines.take_while(|line| !line.starts_with(to)).collect();
    assert!(!found.is_empty(), "nothing between {from} and {to}");
    found
}

/// The data cells of a section of the dump, up to the next empty line.
fn cells(dump: &str, heading: &str) -> Cells {
    let lines = dump.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    let cells: Cells = lines
        .map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            let [row, "t", qualifier, value] = fields[..] else { panic!("{line}") };
            ((bytes(row), bytes(qualifier)), bytes(value))
        })
        .collect();
    assert!(!cells.is_empty(), "nothing below {heading}");
    cells
}

fn uids(dump: &str, heading: &str) -> Uids {
    let lines = dump.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    let forward = lines.filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [row, "id", kind, uid] if row != "00" => {
            let text = |hex| String::from_utf8(bytes(hex)).unwrap();
            Some(((UidKind::parse(&text(kind)).unwrap(), text(row)), Uid::decode(&bytes(uid)).unwrap()))
        }
        _ => None,
    });
    forward.collect()
}

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

/// A put of the dump: the series' names, the point, and its metric.
struct Put {
    metric: String,
    tags: Vec<(String, String)>,
    time: PointTime,
    value: Value,
    door: Door,
}

/// The puts among `lines`, without those that the server refused (`NaN`, `Infinity`, `0x10`).
fn puts(lines: &[&str]) -> Vec<Put> {
    let puts = lines.iter().filter_map(|line| match line.strip_prefix("# telnet put ") {
        Some(words) => telnet_put(words),
        None => http_put(line.strip_prefix("# put ")?),
    });
    puts.collect()
}

fn telnet_put(words: &str) -> Option<Put> {
    let words: Vec<_> = words.split(' ').collect();
    let [metric, time, value, tag] = words[..] else { panic!("{words:?}") };
    let (key, tag_value) = tag.split_once('=').unwrap();
    Some(Put {
        metric: metric.into(),
        tags: vec![(key.into(), tag_value.into())],
        time: PointTime::from_number(time.replace('.', "").parse().unwrap()).unwrap(),
        value: number(value)?,
        door: Door::Telnet,
    })
}

fn http_put(json: &str) -> Option<Put> {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    Some(Put {
        metric: text(&json["metric"]),
        tags: json["tags"].as_object().unwrap().iter().map(|(key, value)| (key.clone(), text(value))).collect(),
        time: PointTime::from_number(json["timestamp"].as_i64().unwrap()).unwrap(),
        value: number(json["value"].as_str().unwrap())?,
        door: Door::Http,
    })
}

fn number(text: &str) -> Option<Value> {
    if text.contains(['.', 'e', 'E']) { text.parse().ok().map(Value::Float) } else { text.parse().ok().map(Value::Int) }
}

impl Put {
    fn tsuid(&self, uids: &Uids) -> Tsuid {
        let uid = |kind, name: &String| uids[&(kind, name.clone())];
        let pairs: Vec<_> = self
            .tags
            .iter()
            .map(|(key, value)| TagPair { key: uid(UidKind::Tagk, key), value: uid(UidKind::Tagv, value) })
            .collect();
        Tsuid::new(uid(UidKind::Metric, &self.metric), &pairs, WIDTHS)
    }

    fn cell(&self) -> PointCell {
        point_cell(self.time, self.value, self.door).unwrap()
    }

    fn row(&self, layout: KeyLayout, uids: &Uids) -> Vec<u8> {
        layout.series_key(&self.tsuid(uids)).row_key(self.cell().base)
    }
}

fn encode(puts: &[Put], layout: KeyLayout, uids: &Uids) -> Cells {
    let cells = puts.iter().map(|put| {
        let cell = put.cell();
        ((put.row(layout, uids), cell.qualifier_bytes().to_vec()), cell.value().to_vec())
    });
    cells.collect()
}

/// Only the cells that hold points.
fn points_only(cells: Cells) -> Cells {
    cells.into_iter().filter(|((_, qualifier), _)| RowFold::joins(qualifier)).collect()
}

/// The points of every row, as a reader sees them: row → (offset, value's text).
fn read(cells: &Cells, written: impl Fn(&[u8]) -> u64) -> BTreeMap<Vec<u8>, Vec<(u32, String)>> {
    let mut rows: BTreeMap<Vec<u8>, Vec<RowCell<'_>>> = BTreeMap::new();
    for ((row, qualifier), value) in cells {
        let cell = RowCell { qualifier, value, timestamp: Timestamp(written(qualifier)), seq: SeqNo(0) };
        rows.entry(row.clone()).or_default().push(cell);
    }
    let mut points = RowPoints::default();
    let read = rows.into_iter().map(|(row, cells)| {
        points.decode(cells, Duplicates::NewestWins).unwrap();
        let values = (0..points.len()).map(|at| (points.offsets_ms()[at], format!("{:?}", points.value(at).unwrap())));
        (row, values.collect::<Vec<_>>())
    });
    read.filter(|(_, points)| !points.is_empty()).collect()
}

/// When a cell of section 6 was written: 5, then 500, then 1.5, all at one second.
fn written_in_section_6(qualifier: &[u8]) -> u64 {
    match qualifier {
        [0x32, 0x01] => 2,
        [0x32, 0x0F] => 3,
        _ => 1,
    }
}

#[test]
fn sections_1_to_8_are_encoded_byte_for_byte() {
    let dump = dump();
    let uids = uids(&dump, "## tsdb-uid");
    let puts = puts(&between(&dump, "=== 1.", "## tsdb before"));
    assert_eq!(puts.len(), 68);
    assert_eq!(encode(&puts, PLAIN, &uids), points_only(cells(&dump, "## tsdb before compaction")));
}

#[test]
fn sections_1_to_8_are_read_back() {
    let dump = dump();
    let uids = uids(&dump, "## tsdb-uid");
    let mut expected: BTreeMap<Vec<u8>, BTreeMap<u32, String>> = BTreeMap::new();
    for put in puts(&between(&dump, "=== 1.", "## tsdb before")) {
        let offset_ms = put.time.split().1;
        expected.entry(put.row(PLAIN, &uids)).or_default().insert(offset_ms, format!("{:?}", put.value));
    }
    let expected: BTreeMap<_, Vec<_>> =
        expected.into_iter().map(|(row, points)| (row, points.into_iter().collect())).collect();
    assert_eq!(read(&cells(&dump, "## tsdb before compaction"), written_in_section_6), expected);
    assert_eq!(read(&cells(&dump, "## tsdb after compaction"), |_| 0), expected);
}

#[test]
fn section_8_annotations_lie_where_the_server_puts_them() {
    // S-ANNOT
    let dump = dump();
    let uids = uids(&dump, "## tsdb-uid");
    let dumped = cells(&dump, "## tsdb before compaction");
    let mut found = 0;
    for line in between(&dump, "=== 8.", "## tsdb before") {
        let Some(json) = line.strip_prefix("# POST /api/annotation ") else { continue };
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let time = PointTime::from_number(json["startTime"].as_i64().unwrap()).unwrap();
        let (base, qualifier) = annotation_column(time);
        let row = match json["tsuid"].as_str() {
            Some(tsuid) => PLAIN.series_key(&Tsuid::parse(tsuid, WIDTHS).unwrap()).row_key(base),
            None => PLAIN.global_annotations_key(base),
        };
        let stored = dumped.get(&(row, qualifier.to_vec())).unwrap();
        assert!(String::from_utf8(stored.clone()).unwrap().contains(json["description"].as_str().unwrap()));
        assert_eq!(ColumnKind::of(&qualifier), ColumnKind::Annotation);
        found += 1;
    }
    assert_eq!((found, uids.len()), (3, 16));
}

/// Folds every row of `before`, keeping what is not folded.
fn folded(before: &Cells, written: impl Fn(&[u8]) -> u64) -> Cells {
    let mut rows: BTreeMap<&[u8], Vec<RowCell<'_>>> = BTreeMap::new();
    for ((row, qualifier), value) in before {
        let cell = RowCell { qualifier, value, timestamp: Timestamp(written(qualifier)), seq: SeqNo(0) };
        rows.entry(row).or_default().push(cell);
    }
    let mut after = before.clone();
    let mut fold = RowFold::default();
    for (row, cells) in rows {
        if let Some(cell) = fold.fold(&cells, Duplicates::NewestWins).unwrap() {
            after.retain(|(key, qualifier), _| key != row || !RowFold::joins(qualifier));
            after.insert((row.to_vec(), cell.qualifier.to_vec()), cell.value.to_vec());
        }
    }
    after
}

#[test]
fn section_9_a_fold_is_the_servers_compaction() {
    // S-COMPACT-WRITE, S-COMPACT-MIXED, S-DUP-NEWEST
    let dump = dump();
    let before = cells(&dump, "## tsdb before compaction");
    let after = cells(&dump, "## tsdb after compaction");
    assert_ne!(before, after);
    assert_eq!(folded(&before, written_in_section_6), after);
    assert_eq!(folded(&after, |_| 0), after);
}

#[test]
fn section_10_a_late_point_is_folded_into_the_compacted_cell() {
    let dump = dump();
    let before = cells(&dump, "## tsdb mix.w: point beside the compacted column");
    assert_eq!(folded(&before, |_| 0), cells(&dump, "## tsdb mix.w: compacted again"));
}

#[test]
fn section_11_appends() {
    // S-APPEND-WRITE, S-APPEND-READ
    let dump = dump();
    let puts = puts(&between(&dump, "=== 11.", "## appends"));
    let dumped = cells(&dump, "## appends-tsdb as written");
    let mut value = Vec::new();
    for put in &puts {
        let cell = put.cell();
        append_point_into(StoredPoint { qualifier: cell.qualifier, value: &cell.value() }, &mut value);
    }
    let ((row, qualifier), stored) = dumped.first_key_value().unwrap();
    assert_eq!((&qualifier[..], stored), (&APPEND_QUALIFIER[..], &value));
    let expected = [
        (795_000, "Int(-1)"),
        (800_000, "Int(1)"),
        (801_000, "Int(301)"),
        (802_000, "Float(42.5)"),
        (802_500, "Float(3.141592653589793)"),
    ];
    assert_eq!(read(&dumped, |_| 0)[row], expected.map(|(offset_ms, value)| (offset_ms, value.to_owned())));
    assert_eq!(folded(&dumped, |_| 0), dumped);
}

#[test]
fn section_12_salted_keys() {
    // S-KEY-SALT
    let dump = dump();
    let layout = KeyLayout { salting: Salting::new(1, 20).unwrap(), widths: WIDTHS };
    let uids = uids(&dump, "## salted-tsdb-uid");
    let puts = puts(&between(&dump, "=== 12.", "## salted-tsdb"));
    let dumped = cells(&dump, "## salted-tsdb");
    assert_eq!(puts.len(), 25);
    assert_eq!(encode(&puts, layout, &uids), dumped);
    for (row, _) in dumped.keys() {
        let key = layout.decode(row).unwrap();
        assert_eq!(layout.series_key(&key.tsuid()).row_key(key.base()), *row);
    }
}
