//! MAP, SIZE, KEY, VERS and PERF rows that promise what a read costs: figures of [`Cost`], and bytes.
//!
//! A store without files answers no blocks; what is said of blocks is held by those that have files.

use super::Fixture;
use super::scene::{Scene, change};
use crate::{
    BloomFilter, CellKind, ColumnRange, Columns, Comparator, Comparison, Compression, Cost, Durability,
    FamilyDescriptor, Filter, Get, MutationBatch, RegionInfo, RowBatch, Scan, TableDescriptor,
};

/// A batch of puts at time 1.
fn puts<'a>(cells: impl IntoIterator<Item = (String, String, &'a [u8])>) -> MutationBatch {
    let mut batch = MutationBatch::new(Durability::Os);
    for (row, column, value) in cells {
        change(&mut batch, CellKind::Put, row.as_bytes(), &column, Some(1), value).unwrap();
    }
    batch
}

impl Scene<'_> {
    /// How many cells a scan answers, and what it looked at.
    fn scan_cost(&self, scan: Scan) -> (usize, Cost) {
        let mut scanner = self.store().scan(&self.table, scan).unwrap();
        let mut cells = 0;
        while let Some(batch) = scanner.next_wait() {
            cells += batch.unwrap().cells_count();
        }
        (cells, scanner.cost())
    }

    /// How many cells a get answers, and what it looked at.
    fn get_cost(&self, get: Get) -> (usize, Cost) {
        let batch = self.store().get(&self.table, get).wait().unwrap();
        (batch.cells_count(), batch.cost())
    }

    /// Bytes and files of the table, wherever they are.
    fn size(&self) -> (u64, u64) {
        let regions: Vec<RegionInfo> = self.store().regions(&self.table).unwrap();
        let bytes = regions.iter().map(|region| region.file_bytes + region.memtable_bytes).sum();
        (bytes, regions.iter().map(|region| region.files_count).sum())
    }

    /// Another table, which the scene works on from here.
    fn turn_to(&mut self, name: &str, families: Vec<FamilyDescriptor>) {
        self.table = name.parse().unwrap();
        self.store().create_table(TableDescriptor::new(self.table.clone(), families), &[]).unwrap();
    }
}

/// What is not there takes no space: a table of many families and columns stores a lone cell as one of a single column.
pub fn s_map_12_absent_cells_take_no_space(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f", "g", "h"].map(FamilyDescriptor::new));
    let mut sizes = Vec::new();
    for (name, families) in [("wide", vec!["f", "g", "h"]), ("narrow", vec!["f"])] {
        scene.turn_to(name, families.into_iter().map(FamilyDescriptor::new).collect());
        scene.put("r", "f:q", 1, "v");
        scene.flush();
        sizes.push(scene.size());
    }
    assert_eq!(sizes[0], sizes[1]);
}

/// Families lie apart: a read of one looks at nothing of the other.
pub fn s_map_13_families_lie_apart(fixture: &mut dyn Fixture) {
    let plain = |name: &str| FamilyDescriptor {
        compression: Compression::None,
        block_bytes: 4096,
        ..FamilyDescriptor::new(name.to_owned())
    };
    let mut scene = Scene::new(fixture, ["f", "g"].map(plain));
    let large = [7; 1000];
    let row = |i: usize| format!("row{i:03}");
    scene.apply(puts(
        (0..100).flat_map(|i| [(row(i), "f:q".to_owned(), &b"small"[..]), (row(i), "g:q".to_owned(), &large)]),
    ));
    scene.flush();
    let (_, files) = scene.size();
    assert!(files == 0 || files == 2, "{files} files for two families");
    scene.reopen();
    let (cells, of_f) = scene.scan_cost(Scan::all().with_columns(Columns::family("f")));
    let (_, of_both) = scene.scan_cost(Scan { cache_blocks: false, ..Scan::all() });
    assert_eq!((cells, of_f.cells, of_both.cells), (100, 100, 200));
    assert!(of_f.file_bytes < 10_000, "{of_f:?}: of f's 100 short cells alone");
    assert!(files == 0 || of_both.blocks > 20 && of_f.blocks < 3, "{of_both:?}, {of_f:?}");
}

/// A cell is read with the block around it, and with no other.
pub fn s_map_17_a_cell_is_read_with_its_block(fixture: &mut dyn Fixture) {
    let family = FamilyDescriptor { block_bytes: 4096, ..FamilyDescriptor::new("f") };
    let mut scene = Scene::new(fixture, [family]);
    scene.apply(puts((0..1000).map(|i| (format!("row{i:04}"), "f:q".to_owned(), &b"value"[..]))));
    scene.flush();
    scene.reopen();
    let get = || Get::row("row0500").with_columns(Columns::column("f", "q"));
    let batch = scene.store().get(&scene.table, get()).wait().unwrap();
    let row = batch.row(0).unwrap();
    let cell = row.cells().next().unwrap();
    assert_eq!((row.key(), cell.family, cell.qualifier), (&b"row0500"[..], &b"f"[..], &b"q"[..]));
    assert_eq!((cell.timestamp.0, cell.value), (1, &b"value"[..]), "all coordinates come with it");
    let (_, files) = scene.size();
    let cost = batch.cost();
    assert_eq!((cost.rows, cost.cells, cost.blocks, cost.file_blocks), (1, 1, files, files));
    let (_, again) = scene.get_cost(get());
    assert_eq!((again.blocks, again.file_blocks, again.file_bytes), (files, 0, 0), "the block was kept");
    let whole: u64 = scene.size().0;
    assert!(files == 0 || cost.file_bytes < whole / 2, "{cost:?} of {whole} bytes");
}

/// The newest version is met first: no other is looked at.
pub fn s_vers_2_the_newest_is_met_first(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, i32::MAX.unsigned_abs());
    let mut time = 0;
    for _ in 0..10 {
        let mut batch = MutationBatch::new(Durability::Os);
        for _ in 0..10_000 {
            time += 1;
            change(&mut batch, CellKind::Put, b"r", "f:q", Some(time), b"v").unwrap();
        }
        scene.apply(batch);
    }
    scene.at_every_stage(|scene| {
        let (cells, cost) = scene.get_cost(Get::row("r").with_columns(Columns::column("f", "q")));
        assert_eq!((cells, cost.cells), (1, 1), "{cost:?}");
    });
}

/// Only the key is an index: a range of keys costs what it answers, a search by anything else costs the table.
pub fn s_key_2_only_the_key_is_an_index(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let word = |i: u32| format!("{}{i:03}", if i.is_multiple_of(10) { "pre" } else { "other" });
    scene.apply(puts((0..500).map(|i| (word(i), "f:q".to_owned(), if i == 7 { &b"found"[..] } else { b"not" }))));
    scene.at_every_stage(|scene| {
        let (cells, by_key) = scene.scan_cost(Scan::prefix(b"pre"));
        assert_eq!((cells, by_key.rows, by_key.cells), (50, 50, 50));
        let equal = Filter::Value(Comparison::Equal, Comparator::Binary("found".into()));
        let (cells, by_value) = scene.scan_cost(Scan { filter: Some(equal), ..Scan::all() });
        assert_eq!((cells, by_value.rows, by_value.cells), (1, 500, 500));
        let (cells, none) = scene.scan_cost(Scan::prefix(b"zzz"));
        assert_eq!((cells, none), (0, Cost { blocks: none.blocks, ..none }), "an empty answer tells its cost too");
        assert_eq!(none.rows, 0);
    });
}

/// Keys match from their beginning: an ending is looked for in every row, and the cost says so.
pub fn s_scan_4_prefixes_are_ranges_and_endings_are_not(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for word in ["pretend", "prefix", "ending", "string", "zebra"] {
        scene.put(word, "f:q", 1, "v");
    }
    scene.at_every_stage(|scene| {
        let (cells, cost) = scene.scan_cost(Scan::prefix(b"pre"));
        assert_eq!((cells, cost.rows), (2, 2));
        let ending = Comparator::Regex(regex::bytes::Regex::new("ing$").unwrap());
        let scan = Scan { filter: Some(Filter::Row(Comparison::Equal, ending)), ..Scan::all() };
        let (cells, cost) = scene.scan_cost(scan);
        assert_eq!((cells, cost.rows), (2, 5));
    });
}

/// A slice of a wide row costs the slice.
pub fn s_scan_5_a_slice_of_a_wide_row_costs_the_slice(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for piece in 0..10 {
        let columns = (piece * 5000..(piece + 1) * 5000).map(|i| ("r".to_owned(), format!("f:c{i:06}"), &b"v"[..]));
        scene.apply(puts(columns));
    }
    scene.at_every_stage(|scene| {
        let range = ColumnRange {
            min: Some("c025000".into()),
            min_inclusive: true,
            max: Some("c025030".into()),
            max_inclusive: false,
        };
        let (cells, cost) = scene.get_cost(Get { filter: Some(Filter::ColumnRange(range)), ..Get::row("r") });
        assert_eq!(cells, 30);
        // Some steps are taken before the seek, and the first cell behind the slice is looked at.
        assert!(cost.cells < 60, "{cost:?}");
        // Two or three of each file; how many files there are hangs on when the store flushed.
        let (all, whole) = scene.get_cost(Get::row("r"));
        assert_eq!(all, 50_000);
        assert!(cost.blocks < 6 || cost.blocks * 2 < whole.blocks, "{cost:?} of {whole:?}");
    });
}

/// A value travels with its coordinates: long names are paid by every cell.
pub fn s_size_1_every_cell_carries_its_coordinates(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let row = "r".repeat(100);
    scene.apply(puts((0..10).map(|i| (row.clone(), format!("f:q{i}"), &b"value"[..]))));
    scene.at_every_stage(|scene| {
        let batches = scene.batches(Scan::all());
        let got = batches[0].row(0).unwrap();
        let fixed = 20;
        assert_eq!(got.key_value_bytes(), 10 * (fixed + 100 + 1 + 2 + 5), "ten times the row key of 100 bytes");
    });
}

/// Identity may lie in the row key or in the qualifier: raw cells cost the same (tall against wide).
pub fn s_list_7_tall_and_wide_carry_the_same_bytes(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let mut sizes = Vec::new();
    for name in ["tall", "wide"] {
        scene.turn_to(name, vec![FamilyDescriptor::new("f")]);
        scene.apply(puts((0..2000).map(|i| {
            let (user, value) = (format!("user{:02}", i / 100), format!("value{:02}", i % 100));
            match name {
                "tall" => (user + &value, "f:".to_owned(), &b""[..]),
                _ => (user, format!("f:{value}"), &b""[..]),
            }
        })));
        scene.major();
        let batches = scene.batches(Scan::all());
        let raw: u64 = batches.iter().flat_map(RowBatch::rows).map(|row| row.key_value_bytes()).sum();
        sizes.push((raw, scene.size().0));
    }
    assert_eq!(sizes[0].0, 2000 * (20 + 6 + 1 + 7));
    assert_eq!(sizes[0].0, sizes[1].0, "{sizes:?}");
    assert!(sizes.iter().all(|(raw, stored)| stored < raw), "stored, neither costs as much: {sizes:?}");
}

/// Bloom filters keep absent rows and columns from the files.
pub fn s_perf_1_bloom_filters_spare_blocks(fixture: &mut dyn Fixture) {
    let filters = [("n", BloomFilter::None), ("r", BloomFilter::Row), ("c", BloomFilter::RowColumn)];
    let family = |(name, bloom): (&'static str, _)| FamilyDescriptor { bloom, ..FamilyDescriptor::new(name) };
    let mut scene = Scene::new(fixture, filters.map(family));
    for file in 0..20 {
        let cells = (0..50).flat_map(|i| {
            filters.map(|(name, _)| (format!("row{:05}", i * 20 + file), format!("{name}:q"), &b"value"[..]))
        });
        scene.apply(puts(cells));
        scene.flush();
    }
    scene.reopen();
    let blocks = |scene: &Scene<'_>, row: &dyn Fn(usize) -> String, column: &str| -> u64 {
        let (family, qualifier) = column.split_once(':').unwrap();
        let columns = Columns::column(family.to_owned(), qualifier.to_owned());
        (0..1000).map(|i| scene.get_cost(Get::row(row(i)).with_columns(columns.clone())).1.blocks).sum()
    };
    let absent = |i: usize| format!("row{i:05}x");
    let present = |i: usize| format!("row{i:05}");
    if scene.size().1 == 0 {
        assert_eq!(blocks(&scene, &absent, "n:q"), 0, "no files, no blocks");
        return;
    }
    let none = blocks(&scene, &absent, "n:q");
    assert!(none >= 10_000, "{none}: without a filter nearly every file is opened");
    for column in ["r:q", "c:q"] {
        let spared = blocks(&scene, &absent, column);
        assert!(spared * 50 < none, "{column}: {spared} of {none}");
    }
    let (by_row, by_column) = (blocks(&scene, &present, "r:no"), blocks(&scene, &present, "c:no"));
    assert!(by_row >= 1000 && by_column * 10 < by_row, "absent columns need ROWCOL: {by_row}, {by_column}");
    scene
        .store()
        .alter_table(TableDescriptor::new(
            scene.table.clone(),
            filters.map(family).map(|family| FamilyDescriptor { bloom: BloomFilter::Row, ..family }).into(),
        ))
        .unwrap();
    scene.major();
    assert!(blocks(&scene, &absent, "n:q") * 50 < none, "altered, it applies at compaction");
}

/// Large blocks cost a get more, and small ones a scan.
pub fn s_perf_4_block_size_is_what_a_get_pays(fixture: &mut dyn Fixture) {
    let family = |(name, block_bytes): (&'static str, u32)| FamilyDescriptor {
        block_bytes,
        compression: Compression::None,
        ..FamilyDescriptor::new(name)
    };
    let mut scene = Scene::new(fixture, [("l", 256 * 1024), ("s", 4096)].map(family));
    let value = [1; 200];
    scene.apply(puts((0..3000).flat_map(|i| ["l:q", "s:q"].map(|c| (format!("row{i:04}"), c.to_owned(), &value[..])))));
    scene.major();
    scene.reopen();
    let [large, small] = ["l", "s"].map(|family| {
        let columns = Columns::family(family);
        let get = scene.get_cost(Get::row("row1500").with_columns(columns.clone())).1;
        let scan = scene.scan_cost(Scan { cache_blocks: false, ..Scan::all() }.with_columns(columns)).1;
        (get, scan)
    });
    if scene.size().1 > 0 {
        assert!(small.0.file_bytes < 10_000 && large.0.file_bytes > 100_000, "{small:?}, {large:?}");
        assert!(small.1.blocks > 20 * large.1.blocks, "{small:?}, {large:?}");
    }
}

/// Compression changes the bytes of files from the next compaction on, and no answer.
pub fn s_perf_3_compression_changes_bytes_not_answers(fixture: &mut dyn Fixture) {
    let family = |compression| FamilyDescriptor { compression, ..FamilyDescriptor::new("f") };
    let scene = Scene::new(fixture, [family(Compression::None)]);
    scene.apply(puts((0..2000).map(|i| (format!("row{i:04}"), "f:q".to_owned(), &b"the same words again"[..]))));
    scene.major();
    let (plain, answer) = (scene.size(), scene.scan(Scan::all()));
    let named = Compression::named("LZ4").unwrap();
    assert_eq!(named, Compression::named("SNAPPY").unwrap());
    assert!(Compression::named("RAR").is_none());
    scene.store().alter_table(TableDescriptor::new(scene.table.clone(), vec![family(named)])).unwrap();
    assert_eq!(scene.size(), plain, "files stay as they are until then");
    scene.major();
    assert_eq!(scene.scan(Scan::all()), answer);
    assert!(plain.1 == 0 || scene.size().0 < plain.0 / 2, "{plain:?}, {:?}", scene.size());
}

/// HBase's names of block encodings name one layout here, which is smaller than cells as they are.
pub fn s_perf_6_block_encodings_change_no_answer(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let mut told = Vec::new();
    for encoding in crate::BLOCK_ENCODINGS {
        let family = FamilyDescriptor {
            block_encoding: encoding.into(),
            compression: Compression::None,
            ..FamilyDescriptor::new("t")
        };
        scene.turn_to(&encoding.to_lowercase(), vec![family]);
        scene.apply(puts((0..100).flat_map(|row| {
            (0..20).map(move |point| (format!("metric-tag-value-{row:04}"), format!("t:{point:02}"), &b"12345678"[..]))
        })));
        scene.major();
        scene.reopen();
        assert_eq!(&*scene.store().describe_table(&scene.table).unwrap().families[0].block_encoding, encoding);
        let raw: u64 =
            scene.batches(Scan::all()).iter().flat_map(RowBatch::rows).map(|row| row.key_value_bytes()).sum();
        assert!(scene.size().0 * 2 < raw, "{encoding}: {:?} of {raw}", scene.size());
        told.push((scene.scan(Scan::all()), scene.scan(Scan { reversed: true, ..Scan::all() })));
    }
    assert!(told.iter().all(|answers| *answers == told[0]));
}
