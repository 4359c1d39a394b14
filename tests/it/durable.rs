//! The embedded store behind the daemon: what was acknowledged is there after any end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use crate::daemon::{Daemon, run};
use crate::http::Client;

const START_S: u64 = 1_356_998_400;

fn put_body(from: u64, count: u64) -> String {
    let point = |index| {
        let time = START_S + index;
        format!(r#"{{"metric":"du.m","timestamp":{time},"value":{index},"tags":{{"h":"a"}}}}"#)
    };
    format!("[{}]", (from..from + count).map(point).collect::<Vec<_>>().join(","))
}

/// How many of the first `count` points are answered with their values.
fn found(client: &mut Client, count: u64) -> u64 {
    let path = format!("/api/query?start={START_S}&end={}&m=sum:du.m", START_S + count);
    let answer = client.get(&path).unwrap().json();
    let dps = &answer[0]["dps"];
    (0..count).filter(|index| dps[(START_S + index).to_string()] == *index).count() as u64
}

#[test]
fn acknowledged_points_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    for batch in 0..20 {
        assert_eq!(daemon.post("/api/put", &put_body(batch * 50, 50)).status, 204);
    }
    let mut telnet = daemon.connect();
    telnet.write_all(format!("put du.m {} 1000 h=a\nversion\n", START_S + 1_000).as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(telnet).read_line(&mut line).unwrap();
    assert!(line.starts_with("net.opentsdb"), "{line}");
    daemon.kill();
    let daemon = Daemon::start(&data, "embedded", "");
    assert_eq!(found(&mut daemon.client(), 1_001), 1_001);
    assert_eq!(daemon.get("/api/suggest?type=metrics").text(), r#"["du.m"]"#);
}

/// Many connections bring the same new names at once: each name gets one UID, and no point is refused for it.
#[test]
fn new_names_from_many_connections_at_once() {
    const CONNECTIONS: u64 = 8;
    const NAMES: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for name in 0..NAMES {
                    let at = 1_700_000_000 + connection;
                    let body = format!(
                        r#"{{"metric":"it.new.{name}","timestamp":{at},"value":1,"tags":{{"host":"h{name}"}}}}"#
                    );
                    let answer = client.post("/api/put", &body).unwrap();
                    assert_eq!(answer.status, 204, "{}", answer.text());
                }
            });
        }
    });
    for name in [0, NAMES / 2, NAMES - 1] {
        let answer =
            daemon.get(&format!("/api/query?start=1699999999&end=1700001000&m=sum:it.new.{name}{{host=h{name}}}"));
        assert_eq!(answer.json()[0]["dps"].as_object().unwrap().len() as u64, CONNECTIONS);
    }
}

/// Few who send have their puts synced by the thread that read them, many by the log's: here they come and go meanwhile.
#[test]
fn senders_few_and_many_are_answered_when_it_is_on_disk() {
    const SENDERS: u64 = 12;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for round in 0..=sender * 5 {
                    let answer = client.post("/api/put", &put_body(sender * 1000 + round * 10, 10)).unwrap();
                    assert_eq!(answer.status, 204, "{}", answer.text());
                }
            });
        }
    });
    let put: u64 = (0..SENDERS).map(|sender| (sender * 5 + 1) * 10).sum();
    daemon.kill();
    let daemon = Daemon::start(&data, "embedded", "");
    assert_eq!(found(&mut daemon.client(), SENDERS * 1000), put);
}

#[test]
fn a_clean_end_leaves_everything_there() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for round in 0..3 {
        let daemon = Daemon::start(&data, "embedded", "");
        assert_eq!(found(&mut daemon.client(), round * 100), round * 100);
        assert_eq!(daemon.post("/api/put", &put_body(round * 100, 100)).status, 204);
        assert_eq!(daemon.terminate().code(), Some(0));
    }
}

#[test]
fn a_folder_in_use_is_exit_4_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let _daemon = Daemon::start(&data, "embedded", "");
    check_refusal(&data, &[], 4, "in use");
}

/// Salt is fixed when the tables are made.
#[test]
fn another_salt_is_exit_3() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Daemon::start(&data, "embedded", "").terminate();
    let config = folder.path().join("other.toml");
    std::fs::write(&config, "[schema]\nsalt_buckets = 7\n").unwrap();
    check_refusal(&data, &["--config", config.to_str().unwrap()], 3, "salt");
}

#[test]
fn a_damaged_file_is_exit_5_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Daemon::start(&data, "embedded", "").terminate();
    let manifest = data.join("MANIFEST");
    let mut bytes = std::fs::read(&manifest).unwrap();
    // In the first record; behind the last one are zeros that nobody reads.
    bytes[100] ^= 0xff;
    std::fs::write(&manifest, bytes).unwrap();
    check_refusal(&data, &[], 5, "MANIFEST is damaged at offset");
    check_refusal(&data, &[], 5, "`basalt repair` tells what can be had");
    let repair = ["repair", "--data-dir", data.to_str().unwrap()];
    let told = run(&repair);
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains("it can be written anew from its other copy, and nothing is lost"), "{text}");
    assert_eq!(told.status.code(), Some(5));
    assert_eq!(run(&[&repair[..], &["--fix"]].concat()).status.code(), Some(0));
    Daemon::start(&data, "embedded", "").terminate();
}

/// Its files are kept; what is missing is told, and how to go on.
#[test]
fn a_folder_without_its_manifest_is_exit_5_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Daemon::start(&data, "embedded", "").terminate();
    std::fs::remove_file(data.join("MANIFEST")).unwrap();
    check_refusal(&data, &[], 5, "data lost its file MANIFEST, without which");
    check_refusal(
        &data,
        &[],
        5,
        "`basalt repair --fix` writes it anew from MANIFEST.copy; without that keep the folder",
    );
    assert!(std::fs::read_dir(&data).unwrap().any(|entry| entry.unwrap().file_name() == "wal-0000000001.log"));
}

fn check_refusal(data: &Path, more: &[&str], code: i32, expected: &str) {
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--data-dir"];
    arguments.push(data.to_str().unwrap());
    arguments.extend_from_slice(more);
    let output = run(&arguments);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(line.contains(expected) && line.trim_end().lines().count() == 1, "{line}");
}

/// `C-IMPORT` without a server.
#[test]
fn a_folder_can_be_imported_into() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("dump"));
    let lines: Vec<String> = (0..100).map(|index| format!("du.m {} {index} h=a", START_S + index)).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let output = run(&["import", file.to_str().unwrap(), "--data-dir", data.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let daemon = Daemon::start(&data, "embedded", "");
    assert_eq!(found(&mut daemon.client(), 100), 100);
}

/// More connections than the system lets be open: writes of those that are seated go on, over files that the store opens meanwhile.
#[test]
fn connections_leave_the_store_its_files() {
    const BATCHES: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = data.with_extension("toml");
    std::fs::write(&file, "[store]\nwal_segment_bytes = 65536\nmemtable_bytes = 262144\n").unwrap();
    let serve = Daemon::command(&data, "embedded");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 160 && exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    command.arg("--config").arg(file);
    let daemon = Daemon::spawn(command);
    let mut client = daemon.client();
    assert_eq!(client.get("/healthz").unwrap().status, 200);
    let idle: Vec<_> = (0..200).map(|_| daemon.connect()).collect();
    for batch in 0..BATCHES {
        let put = client.post("/api/put", &put_body(batch * 500, 500)).unwrap();
        assert_eq!(put.status, 204, "batch {batch}: {}", put.text());
    }
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    assert_eq!(found(&mut client, BATCHES * 500), BATCHES * 500);
    drop(idle);
}
