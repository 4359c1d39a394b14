//! What is kept in memory of tables that the shell changes.

use basalt_store::{Comparison, Durability, ManualClock, MemoryStore, Scan, Timestamp};

use super::*;
use crate::{BaseTime, EditMode, Realtime, RuleEdit, RuleKind, SchemaConfig, TreeEdit, Tsuid, UidKind};

fn shell(realtime: Realtime) -> IndexedStore {
    let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
    IndexedStore::new(Arc::new(
        Schema::open(store, SchemaConfig { realtime, clock, ..SchemaConfig::default() }).unwrap(),
    ))
}

/// The UID of `b` as an incoming point finds it, or why it finds none.
fn uid_of_b(shell: &IndexedStore) -> std::result::Result<String, String> {
    let metrics = shell.0.uids().of(UidKind::Metric);
    metrics.uid("b").map(|uid| metrics.hex(uid)).map_err(|error| error.to_string())
}

fn delete_row(row: &[u8]) -> MutationBatch {
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(row).unwrap().delete_family(b"id", None).unwrap();
    batch
}

/// The name `b` is given a UID and known; then a change takes it away.
fn check(what: &str, change: impl FnOnce(&IndexedStore, &TableName)) {
    let shell = shell(Realtime::default());
    let table = shell.0.tables().uid.clone();
    shell.snapshot(&table, "s").unwrap();
    shell.0.resolve("b", &[("host", "a")]).unwrap();
    let before = shell.0.uids().generation();
    assert_eq!(uid_of_b(&shell).unwrap(), "000001");
    change(&shell, &table);
    let after = uid_of_b(&shell);
    assert!(after.is_err(), "{what}: {after:?}");
    assert!(shell.0.uids().generation() > before, "{what}: ingest knows the series by its spelling");
}

#[test]
fn a_name_that_the_shell_takes_away_is_not_known_any_more() {
    check("a row", |shell, table| {
        assert!(shell.apply(table, delete_row(b"b")).wait().unwrap().failed.is_empty());
    });
    check("a checked row", |shell, table| {
        let check = CheckAndMutate {
            row: "b".into(),
            family: "id".into(),
            qualifier: "metrics".into(),
            comparison: Comparison::Equal,
            expected: Some(vec![0, 0, 1].into()),
            mutation: delete_row(b"b"),
        };
        assert!(shell.check_and_mutate(table, check).wait().unwrap());
    });
    check("truncate", |shell, table| shell.truncate_table(table, TruncatedRegions::Merged).unwrap());
    check("drop", |shell, table| {
        shell.disable_table(table).unwrap();
        shell.drop_table(table).unwrap();
    });
    // Points of known names are not taken either: they would come under a UID that the restored table may lack.
    check("disable", |shell, table| shell.disable_table(table).unwrap());
    check("restore", |shell, table| {
        shell.0.store().disable_table(table).unwrap();
        shell.restore_snapshot("s").unwrap();
        shell.0.store().enable_table(table).unwrap();
    });
    check("clone", |shell, table| {
        shell.0.store().disable_table(table).unwrap();
        shell.0.store().drop_table(table).unwrap();
        shell.clone_snapshot("s", table).unwrap();
    });
    check("alter", |shell, table| {
        let mut descriptor = shell.describe_table(table).unwrap();
        descriptor.families.retain(|family| &*family.name != b"id");
        shell.alter_table(descriptor).unwrap();
    });
}

#[test]
fn after_a_restore_no_metric_gets_the_uid_of_one_that_is_still_sent() {
    let shell = shell(Realtime::default());
    let table = shell.0.tables().uid.clone();
    shell.snapshot(&table, "s").unwrap();
    shell.0.resolve("b", &[("host", "a")]).unwrap();
    shell.disable_table(&table).unwrap();
    shell.restore_snapshot("s").unwrap();
    shell.enable_table(&table).unwrap();
    let [c, b] = ["c", "b"].map(|metric| shell.0.resolve(metric, &[("host", "a")]).unwrap());
    assert_ne!(b, c);
    assert_eq!(&*shell.0.names(&b).unwrap().metric, "b");
}

/// A tree that is gone grows no more.
#[test]
fn trees_are_read_again_after_a_change_of_their_table() {
    let realtime = Realtime { series: true, trees: true, ..Realtime::default() };
    let shell = shell(realtime);
    let tree = TreeEdit { name: Some("T".into()), enabled: Some(true), ..TreeEdit::default() };
    let tree = shell.0.create_tree(&tree, 0).unwrap().unwrap().tree_id;
    let rule = RuleEdit { kind: Some(RuleKind::Metric), ..RuleEdit::default() };
    shell.0.edit_tree_rule(tree, &rule, EditMode::Merge).unwrap().unwrap();
    let table = shell.0.tables().tree.clone();
    let cells_after = |metric| {
        shell.0.note_series(&shell.0.resolve(metric, &[("host", "a")]).unwrap());
        assert_eq!(shell.0.realtime_failures(), 0);
        let mut scanner = shell.scan(&table, Scan::all()).unwrap();
        std::iter::from_fn(|| scanner.next_wait()).map(|batch| batch.unwrap().cells_count()).sum::<usize>()
    };
    // The definition, the rule and a leaf at the least.
    assert!(cells_after("a") > 2);
    shell.truncate_table(&table, TruncatedRegions::Merged).unwrap();
    assert_eq!(cells_after("b"), 0);
}

#[test]
fn the_series_of_a_row_that_has_no_key_is_not_met() {
    let shell = shell(Realtime::default());
    let (data, layout) = (shell.0.tables().data.clone(), shell.0.layout());
    // Salt, metric and base time take 8 bytes of 32,767.
    for (pairs, is_met) in [(5460, false), (5459, true)] {
        let tsuid = Tsuid::from_bytes(&vec![1; 3 + 6 * pairs], layout.widths).unwrap();
        let row = layout.series_key(&tsuid).row_key(BaseTime::default()).into();
        let [family, qualifier, value] = [&b"t"[..], &[5, 0, 0], &[0, 0, 1]].map(Bytes::from_static);
        let append = Append { row, family, qualifier, value, durability: Durability::Fsync };
        assert_eq!(shell.append(&data, append).wait().is_ok(), is_met, "{pairs}");
        assert_eq!(shell.0.index().id(&tsuid).is_some(), is_met, "{pairs}");
    }
}

#[test]
fn series_are_met_again_after_a_change_of_their_meta_objects_and_of_no_point() {
    let shell = shell(Realtime::default());
    let Tables { data, meta, .. } = shell.0.tables();
    for (table, family, expected) in [(data, "t", 0), (meta, "name", 1)] {
        let before = shell.0.uids().generation();
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(&[0; 20]).unwrap().put(family.as_bytes(), &[0, 0], None, b"v").unwrap();
        assert!(shell.apply(table, batch).wait().unwrap().failed.is_empty());
        assert_eq!(shell.0.uids().generation() - before, expected, "{table}");
    }
}

/// A snapshot brings back rows, and not which of two values at one instant wins.
#[test]
fn points_fold_as_they_are_served_whatever_a_snapshot_says() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
    let served = |fold: &str| {
        let config =
            SchemaConfig { fold: Some(fold.into()), clock: Arc::clone(&clock) as _, ..SchemaConfig::default() };
        IndexedStore::new(Arc::new(Schema::open(Arc::clone(&store), config).unwrap()))
    };
    let before = served("a");
    let data = before.0.tables().data.clone();
    before.snapshot(&data, "s").unwrap();
    let now = served("b");
    let fold = || now.describe_table(&data).unwrap().families.first().unwrap().fold.clone();
    now.disable_table(&data).unwrap();
    now.restore_snapshot("s").unwrap();
    assert_eq!(fold().as_deref(), Some("b"));
    now.drop_table(&data).unwrap();
    now.clone_snapshot("s", &data).unwrap();
    assert_eq!(fold().as_deref(), Some("b"));
}

/// Series that came while there was no table of meta objects get theirs.
#[test]
fn a_table_that_is_made_again_is_looked_into_again() {
    let shell = shell(Realtime::default());
    let table = shell.0.tables().meta.clone();
    let described = shell.describe_table(&table).unwrap();
    shell.disable_table(&table).unwrap();
    shell.drop_table(&table).unwrap();
    let before = shell.0.uids().generation();
    shell.create_table(described, &[]).unwrap();
    assert!(shell.0.uids().generation() > before);
}
