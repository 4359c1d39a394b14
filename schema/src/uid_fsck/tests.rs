//! Rule C-UIDFSCK: each kind of damage is found, and what mends it leaves nothing to find.

use std::sync::Arc;

use basalt_store::{ManualClock, MemoryStore, Store};

use super::*;
use crate::{Schema, SchemaConfig, UidDice};

type Column = (Vec<u8>, Vec<u8>, Vec<u8>);
type Cell = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

fn forward(name: &str, id: u8) -> Cell {
    (name.into(), b"id".into(), b"metrics".into(), vec![0, 0, id])
}

fn reverse(id: u8, name: &str) -> Cell {
    (vec![0, 0, id], b"name".into(), b"metrics".into(), name.into())
}

fn counter(bytes: &[u8]) -> Cell {
    (vec![0], b"id".into(), b"metrics".into(), bytes.into())
}

fn run(cells: &[Cell], fix: bool) -> UidReport {
    let mut fsck =
        UidFsck::new(UidWidths::default(), UidFsckOptions { fix, delete_unknown: true, random_metrics: false });
    for (row, family, qualifier, value) in cells {
        fsck.add(row, family, qualifier, value);
    }
    fsck.finish()
}

/// What the cells are after the mends.
fn mended(cells: &[Cell], mends: &[UidMend]) -> Vec<Cell> {
    let mut cells: BTreeMap<Column, Vec<u8>> =
        cells.iter().cloned().map(|(row, family, qualifier, value)| ((row, family, qualifier), value)).collect();
    for mend in mends {
        match mend.clone() {
            UidMend::Put { row, family, kind, value } => {
                cells.insert((row, family.to_vec(), kind.qualifier().into()), value);
            }
            UidMend::Delete { row, family, qualifiers } => {
                for qualifier in qualifiers {
                    cells.remove(&(row.clone(), family.clone(), qualifier));
                }
            }
            UidMend::Raise { kind, by } => {
                let value = cells.entry((vec![0], b"id".into(), kind.qualifier().into())).or_insert(vec![0; 8]);
                *value = (i64::from_be_bytes(value[..].try_into().unwrap()) + by).to_be_bytes().to_vec();
            }
        }
    }
    cells.into_iter().map(|((row, family, qualifier), value)| (row, family, qualifier, value)).collect()
}

/// Damage is found with `errors`, nothing is mended dry, and after the mends nothing is wrong.
fn check(mut cells: Vec<Cell>, errors: u64, text: &str) -> Vec<Cell> {
    if !cells.iter().any(|cell| cell.0 == [0]) {
        cells.push(counter(&9u64.to_be_bytes()));
    }
    let dry = run(&cells, false);
    assert_eq!(dry.errors_count, errors, "{dry:#?}");
    assert!(dry.findings.iter().any(|finding| finding.text.contains(text)), "{dry:#?}");
    assert!(dry.mends.is_empty());
    let cells = mended(&cells, &run(&cells, true).mends);
    let after = run(&cells, false);
    assert_eq!(after.errors_count, 0, "{after:#?}");
    assert!(after.findings.iter().all(|finding| !finding.text.contains("mapping")), "{after:#?}");
    cells
}

#[test]
fn a_whole_table_has_nothing_wrong() {
    check(vec![forward("a", 1), reverse(1, "a"), counter(&1u64.to_be_bytes())], 0, "Maximum ID for metrics: 1");
}

#[test]
fn a_missing_reverse_cell_comes_back() {
    let cells = check(vec![forward("a", 1)], 1, "is missing reverse mapping: a -> 000001");
    assert!(cells.contains(&reverse(1, "a")));
}

/// The reverse cell may be the last that knows the name, and the points of its UID are that name's.
#[test]
fn a_name_without_a_forward_cell_gets_it_back() {
    let meta = (vec![0, 0, 1], b"name".to_vec(), b"metric_meta".to_vec(), b"{}".to_vec());
    let text = "Reverse metrics mapping is missing forward mapping: a -> 000001";
    let cells = check(vec![reverse(1, "a"), meta.clone()], 0, text);
    assert!(cells.contains(&forward("a", 1)) && cells.contains(&reverse(1, "a")) && cells.contains(&meta));
    // As a repair leaves them that lost the whole family: the counter with it, which no forward cell tells.
    let lost = [reverse(1, "a"), reverse(7, "b")];
    let dry = run(&lost, false);
    let told = "We found an ID of 7 for metrics but the max ID is only 0!  Future IDs may be double-assigned!";
    assert!(dry.errors_count == 1 && dry.findings.iter().any(|finding| finding.text == told), "{dry:#?}");
    let fixed = run(&lost, true);
    let told = "FIX: Restored forward metrics mapping: b -> 000007";
    assert!(fixed.findings.iter().any(|finding| finding.text == told), "{fixed:#?}");
    let cells = mended(&lost, &fixed.mends);
    assert!(cells.contains(&forward("b", 7)) && cells.contains(&counter(&7u64.to_be_bytes())), "{cells:?}");
    assert_eq!(run(&cells, false).errors_count, 0);
}

/// Which of them it was nobody can say; the row of a name that is none is the counter's, or no row.
#[test]
fn of_two_uids_of_a_lost_name_none_goes_and_what_is_no_name_does() {
    let cells = [reverse(1, "a"), reverse(2, "a"), reverse(3, "\0"), reverse(4, ""), counter(&9u64.to_be_bytes())];
    let left = mended(&cells, &run(&cells, true).mends);
    assert_eq!(left, [counter(&9u64.to_be_bytes()), reverse(1, "a"), reverse(2, "a")]);
}

/// The joined name keeps what was mixed; a name that another UID bears alone is that one's, as before they were mixed.
#[test]
fn of_two_names_of_one_uid_one_goes_back_to_the_uid_that_bears_it() {
    let cells = check(
        vec![forward("a", 2), forward("b", 2), reverse(1, "a"), reverse(2, "b")],
        3,
        "Inconsistent reverse metrics mapping 000001 -> a vs 000002 -> a / b -> 000002",
    );
    assert!([forward("a", 1), reverse(1, "a"), forward("fsck.a.b", 2)].iter().all(|cell| cells.contains(cell)));
    assert!(!cells.contains(&forward("b", 2)), "{cells:?}");
}

#[test]
fn a_reverse_cell_of_another_name_is_put_right() {
    let cells = check(vec![forward("a", 1), reverse(1, "b")], 2, "is different than reverse mapping: 000001 -> b");
    assert!(cells.contains(&reverse(1, "a")));
}

#[test]
fn two_uids_of_one_name_lose_the_one_that_the_name_does_not_tell() {
    let cells = check(vec![forward("a", 1), reverse(1, "a"), reverse(2, "a")], 1, "Inconsistent reverse");
    assert_eq!(cells.len(), 3);
}

#[test]
fn two_names_of_one_uid_give_way_to_a_third() {
    let cells = check(
        vec![forward("a", 1), forward("b", 1), reverse(1, "a")],
        2,
        "Inconsistent forward metrics mapping b -> 000001 vs b -> a / a -> 000001",
    );
    assert!(cells.contains(&forward("fsck.a.b", 1)) && cells.contains(&reverse(1, "fsck.a.b")));
    assert!(!cells.iter().any(|cell| cell.0 == b"a" || cell.0 == b"b"));
}

#[test]
fn two_names_of_one_uid_without_a_reverse_cell_give_way_too() {
    check(vec![forward("a", 1), forward("b", 1)], 2, "missing reverse mapping");
}

#[test]
fn a_counter_behind_is_raised_and_a_broken_one_restored() {
    let whole = || vec![forward("a", 7), reverse(7, "a")];
    let with = |bytes: &[u8]| whole().into_iter().chain([counter(bytes)]).collect();
    let seven = counter(&7u64.to_be_bytes());
    assert!(check(with(&1u64.to_be_bytes()), 1, "the max ID is only 1!").contains(&seven));
    assert!(check(with(&[7]), 1, "should be on 8 bytes").contains(&seven));
    // More UIDs were given out than are left, and it is behind all the same.
    assert!(check(with(&3u64.to_be_bytes()), 1, "the max ID is only 3!").contains(&seven));
    for no_id in [-1, i64::MIN] {
        let text = format!("The max ID for metrics is {no_id}, which is no ID of 3 bytes!");
        assert!(check(with(&no_id.to_be_bytes()), 1, &text).contains(&seven));
    }
}

/// Names with larger UIDs than those that are left may have been deleted, and their data stay.
#[test]
fn a_counter_at_its_end_or_beyond_stays() {
    for (count, told) in [(0xFF_FFFF, false), (0x100_0000, true), (i64::MAX, true)] {
        let cells = vec![forward("a", 7), reverse(7, "a"), counter(&count.to_be_bytes())];
        let report = run(&cells, true);
        assert_eq!((report.errors_count, report.mends), (0, vec![]), "{count}");
        let text = format!("Max ID for metrics is {count}: every ID of 3 bytes was given out, and new names get none");
        assert_eq!(report.findings.iter().any(|finding| finding.text == text), told, "{count}");
    }
}

/// Their counter stays where it was when they began to be drawn at random; that of the others is looked at.
#[test]
fn the_counter_of_random_metrics_is_not_looked_at() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    let open = |random_metrics| {
        Schema::open(Arc::clone(&store), SchemaConfig { random_metrics, ..SchemaConfig::default() }).unwrap()
    };
    let random = open(Some(UidDice::new(|| 7)));
    random.resolve("m", &[("host", "a")]).unwrap();
    let fix = UidFsckOptions { fix: true, ..UidFsckOptions::default() };
    assert_eq!((random.fsck_uids(fix).unwrap().errors_count, random.fsck_uids(fix).unwrap().mends), (0, vec![]));
    let counted = open(None).fsck_uids(UidFsckOptions::default()).unwrap();
    assert!(counted.findings.iter().any(|finding| finding.text.starts_with("We found an ID of 7 for metrics")));
    let counter = counter(&0_u64.to_be_bytes());
    let behind = [forward("a", 7), reverse(7, "a"), counter].map(|cell| (cell.0, cell.1, b"tagk".to_vec(), cell.3));
    let mut fsck = UidFsck::new(UidWidths::default(), UidFsckOptions { random_metrics: true, ..fix });
    for (row, family, qualifier, value) in &behind {
        fsck.add(row, family, qualifier, value);
    }
    assert_eq!(fsck.finish().mends, [UidMend::Raise { kind: UidKind::Tagk, by: 7 }]);
}

#[test]
fn unknown_columns_go_when_asked() {
    let odd = (b"a".to_vec(), b"id".to_vec(), b"odd".to_vec(), vec![1]);
    assert!(!check(vec![odd.clone()], 0, "Unknown qualifier 6F6464 in row 61").contains(&odd));
    let mut fsck = UidFsck::new(UidWidths::default(), UidFsckOptions { fix: true, ..UidFsckOptions::default() });
    fsck.add(&odd.0, &odd.1, &odd.2, &odd.3);
    assert!(fsck.finish().mends.is_empty());
}

#[test]
fn a_uid_of_another_width_is_told() {
    let wide = (b"a".to_vec(), b"id".to_vec(), b"metrics".to_vec(), vec![0, 0, 0, 1]);
    let report = run(&[wide], false);
    assert!(report.findings.iter().any(|f| f.text.starts_with("Invalid metrics ID of length 4 (expected: 3)")));
}

/// A forward cell that is no UID.
fn damaged(name: &str, value: &[u8]) -> Cell {
    (name.into(), b"id".into(), b"metrics".into(), value.into())
}

/// The reverse cell is all that is left of the name's UID.
#[test]
fn a_name_whose_cell_is_no_uid_gets_it_back() {
    let meta = (vec![0, 0, 1], b"name".to_vec(), b"metric_meta".to_vec(), b"{}".to_vec());
    for value in [&[0, 1][..], &[0, 0, 0, 1], &[]] {
        let cells = check(
            vec![damaged("a", value), reverse(1, "a"), meta.clone()],
            3,
            &format!("Duplicate reverse metrics mapping 000001 -> a and {} -> null", hex::upper(value)),
        );
        assert!(cells.contains(&forward("a", 1)) && cells.contains(&reverse(1, "a")) && cells.contains(&meta));
    }
    // The counter is held to it.
    let cells = [damaged("a", &[1]), reverse(7, "a"), counter(&1u64.to_be_bytes())];
    assert!(mended(&cells, &run(&cells, true).mends).contains(&counter(&7u64.to_be_bytes())));
}

#[test]
fn of_two_uids_that_may_have_been_a_names_none_goes() {
    let cells = [damaged("a", &[1]), reverse(1, "a"), reverse(2, "a"), counter(&9u64.to_be_bytes())];
    let report = run(&cells, true);
    assert!(report.mends.is_empty() && report.errors_count > 0, "{report:#?}");
}

#[test]
fn names_whose_cells_are_no_uids_are_not_joined() {
    let whole = [forward("c", 3), forward("d", 3), reverse(3, "c"), counter(&9u64.to_be_bytes())];
    let broken = [damaged("a", &[1]), damaged("b", &[1])];
    let cells: Vec<Cell> = whole.into_iter().chain(broken.clone()).collect();
    let cells = mended(&cells, &run(&cells, true).mends);
    assert!(broken.iter().all(|cell| cells.contains(cell)), "{cells:?}");
    assert!(cells.contains(&forward("fsck.c.d", 3)) && !cells.contains(&forward("c", 3)));
}

/// What gives a UID of several names one of its own may be cut off after each step: the UID keeps a name, and the next run ends it.
#[test]
fn a_uid_of_several_names_has_one_after_each_step() {
    let taken = [forward("fsck.a.b.c", 2), reverse(2, "fsck.a.b.c")];
    for more in [vec![], taken.to_vec()] {
        let one = [forward("a", 1), forward("b", 1), forward("c", 1), reverse(1, "b"), counter(&9u64.to_be_bytes())];
        let cells: Vec<Cell> = one.into_iter().chain(more.clone()).collect();
        let mends = run(&cells, true).mends;
        assert!(mends.len() >= 5, "{mends:?}");
        for done in 0..=mends.len() {
            let left = mended(&cells, &mends[..done]);
            let [names, uids] = [&b"id"[..], b"name"].map(|of| left.iter().filter(move |cell| cell.1 == of));
            assert!(names.clone().any(|cell| cell.3 == [0, 0, 1]), "after {done}: {left:?}");
            let name = uids.clone().find(|cell| cell.0 == [0, 0, 1]).map(|cell| &cell.3);
            let of_name = names.clone().find(|cell| Some(&cell.0) == name).map(|cell| &cell.3[..]);
            assert_eq!(of_name, Some(&[0, 0, 1][..]), "after {done}: {left:?}");
            assert!(more.iter().all(|cell| left.contains(cell)), "after {done}: {left:?}");
            let again = mended(&left, &run(&left, true).mends);
            assert_eq!(run(&again, false).errors_count, 0, "after {done}: {again:?}");
            assert_eq!(again.iter().filter(|cell| cell.1 == b"id" && cell.3 == [0, 0, 1]).count(), 1);
            assert!(more.iter().all(|cell| again.contains(cell)), "after {done}: {again:?}");
        }
    }
}

/// Each mismatch asks how many names a UID has; counted anew each time, this grew with the square of the names.
#[test]
fn many_names_of_one_uid_take_no_time() {
    let names: Vec<Cell> = (0..30_000).map(|number| forward(&format!("n{number:05}"), 1)).collect();
    let mut cells = names.clone();
    cells.extend([reverse(1, "n00000"), counter(&9u64.to_be_bytes())]);
    let report = run(&cells, true);
    assert_eq!(report.errors_count, 2 * (names.len() as u64 - 1));
    let left = mended(&cells, &report.mends);
    let named: Vec<&Cell> = left.iter().filter(|cell| cell.1 == b"id" && cell.3 == [0, 0, 1]).collect();
    assert!(matches!(&named[..], [cell] if cell.0.starts_with(b"fsck.n00000.n00001.") && cell.0.ends_with(b".000001")));
}
