//! Snapshots: a table as it was, whatever becomes of it.

use super::Fixture;
use super::scene::Scene;
use crate::{ErrorKind, FamilyDescriptor, NamespaceDescriptor, Result, Scan, SplitAt, TableName};

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// A scene whose table `t` has a snapshot `s` in which `a` and `b` are `old`, and is another one now.
fn changed(fixture: &mut dyn Fixture) -> Scene<'_> {
    let scene = Scene::new(fixture, [FamilyDescriptor::new("f"), FamilyDescriptor::new("g")]);
    scene.put("a", "f:q", 1, "old");
    scene.flush();
    scene.put("b", "g:q", 1, "old");
    scene.store().split_region(&scene.table, &SplitAt::Key("b".into())).unwrap();
    scene.store().snapshot(&scene.table, "s").unwrap();
    scene.put("a", "f:q", 2, "new");
    scene.delete_family("b", "g", 5);
    scene.put("c", "f:q", 2, "new");
    scene.major();
    scene
}

const OLD: [&str; 2] = ["a f:q@1=old", "b g:q@1=old"];
const NEW: [&str; 2] = ["a f:q@2=new", "c f:q@2=new"];

fn rows(scene: &Scene<'_>) -> Vec<String> {
    scene.scan(Scan::all())
}

/// A snapshot is listed with what it is of, once under a name; what it keeps is told apart from the table.
pub fn snapshots_are_listed(fixture: &mut dyn Fixture) {
    let mut scene = changed(fixture);
    scene.store().snapshot(&scene.table, "s2").unwrap();
    scene.at_every_stage(|scene| {
        let listed = scene.store().list_snapshots().unwrap();
        let told: Vec<_> = listed.iter().map(|s| (&*s.name, s.table.to_string(), s.regions_count)).collect();
        assert_eq!(told, [("s", "t".to_owned(), 2), ("s2", "t".to_owned(), 2)]);
        assert_eq!(rows(scene), NEW);
    });
    let store = scene.store();
    let no: TableName = "none".parse().unwrap();
    assert_eq!(kind(store.snapshot(&scene.table, "s")), Some(ErrorKind::Conflict));
    assert_eq!(kind(store.snapshot(&no, "s3")), Some(ErrorKind::NotFound));
    for name in ["", "-x", ".x", "a/b", "a b"] {
        assert_eq!(kind(store.snapshot(&scene.table, name)), Some(ErrorKind::Invalid), "{name:?}");
    }
    store.delete_snapshot("s2").unwrap();
    scene.reopen();
    let store = scene.store();
    assert_eq!(store.list_snapshots().unwrap().len(), 1);
    let unknown = [store.delete_snapshot("s2"), store.restore_snapshot("s2"), store.clone_snapshot("s2", &no)];
    assert!(unknown.into_iter().all(|answer| kind(answer) == Some(ErrorKind::NotFound)));
}

/// A snapshot is stamped by the clock of the store.
pub fn snapshots_are_stamped_by_the_stores_clock(fixture: &mut dyn Fixture) {
    let scene = changed(fixture);
    let listed = scene.store().list_snapshots().unwrap();
    assert!(listed.iter().all(|snapshot| snapshot.created.0 == super::scene::NOW), "{listed:?}");
}

/// A clone is a new table with the rows, settings and regions of then; both go their own ways.
pub fn snapshots_are_cloned(fixture: &mut dyn Fixture) {
    let mut scene = changed(fixture);
    let (table, copy): (TableName, TableName) = (scene.table.clone(), "copy".parse().unwrap());
    assert_eq!(kind(scene.store().clone_snapshot("s", &table)), Some(ErrorKind::Conflict));
    assert_eq!(kind(scene.store().clone_snapshot("s", &"no:copy".parse().unwrap())), Some(ErrorKind::NotFound));
    scene.store().clone_snapshot("s", &copy).unwrap();
    assert_eq!(scene.store().describe_table(&copy).unwrap().families.len(), 2);
    assert_eq!(scene.store().regions(&copy).unwrap().len(), 2);
    scene.table = copy;
    scene.at_every_stage(|scene| assert_eq!(rows(scene), OLD));
    scene.put("a", "f:q", 3, "own");
    scene.delete_column("b", "g:q", 3);
    scene.at_every_stage(|scene| assert_eq!(rows(scene), ["a f:q@3=own"]));
    scene.store().drop_table(&table).unwrap();
    scene.store().delete_snapshot("s").unwrap();
    scene.at_every_stage(|scene| assert_eq!(rows(scene), ["a f:q@3=own"]));
}

/// Also over a table that was emptied since it was restored before, with its regions merged.
pub fn snapshots_are_restored_over_an_emptied_table(fixture: &mut dyn Fixture) {
    let mut scene = changed(fixture);
    for round in 0..3 {
        scene.store().disable_table(&scene.table).unwrap();
        scene.store().restore_snapshot("s").unwrap();
        scene.store().enable_table(&scene.table).unwrap();
        scene.at_every_stage(|scene| assert_eq!(rows(scene), OLD, "round {round}"));
        scene.store().truncate_table(&scene.table, crate::TruncatedRegions::Merged).unwrap();
        assert_eq!(rows(&scene), [""; 0]);
    }
}

/// A table is put back as it was, again and again, also when it was altered or dropped meanwhile.
pub fn snapshots_are_restored(fixture: &mut dyn Fixture) {
    let mut scene = changed(fixture);
    let (store, table) = (scene.store(), scene.table.clone());
    assert_eq!(kind(store.restore_snapshot("s")), Some(ErrorKind::Conflict), "it is enabled");
    let mut altered = store.describe_table(&table).unwrap();
    altered.families.truncate(1);
    store.alter_table(altered).unwrap();
    drop(store);
    for round in 0..3 {
        scene.store().disable_table(&table).unwrap();
        scene.store().restore_snapshot("s").unwrap();
        scene.reopen();
        assert!(!scene.store().is_table_enabled(&table).unwrap(), "it stays disabled");
        scene.store().enable_table(&table).unwrap();
        scene.at_every_stage(|scene| assert_eq!(rows(scene), OLD, "round {round}"));
        assert_eq!(scene.store().describe_table(&table).unwrap().families.len(), 2);
        assert_eq!(scene.store().regions(&table).unwrap().len(), 2);
        scene.put("a", "f:q", 9, "again");
        scene.major();
        if round == 0 {
            scene.put("d", "f:q", 9, "again");
        }
    }
    scene.store().drop_table(&table).unwrap();
    scene.reopen();
    scene.store().restore_snapshot("s").unwrap();
    assert!(scene.store().is_table_enabled(&table).unwrap(), "it is made anew");
    scene.at_every_stage(|scene| assert_eq!(rows(scene), OLD));
}

/// Tables made of snapshots count against the quotas of their namespace (rule S-NS-4).
pub fn s_ns_4_snapshots_respect_quotas(fixture: &mut dyn Fixture) {
    let scene = changed(fixture);
    let bounded = NamespaceDescriptor::new("n").with_property("hbase.namespace.quota.maxregions", "3");
    scene.store().create_namespace(bounded).unwrap();
    scene.store().clone_snapshot("s", &"n:one".parse().unwrap()).unwrap();
    let split = |key: &'static str| scene.store().split_region(&"n:one".parse().unwrap(), &SplitAt::Key(key.into()));
    split("x").unwrap();
    assert_eq!(kind(split("y")), Some(ErrorKind::Invalid));
    assert_eq!(kind(scene.store().clone_snapshot("s", &"n:two".parse().unwrap())), Some(ErrorKind::Invalid));
}
