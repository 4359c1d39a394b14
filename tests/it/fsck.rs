//! Rule `C-FSCK`, kind by kind: each damage of `docs/fsck.md` is planted in the tables, found, left alone until its own flag
//! is given, mended by it, and gone.

use crate::daemon::run;
use crate::planted::{make_tables, plant};

/// The row of `m{host=a}` in the first hour of 2013.
const ROW: &str = "00000150e22700000001000001";

/// A folder with tables and names, and damage in it.
struct Damaged {
    folder: tempfile::TempDir,
}

impl Damaged {
    /// Plants cells, and beside them one good point at 50 s.
    fn new(cells: &[(&str, &str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::write(folder.path().join("config"), "[schema]\nsalt_width = 0\n").unwrap();
        std::fs::create_dir(&data).unwrap();
        make_tables(&data);
        let damaged = Self { folder };
        for name in [["metrics", "m"], ["tagk", "host"], ["tagv", "a"]] {
            damaged.tool(0, &[&["uid", "assign"], &name[..]].concat());
        }
        let good = (ROW, "0320", "07");
        let puts: Vec<String> =
            [good].iter().chain(cells).map(|(row, name, value)| format!("tsdb {row} t {name} {value}")).collect();
        plant(&data, &puts.iter().map(String::as_str).collect::<Vec<_>>());
        damaged
    }

    /// What a tool prints; its exit code must be `code`.
    fn tool(&self, code: i32, words: &[&str]) -> String {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (data, config) = (path("data"), path("config"));
        let output = run(&[&[words[0], "--data-dir", &data, "--config", &config], &words[1..]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The points of `m` as lines without name and tags, sorted.
    fn points(&self) -> Vec<String> {
        let lines = self.tool(0, &["scan", "--import", "1356998400", "1357001999", "sum", "m"]);
        let bare = |line: &str| line.trim_start_matches("m ").trim_end_matches(" host=a").to_owned();
        let mut points: Vec<String> = lines.lines().map(bare).collect();
        points.sort();
        points
    }
}

/// `counter` stands at `found` until `flags` are given, and then at 0; `left` is what `m` has in the end, but for the good
/// point.
#[track_caller]
fn check(cells: &[(&str, &str, &str)], counter: &str, found: u64, flags: &[&str], left: &[&str]) {
    let damaged = Damaged::new(cells);
    let code = i32::from(counter != "Datapoints Qualified for VLE ");
    let line = |count: u64| format!("INFO  {counter}: {count}\n");
    let before = if flags == ["--fix"] { vec![vec![]] } else { vec![vec![], vec!["--fix"]] };
    for flags in before {
        let told = damaged.tool(code, &[&["fsck", "--full-scan"], &flags[..]].concat());
        assert!(told.contains(&line(found)) && told.contains("Total Errors Fixed: 0\n"), "{flags:?}: {told}");
    }
    let told = damaged.tool(code, &[&["fsck", "--full-scan"], flags].concat());
    assert!(told.contains(&line(found)), "{told}");
    let told = damaged.tool(0, &["fsck", "--full-scan"]);
    assert!(told.contains(&line(0)) && told.contains("Total Errors: 0\n"), "{told}");
    let mut left: Vec<_> = left.iter().copied().chain(["1356998450 7"]).collect();
    left.sort_unstable();
    assert_eq!(damaged.points(), left);
}

/// `FSCK-KEY`
#[test]
fn c_fsck_rows_whose_keys_are_none_go() {
    let rows = [("000001", "0000", "01"), ("00000150e2270000000100", "0000", "01")];
    check(&rows, "Invalid Row Keys Found", 2, &["--fix", "--delete-bad-rows"], &[]);
}

/// `FSCK-ORPHAN`: of the metric, of a tag key, of a tag value.
#[test]
fn c_fsck_rows_whose_names_are_gone_go() {
    let rows = ["00000950e22700000001000001", "00000150e22700000009000001", "00000150e22700000001000009"];
    let rows = rows.map(|row| (row, "0000", "01"));
    check(&rows, "Orphaned UID Rows", 3, &["--fix", "--delete-orphans"], &[]);
}

/// `FSCK-DUPLICATE`: of another width, of another resolution.
#[test]
fn c_fsck_of_points_at_one_time_the_newest_stays() {
    let cells = [(ROW, "0000", "01"), (ROW, "0001", "0002"), (ROW, "f0000000", "03")];
    check(&cells, "Duplicate Datapoints", 2, &["--fix", "--resolve-duplicates"], &["1356998400000 3"]);
}

/// `FSCK-DUPLICATE`: of a compacted cell and one alone.
#[test]
fn c_fsck_a_point_beside_a_compacted_cell_joins_it() {
    let cells = [(ROW, "00100020", "010200"), (ROW, "0010", "09")];
    let left = ["1356998401 9", "1356998402 2"];
    check(&cells, "Duplicate Datapoints", 1, &["--fix", "--resolve-duplicates"], &left);
}

/// `FSCK-UNKNOWN`
#[test]
fn c_fsck_columns_that_nobody_knows_go() {
    let cells = [(ROW, "07", "01"), (ROW, "07070707070707", "01")];
    check(&cells, "Unknown Objects", 2, &["--fix", "--delete-unknown-columns"], &[]);
}

/// `FSCK-FUTURE`: told, no error, and left alone whatever is asked for.
#[test]
fn c_fsck_columns_of_a_later_version_stay() {
    let damaged = Damaged::new(&[(ROW, "090000", "01"), (ROW, "060000", "2a00")]);
    for flags in [&["fsck", "--full-scan"][..], &["fsck", "--full-scan", "--fix-all"], &["fsck", "--full-scan"]] {
        let told = damaged.tool(0, flags);
        assert!(
            told.contains("INFO  Possible Future Objects: 2\n") && told.contains("WARN  Found an object"),
            "{told}"
        );
    }
    assert_eq!(damaged.points(), ["1356998450 7"]);
}

/// `FSCK-VALUE`: floats of wrong widths, integers of wrong widths. Those that readers read by their own width stay.
#[test]
fn c_fsck_values_that_cannot_be_known_go() {
    let cells = [
        (ROW, "000b", "000000013f800000"),
        (ROW, "001f", "3f800000"),
        (ROW, "002b", "0102"),
        (ROW, "0031", "01"),
        (ROW, "0042", "010203"),
    ];
    let left = ["1356998401 1.0", "1356998403 1"];
    check(&cells, "Unparseable Datapoint Values", 5, &["--fix", "--delete-bad-values"], &left);
}

/// `FSCK-FLOAT`: 4 bytes on 8, padded and sign-extended.
#[test]
fn c_fsck_floats_of_early_versions_are_written_anew() {
    let cells = [(ROW, "000b", "000000003f800000"), (ROW, "001b", "ffffffffbf800000")];
    let left = ["1356998400 1.0", "1356998401 -1.0"];
    check(&cells, "Improperly Encoded Floating Point Values", 2, &["--fix"], &left);
}

/// `FSCK-COMPACT`: values that do not add up; a last byte that no version wrote, which hides no point from a reader.
#[test]
fn c_fsck_compacted_cells_that_cannot_be_read_go() {
    let cells = [(ROW, "00200030", "01020300")];
    check(&cells, "Unparseable Compacted Columns", 1, &["--fix", "--delete-bad-compacts"], &[]);
    let left = ["1356998400 1", "1356998401 2"];
    check(&[(ROW, "00000010", "010209")], "Unparseable Compacted Columns", 1, &["--fix"], &left);
}

/// `FSCK-ORDER`
#[test]
fn c_fsck_a_compacted_cell_out_of_order_is_sorted() {
    let left = ["1356998400 1", "1356998401 2"];
    check(&[(ROW, "00100000", "020100")], "Total Errors", 1, &["--fix"], &left);
}

/// `FSCK-VLE`: no error, and 8 bytes that are needed stay.
#[test]
fn c_fsck_integers_take_no_more_bytes_than_they_need() {
    let cells = [(ROW, "0007", "0000000000000100"), (ROW, "0017", "7000000000000000")];
    let left = ["1356998400 256", "1356998401 8070450532247928832"];
    check(&cells, "Datapoints Qualified for VLE ", 1, &["--fix"], &left);
}

/// `FSCK-APPEND`
#[test]
fn c_fsck_an_append_cell_that_cannot_be_read_goes() {
    check(&[(ROW, "050000", "00000100")], "Unparseable Datapoint Values", 1, &["--fix", "--delete-bad-values"], &[]);
}

/// What OpenTSDB's own dump cannot read: its 2.4.1 takes a point of the seconds 80 to 95 for an append cell.
#[test]
fn c_scan_a_point_of_any_second_is_dumped() {
    let cells = [(ROW, "0500", "01"), (ROW, "05f1", "0102")];
    assert_eq!(Damaged::new(&cells).points(), ["1356998450 7", "1356998480 1", "1356998495 258"]);
}

/// A folder that is not there is not made.
#[test]
fn c_fsck_needs_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let output = run(&["fsck", "--full-scan", "--data-dir", data.to_str().unwrap()]);
    assert_eq!((output.status.code(), data.exists()), (Some(1), false));
}
