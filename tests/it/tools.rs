//! OpenTSDB's tools on a data folder: what they print, what they change, how they end.

use std::path::Path;

use crate::daemon::{Daemon, run};

/// Runs a tool on `data` and gives its standard output; its exit code must be `code`.
fn tool(data: &Path, code: i32, arguments: &[&str]) -> String {
    let (verb, rest) = arguments.split_first().unwrap();
    let folder = data.to_str().unwrap();
    let output = run(&[&[*verb, "--data-dir", folder], rest].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with these put lines stored.
fn folder_of(lines: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    assert_eq!(daemon.talk(lines), "");
    assert!(daemon.terminate().success());
    folder
}

#[test]
fn compact_merges_a_folder_and_keeps_its_points() {
    let folder = folder_of("put c.m 1356998400 1 host=a\nput c.m 1356998401 2 host=a\n");
    let data = folder.path().join("data");
    assert!(tool(&data, 0, &["compact"]).contains("tsdb: "));
    assert!(!tool(&data, 0, &["compact", "--table", "tsdb-uid"]).contains("tsdb: "));
    tool(&data, 1, &["compact", "--table", "nope"]);
    let daemon = Daemon::start(&data, "embedded", "");
    let answer = daemon.get("/api/query?start=1356998400&end=1356998402&m=sum:c.m").text();
    assert!(answer.contains("\"1356998400\":1") && answer.contains("\"1356998401\":2"), "{answer}");
}

#[test]
fn a_folder_in_use_is_exit_4_and_one_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    tool(&data, 1, &["compact"]);
    assert!(!data.exists());
    let _daemon = Daemon::start(&data, "embedded", "");
    tool(&data, 4, &["compact"]);
}
