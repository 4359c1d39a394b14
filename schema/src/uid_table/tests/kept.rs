//! Names that are in memory, and those that are read many at once.

use super::*;

#[test]
fn many_names_are_read_at_once_and_past_a_small_cache() {
    let config = SchemaConfig { uid_cache_entries: 2, ..SchemaConfig::default() };
    let uids = daemon(&memory(), &config);
    let table = metrics(&uids);
    let all: Vec<Uid> = (0..40).map(|name| table.uid_or_create(&format!("m{name}")).unwrap()).collect();
    uids.drop_caches();
    let expected: Vec<Arc<str>> = (0..40).map(|name| format!("m{name}").into()).collect();
    assert_eq!(table.names(&all).unwrap(), expected);
    assert!(table.names(&[all[0], Uid::new(99)]).is_err());
}

/// What a filter holds against a pattern may be more than fit into memory, where others' names are.
#[test]
fn names_that_lie_close_are_found_by_scans_and_kept_only_where_wanted() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let all: Vec<Uid> = (0..300).map(|name| table.uid_or_create(&format!("m{name}")).unwrap()).collect();
    table.delete("m7").unwrap();
    // Of other kinds in the same rows, and a row that is none of the map's.
    for name in 0..300 {
        uids.of(UidKind::Tagv).uid_or_create(&format!("v{name}")).unwrap();
    }
    put(table, &[0, 0, 9, 9], UID_NAME_FAMILY, b"none");
    uids.drop_caches();
    let check = |asked: &[Uid], keeps: bool, kept: u64| {
        let mut found = table.names_found(asked, keeps).unwrap();
        found.sort_unstable();
        let name = |uid: &Uid| (*uid, format!("m{}", uid.number() - 1).into());
        let expected: Vec<(Uid, Arc<str>)> = asked.iter().filter(|uid| uid.number() != 8).map(name).collect();
        assert_eq!((found, table.kept_count()), (expected, kept));
    };
    let some: Vec<Uid> = all.iter().copied().step_by(2).collect();
    let few: Vec<Uid> = all.iter().copied().step_by(60).collect();
    check(&some, false, 0);
    check(&few, true, 5);
    check(&all, false, 5);
    check(&all, true, 299);
    check(&all, true, 299);
    check(&[], true, 299);
}

#[test]
fn names_kept_are_bounded_by_their_bytes() {
    let config = SchemaConfig { uid_cache_entries: 1024, ..SchemaConfig::default() };
    let uids = daemon(&memory(), &config);
    let table = metrics(&uids);
    // Longer than any that is given a UID here; others may have stored such.
    for number in 1..101 {
        let (uid, name) = (Uid::new(number), format!("{number}{}", "m".repeat(20_000)));
        put(table, name.as_bytes(), UID_ID_FAMILY, &uid.encode(table.width));
        put(table, &uid.encode(table.width), UID_NAME_FAMILY, name.as_bytes());
        assert_eq!((table.uid(&name).unwrap(), &*table.name(uid).unwrap()), (uid, &*name));
    }
    // 79 places each, in two directions.
    let kept = table.kept_count();
    assert!((1..=2 * 1024 / 79).contains(&kept), "{kept}");
}

#[test]
fn names_and_uids_that_are_kept_are_counted() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["a", "b", "c"]);
    uids.drop_caches();
    assert_eq!(table.kept_count(), 0);
    assert_eq!((&*table.name(Uid::new(1)).unwrap(), table.kept_count()), ("a", 1));
    assert_eq!((table.uid("a").unwrap(), table.uid("b").unwrap(), table.kept_count()), (Uid::new(1), Uid::new(2), 3));
}

/// `tsd.core.preload_uid_cache`: names are in memory before they are asked for, orphans are not.
#[test]
fn names_are_read_ahead_up_to_the_bound() {
    let store = memory();
    let first = daemon(&store, &SchemaConfig::default());
    create(metrics(&first), &["a", "b", "c"]);
    put(metrics(&first), &[0, 0, 9], UID_NAME_FAMILY, b"a");
    let uids = daemon(&store, &SchemaConfig::default());
    assert_eq!(uids.preload(2).unwrap(), 2);
    let known = |name: &str| metrics(&uids).uids.peek(name).is_some();
    assert!(known("a") && known("b") && !known("c"));
    assert_eq!(uids.preload(100).unwrap(), 3);
    assert!(metrics(&uids).names.peek(&Uid::new(9)).is_none());
}
