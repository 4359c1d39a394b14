//! The shell's scripts under `tests/shell`: what they print on each store is what stands beside them.
//!
//! Beside `name.hbase` stands `name.out`: the standard output, then the standard error. Scripts called `wrong-…` end
//! with exit code 1, all others with 0. Times that the store gave are written as `now`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::daemon::{Daemon, run};

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shell");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "hbase")).collect();
    scripts.sort();
    assert!(scripts.len() >= 8);
    scripts
}

/// What was printed, without what differs from run to run: the script's folder and the store's own times.
fn text(output: &Output) -> String {
    let printed = String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    let mut text = String::new();
    for (index, part) in printed.split("timestamp=2").enumerate() {
        match part.split_once(", ") {
            Some((_, rest)) if index > 0 => {
                text.push_str("timestamp=now, ");
                text.push_str(rest);
            }
            _ => text.push_str(part),
        }
    }
    text.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/"), "")
}

/// Runs every script with these arguments, and with a folder of its own.
fn check_scripts(arguments: impl Fn(&Path) -> Vec<String>) {
    for script in scripts() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = vec!["shell".to_owned(), script.display().to_string()];
        all.extend(arguments(folder.path()));
        let output = run(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let expected = std::fs::read_to_string(script.with_extension("out")).unwrap_or_default();
        assert_eq!(text(&output), expected, "{}", script.display());
        let is_wrong = script.file_name().unwrap().to_str().unwrap().starts_with("wrong-");
        assert_eq!(output.status.code(), Some(i32::from(is_wrong)), "{}", script.display());
    }
}

#[test]
fn scripts_on_the_memory_store() {
    check_scripts(|_| vec!["--store".to_owned(), "memory".to_owned()]);
}

#[test]
fn scripts_on_the_embedded_store() {
    check_scripts(|folder| vec!["--data-dir".to_owned(), folder.display().to_string()]);
}

fn shell(data: &Path, arguments: &[&str]) -> Output {
    run(&[&["shell", "--data-dir", data.to_str().unwrap()], arguments].concat())
}

#[test]
fn what_was_put_is_there_for_the_next_shell() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert_eq!(shell(&data, &["-e", "list"]).status.code(), Some(1), "a folder is not made unasked");
    let made = shell(&data, &["--create", "-e", "create 't', 'f'", "-e", "put 't', \"r\\xff\", 'f:q', 'v', 5"]);
    assert_eq!(text(&made), "Created table t\n");
    let read = shell(&data, &["--epoch", "-e", "scan 't'"]);
    assert_eq!(text(&read), "ROW  COLUMN+CELL\n r\\xFF column=f:q, timestamp=5, value=v\n1 row(s)\n");
    let json = shell(&data, &["--json", "-e", "get 't', \"r\\xff\""]);
    let object: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(object["row"], "r\\xFF");
    assert_eq!(object["timestamp"], 5);
}

#[test]
fn a_served_folder_is_exit_4_and_its_tables_are_shown_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    daemon.talk("put shell.m 1356998400 1 host=a\n");
    assert_eq!(shell(&data, &["-e", "list"]).status.code(), Some(4));
    assert!(daemon.terminate().success());
    let shown = text(&shell(&data, &["-e", "list; scan 'tsdb-uid', {COLUMNS => 'name:metrics'}; count 'tsdb'"]));
    assert!(shown.starts_with("TABLE\ntsdb\ntsdb-meta\ntsdb-tree\ntsdb-uid\n4 row(s)\n"), "{shown}");
    assert!(shown.contains("column=name:metrics") && shown.contains("value=shell.m"), "{shown}");
    assert!(shown.ends_with("1 row(s)\n"), "{shown}");
}

#[test]
fn scripts_on_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    for script in scripts() {
        let name = script.file_stem().unwrap().to_str().unwrap().to_owned();
        // What a script begins with no tables is begun so here too, and its list holds no others.
        if name == "tables" {
            continue;
        }
        let daemon = Daemon::start(&folder.path().join(name), "memory", "");
        let url = format!("http://127.0.0.1:{}", daemon.port());
        let output = run(&["shell", script.to_str().unwrap(), "--url", &url]);
        let expected = std::fs::read_to_string(script.with_extension("out")).unwrap();
        assert_eq!(text(&output), expected, "{}", script.display());
        assert!(daemon.terminate().success());
    }
}

#[test]
fn only_an_operator_reaches_a_running_servers_tables() {
    let daemon = Daemon::memory();
    let ask = |headers: &str| {
        let mut stream = daemon.connect();
        let request = format!("POST /store HTTP/1.1\r\n{headers}Content-Length: 4\r\nConnection: close\r\n\r\nlist");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    let told = ask("Host: localhost\r\nX-Basalt-Admin: 1\r\n");
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("TABLE\ntsdb\n"), "{told}");
    assert!(ask("Host: localhost\r\n").starts_with("HTTP/1.1 403"), "a page cannot send the header");
    assert!(ask("Host: evil.example\r\nX-Basalt-Admin: 1\r\n").starts_with("HTTP/1.1 403"), "a bent name");
    let passed_on = ask("Host: localhost\r\nX-Basalt-Admin: 1\r\nX-Forwarded-For: 203.0.113.9\r\n");
    assert!(passed_on.starts_with("HTTP/1.1 403"), "{passed_on}");
}

#[test]
fn a_servers_shell_opens_no_file_and_ends_with_its_exit_code() {
    let daemon = Daemon::memory();
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let failed = run(&["shell", "--url", &url, "-e", "create 'x', 'f', SPLITS_FILE => '/etc/hostname'"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed).contains("SPLITS_FILE would be read on the server"), "{}", text(&failed));
    let json = run(&["shell", "--url", &url, "--json", "-e", "exists 'x'"]);
    assert_eq!(text(&json), "{\"exists\":false,\"table\":\"x\"}\n");
    assert!(daemon.terminate().success());
    let gone = run(&["shell", "--url", &url, "-e", "list"]);
    assert_eq!(gone.status.code(), Some(1));
}

#[test]
fn commands_come_from_standard_input_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_basalt"))
        .args(["shell", "--store", "memory"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"create 't',\n 'f'\nexists 't'\nnonsense\nlist\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected =
        "Created table t\nTable t does exist\nbasalt: line 4, column 1: there is no command `nonsense`; see `help`\n";
    assert_eq!(text(&output), expected);
}
