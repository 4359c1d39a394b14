//! `basalt migrate` from outside: folders to folders, and what it says when it cannot.

use std::path::Path;
use std::process::Output;

use crate::daemon::{Daemon, run};

fn migrate(folder: &Path, from: &str, to: &str, more: &[&str]) -> Output {
    let path = |name: &str| folder.join(name).display().to_string();
    let (from, to, progress) = (path(from), path(to), path("progress"));
    run(&[&["migrate", "--from", &from, "--to", &to, "--progress", &progress], more].concat())
}

fn answer(folder: &Path, data: &str, config: &str) -> String {
    let daemon = Daemon::start(&folder.join(data), "embedded", config);
    let answer = daemon.get("/api/query?start=1356998400&end=1357009200&m=sum:m.a{host=*}").text();
    assert!(daemon.terminate().success());
    answer
}

#[test]
fn a_folder_is_migrated_into_another_and_salted_anew() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("a"), "embedded", "");
    let lines = (0..600).map(|n| format!("put m.a {} {n} host=h{}\n", 1_356_998_400 + n * 10, n % 7));
    assert_eq!(daemon.talk(&lines.collect::<String>()), "");
    // In use: nothing is copied.
    assert_eq!(migrate(folder.path(), "a", "b", &[]).status.code(), Some(4));
    assert!(daemon.terminate().success());
    let plain = folder.path().join("plain.toml");
    std::fs::write(&plain, "[schema]\nsalt_width = 0\n").unwrap();
    let config = ["--to-config", plain.to_str().unwrap()];
    let done = migrate(folder.path(), "a", "b", &config);
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && told.contains("both ends hold the same"), "{done:?}");
    assert!(told.starts_with("4 tables, ") && told.contains("rows compared"), "{told}");
    let (a, b) = (answer(folder.path(), "a", ""), answer(folder.path(), "b", "schema.salt_width=0"));
    assert!(a.contains("h6") && a.contains(":599"), "{a}");
    assert_eq!(a, b);
    // Told by a line and an exit code: rows that are there, settings that are not the table's, no such folder.
    let again = migrate(folder.path(), "a", "b", &config);
    let line = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(1) && line.contains("holds rows already"), "{line}");
    let salted = folder.path().join("salted.toml");
    std::fs::write(&salted, "[schema]\nsalt_width = 1\n").unwrap();
    let others = ["--to-config", salted.to_str().unwrap()];
    assert_eq!(migrate(folder.path(), "a", "b", &others).status.code(), Some(3));
    assert_eq!(migrate(folder.path(), "nowhere", "b", &[]).status.code(), Some(1));
    let compared = migrate(folder.path(), "a", "b", &[&config[..], &["--only-verify"]].concat());
    assert!(compared.status.success(), "{compared:?}");
}

/// A comparison makes nothing, as with a folder mistyped.
#[test]
fn who_only_compares_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Daemon::start(&folder.path().join("a"), "embedded", "").terminate().success());
    let refused = migrate(folder.path(), "a", "b", &["--only-verify"]);
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    let b = folder.path().join("b");
    assert!(line.contains(&format!("there is no data folder {}: name it with --to", b.display())), "{line}");
    assert!(refused.status.code() == Some(1) && !b.exists(), "{line}");
}

/// What takes the source would take the copy too.
#[test]
fn a_copy_into_the_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Daemon::start(&folder.path().join("a"), "embedded", "").terminate().success());
    for target in ["a/sub", "a/b/c", "a"] {
        let refused = migrate(folder.path(), "a", target, &[]);
        let line = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && line.contains("lies in the data folder"), "{line}");
        assert!(target == "a" || !folder.path().join(target).exists(), "{target}");
    }
}

fn shell(folder: &Path, data: &str, command: &str) {
    let data = folder.join(data).display().to_string();
    let done = run(&["shell", "--data-dir", &data, "-e", command]);
    assert!(done.status.success(), "{command}: {done:?}");
}

/// What a copy that was killed among the names left of them is no damage: the rest is to come.
#[test]
fn names_that_are_yet_to_come_are_not_told_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("a"), "embedded", "");
    assert_eq!(daemon.talk("put m.a 1356998400 1 host=h0\n"), "");
    assert!(daemon.terminate().success());
    assert!(Daemon::start(&folder.path().join("b"), "embedded", "").terminate().success());
    std::fs::remove_file(folder.path().join("b/side-series.log")).unwrap();
    shell(folder.path(), "b", r#"put 'tsdb-uid', "\x00\x00\x01", 'name:tagv', 'h0', 1"#);
    let done = migrate(folder.path(), "a", "b", &["--into-filled"]);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && !told.contains("WARN"), "{told}");
}

/// S-UID-COUNTER: what the source lost of its names is told, and no UID of a copied row is given out.
#[test]
fn what_the_source_lost_of_its_names_is_told_of_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("a"), "embedded", "");
    assert_eq!(daemon.talk("put m.a 1356998400 1 host=h0\nput m.b 1356998400 1 host=h0\n"), "");
    assert!(daemon.terminate().success());
    for lost in [
        "delete 'tsdb-uid', 'h0', 'id:tagv'",
        "deleteall 'tsdb-uid', 'm.b'",
        r#"delete 'tsdb-uid', "\x00\x00\x02", 'name:metrics'"#,
        r#"put 'tsdb-uid', "\x00", 'id:metrics', "\x00\x00\x00\x00\x00\x00\x00\x01""#,
    ] {
        shell(folder.path(), "a", lost);
    }
    let done = migrate(folder.path(), "a", "b", &[]);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{told}");
    assert!(told.contains("UIDs of metrics up to 2 are in use and the counter is 1"), "{told}");
    assert!(told.contains("1 UIDs of tagv have names that do not lead to them"), "{told}");
    let daemon = Daemon::start(&folder.path().join("b"), "embedded", "");
    assert_eq!(daemon.talk("put m.c 1356998460 5 dc=x\n"), "");
    let found = daemon.get("/api/query?start=1356998000&end=1356999000&m=sum:m.c").text();
    assert!(found.contains(r#""dps":{"1356998460":5}"#), "{found}");
}
