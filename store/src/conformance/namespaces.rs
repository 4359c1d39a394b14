//! NS rows: namespaces, what they hold, and what they refuse; tables that serve or do not.

use bytes::Bytes;

use super::Fixture;
use super::scene::{Scene, change};
use crate::{
    CellKind, Durability, ErrorKind, FamilyDescriptor, Get, MutationBatch, NamespaceDescriptor, Result, Scan,
    TableDescriptor, TableName, TruncatedRegions,
};

fn table(name: &str) -> TableDescriptor {
    TableDescriptor::new(name.parse().unwrap(), vec![FamilyDescriptor::new("f")])
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn put(scene: &Scene<'_>, table: &str, column: &str, value: &str) -> Result<()> {
    let mut batch = MutationBatch::new(Durability::Os);
    change(&mut batch, CellKind::Put, b"r", column, Some(1), value.as_bytes())?;
    scene.store().apply(&table.parse()?, batch).wait().map(drop)
}

/// One name in two namespaces is two tables, of families of their own.
pub fn s_ns_1_namespaces_part_tables(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let names = ["foo:bar", "baz:bar"];
    for (name, family) in names.into_iter().zip(["f", "g"]) {
        let name: TableName = name.parse().unwrap();
        scene.store().create_namespace(NamespaceDescriptor::new(name.namespace())).unwrap();
        let descriptor = TableDescriptor::new(name.clone(), vec![FamilyDescriptor::new(family)]);
        scene.store().create_table(descriptor, &[]).unwrap();
        put(&scene, &name.to_string(), &format!("{family}:q"), &name.to_string()).unwrap();
    }
    scene.reopen();
    for name in names {
        let got = scene.store().get(&name.parse().unwrap(), Get::row("r")).wait().unwrap();
        assert_eq!(got.row(0).unwrap().cells().next().unwrap().value, name.as_bytes());
    }
}

/// Namespaces are made, altered and dropped; one that holds a table is not dropped.
pub fn s_ns_2_create_alter_drop(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let store = scene.store();
    assert_eq!(kind(store.create_table(table("my_ns:my_table"), &[])), Some(ErrorKind::NotFound));
    let plain = NamespaceDescriptor::new("my_ns");
    store.create_namespace(plain.clone()).unwrap();
    assert_eq!(kind(store.create_namespace(plain.clone())), Some(ErrorKind::Conflict));
    store.create_table(table("my_ns:my_table"), &[]).unwrap();
    assert_eq!(store.list_namespace_tables("my_ns").unwrap(), ["my_ns:my_table".parse().unwrap()]);
    assert_eq!(kind(store.drop_namespace("my_ns")), Some(ErrorKind::Conflict));
    let altered = plain.with_property("PROPERTY_NAME", "PROPERTY_VALUE");
    store.alter_namespace(altered.clone()).unwrap();
    drop(store);
    scene.reopen();
    let store = scene.store();
    assert_eq!(store.describe_namespace("my_ns").unwrap(), altered);
    store.alter_namespace(NamespaceDescriptor::new("my_ns")).unwrap();
    assert_eq!(store.describe_namespace("my_ns").unwrap(), NamespaceDescriptor::new("my_ns"));
    store.drop_table(&"my_ns:my_table".parse().unwrap()).unwrap();
    store.drop_namespace("my_ns").unwrap();
    drop(store);
    scene.reopen();
    let store = scene.store();
    let gone = [
        kind(store.describe_namespace("my_ns")),
        kind(store.drop_namespace("my_ns")),
        kind(store.alter_namespace(NamespaceDescriptor::new("my_ns"))),
        kind(store.list_namespace_tables("my_ns")),
    ];
    assert_eq!(gone, [Some(ErrorKind::NotFound); 4]);
    for name in ["", "a-b", "a:b", "a/b", ".."] {
        assert_eq!(kind(store.create_namespace(NamespaceDescriptor::new(name))), Some(ErrorKind::Invalid), "{name}");
    }
}

/// A table without a namespace is the default's; the system's is not for users; both are there from the start and stay.
pub fn s_ns_3_default_and_system(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let store = scene.store();
    assert_eq!(kind(store.create_table(table("default:t"), &[])), Some(ErrorKind::Conflict));
    assert_eq!(kind(store.create_table(table("hbase:mine"), &[])), Some(ErrorKind::Invalid));
    let names = || store.list_namespaces().unwrap().into_iter().map(|namespace| namespace.name).collect::<Vec<_>>();
    assert_eq!(names(), [Box::from("default"), "hbase".into()]);
    for name in ["default", "hbase"] {
        assert_eq!(kind(store.drop_namespace(name)), Some(ErrorKind::Invalid), "{name}");
        assert_eq!(kind(store.create_namespace(NamespaceDescriptor::new(name))), Some(ErrorKind::Conflict));
    }
    store.drop_table(&scene.table).unwrap();
    assert_eq!(kind(store.drop_namespace("default")), Some(ErrorKind::Invalid), "empty, it stays too");
    drop(store);
    scene.reopen();
    assert_eq!(scene.store().list_namespaces().unwrap().len(), 2);
    assert_eq!(scene.store().list_namespace_tables("default").unwrap(), []);
}

/// A namespace may bound its tables and their regions.
pub fn s_ns_4_quotas(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let store = scene.store();
    let splits = |regions: u8| (1..regions).map(|key| Bytes::from(vec![key])).collect::<Vec<_>>();
    let bounded = NamespaceDescriptor::new("few").with_property("hbase.namespace.quota.maxtables", "2");
    store.create_namespace(bounded).unwrap();
    store.create_table(table("few:a"), &[]).unwrap();
    store.create_table(table("few:b"), &splits(9)).unwrap();
    assert_eq!(kind(store.create_table(table("few:c"), &[])), Some(ErrorKind::Invalid));
    store.drop_table(&"few:a".parse().unwrap()).unwrap();
    store.create_table(table("few:c"), &[]).unwrap();

    let bounded = NamespaceDescriptor::new("small").with_property("hbase.namespace.quota.maxregions", "5");
    store.create_namespace(bounded).unwrap();
    drop(store);
    scene.reopen();
    let store = scene.store();
    assert_eq!(kind(store.create_table(table("small:a"), &splits(6))), Some(ErrorKind::Invalid));
    store.create_table(table("small:a"), &splits(4)).unwrap();
    assert_eq!(kind(store.create_table(table("small:b"), &splits(2))), Some(ErrorKind::Invalid));
    store.create_table(table("small:b"), &[]).unwrap();
    for quota in ["0", "-1", "many"] {
        let wrong = NamespaceDescriptor::new("small").with_property("hbase.namespace.quota.maxregions", quota);
        assert_eq!(kind(store.alter_namespace(wrong)), Some(ErrorKind::Invalid), "{quota}");
    }
    // Below what is there: nothing goes, nothing more comes.
    let less = NamespaceDescriptor::new("small").with_property("hbase.namespace.quota.maxtables", "1");
    store.alter_namespace(less).unwrap();
    assert_eq!(store.list_namespace_tables("small").unwrap().len(), 2);
    assert_eq!(kind(store.create_table(table("small:c"), &[])), Some(ErrorKind::Invalid));
}

/// A tenant's namespace may be closed to writes; there are no tokens that would let one caller write and another read.
pub fn s_ns_5_read_only_namespaces(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let closed = NamespaceDescriptor::new("a").with_property("READONLY", "true");
    scene.store().create_namespace(NamespaceDescriptor::new("a")).unwrap();
    scene.store().create_table(table("a:t"), &[]).unwrap();
    put(&scene, "a:t", "f:q", "before").unwrap();
    scene.store().alter_namespace(closed).unwrap();
    scene.store().create_table(table("a:u"), &[]).unwrap();
    for reopened in [false, true] {
        for name in ["a:t", "a:u"] {
            assert_eq!(kind(put(&scene, name, "f:q", "after")), Some(ErrorKind::ReadOnly), "{name} {reopened}");
        }
        scene.put("r", "f:q", 1, "another namespace is open");
        let got = scene.store().get(&"a:t".parse().unwrap(), Get::row("r")).wait().unwrap();
        assert_eq!(got.row(0).unwrap().cells().next().unwrap().value, b"before");
        scene.reopen();
    }
    scene.store().alter_namespace(NamespaceDescriptor::new("a")).unwrap();
    put(&scene, "a:t", "f:q", "after").unwrap();
    scene.store().alter_table(table("a:t").with_attribute("READONLY", "true")).unwrap();
    assert_eq!(kind(put(&scene, "a:t", "f:q", "again")), Some(ErrorKind::ReadOnly), "a table alone");
    let slip = |store: &dyn crate::Store| store.alter_table(table("a:t").with_attribute("READONLY", "bogus"));
    assert_eq!(kind(slip(&*scene.store())), Some(ErrorKind::Invalid));
    let slip = NamespaceDescriptor::new("a").with_property("READONLY", "bogus");
    assert_eq!(kind(scene.store().alter_namespace(slip)), Some(ErrorKind::Invalid));
    assert_eq!(kind(put(&scene, "a:t", "f:q", "again")), Some(ErrorKind::ReadOnly), "still");
    assert_eq!(kind(put(&scene, "a:u", "f:q", "again")), None);
}

/// Nothing is pinned to a group of servers: the property is kept and changes nothing, as the documentation says.
pub fn s_ns_6_server_groups_are_not_supported(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let pinned = NamespaceDescriptor::new("n").with_property("hbase.rsgroup.name", "group_a");
    scene.store().create_namespace(pinned.clone()).unwrap();
    assert_eq!(scene.store().describe_namespace("n").unwrap(), pinned);
    scene.store().create_table(table("n:t"), &[]).unwrap();
    put(&scene, "n:t", "f:q", "v").unwrap();
    let model = include_str!("../../../docs/data-model.md");
    let row = model.lines().find(|line| line.starts_with("| S-NS-6 ")).unwrap();
    assert!(row.contains("not supported"), "{row}");
}

/// A disabled table is neither read nor written, whatever the way, and is altered and dropped.
pub fn s_admin_2_disabled_tables_do_not_serve(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.put("r", "f:n", 1, "\0\0\0\0\0\0\0\x05");
    let (store, name) = (scene.store(), scene.table.clone());
    assert!(store.is_table_enabled(&name).unwrap());
    assert_eq!(kind(store.enable_table(&name)), Some(ErrorKind::Conflict));
    store.disable_table(&name).unwrap();
    assert_eq!(kind(store.disable_table(&name)), Some(ErrorKind::Conflict));
    drop(store);
    scene.reopen();
    let store = scene.store();
    assert!(!store.is_table_enabled(&name).unwrap());
    let refused = [
        kind(put(&scene, "t", "f:q", "v")),
        kind(store.get(&name, Get::row("r")).wait()),
        kind(store.scan(&name, Scan::all())),
        kind(scene.increment("r", "f:n", 1)),
        kind(scene.append("r", "f:n", "x")),
        kind(scene.try_check_and_put("r", "f:n", None, "v")),
    ];
    assert_eq!(refused, [Some(ErrorKind::Unavailable); 6]);
    let told = store.get(&name, Get::row("r")).wait().unwrap_err().to_string();
    assert!(told.contains("'t'") && told.contains("disabled"), "{told}");
    // The four steps of the seed: disable, add a family, modify one, enable.
    let altered = vec![FamilyDescriptor::new("f").with_versions(5), FamilyDescriptor::new("g")];
    store.alter_table(TableDescriptor::new(name.clone(), altered)).unwrap();
    assert!(!store.is_table_enabled(&name).unwrap(), "altering enables nothing");
    store.enable_table(&name).unwrap();
    assert_eq!(scene.increment("r", "f:n", 1).unwrap(), 6);
    put(&scene, "t", "g:q", "v").unwrap();
    store.disable_table(&name).unwrap();
    store.drop_table(&name).unwrap();
    let gone = [kind(store.is_table_enabled(&name)), kind(store.enable_table(&name)), kind(store.disable_table(&name))];
    assert_eq!(gone, [Some(ErrorKind::NotFound); 3]);
}

/// An emptied table keeps its regions or has one, and serves.
pub fn s_admin_1_truncate_keeps_or_merges_regions(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.table = "split".parse().unwrap();
    scene.store().create_table(table("split"), &["g".into(), "p".into()]).unwrap();
    for (regions, count) in [(TruncatedRegions::Kept, 3), (TruncatedRegions::Merged, 1)] {
        scene.put("k", "f:q", 1, "v");
        scene.flush();
        scene.store().disable_table(&scene.table).unwrap();
        scene.store().truncate_table(&scene.table, regions).unwrap();
        scene.at_every_stage(|scene| {
            assert_eq!(scene.raw(), [""; 0]);
            assert_eq!(scene.store().regions(&scene.table).unwrap().len(), count);
        });
    }
}
