use std::sync::Arc;

use basalt_store::{ManualClock, MemoryStore, MutationBatch};

use super::*;
use crate::{Realtime, SchemaConfig, TsMetaEdit, Tsuid};

fn schema(realtime: Realtime) -> Schema {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    Schema::open(store, SchemaConfig { realtime, ..SchemaConfig::default() }).unwrap()
}

fn tree(schema: &Schema, strict_match: bool) -> TreeId {
    let edit = TreeEdit {
        name: Some("T".into()),
        enabled: Some(true),
        strict_match: Some(strict_match),
        store_failures: Some(true),
        ..TreeEdit::default()
    };
    schema.create_tree(&edit, 0).unwrap().unwrap().tree_id
}

fn rule(schema: &Schema, tree: TreeId, level: i32, kind: RuleKind, field: &str) {
    let separator = (kind == RuleKind::Metric).then(|| "\\.".to_owned());
    let edit = RuleEdit { level, kind: Some(kind), field: Some(field.into()), separator, ..RuleEdit::default() };
    schema.edit_tree_rule(tree, &edit, EditMode::Merge).unwrap().unwrap();
}

fn put(schema: &Schema, metric: &str, tags: &[(&str, &str)]) -> Tsuid {
    let tsuid = schema.resolve(metric, tags).unwrap();
    schema.note_series(&tsuid);
    assert_eq!(schema.realtime_failures(), 0);
    tsuid
}

const LIVE: Realtime = Realtime { names: true, series: true, count: false, track: false, trees: true, strict: false };

/// Every cell of the tree table: row in hex, column, value.
fn cells(schema: &Schema) -> Vec<(String, Vec<u8>, String)> {
    let mut scanner = schema.store().scan(&schema.tables().tree, Scan::all()).unwrap();
    let mut found = Vec::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch.unwrap().rows() {
            found.extend(row.cells().map(|cell| {
                let value = String::from_utf8(cell.value.to_vec()).unwrap();
                (crate::hex::lower(row.key()), cell.qualifier.to_vec(), value)
            }));
        }
    }
    found
}

/// `S-TREE`: what the real server's own table held after the same calls and points.
#[test]
fn the_cells_are_the_servers_byte_for_byte() {
    let schema = schema(LIVE);
    let id = tree(&schema, true);
    rule(&schema, id, 0, RuleKind::Metric, "");
    let format = Some("DC {value}".to_owned());
    let edit = RuleEdit {
        level: 1,
        kind: Some(RuleKind::Tagk),
        field: Some("dc".into()),
        display_format: format,
        ..RuleEdit::default()
    };
    schema.edit_tree_rule(id, &edit, EditMode::Merge).unwrap();
    put(&schema, "sys.cpu", &[("dc", "lga")]);
    let expected: [(&str, &[u8], &str); 7] = [
        ("0001", b"branch", r#"{"path":{"0":"ROOT"},"displayName":"ROOT"}"#),
        (
            "0001",
            b"tree",
            r#"{"name":"T","description":"","notes":"","strictMatch":true,"created":0,"enabled":true,"storeFailures":true}"#,
        ),
        (
            "0001",
            b"tree_rule:0:0",
            r#"{"type":"METRIC","field":"","regex":"","separator":"\\.","description":"","notes":"","level":0,"order":0,"treeId":1,"customField":"","regexGroupIdx":0,"displayFormat":""}"#,
        ),
        (
            "0001",
            b"tree_rule:1:0",
            r#"{"type":"TAGK","field":"dc","regex":"","separator":"","description":"","notes":"","level":1,"order":0,"treeId":1,"customField":"","regexGroupIdx":0,"displayFormat":"DC {value}"}"#,
        ),
        ("00010001becd", b"branch", r#"{"path":{"0":"ROOT","1":"sys"},"displayName":"sys"}"#),
        ("00010001becd000181a8", b"branch", r#"{"path":{"0":"ROOT","1":"sys","2":"cpu"},"displayName":"cpu"}"#),
        ("00010001becd000181a8", b"leaf:\x77\xc9\xdf\x25", r#"{"displayName":"DC lga","tsuid":"000001000001000001"}"#),
    ];
    let expected = expected.iter().map(|(row, column, value)| ((*row).into(), column.to_vec(), (*value).into()));
    assert_eq!(cells(&schema), expected.collect::<Vec<_>>());
}

/// `S-TREE`: OpenTSDB means to keep both, and loses nearly all.
#[test]
fn series_without_a_place_are_kept_with_the_reason_unless_strict() {
    for strict in [false, true] {
        let schema = schema(Realtime { track: true, strict, ..LIVE });
        let id = tree(&schema, true);
        rule(&schema, id, 0, RuleKind::Metric, "");
        rule(&schema, id, 1, RuleKind::Tagk, "dc");
        let first = put(&schema, "m", &[("dc", "lga"), ("host", "a")]);
        let second = put(&schema, "m", &[("dc", "lga"), ("host", "b")]);
        let third = put(&schema, "m", &[("host", "c")]);
        let told = |found: BTreeMap<String, String>| found.into_iter().collect::<Vec<_>>();
        let (collisions, mismatches) = if strict {
            (vec![], vec![])
        } else {
            (vec![(second.to_string(), first.to_string())], vec![(third.to_string(), "[1:1:0:TAGK]".to_owned())])
        };
        assert_eq!(told(schema.tree_collisions(id, &[]).unwrap()), collisions);
        assert_eq!(told(schema.tree_mismatches(id, &[]).unwrap()), mismatches);
        assert!(schema.tree_collisions(id, &[first.as_bytes().to_vec()]).unwrap().is_empty());
        let column = [COLLISION_PREFIX, second.as_bytes()].concat();
        let is_kept = cells(&schema).contains(&("000101".into(), column, first.to_string()));
        assert_eq!(is_kept, !strict);
    }
}

/// A tree may have one for each series that there is.
#[test]
fn more_series_without_a_place_than_one_answer_holds_are_refused() {
    let schema = schema(LIVE);
    let id = tree(&schema, true);
    let [high, low] = id.bytes();
    let row = [high, low, NOT_MATCHED_SUFFIX];
    let tsuid = |at: u32| [&[0, 0, 1, 0, 0, 1], &at.to_be_bytes()[1..]].concat();
    for some in [0..100_000, 100_000..100_001] {
        let mut batch = MutationBatch::default();
        let mut cells = batch.row(&row).unwrap();
        for at in some.clone() {
            cells.put(DATA_FAMILY, &[NOT_MATCHED_PREFIX, &tsuid(at)].concat(), None, b"x").unwrap();
        }
        schema.store().apply(&schema.tables().tree, batch).wait().unwrap();
        let found = schema.tree_mismatches(id, &[]);
        assert_eq!(found.ok().map(|found| found.len()), (some.end == 100_000).then_some(100_000));
    }
    assert_eq!(schema.tree_mismatches(id, &[tsuid(7)]).unwrap().len(), 1);
}

/// `S-TREE`, `C-TREE`: what comes later through `treesync` is what would have come at once.
#[test]
fn a_sync_grows_what_points_would_have_grown() {
    let live = schema(LIVE);
    let id = tree(&live, false);
    rule(&live, id, 0, RuleKind::Tagk, "dc");
    rule(&live, id, 1, RuleKind::Metric, "");
    let later = schema(Realtime { trees: false, ..LIVE });
    for schema in [&live, &later] {
        put(schema, "sys.cpu.user", &[("dc", "lga")]);
        put(schema, "sys.cpu.nice", &[("dc", "lga")]);
        put(schema, "app", &[("dc", "phx")]);
    }
    assert_eq!(later.sync_trees().unwrap(), TreeSync::default(), "no tree is enabled yet");
    assert_eq!(tree(&later, false), id);
    rule(&later, id, 0, RuleKind::Tagk, "dc");
    rule(&later, id, 1, RuleKind::Metric, "");
    let synced = TreeSync { trees: 1, series: 3, leaves: 3, ..TreeSync::default() };
    assert_eq!(later.sync_trees().unwrap(), synced);
    assert_eq!(cells(&later), cells(&live));
    assert_eq!(later.sync_trees().unwrap(), synced, "doing it again changes nothing");
    assert_eq!(cells(&later), cells(&live));
}

/// `C-TREE`: an object or a leaf that is damaged, or a name that is gone, ends the work on its series only.
#[test]
fn a_sync_passes_over_what_is_damaged() {
    let schema = schema(Realtime { trees: false, ..LIVE });
    let id = tree(&schema, false);
    rule(&schema, id, 0, RuleKind::Tagk, "dc");
    rule(&schema, id, 1, RuleKind::Metric, "");
    let damaged = put(&schema, "a", &[("dc", "lga")]);
    put(&schema, "b", &[("dc", "gone")]);
    for metric in ["c", "d"] {
        put(&schema, metric, &[("dc", "lga")]);
    }
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(damaged.as_bytes()).unwrap().put(crate::tables::UID_NAME_FAMILY, b"ts_meta", None, b"{").unwrap();
    schema.store().apply(&schema.tables().meta, batch).wait().unwrap();
    schema.uids().of(crate::UidKind::Tagv).delete("gone").unwrap();
    let leaf = branch::leaf_qualifier("c");
    let row = branch::StoredBranch::root().below("lga").row(id);
    assert!(schema.tree_cell(&row, &leaf).put_if_absent(b"{", Durability::Fsync).unwrap());
    let synced = TreeSync { trees: 1, series: 2, leaves: 1, skipped: 3, ..TreeSync::default() };
    assert_eq!(schema.sync_trees().unwrap(), synced);
    assert_eq!(schema.sync_trees().unwrap(), synced, "doing it again changes nothing");
}

/// `S-TREE`, `C-TREE`: branches go, rules stay; then all goes, and the number is free again.
#[test]
fn a_tree_is_purged_with_or_without_its_definition() {
    let schema = schema(LIVE);
    let ids = [tree(&schema, false), tree(&schema, false)];
    for id in ids {
        rule(&schema, id, 0, RuleKind::Metric, "");
        rule(&schema, id, 1, RuleKind::Tagk, "host");
    }
    put(&schema, "a.b", &[("host", "x")]);
    assert!(schema.tree_branch(&ids[0].bytes()).unwrap().is_some());
    assert_eq!(schema.delete_tree(ids[0], false).unwrap(), 4);
    assert_eq!(schema.tree_branch(&ids[0].bytes()).unwrap(), None);
    assert_eq!(schema.tree(ids[0]).unwrap().unwrap().rules.unwrap().len(), 2);
    assert!(schema.tree_branch(&ids[1].bytes()).unwrap().is_some(), "the other tree stands");
    assert_eq!(schema.delete_tree(ids[0], true).unwrap(), 3);
    assert_eq!(schema.tree(ids[0]).unwrap(), None);
    assert_eq!(schema.trees().unwrap().len(), 1);
    assert_eq!(tree(&schema, false).number(), 3, "the number after the largest");
}

/// `S-TREE`: ids are 1 to 65535, and the scan for definitions seeks past branches.
#[test]
fn trees_are_listed_by_number_up_to_the_last() {
    let schema = schema(LIVE);
    let first = tree(&schema, false);
    rule(&schema, first, 0, RuleKind::Metric, "");
    rule(&schema, first, 1, RuleKind::Tagk, "host");
    put(&schema, "m", &[("host", "x")]);
    let last = TreeId::new(65_535).unwrap();
    let stored = meta_json::encode(&Stored { name: "last".into(), ..Stored::default() });
    schema.tree_cell(&last.bytes(), TREE_QUALIFIER).put_if_absent(&stored, Durability::Fsync).unwrap();
    // A rule without a definition is no tree.
    rule(&schema, TreeId::new(9).unwrap(), 0, RuleKind::Metric, "");
    let numbers: Vec<u16> = schema.trees().unwrap().iter().map(|tree| tree.tree_id.number()).collect();
    assert_eq!(numbers, [1, 65_535]);
    assert!(matches!(
        schema.create_tree(&TreeEdit { name: Some("x".into()), ..TreeEdit::default() }, 0),
        Err(Error::TreesExhausted)
    ));
    assert!(TreeId::new(0).is_err() && TreeId::new(65_536).is_err() && TreeId::new(-1).is_err());
}

/// Children are found without reading what hangs below them, and sorted without regard to case.
#[test]
fn a_branch_lists_its_own_children_only() {
    let schema = schema(LIVE);
    let id = tree(&schema, false);
    rule(&schema, id, 0, RuleKind::Tagk, "dc");
    rule(&schema, id, 1, RuleKind::Metric, "");
    for (metric, dc) in [("a.b.c", "lga"), ("a.b.d", "lga"), ("z.y", "Phx"), ("z.y", "bos")] {
        put(&schema, metric, &[("dc", dc)]);
    }
    let root = schema.tree_branch(&id.bytes()).unwrap().unwrap();
    let names: Vec<_> = root.branches.unwrap().iter().map(|branch| branch.display_name.clone()).collect();
    assert_eq!((names, root.leaves), (vec!["bos".into(), "lga".into(), "Phx".into()], None));
    let row = branch::StoredBranch::root().below("lga").below("a").below("b").row(id);
    let leaves = schema.tree_branch(&row).unwrap().unwrap().leaves.unwrap();
    assert_eq!(leaves.iter().map(|leaf| &*leaf.metric).collect::<Vec<_>>(), ["a.b.c", "a.b.d"]);
    schema.uids().of(crate::UidKind::Metric).delete("a.b.c").unwrap();
    assert_eq!(schema.tree_branch(&row).unwrap().unwrap().leaves.unwrap().len(), 1, "one without its name is left out");
}

/// A name of many pieces makes no deeper recursion than the bound allows.
#[test]
fn a_series_of_too_many_levels_has_no_place() {
    let schema = schema(LIVE);
    let id = tree(&schema, false);
    rule(&schema, id, 0, RuleKind::Metric, "");
    let tsuid = schema.resolve(&"a.".repeat(512), &[("host", "x")]).unwrap();
    schema.create_ts_meta(&tsuid, &TsMetaEdit::default()).unwrap();
    let meta = schema.ts_meta(&tsuid).unwrap().unwrap();
    let trial = CompiledTree::new(&schema.tree(id).unwrap().unwrap()).try_series(&meta);
    assert!(trial.messages.last().unwrap().starts_with("The series makes more than 256 levels"));
    assert_eq!(trial.branch.branches, None);
}

/// OpenTSDB compiles them by Java.
#[test]
fn expressions_of_rules_are_javas() {
    RuleEdit::check_expression(r"^\Q(\E\p{XDigit}").unwrap();
    let rule = r"(\w\Q(\E";
    let error = RuleEdit::check_expression(rule).unwrap_err().to_string();
    assert_eq!(error, format!("The regular expression '{rule}' is not one we can run: unclosed group"));
}

/// What the parts of a rule make of a name is bounded, however they are written.
#[test]
fn a_rule_and_the_names_it_makes_have_a_bound() {
    let schema = schema(LIVE);
    let id = tree(&schema, false);
    let give = |edit: RuleEdit| {
        let edit = RuleEdit { kind: Some(RuleKind::Metric), ..edit };
        schema.edit_tree_rule(id, &edit, EditMode::Replace).map(drop).map_err(|error| error.to_string())
    };
    let format = |text: String| RuleEdit { display_format: Some(text), ..RuleEdit::default() };
    assert_eq!(give(format("x".repeat(4097))).unwrap_err(), "`displayFormat` has 4097 bytes, and 4096 are allowed");
    let notes = RuleEdit { notes: Some("x".repeat(4097)), ..RuleEdit::default() };
    assert_eq!(give(notes.clone()).unwrap_err(), "`notes` has 4097 bytes, and 4096 are allowed");
    let replaced = schema.replace_tree_rules(id, &[RuleEdit { kind: Some(RuleKind::Metric), ..notes }]);
    assert!(replaced.is_err());
    let metric = "m".repeat(512);
    let tsuid = put(&schema, &metric, &[("host", "x")]);
    let name_of = |edit| {
        give(edit).unwrap();
        let meta = schema.ts_meta(&tsuid).unwrap().unwrap();
        let trial = CompiledTree::new(&schema.tree(id).unwrap().unwrap()).try_series(&meta);
        let leaf = trial.branch.leaves.and_then(|leaves| leaves.into_iter().next());
        leaf.map(|leaf| leaf.display_name).ok_or_else(|| trial.messages.join("; "))
    };
    assert_eq!(name_of(format("{value}{ovalue}".into())).unwrap(), metric.repeat(2));
    for long in ["{value}{ovalue}.".into(), "{value}".repeat(500)] {
        let told = name_of(format(long)).unwrap_err();
        assert!(told.contains("Display name for rule [1:0:0:METRIC] was longer than 1024 bytes"), "{told}");
    }
}

/// A rule that was stored by others may have texts of any length, and a tree any number of rules.
#[test]
fn what_is_told_of_a_series_has_a_bound() {
    let schema = schema(LIVE);
    let id = tree(&schema, false);
    let tsuid = put(&schema, "m", &[("host", "x")]);
    let meta = schema.ts_meta(&tsuid).unwrap().unwrap();
    let mut tree = schema.tree(id).unwrap().unwrap();
    let mut rule = TreeRule::decode(br#"{"type":"TAGK"}"#).unwrap();
    rule.field = "f".repeat(100_000);
    tree.rules = Some([(0, (0..100).map(|order| (order, rule.clone())).collect())].into());
    let messages = CompiledTree::new(&tree).try_series(&meta).messages;
    assert!(messages.iter().map(String::len).sum::<usize>() < 1_100_000);
    assert_eq!(messages.last().unwrap(), "Messages beyond 1048576 bytes are left out");
    rule = TreeRule::decode(br#"{"type":"METRIC"}"#).unwrap();
    rule.display_format = "{value}".repeat(1_000_000);
    tree.rules = Some([(0, [(0, rule)].into())].into());
    let messages = CompiledTree::new(&tree).try_series(&meta).messages;
    assert!(messages.iter().any(|told| told.contains("was longer than 1024 bytes")), "{messages:?}");
}

/// `M-TSMETA`: an object that is made by hand puts its series into the trees as well, where points' do.
#[test]
fn a_meta_object_made_by_hand_grows_the_trees() {
    for trees in [true, false] {
        let schema = schema(Realtime { trees, ..Realtime::default() });
        let id = tree(&schema, false);
        rule(&schema, id, 0, RuleKind::Tagk, "host");
        rule(&schema, id, 1, RuleKind::Metric, "");
        let tsuid = schema.resolve("m", &[("host", "x")]).unwrap();
        schema.create_ts_meta(&tsuid, &TsMetaEdit::default()).unwrap().unwrap();
        let root = schema.tree_branch(&id.bytes()).unwrap();
        let branches = root.and_then(|root| root.branches).unwrap_or_default();
        assert_eq!((branches.len(), schema.realtime_failures()), (usize::from(trees), 0));
    }
}
