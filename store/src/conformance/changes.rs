//! CONS-1, IDX-6 and PUT-2: what runs with a change, and many changes at once; MAP-9, -16, -18, VERS-10, TTL-3, CF-2, U-5.

use std::sync::Arc;

use bytes::Bytes;

use super::Fixture;
use super::scene::{Scene, change};
use crate::{
    CellKind, Columns, Durability, ErrorKind, FamilyDescriptor, Get, Increment, MutationBatch, Operation, Outcome,
    Result, RowChange, Scan, TableDescriptor, Trigger, WriteBuffer, run_operations,
};

/// The triggers that a store under test is made with.
pub fn triggers() -> Vec<Arc<dyn Trigger>> {
    vec![Arc::new(ValueIndex)]
}

/// Keeps, for every row with a `f:color`, a row `COLOR:ROW` in the family `x`.
#[derive(Debug)]
struct ValueIndex;

impl Trigger for ValueIndex {
    fn name(&self) -> &'static str {
        "value_index"
    }

    fn before(&self, change: &RowChange<'_>, more: &mut MutationBatch) -> Result<()> {
        let row = change.row.key();
        let entry = |color: &[u8]| [color, b":", row].concat();
        let old = change.newest(b"f", b"color")?;
        let touches = |cell: &crate::CellMutation<'_>| cell.family == b"f" && cell.qualifier == b"color";
        let last = change.row.cells().filter(|cell| touches(cell) || cell.kind == CellKind::DeleteFamily).last();
        let Some(last) = last else { return Ok(()) };
        let new = Some(last.value).filter(|_| last.kind == CellKind::Put);
        if let Some((time, color)) = old.filter(|(_, color)| Some(&color[..]) != new) {
            more.row(&entry(&color))?.delete_column(b"x", b"", Some(change.stamp.max(time)))?;
        }
        if let Some(color) = new {
            more.row(&entry(color))?.put(b"x", b"", Some(change.stamp), b"")?;
        }
        Ok(())
    }
}

/// A table whose colours are indexed, under this name.
pub fn indexed(name: &str) -> TableDescriptor {
    // Both flip back and forth within one millisecond: their tombstones must not mask what is written after them.
    let family = |name| FamilyDescriptor { new_version_behavior: true, ..FamilyDescriptor::new(name) };
    TableDescriptor::new(name.parse().unwrap(), ["f", "x"].map(family).into()).with_attribute("TRIGGERS", "value_index")
}

/// The index of such a table as it should be, and as it is.
pub fn index_and_truth(store: &dyn crate::Store, table: &crate::TableName) -> (Vec<String>, Vec<String>) {
    let told = |family: &'static str, tell: &dyn Fn(&crate::RowView<'_>) -> String| {
        let mut scanner = store.scan(table, Scan::all().with_columns(Columns::family(family))).unwrap();
        let mut words: Vec<String> = Vec::new();
        while let Some(batch) = scanner.next_wait() {
            words.extend(batch.unwrap().rows().map(|row| tell(&row)));
        }
        words.sort();
        words
    };
    let index = told("x", &|row| String::from_utf8_lossy(row.key()).into());
    let truth = told("f", &|row| {
        let color = row.cells().find(|cell| cell.qualifier == b"color").unwrap();
        format!("{}:{}", String::from_utf8_lossy(color.value), String::from_utf8_lossy(row.key()))
    });
    (index, truth)
}

/// A trigger keeps an index right, through changes, deletes and compactions, within one millisecond too.
pub fn s_idx_6_a_trigger_keeps_an_index(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let unknown = indexed("other").with_attribute("TRIGGERS", "nobody");
    assert_eq!(scene.store().create_table(unknown, &[]).err().map(|error| error.kind()), Some(ErrorKind::Invalid));
    scene.store().create_table(indexed("colors"), &["m".into()]).unwrap();
    scene.table = "colors".parse().unwrap();
    for (row, color) in [("a", "red"), ("z", "red"), ("a", "blue"), ("a", "red"), ("a", "red"), ("b", "green")] {
        scene.put(row, "f:color", None, color);
    }
    assert!(scene.check_and_put("b", "f:color", Some((crate::Comparison::Equal, "green")), "grey"));
    assert_eq!(scene.append("z", "f:color", "dish").unwrap(), "reddish");
    scene.put("c", "f:color", None, "gone");
    scene.delete_family("c", "f", None);
    scene.at_every_stage(|scene| {
        let (index, truth) = index_and_truth(&*scene.store(), &scene.table);
        assert_eq!(index, ["grey:b", "red:a", "reddish:z"]);
        assert_eq!(index, truth);
    });
}

/// A constraint refuses a value out of its range by its name, and leaves nothing of the row.
pub fn s_cons_1_constraints_refuse_by_name(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let table = TableDescriptor::new("scores".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
    let wrong = table.clone().with_attribute("CONSTRAINT.score", "f:score from 1 to 10");
    assert_eq!(scene.store().create_table(wrong, &[]).err().map(|error| error.kind()), Some(ErrorKind::Invalid));
    let table = table.with_attribute("CONSTRAINT.score", "f:score BETWEEN 1 AND 10");
    scene.store().create_table(table, &[]).unwrap();
    scene.table = "scores".parse().unwrap();
    scene.reopen();
    let mut batch = MutationBatch::new(Durability::Os);
    for (row, score) in [("ten", "10"), ("eleven", "11"), ("words", "many"), ("one", "1")] {
        change(&mut batch, CellKind::Put, row.as_bytes(), "f:other", Some(1), b"99").unwrap();
        change(&mut batch, CellKind::Put, row.as_bytes(), "f:score", Some(1), score.as_bytes()).unwrap();
    }
    let applied = scene.store().apply(&scene.table, batch).wait().unwrap();
    let told: Vec<_> = applied.failed.iter().map(|failure| (failure.row, failure.error.to_string())).collect();
    assert_eq!(told.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 2]);
    assert!(told.iter().all(|(_, error)| error.contains("'score'")), "{told:?}");
    assert_eq!(scene.keys(Scan::all()), ["one", "ten"]);
    assert_eq!(scene.row("ten"), ["f:other@1=99", "f:score@1=10"]);
    scene.delete_column("ten", "f:score", None);
    assert!(scene.try_check_and_put("ten", "f:score", None, "0").is_err());
    assert!(scene.check_and_put("ten", "f:score", None, "5"));
}

/// A buffer is not stored until it is flushed, closed or full.
pub fn s_put_2_a_buffer_is_written_when_it_is_flushed(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let buffer = |bytes_max| {
        let batch = MutationBatch::new(Durability::Os);
        WriteBuffer::new(scene.store(), scene.table.clone(), batch, bytes_max)
    };
    let fill = |buffer: &mut WriteBuffer, rows: std::ops::Range<u32>| {
        for row in rows {
            buffer.row(format!("{row:04}").as_bytes()).unwrap().put(b"f", b"q", None, b"v").unwrap();
        }
    };
    let count = || scene.keys(Scan::all()).len();
    let mut large = buffer(1 << 20);
    fill(&mut large, 0..1000);
    assert_eq!(count(), 0);
    large.flush().unwrap();
    assert_eq!(count(), 1000);
    fill(&mut large, 1000..1001);
    large.close().unwrap();
    assert_eq!(count(), 1001);
    fill(&mut buffer(60), 2000..2100);
    assert!((1002..1101).contains(&count()), "a full buffer is sent, and its rest is lost with it: {}", count());
    let mut wrong = buffer(1 << 20);
    wrong.row(b"r").unwrap().put(b"none", b"q", None, b"v").unwrap();
    assert_eq!(wrong.flush().unwrap_err().kind(), ErrorKind::NotFound);
}

/// A batch of operations of all kinds has an outcome for each, in order.
pub fn s_put_2_a_batch_of_operations_has_an_outcome_each(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let mutate = |kind, column: &str, value: &[u8]| {
        let mut batch = MutationBatch::new(Durability::Os);
        change(&mut batch, kind, b"r", column, None, value).unwrap();
        Operation::Mutate(batch)
    };
    let increment = |qualifier: &'static str| {
        let (row, family, qualifier) = (Bytes::from("r"), Bytes::from("f"), Bytes::from(qualifier));
        Operation::Increment(Increment { row, family, qualifier, amount: 2, durability: Durability::Os })
    };
    let operations = vec![
        mutate(CellKind::Put, "f:q", b"v"),
        Operation::Get(Get::row("r")),
        increment("q"),
        increment("n"),
        mutate(CellKind::DeleteColumn, "f:q", b""),
        Operation::Get(Get::row("r")),
    ];
    let outcomes = run_operations(&*scene.store(), &scene.table, operations);
    let told: Vec<String> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(Outcome::Applied(applied)) => format!("{} failed", applied.failed.len()),
            Ok(Outcome::Rows(rows)) => format!("{} cells", rows.cells_count()),
            Ok(Outcome::Counter(number)) => number.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{:?}", error.kind()),
        })
        .collect();
    assert_eq!(told, ["0 failed", "1 cells", "Invalid", "2", "0 failed", "1 cells"]);
}

/// A column is a family and a qualifier, which may hold colons; a family's columns are read together.
pub fn s_map_9_families_and_their_columns(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["a", "courses"].map(FamilyDescriptor::new));
    for column in ["courses:math", "a:b:c", "courses:history"] {
        scene.put("r", column, 1, "v");
    }
    scene.at_every_stage(|scene| {
        let of = |columns| scene.get(Get::row("r").with_columns(columns));
        assert_eq!(of(Columns::family("courses")), ["courses:history@1=v", "courses:math@1=v"]);
        assert_eq!(of(Columns::column("a", "b:c")), ["a:b:c@1=v"]);
    });
}

/// Each level of the map may be asked for: row, family, column, version.
pub fn s_map_16_each_level_of_the_map(fixture: &mut dyn Fixture) {
    let families = [FamilyDescriptor::new("anchor"), FamilyDescriptor::new("contents").with_versions(3)];
    let mut scene = Scene::new(fixture, families);
    let row = "com.cnn.www";
    scene.put_at(row, "contents:html", &[3, 5, 6]);
    scene.put(row, "anchor:cnnsi.com", 9, "CNN");
    scene.put(row, "anchor:my.look.ca", 8, "CNN.com");
    scene.at_every_stage(|scene| {
        let count = |get: Get| scene.get(get).len();
        assert_eq!(count(Get::row(row)), 3);
        assert_eq!(count(Get::row(row).with_columns(Columns::family("anchor"))), 2);
        let html = || Get::row(row).with_columns(Columns::column("contents", "html"));
        assert_eq!(scene.get(html()), ["contents:html@6=6"]);
        assert_eq!(count(Get { versions: 3, ..html() }), 3);
    });
}

/// Put, get, scan and delete; a get or put without a row is refused.
pub fn s_map_18_four_operations(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    scene.put("r", "f:q", 1, "v");
    assert_eq!((scene.row("r").len(), scene.scan(Scan::all()).len()), (1, 1));
    scene.delete("r", "f:q", 1);
    assert_eq!((scene.row("r").len(), scene.scan(Scan::all()).len()), (0, 0));
    let without = scene.store().get(&scene.table, Get::row("")).wait();
    assert_eq!(without.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(MutationBatch::default().row(b"").unwrap_err().kind(), ErrorKind::Invalid);
}

/// What a new family keeps where nothing is said is the store's to say: one version, unless it was told otherwise.
pub fn s_vers_10_new_families_have_the_stores_default(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 4);
    assert_eq!(scene.store().new_family(b"f"), FamilyDescriptor::new("f"));
    assert_eq!(
        scene.store().describe_table(&scene.table).unwrap().families[0].versions,
        4,
        "those that are there stay"
    );
}

/// TTL is reckoned in UTC: at a change of daylight saving time, and at the year's end, an hour is an hour.
pub fn s_ttl_3_an_hour_is_an_hour(fixture: &mut dyn Fixture) {
    let scene = Scene::new(fixture, [FamilyDescriptor::new("f").with_ttl(3600)]);
    // 2026-03-29T01:00Z, 2026-10-25T01:00Z (Europe), 2026-03-08T10:00Z (California), 2026-12-31T23:30Z.
    for (place, change) in
        [1_774_746_000_000, 1_792_890_000_000, 1_772_964_000_000, 1_798_759_800_000].iter().enumerate()
    {
        let row = format!("r{place}");
        scene.put(&row, "f:q", change - 1_800_000, "v");
        scene.set_clock(change + 1_799_999);
        assert_eq!(scene.row(&row).len(), 1);
        scene.set_clock(change + 1_800_001);
        assert_eq!(scene.row(&row).len(), 0);
    }
}

/// A family that nothing was written to gets no file when another is flushed.
pub fn s_cf_2_a_flush_makes_no_file_of_an_idle_family(fixture: &mut dyn Fixture) {
    let scene = Scene::new(fixture, ["busy", "idle"].map(FamilyDescriptor::new));
    scene.put("r", "idle:q", 1, "v");
    for round in 0..10 {
        scene.put(format!("row{round}"), "busy:q", 1, "v");
        scene.flush();
    }
    let files: u64 = scene.store().regions(&scene.table).unwrap().iter().map(|region| region.files_count).sum();
    assert!(files == 0 || files == 11, "{files} files: ten of the busy family, one of the idle one");
}

/// A row key has 1 to 32,767 bytes.
pub fn u_5_row_keys_are_bounded(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let longest = "k".repeat(32_767);
    scene.put(&longest, "f:q", 1, "v");
    scene.at_every_stage(|scene| assert_eq!(scene.keys(Scan::all()), [longest.as_str()]));
    let mut batch = MutationBatch::default();
    for length in [0, 32_768] {
        assert_eq!(batch.row(&vec![b'k'; length]).unwrap_err().kind(), ErrorKind::Invalid, "{length}");
    }
    assert_eq!(scene.store().get(&scene.table, Get::row("")).wait().unwrap_err().kind(), ErrorKind::Invalid);
}
