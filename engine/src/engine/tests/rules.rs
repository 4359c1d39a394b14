//! Rules of the data model that only files, crashes and caches can show; the others are `basalt_store::conformance`.

use std::path::Path;

use basalt_store::conformance::{index_and_truth, indexed, triggers};
use basalt_store::{
    Columns, Compression, Cost, Durability, FamilyDescriptor, Get, ManualClock, MemoryStore, MutationBatch, Timestamp,
};

use super::*;
use crate::io::{FileSystem, LossMode, SimFs};
use crate::options::Limits;

fn sim(fs: &SimFs, limits: impl FnOnce(&mut Limits)) -> Arc<Engine> {
    let mut options = options(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new("/d"), Workers::Manual);
    options.triggers = triggers();
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (64 << 20, 64 << 20);
    (options.limits.wal_bytes_max, options.limits.wal_segment_bytes) = (64 << 20, 1 << 20);
    limits(&mut options.limits);
    Engine::open(options).unwrap()
}

/// A plain family of small blocks.
fn family(name: &'static str) -> FamilyDescriptor {
    FamilyDescriptor { compression: Compression::None, block_bytes: 4096, ..FamilyDescriptor::new(name) }
}

fn fill(engine: &Engine, families: &[&str], rows: u32, key: impl Fn(u32) -> String) {
    for from in (0..rows).step_by(1000) {
        let mut batch = MutationBatch::new(Durability::Async);
        for row in from..rows.min(from + 1000) {
            for family in families {
                let value = [b'v'; 100];
                batch.row(key(row).as_bytes()).unwrap().put(family.as_bytes(), b"q", None, &value).unwrap();
            }
        }
        engine.apply(&name(), batch).wait().unwrap();
        engine.pump().unwrap();
    }
    engine.flush(&name()).unwrap();
}

fn scan_cost(engine: &Engine, scan: Scan) -> Cost {
    let mut scanner = engine.scan(&name(), scan).unwrap();
    while scanner.next_wait().is_some_and(|batch| batch.is_ok()) {}
    scanner.cost()
}

/// Whatever of the log a crash leaves, a row and its index entry are both there or both not.
#[test]
fn s_idx_6_no_crash_parts_a_change_from_its_index() {
    for seed in 0..60_usize {
        let mut fs = SimFs::new(seed as u64);
        let mut engine = sim(&fs, |_| {});
        engine.create_table(indexed("colors"), &["m".into()]).unwrap();
        let table: TableName = "colors".parse().unwrap();
        for life in 0..3 {
            let mut asked = Vec::new();
            for step in 0..30 {
                let row = ["a", "k", "z"][(seed + step) % 3];
                let color = ["red", "green", "blue"][(seed / 3 + step * 7 + life) % 3];
                let mut batch = MutationBatch::new(if step % 9 == 8 { Durability::Fsync } else { Durability::Async });
                let mut changes = batch.row(row.as_bytes()).unwrap();
                match (seed + step) % 11 {
                    5 => changes.delete_family(b"f", None).map(drop).unwrap(),
                    _ => changes.put(b"f", b"color", None, color.as_bytes()).map(drop).unwrap(),
                }
                asked.push(engine.apply(&table, batch));
                if (seed + step) % 4 == 0 {
                    engine.pump().unwrap();
                }
            }
            fs = fs.power_loss(LossMode::Hostile);
            // The engine of the life before writes to a disk that is no more.
            drop((asked, engine));
            engine = sim(&fs, |_| {});
            let (index, truth) = index_and_truth(&*engine, &table);
            assert_eq!(index, truth, "seed {seed}, life {life}");
        }
    }
}

/// Another block size holds for what is written from then on; a major compaction writes all anew.
#[test]
fn s_admin_3_block_size_applies_as_files_are_written() {
    let fs = SimFs::new(1);
    let engine = sim(&fs, |limits| limits.block_cache_bytes = 0);
    let table = |block_bytes| {
        let family = FamilyDescriptor { block_bytes, ..family("f") };
        TableDescriptor::new(name(), vec![family])
    };
    let blocks = || scan_cost(&engine, Scan::all()).blocks;
    engine.create_table(table(4096), &[]).unwrap();
    fill(&engine, &["f"], 2000, |row| format!("a{row:04}"));
    let small = blocks();
    assert!(small > 40, "{small}");
    engine.alter_table(table(256 << 10)).unwrap();
    assert_eq!(blocks(), small, "old files stay as they are");
    fill(&engine, &["f"], 2000, |row| format!("b{row:04}"));
    let mixed = blocks();
    assert!(mixed > small && mixed < small + 10, "{mixed}: a new flush uses the new size");
    engine.compact(&name(), Compaction::Major).unwrap();
    assert!(blocks() < 10, "{}", blocks());
    assert_eq!(scan_cost(&engine, Scan::all()).rows, 4000);
}

/// A file whose filter memory has no room for is read without: both gets look for a block of it, and of the largest for the leaf of its index.
#[test]
fn s_perf_1_filters_beyond_their_memory_are_left_in_the_files() {
    let read = |bloom_filters_bytes| {
        let fs = SimFs::new(1);
        let engine = sim(&fs, |limits| limits.bloom_filters_bytes = bloom_filters_bytes);
        engine.create_table(TableDescriptor::new(name(), vec![family("f")]), &[]).unwrap();
        let mut told = Vec::new();
        // As many as are merged.
        for file in 0..4 {
            fill(&engine, &["f"], if file == 0 { 1000 } else { 200 }, |row| format!("{row:04}x{file}"));
            let before = engine.stats();
            let absent = engine.get(&name(), Get::row("0100y")).wait().unwrap();
            let there = engine.get(&name(), Get::row("0100x0")).wait().unwrap();
            assert_eq!((rows(&absent).len(), rows(&there).len()), (0, 1));
            let blocks = engine.stats().block_cache_misses + engine.stats().block_cache_hits;
            let blocks = blocks - before.block_cache_misses - before.block_cache_hits;
            told.push((before.files_without_filter, blocks));
        }
        engine.verify().unwrap();
        engine.compact(&name(), Compaction::Major).unwrap();
        told.push((engine.stats().files_without_filter, engine.stats().files_count));
        told
    };
    assert_eq!(read(1 << 20), [(0, 2), (0, 2), (0, 2), (0, 2), (0, 1)]);
    // Of 1,000 rows it takes 1,500 bytes, and may have an eighth.
    assert_eq!(read(8 * 1400), [(1, 4), (1, 4), (1, 4), (1, 4), (1, 1)]);
    assert_eq!(read(0), [(1, 4), (2, 6), (3, 8), (4, 10), (1, 1)]);
}

/// What a merge makes is opened while the files that it is made of still have all the room.
#[test]
fn s_perf_1_a_file_gets_its_filter_when_a_merge_has_made_room() {
    for compaction in [Compaction::Minor, Compaction::Major] {
        let fs = SimFs::new(1);
        // Of 500 rows it takes over 800 bytes, so that there is no room for all.
        let engine = sim(&fs, |limits| {
            limits.bloom_filters_bytes = 8 * 1400;
            (limits.compaction_files_min, limits.compaction_files_max) = (14, 14);
        });
        engine.create_table(TableDescriptor::new(name(), vec![family("f")]), &[]).unwrap();
        (0..14).for_each(|_| fill(&engine, &["f"], 500, |row| format!("{row:04}")));
        let stats = engine.stats();
        assert!(stats.files_without_filter > 0 && stats.files_count == 14, "{stats:?}");
        engine.compact(&name(), compaction).unwrap();
        assert_eq!((engine.stats().files_without_filter, engine.stats().files_count), (0, 1), "{compaction:?}");
    }
}

/// What a file's index takes in memory grows with the keys, and shrinks as blocks grow; a gauge tells it.
#[test]
fn s_size_2_the_index_pays_for_long_keys_and_small_blocks() {
    let index_bytes = |key_bytes: usize, block_bytes| {
        let engine = sim(&SimFs::new(1), |_| {});
        let family = FamilyDescriptor { block_bytes, bloom: basalt_store::BloomFilter::None, ..family("f") };
        engine.create_table(TableDescriptor::new(name(), vec![family]), &[]).unwrap();
        fill(&engine, &["f"], 20_000, |row| format!("{row:0>key_bytes$}"));
        engine.compact(&name(), Compaction::Major).unwrap();
        engine.stats().file_index_bytes
    };
    let (short, long, large) = (index_bytes(10, 8 << 10), index_bytes(100, 8 << 10), index_bytes(100, 64 << 10));
    assert!(long > short * 2, "{long} for keys of 100 bytes, {short} for 10");
    assert!((5..12).contains(&(long / large)), "{long} at blocks of 8 KiB, {large} at 64 KiB");
}

/// A large scan pushes out no block of a family in memory, and leaves none of a family that is not to be cached.
#[test]
fn s_perf_5_families_in_memory_survive_a_large_scan() {
    let engine = sim(&SimFs::new(1), |limits| limits.block_cache_bytes = 1 << 20);
    let mut families = ["m", "n", "o"].map(family);
    families[0].in_memory = true;
    families[2].block_cache = false;
    engine.create_table(TableDescriptor::new(name(), families.into()), &[]).unwrap();
    // 110 KB in memory of 262 KB that are for it, and 3 MB each of the others through a cache of 1 MiB.
    fill(&engine, &["m"], 800, |row| format!("row{row:05}"));
    fill(&engine, &["n", "o"], 25_000, |row| format!("row{row:05}"));
    let of = |family: &'static str| Scan::all().with_columns(Columns::family(family));
    scan_cost(&engine, of("m"));
    scan_cost(&engine, of("n"));
    let kept = scan_cost(&engine, of("m"));
    assert!(kept.blocks > 20 && kept.file_blocks * 20 <= kept.blocks, "95 in 100 at least: {kept:?}");
    let before = engine.stats().block_cache_bytes;
    let uncached = [scan_cost(&engine, of("o")), scan_cost(&engine, of("o"))];
    assert!(uncached.iter().all(|cost| cost.file_blocks == cost.blocks && cost.blocks > 500), "{uncached:?}");
    // But leaves of the index.
    assert!(engine.stats().block_cache_bytes < before + 20_000);
}

/// A row of more cells than are copied from a memtable at once is what the reference says, wherever a piece ends.
#[test]
fn rows_of_many_pieces_are_read_as_the_reference_reads_them() {
    // A piece has 1,024 cells of 32 bytes: it ends before, in and behind a column of six versions, and one that was written twice.
    let cases = (1015..1030_u16).flat_map(|column| [(1, false), (3, false), (1, true)].map(|kind| (column, kind)));
    for ((column, (versions, new_version_behavior)), is_deleted) in cases.flat_map(|case| [(case, false), (case, true)])
    {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
        options.clock = Arc::clone(&clock) as Arc<dyn basalt_store::Clock>;
        (options.limits.memtable_bytes, options.limits.memtables_bytes) = (64 << 20, 64 << 20);
        let engine = Engine::open(options).unwrap();
        let reference = MemoryStore::new(clock);
        let family = FamilyDescriptor { versions, new_version_behavior, ..FamilyDescriptor::new("f") };
        let mut batch = MutationBatch::new(Durability::Async);
        let mut row = batch.row(b"r").unwrap();
        for (of, time) in (0..2200).map(|of| (of, 1000)).chain((1001..1006).map(|time| (column, time))) {
            row.put(b"f", &of.to_be_bytes(), Some(Timestamp(time)), &[b'v'; 30]).unwrap();
        }
        if is_deleted {
            row.delete_family(b"f", Some(Timestamp(1002))).unwrap();
        }
        // Written once more at its time.
        let mut again = MutationBatch::new(Durability::Async);
        let twin = column.wrapping_add(3).to_be_bytes();
        again.row(b"r").unwrap().put(b"f", &twin, Some(Timestamp(1000)), &[b'w'; 30]).unwrap();
        let read = [&*engine as &dyn Store, &reference].map(|store| {
            store.create_table(TableDescriptor::new(name(), vec![family.clone()]), &[]).unwrap();
            for batch in [&batch, &again] {
                assert!(store.apply(&name(), batch.clone()).wait().unwrap().failed.is_empty());
            }
            engine.pump().unwrap();
            let found = store.get(&name(), Get { versions: 5, ..Get::row("r") }).wait().unwrap();
            let cells = found.rows().flat_map(|row| row.cells().collect::<Vec<_>>());
            cells.map(|cell| (cell.qualifier.to_vec(), cell.timestamp)).collect::<Vec<_>>()
        });
        let [found, expected] = read;
        assert!(found == expected, "{column} {versions} {new_version_behavior} {is_deleted}: {}", found.len());
    }
}

/// What the store is set to: VERSIONS of new families, and how long tombstones outlive major compactions.
#[test]
fn s_vers_10_and_s_del_11_are_settings_of_the_store() {
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    let clock = Arc::new(ManualClock::new(Timestamp(1000)));
    options.clock = Arc::clone(&clock) as Arc<dyn basalt_store::Clock>;
    options.limits.versions_default = 7;
    options.limits.purge_delay = std::time::Duration::from_millis(500);
    let engine = Engine::open(options).unwrap();
    assert_eq!(engine.new_family(b"f").versions, 7);
    engine.create_table(TableDescriptor::new(name(), vec![engine.new_family(b"f")]), &[]).unwrap();
    let mut batch = MutationBatch::new(Durability::Async);
    batch.row(b"r").unwrap().delete_column(b"f", b"q", None).unwrap();
    engine.apply(&name(), batch).wait().unwrap();
    for (now, kept) in [(1400, 1), (1600, 0)] {
        clock.set(Timestamp(now));
        engine.flush(&name()).unwrap();
        engine.compact(&name(), Compaction::Major).unwrap();
        assert_eq!(engine.stats().files_count, kept, "at {now}");
    }
}
