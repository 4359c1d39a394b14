//! `basalt advise`: designs that are judged, and a table that seven answers make.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::daemon::run;

/// What the seven questions may be answered.
const ANSWERS: &str = "host:text:20 at:time\n2\nd=readings, m=notes\n10, 1\nv, n\n8\n1, 3\n";

/// The exit code, standard output and standard error of `advise` with this standard input.
fn advise(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    command.arg("advise").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The worked example of the help text: OpenTSDB's own data table (`S-KEY-1`).
#[test]
fn s_key_1_the_data_tables_design_has_no_error() {
    let (code, example, _) = advise(&["--example"], "");
    assert_eq!(code, Some(0));
    let (code, told, err) = advise(&[], &example);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{told}");
    assert!(told.starts_with("access   one series over a time range: short scan, 1 call\n"), "{told}");
    assert!(told.contains("all series of a metric over a time range: fan-out of 16, 16 calls\n"), "{told}");
    let levels: Vec<&str> =
        told.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next()).collect();
    assert!(levels.iter().all(|level| ["access", "note"].contains(level)), "{told}");
}

/// `S-HOT-12`: an error-level finding is an exit code, also for machines.
#[test]
fn s_hot_12_an_error_of_a_design_is_exit_1() {
    let design = "[[key]]\nname = 'at'\nkind = 'time'\n[[access]]\nname = 'day'\nrange = 'at'\n";
    let (code, told, err) = advise(&[], design);
    assert_eq!(code, Some(1));
    assert!(told.contains("error    S-HOT-1: the key's first field `at` rises"), "{told}");
    assert!(err.starts_with("basalt: the design has errors"), "{err}");
    let (code, told, _) = advise(&["--json"], design);
    assert_eq!(code, Some(1));
    let objects: Vec<serde_json::Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects[0], serde_json::json!({"access": "day", "path": "short scan", "calls": 1}));
    assert_eq!((&objects[1]["level"], &objects[1]["code"]), (&"error".into(), &"S-HOT-1".into()));
    let (code, told, err) = advise(&[], "[[key]]\nname = 'host'\nkind = 'id'\n");
    assert_eq!((code, told.as_str(), err.as_str()), (Some(0), "nothing found\n", ""));
}

/// `S-KEY-12`: the four lengths.
#[test]
fn s_key_12_four_lengths_are_printed() {
    let design = "rows = [['a', 'e1', '1'], ['myserver1.mycompany.com', \
        'com.package1.subpackage2.subsubpackage3.ImportantService', '1']]\n\
        [[key]]\nname = 'host'\nkind = 'text'\n[[key]]\nname = 'event'\nkind = 'text'\n[[key]]\nname = 'at'\nkind = 'time'\n";
    let (_, told, _) = advise(&[], design);
    let expected = "key      11 to 87 bytes, median 11; with hashes for names 40, with numbers 24\n";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_design_that_cannot_be_read_is_told_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    std::fs::write(&file, "[[key]]\nname = 'a'\nkind = 3\n").unwrap();
    let name = file.to_str().unwrap();
    let (code, _, err) = advise(&[name], "");
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("{name}: line 3: ")), "{err}");
    let (code, _, err) = advise(&["/nowhere/t.toml"], "");
    assert_eq!((code, err.contains("cannot read /nowhere/t.toml")), (Some(1), true), "{err}");
}

/// `S-TWIT-1`: the script of seven answers is taken by the shell and by the advisor.
#[test]
fn s_twit_1_seven_answers_make_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("events.hbase");
    let script = script.to_str().unwrap();
    let (code, told, err) = advise(&["--new", script], ANSWERS);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{told}");
    assert_eq!(told.matches("\n> ").count(), 7, "{told}");
    let shell = run(&["shell", "--store", "memory", script]);
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), "Created table events\n");
    assert_eq!(shell.status.code(), Some(0));
    let written = std::fs::read_to_string(script).unwrap();
    assert!(written.contains("{NAME => 'm', VERSIONS => 3, "), "{written}");
    let (code, again, _) = advise(&[script], "");
    assert_eq!(code, Some(0));
    assert!(told.ends_with(&again), "{told}{again}");

    let (code, _, err) = advise(&["--new", script], ANSWERS);
    assert_eq!((code, err.contains("cannot make ")), (Some(1), true), "{err}");
    assert_eq!(std::fs::read_to_string(script).unwrap(), written);
    let other = folder.path().join("other.hbase");
    let (code, _, err) = advise(&["--new", other.to_str().unwrap()], "host:id\n1\n");
    assert_eq!((code, err.contains("there is no answer to: 3. ")), (Some(1), true), "{err}");
    let (code, _, err) = advise(&["--new", other.to_str().unwrap()], &ANSWERS.replace("time", "tim"));
    assert_eq!((code, err.contains("answer 1: `tim` of `at:tim` is no kind")), (Some(1), true), "{err}");
    assert!(!other.exists());
}

/// The half of a script would be in the way of the next run.
#[test]
fn a_script_that_cannot_be_written_is_not_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.hbase");
    // As on a full disk: no file may be longer than nothing, and who tries is told.
    let line = r#"trap "" XFSZ; ulimit -f 0; exec "$0" advise --new "$1""#;
    let mut child = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_basalt"), path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(ANSWERS.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("cannot write"), "{told}");
    assert!(!path.exists());
}
