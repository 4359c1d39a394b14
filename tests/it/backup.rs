//! `basalt backup`, `restore`, `verify`, `repair` and `inspect` on real folders and a real daemon.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::daemon::{Daemon, run};

const START_S: u64 = 1_356_998_400;
/// Points of one put: they are acknowledged together.
const BATCH: u64 = 20;

fn put_body(from: u64) -> String {
    let point = |index| {
        let time = START_S + index;
        format!(r#"{{"metric":"bk.m","timestamp":{time},"value":{index},"tags":{{"h":"a"}}}}"#)
    };
    format!("[{}]", (from..from + BATCH).map(point).collect::<Vec<_>>().join(","))
}

/// How many points there are; each must be one that was put, and the first ones.
fn found(data: &Path, most: u64) -> u64 {
    let daemon = Daemon::start(data, "embedded", "");
    let answer = daemon.get(&format!("/api/query?start={START_S}&end={}&m=sum:bk.m", START_S + most)).json();
    let dps = answer[0]["dps"].as_object().cloned().unwrap_or_default();
    let count = dps.len() as u64;
    for index in 0..count {
        assert_eq!(dps[&(START_S + index).to_string()], index);
    }
    assert!(daemon.terminate().success());
    count
}

fn basalt(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = run(arguments);
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with points in files and in the log.
fn filled(data: &Path, batches: u64) {
    let daemon = Daemon::start(data, "embedded", "");
    for batch in 0..batches {
        assert_eq!(daemon.post("/api/put", &put_body(batch * BATCH)).status, 204);
    }
    assert!(daemon.terminate().success());
}

/// The largest SSTable of a folder.
fn largest_file(data: &Path) -> PathBuf {
    let files = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "sst"));
    tables.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

/// A backup is taken of a daemon that is being written to and killed then; what is restored is what
/// was acknowledged before the backup, and at most what was sent before its end.
#[test]
fn a_backup_of_a_busy_daemon_restores_to_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    let (acknowledged, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        let mut client = daemon.client();
        let (acknowledged, done) = (&acknowledged, &done);
        scope.spawn(move || {
            for batch in 0.. {
                assert_eq!(client.post("/api/put", &put_body(batch * BATCH)).unwrap().status, 204);
                acknowledged.store((batch + 1) * BATCH, Ordering::SeqCst);
                if done.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        for round in 0..3 {
            let wanted = acknowledged.load(Ordering::SeqCst) + 5 * BATCH;
            while acknowledged.load(Ordering::SeqCst) < wanted {
                std::thread::yield_now();
            }
            let before = acknowledged.load(Ordering::SeqCst);
            let target = folder.path().join(format!("backup{round}"));
            let said = basalt(&["backup", "--url", &url, text(&target)]);
            taken.push((target, before, acknowledged.load(Ordering::SeqCst) + BATCH, said));
        }
        done.store(true, Ordering::SeqCst);
    });
    daemon.kill();
    for (round, (backup, before, after, (code, told))) in taken.iter().enumerate() {
        assert_eq!(*code, Some(0), "{told}");
        assert!(told.contains("backed up"), "{told}");
        let target = folder.path().join(format!("restored{round}"));
        let (code, told) = basalt(&["restore", text(backup), text(&target)]);
        assert_eq!(code, Some(0), "{told}");
        let count = found(&target, *after);
        assert!((*before..=*after).contains(&count) && count.is_multiple_of(BATCH), "{before} <= {count} <= {after}");
    }
}

#[test]
fn a_damaged_backup_is_refused_and_so_is_a_folder_that_holds_something() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup, target) =
        (folder.path().join("data"), folder.path().join("backup"), folder.path().join("restored"));
    filled(&data, 5);
    let (code, told) = basalt(&["backup", "--data-dir", text(&data), text(&backup)]);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = basalt(&["backup", "--data-dir", text(&data), text(&backup)]);
    assert_eq!((code, told.contains("is not empty")), (Some(1), true), "{told}");
    let (code, told) = basalt(&["restore", text(&backup), text(&data)]);
    assert_eq!((code, told.contains("is not empty")), (Some(1), true), "{told}");
    let (code, told) = basalt(&["restore", text(&data), text(&target)]);
    assert_eq!((code, told.contains("is no backup")), (Some(1), true), "{told}");
    let file = largest_file(&backup);
    // A link: the store's own file is the same one.
    let copy = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, copy).unwrap();
    flip(&file, 200);
    let (code, told) = basalt(&["restore", text(&backup), text(&target)]);
    assert_eq!(code, Some(5), "{told}");
    assert!(told.contains(text(&file)), "{told}");
    assert!(!target.exists(), "what it made is gone, the folder too");
    let within = target.join("a/b");
    std::fs::create_dir(&target).unwrap();
    assert_eq!(basalt(&["restore", text(&backup), text(&within)]).0, Some(5));
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "the folder that was there stays");
    assert_eq!(basalt(&["restore", text(&backup), text(&target)]).0, Some(5));
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    std::fs::write(target.join("notes"), "mine").unwrap();
    assert_eq!(basalt(&["restore", text(&backup), text(&target)]).0, Some(1));
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
    std::fs::remove_file(target.join("notes")).unwrap();
    flip(&file, 200);
    let (code, told) = basalt(&["restore", text(&backup), text(&target)]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(found(&target, 5 * BATCH), 5 * BATCH);
}

/// Damage that a query meets is an error of the server, which the log tells with the request and the place, and it is counted.
#[test]
fn damage_that_a_query_meets_is_logged_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    filled(&data, 10);
    let file = largest_file(&data);
    let (_, told) = basalt(&["inspect", "--json", "--blocks", text(&file)]);
    let block: serde_json::Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    flip(&file, usize::try_from(block["offset"].as_u64().unwrap()).unwrap() + 40);
    let daemon = Daemon::start(&data, "embedded", "");
    assert_eq!(daemon.metric("basalt_corruption_total"), 0);
    let path = "/api/query";
    assert_eq!(daemon.get(&format!("{path}?start={START_S}&m=sum:bk.m")).status, 500);
    assert_eq!(daemon.metric("basalt_corruption_total"), 1);
    // A request's own fault is no line of the log.
    assert_eq!(daemon.get(&format!("{path}?start={START_S}&m=sum:no.such")).status, 400);
    let log = daemon.get("/logs").text();
    let failed: Vec<&str> = log.lines().filter(|line| line.contains("a request failed")).collect();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(failed.len(), 1, "{log}");
    for part in ["ERROR", "method=GET", "path=/api/query", "status=500", "kind=Corrupt", name] {
        assert!(failed[0].contains(part), "{part}: {failed:?}");
    }
}

/// A flipped bit is told by file and offset, its loss is told, and mended when asked.
#[test]
fn damage_is_told_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    filled(&data, 10);
    let dir = ["--data-dir", text(&data)];
    let (code, told) = basalt(&["verify", dir[0], dir[1]]);
    assert_eq!((code, told.contains("proved")), (Some(0), true), "{told}");
    let (code, told) = basalt(&["inspect", dir[0], dir[1]]);
    assert!(code == Some(0) && told.contains("MANIFEST manifest") && told.contains(" tsdb t ["), "{told}");
    let file = largest_file(&data);
    let (code, told) = basalt(&["inspect", "--json", "--blocks", text(&file)]);
    assert_eq!(code, Some(0), "{told}");
    let block: serde_json::Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let offset = block["offset"].as_u64().unwrap();
    let (code, told) = basalt(&["inspect", "--cells", "--limit", "1", text(&file)]);
    assert!(code == Some(0) && told.contains("kind=put"), "{told}");
    flip(&file, usize::try_from(offset).unwrap() + 40);
    let (code, told) = basalt(&["verify", dir[0], dir[1]]);
    let place = format!("byte {offset}");
    assert!(code == Some(5) && told.contains(text(&file)), "{told}");
    assert!(told.contains(&place) || told.contains(&offset.to_string()), "{told}");
    let (code, told) = basalt(&["repair", dir[0], dir[1]]);
    assert!(code == Some(5) && told.contains("would lose"), "{told}");
    let (code, told) = basalt(&["repair", "--fix", dir[0], dir[1]]);
    assert!(code == Some(0) && told.contains(".damaged"), "{told}");
    let (code, told) = basalt(&["verify", dir[0], dir[1]]);
    assert_eq!(code, Some(0), "{told}");
}

/// SSTables of a folder, in the order of their numbers.
fn files(data: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "sst")).collect();
    tables.sort();
    tables
}

/// What was lost before is lost, whatever ends a repair.
#[test]
fn a_repair_that_ends_early_tells_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    filled(&data, 10);
    let dir = ["--data-dir", text(&data)];
    let (first, last) = (files(&data).remove(0), files(&data).pop().unwrap());
    flip(&first, 50);
    // Of a later version, as far as anything tells.
    let len = std::fs::read(&last).unwrap().len();
    for at in [8, len - 1] {
        flip(&last, at);
    }
    for form in [&[][..], &["--json"]] {
        let (code, told) = basalt(&[&["inspect", dir[0], dir[1]][..], form].concat());
        assert!(code == Some(5) && told.contains("1 files are damaged"), "{told}");
    }
    let (code, told) = basalt(&["repair", "--fix", dir[0], dir[1]]);
    assert_eq!(code, Some(5), "{told}");
    let lost = told.find(&format!("{} is damaged at offset 24", text(&first)));
    let kept = told.find(&format!("kept {}.damaged", text(&first)));
    let ended = told.find(&format!("{} has format version", text(&last)));
    assert!(lost.is_some() && lost < kept && kept < ended && !told.contains("places"), "{told}");
}

#[test]
fn a_file_that_cannot_be_opened_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    filled(&data, 10);
    let dir = ["--data-dir", text(&data)];
    let (first, last) = (files(&data).remove(0), files(&data).pop().unwrap());
    flip(&last, 50);
    std::fs::remove_file(&first).unwrap();
    std::os::unix::fs::symlink(&first, &first).unwrap();
    let (code, told) = basalt(&["repair", "--fix", dir[0], dir[1]]);
    assert_eq!(code, Some(5), "{told}");
    for part in [
        format!("cannot open {}: Too many levels of symbolic links", text(&first)),
        format!("kept {}.damaged", text(&last)),
        "1 files cannot be had as they are, and were left alone".to_owned(),
    ] {
        assert!(told.contains(&part), "{told}");
    }
    assert!(first.is_symlink());
    let (code, told) = basalt(&["verify", dir[0], dir[1]]);
    assert!(code == Some(5) && told.contains("1 files are damaged"), "{told}");
}

/// What takes the data folder would take the backup too.
#[test]
fn a_backup_into_the_data_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    let (url, target) = (format!("http://127.0.0.1:{}", daemon.port()), data.join("backups/monday"));
    let check = |arguments: &[&str]| {
        let (code, told) = basalt(arguments);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("lies in the data folder") && !target.exists(), "{told}");
    };
    check(&["backup", "--url", &url, text(&target)]);
    assert!(daemon.terminate().success());
    check(&["backup", "--data-dir", text(&data), text(&target)]);
}

/// Nor does the data folder go into the backup, which is kept as it is.
#[test]
fn a_restore_into_the_backup_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup"));
    filled(&data, 1);
    assert_eq!(basalt(&["backup", "--data-dir", text(&data), text(&backup)]).0, Some(0));
    for target in [backup.join("sub"), backup.join("a/b")] {
        let (code, told) = basalt(&["restore", text(&backup), text(&target)]);
        assert!(code == Some(1) && told.contains("lies in the backup"), "{told}");
        assert!(!backup.join("sub").exists() && !backup.join("a").exists(), "{told}");
    }
    // As where the disk of backups is not mounted.
    let (absent, target) = (folder.path().join("absent/backup"), folder.path().join("restored"));
    let (code, told) = basalt(&["restore", text(&absent), text(&target)]);
    assert!(code == Some(1) && told.contains("there is no folder"), "{told}");
    assert!(!target.exists());
}
