//! Each rule of the advisor, by its code.

use super::*;

fn field(name: &str, kind: Kind) -> KeyField {
    KeyField { name: name.to_owned(), kind, ..KeyField::default() }
}

/// A hash or a bucket of other fields.
fn made(name: &str, kind: Kind, of: &[&str], buckets: Option<u32>) -> KeyField {
    KeyField { of: names(of), buckets, ..field(name, kind) }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn keyed(fields: Vec<KeyField>) -> Design {
    Design { table: "t".to_owned(), fields, families: vec![FamilyPlan::new("d")], ..Design::default() }
}

fn asked(name: &str, equals: &[&str], range: &str) -> Access {
    let range = (!range.is_empty()).then(|| range.to_owned());
    Access { name: name.to_owned(), equals: names(equals), range, weight: 1, ..Access::default() }
}

/// What is said of a code: its levels.
fn levels(design: &Design, code: &str) -> Vec<Level> {
    let findings = advise(design).findings;
    findings.iter().filter(|finding| finding.code == code).map(|finding| finding.level).collect()
}

/// The words of a code's only finding.
fn said(design: &Design, code: &str) -> String {
    let findings = advise(design).findings;
    let found: Vec<_> = findings.iter().filter(|finding| finding.code == code).collect();
    assert_eq!(found.len(), 1, "{code}: {findings:?}");
    format!("{} {}", found[0].says, found[0].advice)
}

fn path(design: &Design, access: Access) -> (Path, u64) {
    let answers = advise(&Design { accesses: vec![access], ..design.clone() }).answers;
    (answers[0].path, answers[0].calls)
}

/// `[salt][metric][time]` as OpenTSDB's.
fn salted() -> Design {
    keyed(vec![
        KeyField { bytes: Some(1), ..made("salt", Kind::Hash, &["metric", "tags"], Some(16)) },
        field("metric", Kind::Id),
        field("time", Kind::Time),
        field("tags", Kind::Id),
    ])
}

#[test]
fn s_key_1_each_access_is_told_what_it_takes() {
    let design = salted();
    assert_eq!(path(&design, asked("a", &["metric", "tags", "time"], "")), (Path::Get, 1));
    assert_eq!(path(&design, asked("a", &["metric", "tags"], "time")), (Path::ShortScan, 1));
    assert_eq!(path(&design, asked("a", &["metric"], "time")), (Path::FanOut(16), 16));
    assert_eq!(path(&design, asked("a", &["tags"], "time")), (Path::FullScan, 1));
    assert_eq!(path(&design, asked("a", &[], "")), (Path::FullScan, 1));
    let plain = keyed(vec![field("host", Kind::Id), field("time", Kind::Time)]);
    assert_eq!(path(&plain, asked("a", &["host"], "")), (Path::ShortScan, 1));
    assert_eq!(path(&plain, asked("a", &[], "host")), (Path::ShortScan, 1));
    assert_eq!(path(&plain, asked("a", &[], "time")), (Path::FullScan, 1));
    let full = Design { accesses: vec![asked("by time", &[], "time")], ..plain };
    assert_eq!(levels(&full, "S-KEY-1"), [Level::Warning]);
    assert!(said(&full, "S-KEY-1").contains("`by time` reads every row: it does not tell the key's `host`"));
}

/// A time modulo 20 spreads; a range of it is a scan a bucket, a known time is one (D-5).
#[test]
fn s_log_3_a_bucket_of_the_time_is_a_scan_a_bucket() {
    let design = keyed(vec![
        made("bucket", Kind::Bucket, &["time"], Some(20)),
        field("time", Kind::Time),
        field("host", Kind::Id),
    ]);
    assert_eq!(path(&design, asked("a", &[], "time")), (Path::FanOut(20), 20));
    assert_eq!(path(&design, asked("a", &["time"], "")), (Path::ShortScan, 1));
    assert_eq!(levels(&design, "S-HOT-1"), []);
}

#[test]
fn s_tall_5_more_than_one_call_is_noted() {
    let design = Design {
        accesses: vec![asked("all", &["metric"], "time"), asked("one", &["metric", "tags"], "time")],
        ..salted()
    };
    assert!(said(&design, "S-TALL-5").starts_with("`all` takes 16 calls"));
}

#[test]
fn s_key_2_what_is_no_field_of_the_key_finds_nothing() {
    let design = Design { accesses: vec![asked("a", &["metric", "tags", "colour"], "time")], ..salted() };
    assert!(said(&design, "S-KEY-2").contains("`colour`, which is no field of the key"));
}

#[test]
fn s_hot_1_a_key_that_rises_is_hot() {
    for (kind, levels_wanted) in [(Kind::Time, 1), (Kind::Sequence, 1), (Kind::Id, 0), (Kind::Text, 0)] {
        let design = keyed(vec![KeyField { bytes: Some(8), ..field("first", kind) }, field("host", Kind::Id)]);
        assert_eq!(levels(&design, "S-HOT-1"), vec![Level::Error; levels_wanted], "{kind:?}");
    }
    // Neither newest first nor a field of one value before it helps; reversed digits do.
    let newest = keyed(vec![KeyField { newest_first: true, ..field("time", Kind::Time) }]);
    assert_eq!(levels(&newest, "S-HOT-1"), [Level::Error]);
    let constant = keyed(vec![KeyField { values: Some(1), ..field("type", Kind::Id) }, field("time", Kind::Time)]);
    assert_eq!(levels(&constant, "S-HOT-1"), [Level::Error]);
    let reversed = keyed(vec![KeyField { reversed: true, ..field("user", Kind::Sequence) }]);
    assert_eq!(levels(&reversed, "S-HOT-1"), []);
}

/// The time leads the log's key.
#[test]
fn s_log_2_a_log_by_time_is_hot() {
    let design = keyed(vec![field("time", Kind::Time), field("host", Kind::Id), field("event", Kind::Id)]);
    assert!(said(&design, "S-HOT-1").contains("`time` rises: all new rows fall into one region"));
}

#[test]
fn s_hot_3_few_metrics_do_not_spread() {
    let of = |values| keyed(vec![KeyField { values, ..field("metric", Kind::Id) }, field("time", Kind::Time)]);
    assert_eq!(levels(&of(Some(3)), "S-HOT-3"), [Level::Warning]);
    assert_eq!(levels(&of(Some(500)), "S-HOT-3"), []);
    assert_eq!(levels(&of(None), "S-HOT-3"), []);
}

#[test]
fn s_log_4_one_dominant_host_is_hot() {
    let of = |top_percent| keyed(vec![KeyField { top_percent, ..field("host", Kind::Id) }, field("time", Kind::Time)]);
    assert_eq!(levels(&of(Some(90)), "S-LOG-4"), [Level::Warning]);
    assert_eq!(levels(&of(Some(50)), "S-LOG-4"), []);
}

#[test]
fn s_hot_6_a_reversed_field_has_no_ranges() {
    let user = KeyField { reversed: true, ..field("user", Kind::Digits) };
    let design = keyed(vec![KeyField { bytes: Some(8), ..user }, field("order", Kind::Id)]);
    let of = |access| Design { accesses: vec![access], ..design.clone() };
    assert_eq!(levels(&of(asked("a", &[], "user")), "S-HOT-6"), [Level::Error]);
    assert_eq!(levels(&of(asked("a", &["user"], "order")), "S-HOT-6"), []);
}

/// D-4: which of the buckets are used.
#[test]
fn s_hot_7_aligned_times_fall_in_few_buckets() {
    for (count, used) in [(4, 1), (10, 1), (16, 1), (20, 1), (100, 1), (32, 2), (64, 4)] {
        let time = KeyField { step: Some(3600), ..field("time", Kind::Time) };
        let design = keyed(vec![made("bucket", Kind::Bucket, &["time"], Some(count)), time]);
        assert_eq!(levels(&design, "S-HOT-7"), [Level::Error]);
        assert!(said(&design, "S-HOT-7").contains(&format!("fall into {used} of {count} buckets")), "{count}");
    }
    for count in [7, 101] {
        let own = KeyField { step: Some(3600), ..made("bucket", Kind::Bucket, &["time"], Some(count)) };
        assert_eq!(levels(&keyed(vec![own, field("time", Kind::Time)]), "S-HOT-7"), [], "{count}");
    }
}

#[test]
fn s_hot_8_a_random_field_hides_its_row() {
    let design = keyed(vec![field("user", Kind::Id), field("order", Kind::Id), field("salt", Kind::Random)]);
    let of = |access| Design { accesses: vec![access], ..design.clone() };
    assert_eq!(levels(&of(asked("a", &["user", "order"], "")), "S-HOT-8"), [Level::Error]);
    assert_eq!(levels(&of(asked("a", &["user", "order", "salt"], "")), "S-HOT-8"), []);
}

#[test]
fn s_hot_9_scans_want_a_hash_not_a_random_field() {
    let design = keyed(vec![field("salt", Kind::Random), field("user", Kind::Id), field("order", Kind::Id)]);
    let of = |access| Design { accesses: vec![access], ..design.clone() };
    assert_eq!(levels(&of(asked("a", &["user"], "order")), "S-HOT-9"), [Level::Warning]);
    assert!(said(&of(asked("a", &["user"], "order")), "S-HOT-9").contains("use a hash"));
    assert_eq!(levels(&design, "S-HOT-9"), []);
}

#[test]
fn s_hot_10_a_hashed_field_has_no_ranges() {
    let design = keyed(vec![made("hash", Kind::Hash, &["user"], None), field("order", Kind::Id)]);
    let of = |access| Design { accesses: vec![access], ..design.clone() };
    assert_eq!(levels(&of(asked("a", &[], "user")), "S-HOT-10"), [Level::Error]);
    assert_eq!(levels(&of(asked("a", &[], "hash")), "S-HOT-10"), [Level::Error]);
    let equal = of(asked("a", &["user"], "order"));
    assert_eq!(levels(&equal, "S-HOT-10"), []);
    assert_eq!(path(&equal, asked("a", &["user"], "order")), (Path::ShortScan, 1));
    // Beside its hash the field itself keeps its order.
    let beside =
        keyed(vec![made("hash", Kind::Hash, &["host"], None), field("host", Kind::Id), field("time", Kind::Time)]);
    let beside = Design { accesses: vec![asked("a", &["host"], "time")], ..beside };
    assert_eq!(levels(&beside, "S-HOT-10"), []);
}

#[test]
fn s_hot_11_the_number_of_buckets_is_weighed() {
    let of = |buckets, rate| {
        let salt = KeyField { bytes: Some(1), ..made("salt", Kind::Hash, &["id"], Some(buckets)) };
        let design = keyed(vec![salt, field("id", Kind::Id)]);
        Design { writes_per_second: Some(rate), regions: Some(16), ..design }
    };
    assert!(said(&of(100, 100_000), "S-HOT-11").contains("2 would do"));
    assert!(said(&of(4, 500_000), "S-HOT-11").contains("10 would do"));
    assert_eq!(levels(&of(16, 500_000), "S-HOT-11"), []);
}

#[test]
fn s_hot_12_a_key_alone_is_judged_and_its_errors_count() {
    assert!(advise(&Design { fields: vec![field("time", Kind::Time)], ..Design::default() }).has_errors());
    assert!(!advise(&Design { fields: vec![field("host", Kind::Id)], ..Design::default() }).has_errors());
    assert!(!advise(&salted()).has_errors());
    // Errors come first.
    let worst = Design { families: vec![FamilyPlan::new("long")], ..keyed(vec![field("time", Kind::Time)]) };
    let found: Vec<Level> = advise(&worst).findings.iter().map(|finding| finding.level).collect();
    assert!(found.is_sorted() && found.contains(&Level::Note), "{found:?}");
}

#[test]
fn s_key_5_two_rows_of_one_key_are_told() {
    let design = keyed(vec![field("host", Kind::Id), field("time", Kind::Time)]);
    let with = |rows: &[[&str; 2]]| Design { rows: rows.iter().map(|row| names(row)).collect(), ..design.clone() };
    assert!(
        said(&with(&[["a", "1"], ["b", "1"], ["a", "1"]]), "S-KEY-5").contains("2 rows of the sample have the key a 1")
    );
    assert_eq!(levels(&with(&[["a", "1"], ["a", "2"]]), "S-KEY-5"), []);
}

#[test]
fn s_key_7_a_field_of_no_end_is_refused() {
    let host = field("host", Kind::Text);
    let of = |host: KeyField| keyed(vec![host, field("time", Kind::Time)]);
    assert_eq!(levels(&of(host.clone()), "S-KEY-7"), [Level::Error]);
    assert_eq!(levels(&of(KeyField { delimiter: Some(0), ..host.clone() }), "S-KEY-7"), []);
    assert_eq!(levels(&of(KeyField { bytes: Some(20), ..host.clone() }), "S-KEY-7"), []);
    assert_eq!(levels(&keyed(vec![field("id", Kind::Id), host]), "S-KEY-7"), []);
}

#[test]
fn s_key_8_padding_is_the_lowest_byte_and_in_no_value() {
    let of = |pad, value: &str| {
        let host = KeyField { bytes: Some(8), pad: Some(pad), ..field("host", Kind::Text) };
        Design { rows: vec![names(&[value])], ..keyed(vec![host]) }
    };
    assert_eq!(levels(&of(0, "host1"), "S-KEY-8"), []);
    assert_eq!(levels(&of(b'x', "host1"), "S-KEY-8"), [Level::Warning]);
    assert_eq!(levels(&of(b'x', "xen"), "S-KEY-8"), [Level::Error, Level::Warning]);
    assert_eq!(levels(&of(0, "host12345"), "S-KEY-8"), [Level::Error]);
}

#[test]
fn s_key_9_a_delimiter_is_in_no_value() {
    let of = |value: &str| {
        let host = KeyField { delimiter: Some(b'_'), ..field("host", Kind::Text) };
        Design { rows: vec![names(&[value, "1"])], ..keyed(vec![host, field("time", Kind::Time)]) }
    };
    assert_eq!(levels(&of("web_1"), "S-KEY-9"), [Level::Error]);
    assert_eq!(levels(&of("web1"), "S-KEY-9"), []);
}

/// Host, event and time as names: those of the checklist.
fn named() -> Design {
    let fields = vec![field("host", Kind::Text), field("event", Kind::Text), field("time", Kind::Time)];
    let long = ["myserver1.mycompany.com", "com.package1.subpackage2.subsubpackage3.ImportantService", "1"];
    Design { rows: vec![names(&["a", "e1", "1"]), names(&long)], ..keyed(fields) }
}

#[test]
fn s_key_11_keys_of_very_different_lengths_are_told() {
    assert!(said(&named(), "S-KEY-11").contains("longest key has 87 bytes, the median 11"));
    let even = Design { rows: vec![names(&["ab", "e1", "1"]), names(&["a", "e1", "1"])], ..named() };
    assert_eq!(levels(&even, "S-KEY-11"), []);
}

#[test]
fn s_key_12_four_lengths_of_a_key_are_told() {
    let bytes = advise(&named()).key_bytes.unwrap();
    assert_eq!((bytes.shortest, bytes.longest, bytes.hashed, bytes.numbered), (11, 87, 40, 24));
    let told = said(&named(), "S-KEY-12");
    assert!(told.contains("11 to 87 bytes, with hashes 40, with numbers 24"), "{told}");
}

#[test]
fn s_rev_4_the_newest_stand_first_where_most_ask_for_them() {
    let of = |newest_first, weight| {
        let time = KeyField { newest_first, ..field("time", Kind::Time) };
        let newest = Access { newest_first: true, weight, ..asked("latest", &["host"], "time") };
        let accesses = vec![newest, asked("range", &["host"], "time")];
        Design { accesses, ..keyed(vec![field("host", Kind::Id), time]) }
    };
    assert!(said(&of(false, 3), "S-REV-4").contains("keep the largest time less the time"));
    assert!(said(&of(true, 1), "S-REV-4").contains("keep the time as it is"));
    assert_eq!(levels(&of(true, 3), "S-REV-4"), []);
    assert_eq!(levels(&of(false, 1), "S-REV-4"), []);
}

#[test]
fn s_size_1_a_cell_that_is_mostly_key_is_noted() {
    let of = |bytes| {
        let family = FamilyPlan { value_bytes: vec![bytes], ..FamilyPlan::new("d") };
        Design { families: vec![family], ..keyed(vec![field("id", Kind::Id)]) }
    };
    assert_eq!(levels(&of(7), "S-SIZE-1"), [Level::Note]);
    assert_eq!(levels(&of(8), "S-SIZE-1"), []);
}

#[test]
fn s_size_7_numbers_are_not_kept_as_digits() {
    let of = |kind, value: &str| {
        let number = KeyField { bytes: Some(10), ..field("day", kind) };
        Design { rows: vec![names(&[value])], ..keyed(vec![number]) }
    };
    assert_eq!(levels(&of(Kind::Text, "2015122410"), "S-SIZE-7"), [Level::Note]);
    assert_eq!(levels(&of(Kind::Digits, "2015122410"), "S-SIZE-7"), [Level::Note]);
    assert_eq!(levels(&of(Kind::Text, "2015-12-24"), "S-SIZE-7"), []);
    assert_eq!(levels(&of(Kind::Text, "20151224"), "S-SIZE-7"), []);
}

/// The split keys of ten regions between two bounds, each of 16 bytes of text.
fn splits(low: &str, high: &str) -> Vec<bytes::Bytes> {
    let number = |text: &str| text.bytes().fold(0_u128, |sum, byte| sum << 8 | u128::from(byte));
    let step = (number(high) - number(low)) / 10;
    (1..10).map(|i| bytes::Bytes::copy_from_slice(&(number(low) + step * i).to_be_bytes())).collect()
}

fn hex(splits: Vec<bytes::Bytes>) -> Design {
    Design { splits, ..keyed(vec![KeyField { bytes: Some(16), ..field("id", Kind::Hex) }]) }
}

#[test]
fn s_split_3_hexadecimal_keys_leave_byte_splits_empty() {
    let design = hex(splits("0000000000000000", "ffffffffffffffff"));
    assert_eq!(levels(&design, "S-SPLIT-3"), [Level::Error]);
    assert!(said(&design, "S-SPLIT-3").contains("7 of 10 regions can hold no key"), "{}", said(&design, "S-SPLIT-3"));
}

#[test]
fn s_split_4_every_region_holds_a_key() {
    let salt = |count| KeyField { bytes: Some(1), ..made("salt", Kind::Hash, &["id"], Some(count)) };
    let of = |count, keys: &[&'static [u8]]| {
        let splits = keys.iter().map(|key| bytes::Bytes::from_static(key)).collect();
        Design { splits, ..keyed(vec![salt(count), field("id", Kind::Id)]) }
    };
    assert_eq!(levels(&of(4, &[b"\x01", b"\x02", b"\x03"]), "S-SPLIT-4"), []);
    assert_eq!(levels(&of(4, &[b"\x01\xff", b"\x03\0"]), "S-SPLIT-4"), []);
    assert!(said(&of(4, &[b"\x02", b"\x04", b"\x08"]), "S-SPLIT-4").contains("2 of 4 regions can hold no key"));
    let digits = |keys: &[&'static [u8]]| {
        let splits = keys.iter().map(|key| bytes::Bytes::from_static(key)).collect();
        Design { splits, ..keyed(vec![KeyField { bytes: Some(2), ..field("n", Kind::Digits) }]) }
    };
    assert_eq!(levels(&digits(&[b"5", b"9:"]), "S-SPLIT-4"), [Level::Error], "nothing follows 99");
    assert_eq!(levels(&digits(&[b"5", b"99:"]), "S-SPLIT-4"), [], "what follows the digits may be anything");
    assert_eq!(levels(&digits(&[b"1:", b"2"]), "S-SPLIT-4"), [Level::Error], "nothing lies between 19 and 20");
}

/// S-SPLIT-6's keys for ten regions.
#[test]
fn s_split_5_hexadecimal_keys_are_noted_only_where_splits_suit() {
    let keys = (1..10_u64).map(|i| bytes::Bytes::from(format!("{:016x}", u64::MAX / 10 * i))).collect();
    let found = advise(&hex(keys)).findings;
    assert!(found.iter().all(|finding| finding.level == Level::Note), "{found:?}");
    assert!(found.iter().any(|finding| finding.code == "S-SPLIT-5"));
}

/// What is said of one family.
fn of_family(code: &str, family: FamilyPlan) -> Vec<Level> {
    levels(&Design { families: vec![family], ..keyed(vec![field("id", Kind::Id)]) }, code)
}

#[test]
fn s_cf_1_four_families_are_too_many() {
    let of = |count: usize| {
        let families = ["a", "b", "c", "d"].iter().take(count).map(|name| FamilyPlan::new(*name)).collect();
        Design { families, ..keyed(vec![field("id", Kind::Id)]) }
    };
    assert_eq!((levels(&of(3), "S-CF-1"), levels(&of(4), "S-CF-1")), (vec![], vec![Level::Warning]));
}

#[test]
fn s_cf_3_families_that_are_read_together_are_one() {
    let of = |together, apart| {
        let reads = |families: &[&str], weight| Access { families: names(families), weight, ..asked("a", &["id"], "") };
        Design {
            families: vec![FamilyPlan::new("a"), FamilyPlan::new("b")],
            accesses: vec![reads(&["a", "b"], together), reads(&["a"], apart)],
            ..keyed(vec![field("id", Kind::Id)])
        }
    };
    assert_eq!((levels(&of(3, 2), "S-CF-3"), levels(&of(2, 2), "S-CF-3")), (vec![Level::Warning], vec![]));
}

#[test]
fn s_cf_4_families_of_very_different_rows_are_two_tables() {
    let of = |rows| {
        let family = |name, rows| FamilyPlan { rows: Some(rows), ..FamilyPlan::new(name) };
        Design { families: vec![family("a", 1_000), family("b", rows)], ..keyed(vec![field("id", Kind::Id)]) }
    };
    assert_eq!((levels(&of(1_000_000), "S-CF-4"), levels(&of(100_000), "S-CF-4")), (vec![Level::Warning], vec![]));
}

#[test]
fn s_cf_5_values_of_one_family_are_alike() {
    let of = |most| of_family("S-CF-5", FamilyPlan { value_bytes: vec![8, most], ..FamilyPlan::new("d") });
    assert_eq!((of(801), of(800)), (vec![Level::Warning], vec![]));
}

#[test]
fn s_cf_6_a_familys_name_is_one_letter() {
    assert_eq!(of_family("S-CF-6", FamilyPlan::new("f")), []);
    assert_eq!(of_family("S-CF-6", FamilyPlan::new("follows")), [Level::Note]);
}

/// The cost is told at 10^9 cells.
#[test]
fn s_size_3_what_a_byte_costs_is_told() {
    let design = Design { families: vec![FamilyPlan::new("follows")], ..keyed(vec![field("id", Kind::Id)]) };
    assert!(said(&design, "S-CF-6").contains("6 GB more in 10^9 cells"));
}

#[test]
fn s_size_4_qualifiers_are_short() {
    let of = |name: &str, bytes| {
        let family = FamilyPlan { qualifiers: names(&[name]), value_bytes: vec![bytes], ..FamilyPlan::new("d") };
        of_family("S-SIZE-4", family)
    };
    assert_eq!(of("myVeryImportantAttribute", 8), [Level::Warning]);
    assert_eq!(of("myVeryImportantAttribute", 24), []);
    assert_eq!(of("via", 1), []);
}

#[test]
fn s_type_2_values_are_small() {
    let of = |bytes, block_bytes| {
        of_family("S-TYPE-2", FamilyPlan { value_bytes: vec![bytes], block_bytes, ..FamilyPlan::new("d") })
    };
    assert_eq!(of((1 << 20) + 1, 1 << 20), [Level::Warning]);
    assert_eq!(of(262_145, 65_536), [Level::Warning]);
    assert_eq!(of(262_144, 65_536), []);
}

#[test]
fn s_tall_2_a_row_has_not_too_many_columns() {
    let of = |columns| of_family("S-TALL-2", FamilyPlan { columns: Some(columns), ..FamilyPlan::new("d") });
    assert_eq!((of(100_001), of(300)), (vec![Level::Warning], vec![]));
}

#[test]
fn s_vers_8_at_least_is_not_above_at_most() {
    let of = |min_versions| {
        let plan = FamilyPlan { versions: 2, min_versions, ttl_seconds: Some(1), ..FamilyPlan::new("d") };
        of_family("S-VERS-8", plan)
    };
    assert_eq!((of(3), of(2)), (vec![Level::Error], vec![]));
}

#[test]
fn s_vers_9_min_versions_go_with_a_ttl() {
    let of = |ttl_seconds| {
        of_family("S-VERS-9", FamilyPlan { versions: 2, min_versions: 1, ttl_seconds, ..FamilyPlan::new("d") })
    };
    assert_eq!((of(None), of(Some(60))), (vec![Level::Warning], vec![]));
}

#[test]
fn s_vers_11_hundreds_of_versions_are_rows() {
    let of = |versions| of_family("S-VERS-11", FamilyPlan { versions, ..FamilyPlan::new("d") });
    assert_eq!((of(100), of(99)), (vec![Level::Warning], vec![]));
}

#[test]
fn s_tall_1_versions_are_no_time_axis() {
    let of = |versions, explicit_times| {
        of_family("S-TALL-1", FamilyPlan { versions, explicit_times, ..FamilyPlan::new("d") })
    };
    assert_eq!((of(4, true), of(3, true), of(4, false)), (vec![Level::Warning], vec![], vec![]));
}

#[test]
fn s_put_5_a_ttl_goes_by_the_stores_times() {
    let of = |ttl_seconds, explicit_times| {
        of_family("S-PUT-5", FamilyPlan { ttl_seconds, explicit_times, ..FamilyPlan::new("d") })
    };
    assert_eq!((of(Some(60), true), of(None, true), of(Some(60), false)), (vec![Level::Warning], vec![], vec![]));
}

fn answers(all: [&str; 7]) -> [String; 7] {
    all.map(str::to_owned)
}

/// Seven questions; the test of the whole command has the shell make the table.
#[test]
fn s_twit_1_seven_answers_make_a_design() {
    assert_eq!(QUESTIONS.len(), 7);
    let told = answers(["host:text:20 at:time", "2", "d=readings, m=notes", "10, 1", "v,n", "8", "1,3"]);
    let text = spec("events", &told).unwrap();
    let expected = "table = \"events\"\n\n[[key]]\nname = \"host\"\nkind = \"text\"\nbytes = 20\n\n[[key]]\nname = \"at\"\n\
        kind = \"time\"\n\n[[family]]\n# readings\nname = \"d\"\ncolumns = 10\nqualifiers = [\"v\"]\nvalue_bytes = [8]\n\
        versions = 1\n\n[[family]]\n# notes\nname = \"m\"\ncolumns = 1\nqualifiers = [\"n\"]\nvalue_bytes = [8]\n\
        versions = 3\n";
    assert_eq!(text, expected);
    let good = ["a:id", "1", "d", "1", "v", "8", "1"];
    assert!(spec("t", &answers(good)).is_ok());
    for (at, bad) in [
        (0, "a:what"),
        (0, "a:id:x"),
        (0, "a:id:1:2"),
        (1, "none"),
        (2, "d,e"),
        (3, "1,2"),
        (4, "v'"),
        (5, ""),
        (6, "-1"),
    ] {
        let mut wrong = good;
        wrong[at] = bad;
        let said = spec("t", &answers(wrong)).unwrap_err().to_string();
        assert!(said.contains(&format!("answer {}", at + 1)), "{said}");
    }
}

#[test]
fn a_design_makes_the_shells_create() {
    let family = FamilyPlan { versions: 3, min_versions: 1, ttl_seconds: Some(60), ..FamilyPlan::new("d") };
    let splits = vec![bytes::Bytes::from_static(b"\x01"), bytes::Bytes::from_static(b"a'")];
    let design = Design { families: vec![family], splits, ..keyed(vec![field("id", Kind::Id)]) };
    let line = "create 't', {NAME => 'd', VERSIONS => 3, MIN_VERSIONS => 1, TTL => 60, BLOCKSIZE => 65536}, \
        SPLITS => [\"\\x01\", \"a\\x27\"]";
    assert_eq!(create_line(&design).unwrap(), line);
    assert!(create_line(&Design { table: "t'".to_owned(), ..design.clone() }).is_err());
    assert!(create_line(&Design { families: Vec::new(), ..design }).is_err());
}
