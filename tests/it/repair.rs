//! What is lost of names by a repair mixes no metric with another's points.

use std::path::{Path, PathBuf};

use crate::daemon::{Daemon, run, wait_for};

/// What a command answers, with its exit code checked.
fn told(data: &Path, code: i32, words: &[&str]) -> String {
    let output = run(&[&[words[0], "--data-dir", data.to_str().unwrap()], &words[1..]].concat());
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
    told
}

fn put(daemon: &Daemon, metric: &str, from: u64, count: u64) {
    let point = |at: u64| {
        let time = 1_700_000_000 + at * 60;
        format!(r#"{{"metric":"{metric}","timestamp":{time},"value":{at},"tags":{{"host":"h1"}}}}"#)
    };
    let points: Vec<String> = (from..from + count).map(point).collect();
    assert_eq!(daemon.post("/api/put", &format!("[{}]", points.join(","))).status, 204);
}

/// The values of a metric, in the order of their times.
fn values(daemon: &Daemon, metric: &str) -> Vec<u64> {
    let answer = daemon.get(&format!("/api/query?start=1699999000&end=1701000000&m=sum:{metric}"));
    assert_eq!(answer.status, 200, "{metric}");
    let answer = answer.json();
    let points = answer[0]["dps"].as_object().unwrap().values();
    points.map(|value| value.as_u64().unwrap()).collect()
}

/// The counter, both cells of the name and the first points are in the first page; what comes behind it, `repair` keeps.
fn damage_first_page(data: &Path) {
    let segments = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let segments = segments.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let filled = |path: &PathBuf| std::fs::read(path).unwrap().into_iter().filter(|byte| *byte != 0).count();
    let live = segments.max_by_key(filled).unwrap();
    let mut bytes = std::fs::read(&live).unwrap();
    bytes[32..4096].fill(0);
    std::fs::write(&live, bytes).unwrap();
}

/// S-UID-COUNTER: the points of a lost name stay its own, without a name.
#[test]
fn after_a_damaged_page_of_the_log_a_new_metric_answers_its_own_points() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    put(&daemon, "first", 0, 1);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&data, "embedded", "");
    (0..5).for_each(|batch| put(&daemon, "oven.temperature", batch * 300, 299));
    daemon.kill();
    damage_first_page(&data);
    told(&data, 0, &["repair", "--fix"]);
    told(&data, 0, &["verify"]);
    // One who only reads leaves it to be seen by who assigns.
    told(&data, 0, &["uid", "fsck"]);
    let assigned = told(&data, 0, &["uid", "assign", "metrics", "assigned"]);
    assert!(assigned.contains("metrics assigned: [0, 0, 3]"), "{assigned}");
    assert!(assigned.contains("UIDs of metrics up to 2 are in use and the counter is 1"), "{assigned}");
    assert!(assigned.contains("1 UIDs of rows have no name"), "{assigned}");
    let daemon = Daemon::start(&data, "embedded", "");
    put(&daemon, "web.requests", 4000, 1);
    assert_eq!(values(&daemon, "web.requests"), [4000]);
    assert_eq!(values(&daemon, "first"), [0]);
    assert!(daemon.terminate().success());
    let found = told(&data, 0, &["uid", "metrics", "web.requests"]);
    assert!(found.contains("metrics web.requests: [0, 0, 4]"), "{found}");
}

#[test]
fn a_folder_in_the_place_of_the_log_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    put(&daemon, "oven.temperature", 0, 10);
    assert!(daemon.terminate().success());
    let names = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    let log = names.filter(|path| path.extension().is_some_and(|kind| kind == "log")).collect::<Vec<_>>();
    let log = log.iter().find(|path| path.to_str().unwrap().contains("wal-")).unwrap();
    std::fs::remove_file(log).unwrap();
    std::fs::create_dir(log).unwrap();
    for words in [&["repair"][..], &["repair", "--fix"]] {
        let said = told(&data, 5, words);
        assert!(said.ends_with("or move it away, after which it counts as lost\n"), "{said}");
    }
    std::fs::remove_dir(log).unwrap();
    told(&data, 0, &["repair", "--fix"]);
}

/// C-UIDFSCK: the reverse cells are the last that know the names.
#[test]
fn names_whose_forward_file_is_lost_come_back_by_uid_fsck() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    put(&daemon, "oven.temperature", 0, 10);
    assert!(daemon.terminate().success());
    let listed = told(&data, 0, &["inspect"]);
    let file = listed.lines().find(|line| line.contains(" tsdb-uid id ")).unwrap().split(' ').next().unwrap();
    let mut bytes = std::fs::read(data.join(file)).unwrap();
    bytes[60] ^= 0xFF;
    std::fs::write(data.join(file), bytes).unwrap();
    let repaired = told(&data, 0, &["repair", "--fix"]);
    assert!(repaired.contains(" cells of rows ") && repaired.contains(" of table tsdb-uid\n"), "{repaired}");

    let unmended = folder.path().join("unmended");
    std::fs::create_dir(&unmended).unwrap();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, unmended.join(path.file_name().unwrap())).unwrap();
    }
    let daemon = Daemon::start(&unmended, "embedded", "");
    put(&daemon, "web.requests", 100, 1);
    assert_eq!(values(&daemon, "web.requests"), [100]);
    drop(daemon);

    let found = told(&data, 1, &["uid", "fsck"]);
    assert!(found.contains("We found an ID of 1 for metrics but the max ID is only 0!"), "{found}");
    let mended = told(&data, 1, &["uid", "fsck", "fix"]);
    assert!(mended.contains("FIX: Restored forward metrics mapping: oven.temperature -> 000001"), "{mended}");
    assert!(mended.contains("FIX: Updated max ID for tagv to 1"), "{mended}");
    let sound = told(&data, 0, &["uid", "fsck"]);
    assert!(!sound.contains("WARN"), "{sound}");
    let daemon = Daemon::start(&data, "embedded", "");
    put(&daemon, "web.requests", 100, 1);
    put(&daemon, "oven.temperature", 10, 1);
    assert_eq!(values(&daemon, "web.requests"), [100]);
    assert_eq!(values(&daemon, "oven.temperature"), (0..11).collect::<Vec<_>>());
}

/// A byte that went bad in a file that nobody reads is told by the server that runs on it.
#[test]
fn a_running_server_proves_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "[store]\nscrub_interval_ms = 1\n");
    let url = format!("http://127.0.0.1:{}", daemon.port());
    put(&daemon, "m", 0, 300);
    assert_eq!(run(&["compact", "--url", &url]).status.code(), Some(0));
    let verify = |code: i32| {
        let output = run(&["verify", "--url", &url]);
        assert_eq!(output.status.code(), Some(code));
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [told, _] = verify(0);
    assert!(told.ends_with(" bytes: proved\n") && told.lines().count() == 1, "{told}");
    let mut files = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "sst")).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[40] ^= 1;
    assert_eq!(daemon.metric("basalt_scrub_damages_total"), 0);
    std::fs::write(&file, bytes).unwrap();
    wait_for("a proof that nobody asked for", || daemon.metric("basalt_scrub_damages_total") > 0);
    let [told, failed] = verify(5);
    assert!(told.starts_with(&format!("{} is damaged at offset", file.display())), "{told}");
    assert_eq!(
        failed,
        "basalt: 1 files are damaged; stop the server, and `basalt repair` tells what can be had of them\n"
    );
    assert_eq!(run(&["verify", "--url", &url, "--data-dir", "x"]).status.code(), Some(2));
}
