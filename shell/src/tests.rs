//! The shell on a store in memory: what is typed, what is answered.

use std::sync::Arc;

use basalt_store::{ManualClock, MemoryStore, Timestamp};

use super::{Next, Shell, Style};

/// What a script prints, and the error that it ends with.
fn run(script: &str, style: Style) -> (String, String) {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp(1_000)))));
    let mut out = Vec::new();
    let mut shell = Shell::new(store, &mut out, style);
    let mut failed = String::new();
    for line in script.lines() {
        if let Err(error) = shell.feed(line.as_bytes()) {
            failed = error.to_string();
            break;
        }
    }
    if failed.is_empty()
        && let Err(error) = shell.end()
    {
        failed = error.to_string();
    }
    drop(shell);
    (String::from_utf8(out).unwrap(), failed)
}

fn check(script: &str, expected: &str) {
    let (printed, failed) = run(script, Style::default());
    assert_eq!(failed, "", "{script}");
    assert_eq!(printed, expected, "{script}");
}

/// The command fails on a store that has table `t` with family `f`, and a counter and a text in row `r`.
fn check_wrong(command: &str, expected: &str) {
    let script = format!("create 't', 'f'; put 't', 'r', 'f:text', 'abc'\n{command}");
    let (_, failed) = run(&script, Style::default());
    assert_eq!(failed, expected, "{command}");
}

#[test]
fn cells_are_told_as_hbase_tells_them() {
    let script = "create 't', 'f'\nput 't', \"r\\x00\", 'f:q', 'v', 5\nget 't', \"r\\x00\"\nscan 't'";
    check(
        script,
        "Created table t\nCOLUMN  CELL\n f:q timestamp=1970-01-01T00:00:00.005, value=v\n1 row(s)\n\
         ROW  COLUMN+CELL\n r\\x00 column=f:q, timestamp=1970-01-01T00:00:00.005, value=v\n1 row(s)\n",
    );
}

#[test]
fn help_names_every_setting_of_a_family() {
    let (printed, failed) = run("help 'create'", Style::default());
    assert!(failed.is_empty() && printed.contains(super::family::SETTINGS), "{printed}");
}

#[test]
fn json_is_an_object_a_line() {
    let style = Style { json: true, epoch: false };
    let script = "create 't', 'f'; put 't', 'r', 'f:q', \"\\x00\", 5; scan 't'; count 't'; exists 't'; list";
    let (printed, failed) = run(script, style);
    assert_eq!(failed, "");
    let objects: Vec<serde_json::Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects[0]["value"], "\\x00");
    assert_eq!(objects[0]["timestamp"], 5);
    assert_eq!(objects[1]["rows"], 1);
    assert_eq!(objects[2]["exists"], true);
    assert_eq!(objects[3]["table"], "t");
}

/// A filter that judges rows sees all their cells, wherever the tested one lies.
#[test]
fn a_count_counts_the_rows_that_a_scan_shows() {
    let rows = "create 't', 'f'; put 't', 'in', 'f:a', 'v'; put 't', 'in', 'f:k', 'x'; put 't', 'in', 'f:z', '1'
                put 't', 'out', 'f:a', 'v'; put 't', 'out', 'f:k', 'y'; put 't', 'none', 'f:a', 'v'\n";
    for (filter, count) in [
        ("SingleColumnValueFilter('f', 'k', =, 'binary:x')", 2),
        ("SingleColumnValueFilter('f', 'k', =, 'binary:x', true, true)", 1),
        ("SKIP ValueFilter(!=, 'binary:y')", 2),
        ("PageFilter(2)", 2),
        ("QualifierFilter(=, 'binary:k')", 2),
    ] {
        let (printed, failed) = run(&format!("{rows}count 't', FILTER => \"{filter}\""), Style::default());
        assert_eq!((printed.lines().last(), &*failed), (Some(&*format!("{count} row(s)")), ""), "{filter}");
    }
}

/// As HBase's shell: `.` is every letter of a pattern, a line's end too.
#[test]
fn a_pattern_goes_over_lines_and_bytes_that_are_no_text() {
    let script = "create 't', 'f'; put 't', \"r\\x7f\\xff\", 'f:q', \"line1\\nline2 error\"\n";
    for filter in ["ValueFilter(=, 'regexstring:^line1.*error$')", "RowFilter(=, 'regexstring:^r..$')"] {
        let (printed, failed) = run(&format!("{script}count 't', FILTER => \"{filter}\""), Style::default());
        assert_eq!((printed.lines().last(), &*failed), (Some("1 row(s)"), ""), "{filter}");
    }
}

#[test]
fn a_wrong_command_is_told_with_its_place() {
    check_wrong("pt 't'", "line 2, column 1: there is no command `pt`; see `help`");
    check_wrong("snapshot 't'", "line 2, column 1: the snapshot's name is missing: snapshot 'TABLE', 'NAME'");
    check_wrong(
        "put 't', 'r', 'f:q'",
        "line 2, column 1: the value is missing: put 'TABLE', 'ROW', 'FAMILY:QUALIFIER', 'VALUE' [, TIMESTAMP]",
    );
    check_wrong("scan 'u'", "line 2, column 1: unknown table 'u'");
    check_wrong("put 't', 'r', 'g:q', 'v'", "line 2, column 1: table 't' has no column family 'g'");
    check_wrong(
        "put 't', 'r', 'f:q', 'v', 'soon'",
        "line 2, column 27: TIMESTAMP takes a whole number, not the string 'soon'",
    );
    check_wrong("put 't', 'r', 'f:q', 'v', -1", "line 2, column 27: TIMESTAMP -1 is out of range: at least 0");
    check_wrong("incr 't', 'r', 'f:text'", "line 2, column 1: the cell holds 3 bytes, not a counter of 8 bytes");
    check_wrong("get_counter 't', 'r', 'f:text'", "line 2, column 1: the cell holds 3 bytes, not a counter of 8 bytes");
    check_wrong("scan 't', {LIMIT => 'x'}", "line 2, column 21: LIMIT takes a whole number, not the string 'x'");
    check_wrong(
        "scan 't', {TIMERANGE => [1]}",
        "line 2, column 25: TIMERANGE is a list of two times, the second one out: [FROM, BEFORE]",
    );
    check_wrong("drop 't'", "line 2, column 1: Table t is enabled. Disable it first.");
    check_wrong(
        "create 'a/b', 'f'",
        "line 2, column 8: illegal table name 'a/b': only letters, digits, '_', '-' and '.' are allowed",
    );
    check_wrong(
        "create 'x', {NAME => 'f', VERSION => 1}",
        "line 2, column 27: VERSION is no setting of a family here; there are: VERSIONS, MIN_VERSIONS, TTL, KEEP_DELETED_CELLS, BLOOMFILTER, COMPRESSION, DATA_BLOCK_ENCODING, BLOCKSIZE, IN_MEMORY, BLOCKCACHE, NEW_VERSION_BEHAVIOR",
    );
    check_wrong("disable 't'; scan 't'", "line 2, column 14: table 't' is disabled");
    check_wrong("scan 't', {COLUMNS => 'f:text:toLong'}", "line 2, column 1: 3 bytes are no Long: abc");
    check_wrong("scan 't',", "line 2, column 9: something is missing after this");
    check_wrong(
        "alter 't', METADATA => {'basalt.salt.width' => '1'}",
        "line 2, column 48: 'basalt.salt.width' is how the table is laid out and cannot be changed",
    );
}

#[test]
fn filters_that_the_store_lacks_are_refused_by_name() {
    let (_, failed) = run("create 't', 'f'\nscan 't', {FILTER => \"BitFilter()\"}", Style::default());
    assert!(failed.starts_with("line 2, column 22: BitFilter is not supported; there are"), "{failed}");
}

#[test]
fn after_an_error_the_next_line_begins_a_command() {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp(1_000)))));
    let mut out = Vec::new();
    let mut shell = Shell::new(store, &mut out, Style::default());
    assert_eq!(shell.feed(b"create 't',\n").unwrap(), Next::Rest);
    shell.feed(b") 'f'\n").unwrap_err();
    assert_eq!(shell.feed(b"create 't', 'f'\n").unwrap(), Next::Command);
    assert_eq!(shell.feed(b"exit; list\n").unwrap(), Next::End);
}

/// Read anew at each of its lines, it would take hours.
#[test]
fn a_command_may_have_many_lines() {
    let (many, most) = ("1,\n".repeat(300_000), "\n".repeat(400_000));
    let (_, failed) = run(&format!("scan [\n{many}1]"), Style::default());
    assert!(failed.contains("column"), "{failed}");
    let (_, failed) = run(&format!("create 't', 'f'\nput 't', 'r', 'f:q', '{most}'"), Style::default());
    assert_eq!(failed, "");
}

/// No input brings it down: pieces of the dialect in every order of four.
#[test]
fn any_words_are_an_answer_or_an_error() {
    let pieces =
        ["put", "scan ", "'t'", ", ", "{", "}", "=>", "VERSIONS", "-1", "9223372036854775807", "[", "]", "\"\\x", "("];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                run(&format!("create 't', 'f'\nscan 't', {a}{b}{c}\nget 't', 'r', {a}{b}{c}"), Style::default());
                run(&format!("{a}{b}{c}"), Style::default());
            }
        }
    }
}
