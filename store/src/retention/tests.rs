use proptest::prelude::*;

use super::*;
use crate::SeqNo;

const F: &str = "";

/// A cell: column (`F`: a family's tombstone), time, kind, sequence.
type Told = (&'static str, u64, CellKind, u64);

use CellKind::{Delete, DeleteColumn, DeleteFamily, DeleteFamilyVersion, Put};

const ALL: Pass = Pass::Read { time_range: TimeRange::ALL, versions: u32::MAX };
const RAW: Pass = Pass::RawRead { time_range: TimeRange::ALL, versions: u32::MAX };
const MAJOR: Pass = Pass::Major { earliest_put: Timestamp(0) };

fn rules(versions: u32) -> Rules {
    Rules::of(&FamilyDescriptor::new("f").with_versions(versions))
}

fn range(min: u64, max: u64) -> Pass {
    Pass::Read { time_range: TimeRange { min: Timestamp(min), max: Timestamp(max) }, versions: u32::MAX }
}

fn cell_ref(&(qualifier, time, kind, seq): &Told) -> CellRef<'static> {
    let timestamp = Timestamp(time);
    CellRef { row: b"r", family: b"f", qualifier: qualifier.as_bytes(), timestamp, kind, seq: SeqNo(seq), value: b"" }
}

/// The cells that a pass keeps.
fn run(rules: Rules, pass: Pass, now: u64, cells: &[Told]) -> Vec<Told> {
    let mut cells = cells.to_vec();
    cells.sort_by(|a, b| cell_ref(a).order_in_family(&cell_ref(b)));
    let mut retention = Retention::new(rules, pass, Timestamp(now));
    retention.begin_row();
    cells.retain(|cell| retention.judge(&cell_ref(cell)).keeps());
    cells
}

/// The column and time of each put that a pass keeps.
fn puts(rules: Rules, pass: Pass, now: u64, cells: &[Told]) -> Vec<(&'static str, u64)> {
    run(rules, pass, now, cells).into_iter().filter(|c| c.2 == Put).map(|c| (c.0, c.1)).collect()
}

fn versions(times: &[u64]) -> Vec<Told> {
    times.iter().map(|&time| ("a", time, Put, time)).collect()
}

fn with(mut cells: Vec<Told>, more: &[Told]) -> Vec<Told> {
    cells.extend_from_slice(more);
    cells
}

#[test]
fn s_del_1_a_major_compaction_takes_tombstones_and_the_dead() {
    let cells = with(versions(&[1, 2]), &[("a", 1, DeleteColumn, 9)]);
    assert_eq!(run(rules(9), MAJOR, 100, &cells), versions(&[2]));
    assert_eq!(run(rules(9), Pass::Retain, 100, &cells), with(versions(&[2]), &[("a", 1, DeleteColumn, 9)]));
    assert_eq!(run(rules(9), RAW, 100, &cells).len(), 3);
}

#[test]
fn s_del_2_one_version() {
    let cells = with(versions(&[1, 2, 3]), &[("a", 2, Delete, 9)]);
    assert_eq!(puts(rules(3), ALL, 100, &cells), [("a", 3), ("a", 1)]);
}

#[test]
fn s_del_2_several_versions_one_after_the_other() {
    let cells = with(versions(&[1, 2, 3, 4]), &[("a", 4, Delete, 9), ("a", 3, Delete, 8), ("a", 1, DeleteColumn, 7)]);
    assert_eq!(puts(rules(9), ALL, 100, &cells), [("a", 2)]);
}

#[test]
fn s_del_3_a_column_up_to_a_time() {
    let cells = with(versions(&[1, 2, 3]), &[("a", 2, DeleteColumn, 9), ("b", 1, Put, 1)]);
    assert_eq!(puts(rules(3), ALL, 100, &cells), [("a", 3), ("b", 1)]);
}

#[test]
fn s_del_4_a_family_up_to_a_time() {
    let cells = with(versions(&[1, 2]), &[(F, 1, DeleteFamily, 9), ("b", 1, Put, 1)]);
    assert_eq!(puts(rules(3), ALL, 100, &cells), [("a", 2)]);
}

#[test]
fn s_del_4_a_familys_tombstone_is_found_below_values_of_the_empty_qualifier() {
    let cells = [("", 20, Put, 1), ("", 18, Put, 1), (F, 10, DeleteFamily, 2), ("", 9, Put, 1), ("a", 5, Put, 1)];
    for versions in [1, 2] {
        let expected = [("", 20), ("", 18)];
        let read = Pass::Read { time_range: TimeRange::ALL, versions };
        assert_eq!(puts(rules(2), read, 100, &cells), expected[..versions as usize]);
        assert_eq!(puts(rules(versions), MAJOR, 100, &cells), expected[..versions as usize]);
    }
}

#[test]
fn u_6_a_familys_one_version() {
    let cells = [("a", 1, Put, 1), ("b", 1, Put, 2), ("a", 2, Put, 3), (F, 1, DeleteFamilyVersion, 4)];
    assert_eq!(puts(rules(3), ALL, 100, &cells), [("a", 2)]);
    let cells = with(cells.to_vec(), &[(F, 2, DeleteFamilyVersion, 5), (F, 7, DeleteFamilyVersion, 5)]);
    assert_eq!(puts(rules(3), ALL, 100, &cells), []);
}

#[test]
fn s_del_7_a_put_below_a_tombstone_is_masked_though_written_later() {
    let cells = [(F, 15, DeleteFamily, 1), ("a", 12, Put, 2)];
    assert_eq!(puts(rules(1), ALL, 100, &cells), []);
    assert_eq!(run(rules(1), Pass::Retain, 100, &cells), [(F, 15, DeleteFamily, 1)]);
    assert_eq!(run(rules(1), MAJOR, 100, &cells), []);
}

#[test]
fn s_del_8_a_put_of_the_tombstones_own_time_is_masked() {
    for kind in [Delete, DeleteColumn] {
        assert_eq!(puts(rules(1), ALL, 100, &[("a", 15, kind, 1), ("a", 15, Put, 2)]), []);
    }
}

#[test]
fn s_del_9_a_deleted_version_lets_an_older_one_be_seen() {
    let cells = with(versions(&[1, 2, 3]), &[("a", 2, Delete, 9)]);
    assert_eq!(puts(rules(2), ALL, 100, &cells), [("a", 3), ("a", 1)]);
    let compacted = with(run(rules(2), MAJOR, 100, &versions(&[1, 2, 3])), &[("a", 2, Delete, 9)]);
    assert_eq!(puts(rules(2), ALL, 100, &compacted), [("a", 3)]);
}

#[test]
fn s_del_9_tombstones_outlast_excess_versions_in_a_minor_compaction() {
    let tombstone = ("a", 10, DeleteColumn, 1);
    let merged = run(rules(1), Pass::Retain, 100, &with(versions(&[20, 19]), &[tombstone]));
    assert_eq!(merged, with(versions(&[20]), &[tombstone]));
}

#[test]
fn s_del_10_kept_deletes_keep_their_tombstones() {
    let keep = Rules { keep_deleted: KeepDeletedCells::True, ..rules(3) };
    let cells = with(versions(&[10, 20]), &[("a", 25, DeleteColumn, 9), (F, 5, DeleteFamily, 9)]);
    assert_eq!(run(keep, MAJOR, 100, &cells).len(), 4);
    // A tombstone that no put is older than goes.
    let known = Pass::Major { earliest_put: Timestamp(10) };
    assert_eq!(run(keep, known, 100, &cells).iter().map(|c| c.2).collect::<Vec<_>>(), [DeleteColumn, Put, Put]);
}

#[test]
fn s_del_11_future_tombstones_outlive_compactions_until_the_delay_is_past() {
    let kept = |delay, now| {
        let rules = Rules { purge_delay_ms: delay, ..rules(1) };
        !run(rules, MAJOR, now, &[("a", 5000, DeleteColumn, 1)]).is_empty()
    };
    assert!(!kept(0, 1000));
    assert_eq!([1000, 5000, 6999, 7000, 7001].map(|now| kept(2000, now)), [true, true, true, true, false]);
}

#[test]
fn u_11_the_delay_holds_for_every_recent_tombstone() {
    let rules = Rules { purge_delay_ms: 500, ..rules(1) };
    let cells = [("a", 1000, DeleteColumn, 1), ("a", 900, Put, 1)];
    assert_eq!(run(rules, MAJOR, 1400, &cells), cells[..1]);
    assert_eq!(run(rules, MAJOR, 1600, &cells), []);
    let expiring = Rules { ttl_ms: Some(100), ..rules };
    assert_eq!(run(expiring, MAJOR, 1400, &cells), [], "past TTL it goes regardless");
}

#[test]
fn s_vers_3_of_one_address_the_last_written_is_taken() {
    let cells = [("a", 5, Put, 1), ("a", 5, Put, 2), ("a", 4, Put, 3)];
    for pass in [ALL, RAW, Pass::Retain, MAJOR] {
        assert_eq!(run(rules(2), pass, 100, &cells), [("a", 5, Put, 2), ("a", 4, Put, 3)]);
    }
}

#[test]
fn s_vers_5_reads_give_no_more_than_the_family_keeps() {
    assert_eq!(puts(rules(1), ALL, 100, &versions(&[10, 20])), [("a", 20)]);
    assert_eq!(
        puts(rules(3), Pass::Read { time_range: TimeRange::ALL, versions: 2 }, 100, &versions(&[1, 2, 3])),
        [("a", 3), ("a", 2)]
    );
}

#[test]
fn s_vers_6_excess_versions_go_in_compactions_and_raw_reads_show_them_before() {
    let cells = versions(&[1, 2, 3, 4]);
    assert_eq!(run(rules(2), RAW, 100, &cells).len(), 4);
    for pass in [Pass::Retain, MAJOR] {
        assert_eq!(puts(rules(2), pass, 100, &cells), [("a", 4), ("a", 3)]);
    }
}

#[test]
fn s_vers_9_min_versions_outlive_ttl() {
    let rules = Rules { ttl_ms: Some(60), min_versions: 2, ..rules(5) };
    let cells = versions(&[700, 800, 900, 990]);
    for pass in [ALL, Pass::Retain, MAJOR] {
        assert_eq!(puts(rules, pass, 1000, &cells), [("a", 990), ("a", 900)]);
        assert_eq!(puts(Rules { min_versions: 0, ..rules }, pass, 1000, &cells), [("a", 990)]);
    }
}

#[test]
fn s_ttl_1_a_cell_lives_to_its_last_millisecond() {
    let rules = Rules { ttl_ms: Some(10), ..rules(3) };
    for (now, expected) in [(109, 1), (110, 1), (111, 0)] {
        for pass in [ALL, Pass::Retain, MAJOR] {
            assert_eq!(puts(rules, pass, now, &versions(&[100])).len(), expected, "at {now}");
        }
        assert_eq!(puts(rules, RAW, now, &versions(&[100])).len(), 1, "a raw read shows what is stored");
        assert_eq!(rules.is_file_expired(Timestamp(100), Timestamp(now)), expected == 0);
    }
    assert!(!Rules { min_versions: 1, ..rules }.is_file_expired(Timestamp(0), Timestamp(1000)));
}

#[test]
fn s_ttl_4_ttl_is_reckoned_from_the_cells_own_time() {
    let rules = Rules { ttl_ms: Some(60), ..rules(3) };
    assert_eq!(puts(rules, ALL, 4000, &versions(&[400, 7600])), [("a", 7600)]);
    assert_eq!(puts(rules, ALL, 7660, &versions(&[7600])).len(), 1);
    assert_eq!(puts(rules, ALL, 7661, &versions(&[7600])).len(), 0);
}

#[test]
fn s_keep_1_a_read_sees_past_the_tombstones_after_its_range() {
    let cells = with(versions(&[10, 20]), &[("a", 25, DeleteColumn, 9)]);
    let keep = Rules { keep_deleted: KeepDeletedCells::True, ..rules(3) };
    for cells in [cells.clone(), run(keep, MAJOR, 100, &cells)] {
        assert_eq!(puts(keep, ALL, 100, &cells), []);
        assert_eq!(puts(keep, range(0, 25), 100, &cells), [("a", 20), ("a", 10)]);
        assert_eq!(puts(keep, range(0, 26), 100, &cells), []);
    }
    assert_eq!(puts(rules(3), range(0, 25), 100, &cells), []);
}

#[test]
fn s_keep_2_kept_deletes_fall_to_versions_and_ttl() {
    let keep = Rules { keep_deleted: KeepDeletedCells::True, ttl_ms: Some(50), ..rules(2) };
    let cells = with(versions(&[1, 2, 3, 4, 5]), &[("a", 6, DeleteColumn, 9)]);
    assert_eq!(puts(keep, MAJOR, 10, &cells), [("a", 5), ("a", 4)]);
    assert_eq!(run(keep, MAJOR, 100, &cells), []);
}

#[test]
fn s_keep_3_a_raw_read_shows_every_tombstone_before_the_puts_of_its_time() {
    let cells = [
        (F, 9, DeleteFamily, 1),
        (F, 9, DeleteFamilyVersion, 1),
        ("a", 9, DeleteColumn, 1),
        ("a", 9, Delete, 1),
        ("a", 9, Put, 1),
        ("a", 8, Put, 1),
    ];
    assert_eq!(run(rules(1), RAW, 100, &cells), cells);
}

#[test]
fn u_7_ttl_form_keeps_deletes_until_they_age() {
    let keep = Rules { keep_deleted: KeepDeletedCells::Ttl, ttl_ms: Some(50), ..rules(3) };
    let cells = with(versions(&[10]), &[("a", 20, DeleteColumn, 9)]);
    assert_eq!(run(keep, MAJOR, 60, &cells).len(), 2);
    assert_eq!(puts(keep, range(0, 20), 60, &cells), [("a", 10)]);
    assert_eq!(run(keep, MAJOR, 71, &cells), []);
    // With MIN_VERSIONS the dead are not saved by their number once their tombstone is past TTL.
    assert_eq!(run(Rules { min_versions: 1, ..keep }, MAJOR, 71, &cells), []);
}

#[test]
fn u_8_the_range_comes_before_the_count() {
    assert_eq!(puts(rules(1), range(0, 15), 100, &versions(&[10, 20])), [("a", 10)]);
    assert_eq!(puts(rules(1), range(0, 15), 100, &run(rules(1), MAJOR, 100, &versions(&[10, 20]))), []);
}

/// Cells of one row and family, few enough to collide.
fn any_cells() -> impl Strategy<Value = Vec<Told>> {
    let kind = prop_oneof![5 => Just(Put), 1 => Just(Delete), 1 => Just(DeleteColumn), 1 => Just(DeleteFamily),
        1 => Just(DeleteFamilyVersion)];
    let cell = (0usize..3, 1u64..8, kind);
    prop::collection::vec(cell, 0..24).prop_map(|cells| {
        let told = cells.into_iter().enumerate().map(|(seq, (column, time, kind))| {
            let column = if is_family_wide(kind) { F } else { ["", "a", "b"][column] };
            (column, time, kind, seq as u64)
        });
        told.collect()
    })
}

/// The rules again, without a walk: what a plain read of the whole sees where nothing was compacted.
fn seen(versions: u32, cells: &[Told]) -> Vec<(&'static str, u64)> {
    let masked = |put: &Told| {
        cells.iter().any(|t| match t.2 {
            Put => false,
            Delete => (t.0, t.1) == (put.0, put.1),
            DeleteColumn => t.0 == put.0 && put.1 <= t.1,
            DeleteFamilyVersion => t.1 == put.1,
            DeleteFamily => put.1 <= t.1,
        })
    };
    let mut given = Vec::new();
    for column in ["", "a", "b"] {
        let mut times: Vec<_> =
            cells.iter().filter(|c| c.2 == Put && c.0 == column && !masked(c)).map(|c| c.1).collect();
        times.sort_unstable();
        times.dedup();
        given.extend(times.iter().rev().take(versions as usize).map(|&time| (column, time)));
    }
    given
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn reads_agree_with_the_rules_told_without_a_walk(cells in any_cells(), versions in 1u32..4) {
        prop_assert_eq!(puts(rules(versions), ALL, 100, &cells), seen(versions, &cells));
    }

    #[test]
    fn a_compaction_changes_no_plain_read(cells in any_cells(), versions in 1u32..4) {
        let before = puts(rules(versions), ALL, 100, &cells);
        for pass in [Pass::Retain, MAJOR] {
            prop_assert_eq!(&puts(rules(versions), ALL, 100, &run(rules(versions), pass, 100, &cells)), &before);
        }
    }

    /// Exact tombstones in the other files are S-DEL-9's case: there the answer hangs on the compaction.
    #[test]
    fn a_minor_compaction_of_some_files_changes_no_plain_read(cells in any_cells(), others in any_cells()) {
        let mut others: Vec<Told> = others.into_iter().map(|(q, time, kind, seq)| (q, time, kind, seq + 1000)).collect();
        others.retain(|c| !matches!(c.2, Delete | DeleteFamilyVersion));
        let before = puts(rules(2), ALL, 100, &with(cells.clone(), &others));
        let after = puts(rules(2), ALL, 100, &with(run(rules(2), Pass::Retain, 100, &cells), &others));
        prop_assert_eq!(before, after);
    }

    #[test]
    fn what_may_be_passed_over_is_never_seen(cells in any_cells(), versions in 1u32..4) {
        let mut cells = cells;
        cells.sort_by(|a, b| cell_ref(a).order_in_family(&cell_ref(b)));
        let mut retention = Retention::new(rules(versions), ALL, Timestamp(100));
        retention.begin_row();
        let (mut sought, mut passed_over) = (Vec::new(), None);
        for cell in &cells {
            if passed_over == Some(cell.0) {
                continue;
            }
            let verdict = retention.judge(&cell_ref(cell));
            if verdict.keeps() {
                sought.push((cell.0, cell.1));
            }
            passed_over = verdict.ends_column().then_some(cell.0);
        }
        prop_assert_eq!(sought, seen(versions, &cells));
    }
}

/// What the new version behaviour promises, told write by write: a delete takes what is there, and what is in excess when
/// it is written is gone.
fn left_by_history(versions: usize, history: &[(CellKind, u64)]) -> Vec<u64> {
    let mut there: Vec<u64> = Vec::new();
    for &(kind, time) in history {
        match kind {
            Put if there.contains(&time) => {}
            Put => {
                there.push(time);
                there.sort_unstable_by(|a, b| b.cmp(a));
                there.truncate(versions);
            }
            Delete | DeleteFamilyVersion => there.retain(|&other| other != time),
            DeleteColumn | DeleteFamily => there.retain(|&other| other > time),
        }
    }
    there
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn u_4_deletes_mask_earlier_writes_and_deleted_versions_count(
        versions in 1..4_usize,
        history in proptest::collection::vec((prop_oneof![
            4 => Just(Put), 1 => Just(Delete), 1 => Just(DeleteColumn), 1 => Just(DeleteFamily),
            1 => Just(DeleteFamilyVersion),
        ], 1..7_u64), 0..16),
    ) {
        let family = FamilyDescriptor { new_version_behavior: true, ..FamilyDescriptor::new("f") };
        let rules = Rules::of(&family.with_versions(u32::try_from(versions).unwrap()));
        let cells: Vec<Told> = history.iter().zip(1..).map(|(&(kind, time), seq)| {
            (if matches!(kind, DeleteFamily | DeleteFamilyVersion) { F } else { "a" }, time, kind, seq)
        }).collect();
        let times = |cells: &[Told]| puts(rules, ALL, 100, cells).iter().map(|put| put.1).collect::<Vec<_>>();
        let expected = left_by_history(versions, &history);
        prop_assert_eq!(&times(&cells), &expected);
        prop_assert_eq!(times(&run(rules, Pass::Retain, 100, &cells)), expected.clone());
        let compacted = run(rules, MAJOR, 100, &cells);
        prop_assert_eq!(compacted.iter().map(|cell| (cell.1, cell.2)).collect::<Vec<_>>(),
            expected.iter().map(|&time| (time, Put)).collect::<Vec<_>>());
    }
}

/// Puts that are said to be kept together are kept each, whatever the pass.
#[test]
fn lone_puts_are_kept_together_only_where_each_is_kept() {
    let (mut kept, mut not) = (0, 0);
    let passes = [ALL, range(20, 60), RAW, Pass::Retain, MAJOR];
    for (pass, oldest, newest, ttl, tombstone) in passes.into_iter().flat_map(|pass| {
        [5, 25, 60].into_iter().flat_map(move |oldest| {
            [60, 75].into_iter().flat_map(move |newest| {
                [None, Some(1), Some(90)]
                    .into_iter()
                    .flat_map(move |ttl| [false, true].map(|tombstone| (pass, oldest, newest, ttl, tombstone)))
            })
        })
    }) {
        let family = FamilyDescriptor { ttl_seconds: ttl, ..FamilyDescriptor::new("f") };
        let now = if ttl == Some(1) { 1050 } else { 100 };
        let mut retention = Retention::new(Rules::of(&family), pass, Timestamp(now));
        retention.begin_row();
        if tombstone {
            retention.judge(&cell_ref(&(F, 70, DeleteFamily, 9)));
        }
        let together = retention.keeps_lone_puts(Timestamp(oldest), Timestamp(newest));
        let each = [("a", oldest, Put, 1), ("b", newest, Put, 2)]
            .map(|put| retention.judge(&cell_ref(&put)).keeps())
            .into_iter()
            .all(|keeps| keeps);
        assert!(each || !together, "{pass:?} {oldest} to {newest}, {ttl:?}, {tombstone}");
        assert!(together || !each || tombstone || pass == RAW, "{pass:?} {oldest} to {newest}, {ttl:?}: of no use");
        (kept, not) = (kept + usize::from(together), not + usize::from(!together));
    }
    assert!(kept > 20 && not > 20, "{kept} {not}");
}
