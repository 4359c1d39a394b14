//! OpenTSDB's tools on a data folder: what they print, what they change, how they end.

use std::path::Path;

use crate::daemon::{Daemon, command, run};
use crate::planted::{make_tables, plant};

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

/// `C-IMPORT`, `C-QUERY`: the options of `tsdb`'s own scripts do what they say, or are refused by a line.
#[test]
fn inherited_options_are_taken_or_refused() {
    let folder = folder_of("put i.m 1356998400 1 host=a\n");
    let data = folder.path().join("data");
    let file = folder.path().join("points");
    std::fs::write(&file, "i.n 1356998400 2 host=a\n").unwrap();
    let (file, closed) = (file.to_str().unwrap(), folder.path().join("closed.conf"));
    std::fs::write(&closed, "tsd.core.auto_create_metrics = false\n").unwrap();
    let closed = ["--config", closed.to_str().unwrap()];
    let inherited = ["--zkquorum", "zk:2181", "--zkbasedir", "/hbase", "--verbose"];
    let import = |more: &[&'static str]| [&["import", file][..], &closed, &inherited, more].concat();
    tool(&data, 1, &import(&[]));
    assert!(tool(&data, 0, &import(&["--auto-metric"])).starts_with("1 points stored"));
    let query =
        |more: &[&'static str]| [&["query", "1356998400", "1356998401", "sum", "i.n"][..], &inherited, more].concat();
    assert_eq!(tool(&data, 0, &query(&[])), "i.n 1356998400000 2 {host=a}\n");
    assert_eq!(tool(&data, 0, &query(&["--table", "tsdb", "--uidtable", "tsdb-uid"])), tool(&data, 0, &query(&[])));
    tool(&data, 3, &query(&["--uidtable", "other-uid"]));
    let refused = run(&["query", "--graph", "x", "1h-ago", "sum", "i.n"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--graph is not there"));
    let refused = run(&["import", file, "--table", "x"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("need --data-dir"));
    for cluster in [["--zkquorum", "zk:2181"], ["--zkbasedir", "/hbase"]] {
        let refused = run(&[&["import", file][..], &cluster].concat());
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && told.contains("need --store hbase"), "{told}");
    }
    let refused = run(&["import", file, "--config", "basalt.toml"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--config needs --data-dir"));
}

/// `C-QUERY`: what is meant for tables in HBase is not done on a folder that happens to be here; with --store hbase the cluster is asked.
#[test]
fn a_quorum_that_nothing_is_asked_of_is_refused_or_told() {
    let folder = folder_of("put i.m 1356998400 1 host=a\n");
    std::os::unix::fs::symlink("data", folder.path().join("basalt-data")).unwrap();
    let here = |arguments: &[&str]| {
        let output = command(arguments).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let tools = [
        &["uid", "rename", "metrics", "i.m", "i.n"][..],
        &["mkmetric", "x"],
        &["query", "1h-ago", "sum", "x"],
        &["scan", "--delete", "1356998400", "sum", "i.m"],
        &["fsck", "--full-scan"],
        &["search", "lookup", "i.m"],
    ];
    for tool in tools {
        for cluster in [["--zkquorum", "127.0.0.1:1"], ["--zkbasedir", "/hbase"]] {
            let (code, told) = here(&[&tool[..1], &cluster, &tool[1..]].concat());
            assert!(code == Some(2) && told.contains("need --store hbase"), "{tool:?}: {told}");
        }
        let (code, told) = here(&[&tool[..1], &["--store", "hbase", "--zkquorum", "127.0.0.1:1"], &tool[1..]].concat());
        assert!(code == Some(75) && told.contains("cannot open store hbase"), "{tool:?}: {told}");
    }
    std::fs::write(folder.path().join("points"), "i.m 1356998400 2 host=a\n").unwrap();
    let (code, told) = here(&["import", "points", "--store", "hbase", "--zkquorum", "127.0.0.1:1"]);
    assert!(code == Some(75) && told.contains("cannot open store hbase"), "{told}");

    let conf = folder.path().join("opentsdb.conf");
    std::fs::write(&conf, "tsd.storage.hbase.zk_quorum = 127.0.0.1:1\n").unwrap();
    let told_of =
        "`hbase.zookeeper_quorum` from ./opentsdb.conf has no effect: the tables are in data folder basalt-data";
    for (tool, is_told) in [
        (&["uid", "grep", "metrics", "i.m"][..], true),
        (&["shell", "--config", "./opentsdb.conf", "-e", "list"], true),
        (&["uid", "--store", "embedded", "grep", "metrics", "i.m"], false),
    ] {
        let (code, told) = here(tool);
        assert_eq!((code, told.contains(told_of)), (Some(0), is_told), "{told}");
    }
    let (code, told) = here(&["uid", "--data-dir", "nowhere", "grep", "x"]);
    assert!(code == Some(1) && told.contains("no data folder nowhere: name it with --data-dir, or work"), "{told}");
}

/// `C-TSD`: the file that OpenTSDB finds where none is named is taken by the commands in the place of its own, which say so, and by no others.
#[test]
fn the_file_that_opentsdb_finds_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("opentsdb.conf");
    let here = |arguments: &[&str]| {
        let output = command(arguments).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    std::fs::write(&conf, "tsd.network.port = many\n").unwrap();
    std::fs::write(folder.path().join("points"), "").unwrap();
    let dir = ["--data-dir", "data"];
    let inherited = [
        // By the flag too, so that it ends where the file is not read.
        &["tsd", "--worker-threads", "many"][..],
        &["uid", "grep", "x"],
        &["mkmetric", "x"],
        &["query", "1h-ago", "sum", "x"],
        &["scan", "1h-ago", "sum", "x"],
        &["fsck", "--full-scan"],
        &["search", "lookup", "x"],
        &["import", "points"],
    ];
    for arguments in inherited {
        let (code, told) = here(&[&arguments[..1], &dir, &arguments[1..]].concat());
        assert!(code == Some(3) && told.contains("in ./opentsdb.conf"), "{arguments:?}: {code:?} {told}");
    }
    assert_eq!(here(&["config", "check"]).0, Some(0));
    let (code, told) = here(&["verify", "--data-dir", "data"]);
    assert!(code == Some(1) && !told.contains("opentsdb.conf"), "{told}");
    std::fs::write(&conf, "tsd.mode = ro\n").unwrap();
    let (_, told) = here(&["uid", "--data-dir", "data", "grep", "x"]);
    assert!(told.contains("settings are read from ./opentsdb.conf, as no --config names a file"), "{told}");
}

/// Both say where the work is to be done: a folder must not be taken for what runs at the URL.
#[test]
fn a_url_and_a_folder_exclude_each_other() {
    for command in [&["shell", "-e", "list"][..], &["backup", "target"], &["compact"]] {
        for own in [["--data-dir", "nowhere"], ["--config", "nowhere.toml"]] {
            let refused = run(&[command, &own, &["--url", "http://127.0.0.1:1"]].concat());
            assert_eq!(refused.status.code(), Some(2), "{command:?} {own:?}");
            assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be used with"), "{command:?} {own:?}");
        }
    }
}

/// Salt and UID widths are the folder's: who sets none goes by them, a server too, and who sets others is refused.
#[test]
fn a_folder_tells_tools_how_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = "[schema]\nsalt_buckets = 4\nuid_width_tagv = 4\n";
    let daemon = Daemon::start(&data, "embedded", config);
    assert_eq!(daemon.talk("put r.m 1356998400 1 host=a\n"), "");
    assert!(daemon.terminate().success());
    let query = ["query", "1356998400", "1356998401", "sum", "r.m"];
    assert_eq!(tool(&data, 0, &query), "r.m 1356998400000 1 {host=a}\n");
    assert!(!tool(&data, 0, &["scan", "1356998400", "1356998401", "sum", "r.m"]).is_empty());
    tool(&data, 0, &["fsck", "--full-scan"]);
    tool(&data, 0, &["uid", "fsck"]);
    assert!(tool(&data, 0, &["compact"]).contains("tsdb: "));
    let daemon = Daemon::start(&data, "embedded", "");
    let told = daemon.get("/api/config").text();
    assert!(told.contains(r#""tsd.storage.salt.buckets":"4""#) && told.contains(r#""tsd.storage.uid.width.tagv":"4""#));
    assert!(daemon.get("/api/query?start=1356998400&end=1356998402&m=sum:r.m").text().contains("\"1356998400\":1"));
    assert!(daemon.terminate().success());
    for other in ["salt_buckets = 16\n", "salt_width = 2\n", "uid_width_tagv = 3\n"] {
        let file = folder.path().join("other.toml");
        std::fs::write(&file, format!("[schema]\n{other}")).unwrap();
        tool(&data, 3, &[&query[..], &["--config", file.to_str().unwrap()]].concat());
    }
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

/// `DATA_BLOCK_ENCODING`: the data table has `TSB1` from the start, keeps what it is altered to, and compaction rewrites it.
#[test]
fn the_data_table_is_laid_out_by_columns_and_may_be_altered() {
    let lines: Vec<String> = (0..1_500)
        .map(|n| format!("put t.m {} {}.{} host=h{}", 1_356_998_400 + n / 3 * 2, n * 7 % 100, n % 10, n % 3))
        .collect();
    let folder = folder_of(&(lines.join("\n") + "\n"));
    let data = folder.path().join("data");
    let shell = |command: &str| tool(&data, 0, &["shell", "-e", command]);
    let compacted_bytes = || {
        let told = tool(&data, 0, &["compact", "--table", "tsdb"]);
        let bytes = told.split("now ").nth(1).and_then(|rest| rest.split(' ').next());
        bytes.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or_else(|| panic!("{told}"))
    };
    let answer = || {
        let daemon = Daemon::start(&data, "embedded", "");
        let answer = daemon.get("/api/query?start=1356998400&end=1357002000&m=sum:t.m{host=*}").text();
        assert!(daemon.terminate().success());
        answer
    };
    let described = shell("describe 'tsdb'");
    assert!(described.contains("DATA_BLOCK_ENCODING => 'TSB1'"), "{described}");
    let (by_columns, first) = (compacted_bytes(), answer());
    assert!(first.contains("\"1356998400\":0.0"), "{first}");
    shell("alter 'tsdb', {NAME => 't', DATA_BLOCK_ENCODING => 'NONE'}");
    assert!(shell("describe 'tsdb'").contains("DATA_BLOCK_ENCODING => 'NONE'"));
    let by_rows = compacted_bytes();
    assert!(by_columns < by_rows, "{by_columns} bytes by columns, {by_rows} by rows");
    assert_eq!(answer(), first);
    shell("alter 'tsdb', {NAME => 't', DATA_BLOCK_ENCODING => 'TSB1'}");
    assert_eq!((compacted_bytes(), answer()), (by_columns, first));
    tool(&data, 0, &["verify"]);
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

/// `S-TABLES`: by a slip in a table's name no table is made, no row taken for an orphan, and no point given another's name.
#[test]
fn a_table_that_is_named_wrongly_is_refused_and_not_made() {
    let folder = folder_of("put w.m 1356998400 1 host=a\n");
    let data = folder.path().join("data");
    let tables = || tool(&data, 0, &["shell", "--json", "-e", "list"]);
    let before = tables();
    let refused = |code: i32, words: &[&str], told: &str| {
        let output = run(&[&[words[0], "--data-dir", data.to_str().unwrap()], &words[1..]].concat());
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && line.contains(told), "{words:?}: {line}");
    };
    let query = ["1356998400", "1356998401", "sum", "w.m"];
    let readers = [
        &["fsck", "--full-scan", "--fix-all"][..],
        &["uid", "fsck", "fix"],
        &["uid", "grep", "w"],
        &["uid", "rename", "metrics", "w.m", "w.n"],
        &["uid", "metasync"],
        &["uid", "treesync"],
        &["search", "lookup", "w.m"],
        &[&["query"], &query[..]].concat(),
        &[&["scan"], &query[..]].concat(),
    ];
    let file = folder.path().join("points");
    std::fs::write(&file, "w.m 1356998400 2 host=a\n").unwrap();
    let writers = [&["uid", "assign", "metrics", "w.n"][..], &["mkmetric", "w.n"], &["import", file.to_str().unwrap()]];
    for words in readers {
        refused(1, &[words, &["--table", "prod", "--uidtable", "prod-uid"]].concat(), "no table 'prod'");
        refused(1, &[words, &["--table", "prod"]].concat(), "no table 'prod'");
    }
    for words in readers.into_iter().chain(writers) {
        refused(
            3,
            &[words, &["--uidtable", "prod-uid"]].concat(),
            "no UID table 'prod-uid', but a table of points 'tsdb'",
        );
    }
    let config = folder.path().join("slip.toml");
    std::fs::write(&config, "[schema]\nuid_table = \"prod-uid\"\n").unwrap();
    let config = config.to_str().unwrap();
    refused(3, &["serve", "--listen", "127.0.0.1:0", "--config", config], "no UID table 'prod-uid'");
    // These need no names: the shell is what makes the table.
    tool(&data, 0, &["compact", "--config", config]);
    assert_eq!(tables(), before);
    assert_eq!(tool(&data, 0, &[&["query"], &query[..]].concat()), "w.m 1356998400000 1 {host=a}\n");
    tool(&data, 0, &["shell", "--config", config, "-e", "create 'prod-uid', 'id', 'name'"]);
    tool(&data, 1, &["uid", "--config", config, "grep", "w"]);
}

/// Folders without OpenTSDB's tables are compacted as they are; who may be the first to write makes them.
#[test]
fn only_who_writes_makes_tables() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    tool(&data, 1, &["uid", "grep", "m"]);
    assert!(std::fs::read_dir(&data).unwrap().next().is_none());
    tool(&data, 0, &["shell", "-e", "create 'own', 'f'"]);
    assert!(tool(&data, 0, &["compact"]).starts_with("own: "));
    tool(&data, 1, &["fsck", "--full-scan"]);
    assert_eq!(tool(&data, 0, &["shell", "--json", "-e", "list"]).lines().count(), 1);
    tool(&data, 0, &["mkmetric", "m"]);
    assert_eq!(tool(&data, 0, &["shell", "--json", "-e", "list"]).lines().count(), 5);
}

/// One `run` line of a recorded script and what OpenTSDB's tool answered.
struct Recorded {
    line: String,
    answer: Vec<String>,
    code: i32,
}

fn golden(name: &str, ending: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tools").join(format!("{name}.{ending}"));
    std::fs::read_to_string(&file).unwrap()
}

fn recorded(name: &str) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::new();
    for line in golden(name, "golden").lines().filter(|line| !line.starts_with('#')) {
        if let Some(line) = line.strip_prefix("== run ") {
            all.push(Recorded { line: line.to_owned(), answer: Vec::new(), code: 0 });
        } else if let Some(code) = line.strip_prefix("-- exit ") {
            all.last_mut().unwrap().code = code.parse().unwrap();
        } else {
            all.last_mut().unwrap().answer.push(line.to_owned());
        }
    }
    all
}

/// Lines as they are compared: OpenTSDB prints dates beside some times, and the cell after a log message.
fn plain(lines: &[String], sorted: bool) -> Vec<String> {
    let dateless = |line: &String| match line.split_once(" - ") {
        Some((head, _)) if line.contains("for the same timestamp") => format!("{head})"),
        _ if sorted => {
            let head = line.split("KeyValue(").next().and_then(|head| head.split(" (consumed").next());
            head.unwrap_or_default().trim_end_matches([':', ' ']).to_owned()
        }
        _ => line.trim_start_matches("INFO  ").trim_end().to_owned(),
    };
    // What went wrong is told on standard error; which of two modes runs is told in other words.
    let told = |line: &&String| {
        let mode = line.contains("Running ")
            || line.contains("Remove Unknowns")
            || line.contains("KVs analyzed")
            || line.contains("Processed");
        !mode && (sorted || !line.starts_with("ERROR "))
    };
    let message = |line: &&String| !sorted || ["INFO ", "WARN ", "ERROR"].iter().any(|level| line.starts_with(level));
    let mut lines: Vec<String> = lines.iter().filter(told).filter(message).map(dateless).collect();
    if sorted {
        lines.sort();
    }
    lines
}

/// Plays a recorded script on a folder and compares every answer. `known` takes out of both answers what is
/// known to differ.
///
/// `damaged` scripts run on a data table without a fold. The others need one: there OpenTSDB's own tools compact rows
/// that they read.
fn replay(name: &str, damaged: bool, known: &dyn Fn(&str, &mut Vec<String>)) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("opentsdb.toml");
    std::fs::write(&config, "[schema]\nsalt_width = 0\n").unwrap();
    std::fs::create_dir(&data).unwrap();
    if damaged {
        make_tables(&data);
    }
    let mut answers = recorded(name).into_iter();
    let mut puts = Vec::new();
    let script = golden(name, "script");
    for line in script.lines() {
        if let Some(put) = line.strip_prefix("put ") {
            puts.push(put);
            continue;
        }
        if !puts.is_empty() {
            plant(&data, &std::mem::take(&mut puts));
        }
        let expected = answers.next().unwrap();
        let words: Vec<&str> = expected.line.split(' ').map(|word| word.trim_matches('\'')).collect();
        let paths = [data.to_str().unwrap(), config.to_str().unwrap()];
        let output = run(&[&[words[0], "--data-dir", paths[0], "--config", paths[1]], &words[1..]].concat());
        let ours: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        let sorted = expected.line.contains("fsck");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let [mut ours, mut theirs] = [plain(&ours, sorted), plain(&expected.answer, sorted)];
        known(&expected.line, &mut ours);
        known(&expected.line, &mut theirs);
        assert_eq!(ours, theirs, "{}: {errors}", expected.line);
        assert_eq!(output.status.code().map(|code| code == 0), Some(expected.code == 0), "{}: {errors}", expected.line);
    }
}

/// Rules `C-UID`, `C-MKMETRIC`.
#[test]
fn uid_answers_as_opentsdbs() {
    replay("uid", false, &|_, _| {});
}

/// Rule `C-UIDFSCK`. The counters' row is no name: our grep passes it over. The orphan's name gets its UID back here, which the counter
/// is then held to.
#[test]
fn uid_fsck_finds_and_mends_as_opentsdbs() {
    replay("uid-fsck", true, &|line, lines| {
        // OpenTSDB frames this one with lines of dashes.
        lines.retain(|line| !line.contains("UID collision"));
        if line.starts_with("uid grep") {
            lines.retain(|line| !line.contains(": [0, 0, 0, 0, 0, 0, 0,") && line != "metrics orphan: [0, 0, 10]");
        } else {
            lines.retain(|line| line != "INFO  FIX: Removed metrics reverse mapping: 00000A -> orphan");
            lines.retain(|line| line != "INFO  FIX: Restored forward metrics mapping: orphan -> 00000A");
            for told in lines {
                *told = told.replace("We found an ID of 10 for", "We found an ID of 9 for");
                *told = told.replace("max ID for metrics to 10", "max ID for metrics to 9");
                *told = told.replace("Maximum ID for metrics: 10", "Maximum ID for metrics: 9");
                *told = told.replace("is 10 but only 8 entries", "is 9 but only 7 entries");
            }
        }
    });
}

/// Rule `C-UIDFSCK`: the counter behind, two names of one UID, a reverse map astray, columns unknown and of meta data. The name of
/// which the other UID knows is that one's again here.
#[test]
fn uid_fsck_finds_the_rest_as_opentsdbs() {
    replay("uid-fsck-kinds", true, &|line, lines| {
        lines.retain(|line| !line.contains("UID collision"));
        if line.starts_with("uid grep") {
            lines.retain(|line| !line.contains(": [0, 0, 0, 0, 0, 0, 0,") && line != "tagv x: [0, 0, 1]");
        } else {
            lines.retain(|line| line != "INFO  FIX: Removed tagv reverse mapping: 000001 -> x");
            lines.retain(|line| line != "INFO  FIX: Restored forward tagv mapping: x -> 000001");
            lines.retain(|line| !line.contains("is 2 but only 1 entries"));
        }
    });
}

/// Rules `C-QUERY`, `C-SCAN`.
#[test]
fn query_and_scan_answer_as_opentsdbs() {
    replay("points", false, &|_, _| {});
}

/// Rule `C-FSCK`. OpenTSDB's scan shows an annotation's time wrongly. Its fsck deletes the points of the seconds 4 and 6, whose values
/// readers can read by their own length: the joined cell has four points there and six here, and the table ten and twelve.
#[test]
fn fsck_finds_and_mends_as_opentsdbs() {
    replay("fsck", true, &|line, lines| {
        if line.starts_with("scan") {
            let lost = ["{}", "= 4 values:", "= 6 values:", "    [0, 75]\t", "    [0, 96]\t"];
            lines.retain(|line| !lost.iter().any(|of_lost| line.contains(of_lost)));
        } else {
            lines.retain(|line| !line.ends_with("Valid Datapoints: 10") && !line.ends_with("Valid Datapoints: 12"));
        }
    });
}

/// Rule `C-FSCK`: duplicates of width and resolution, keys too short, lost tags, append cells, histograms, and each repair
/// asked for alone.
#[test]
fn fsck_finds_and_mends_the_rest_as_opentsdbs() {
    replay("fsck-kinds", true, &|_, _| {});
}

/// Rules `C-MKMETRIC`, `C-SEARCH`.
#[test]
fn mkmetric_assigns_and_search_finds_series() {
    let folder = folder_of("put s.m 1356998400 1 host=a\nput s.m 1356998400 2 host=b dc=x\n");
    let data = folder.path().join("data");
    assert_eq!(
        tool(&data, 0, &["mkmetric", "s.m", "s.n", "s.n"]),
        "metrics s.m: [0, 0, 1]\nmetrics s.n: [0, 0, 2]\nmetrics s.n: [0, 0, 2]\n"
    );
    tool(&data, 1, &["mkmetric", "no spaces"]);
    assert_eq!(tool(&data, 0, &["search", "lookup", "s.m", "host=a"]), "000001000001000001 s.m host=a\n");
    assert_eq!(tool(&data, 0, &["search", "--use-data-table", "lookup", "=x"]).lines().count(), 1);
    assert_eq!(tool(&data, 0, &["search", "lookup", "*", "host="]).lines().count(), 2);
    assert_eq!(tool(&data, 0, &["search", "lookup", "s.n"]), "");
    tool(&data, 1, &["search", "lookup", "nope"]);
    tool(&data, 2, &["search", "tsmeta"]);
}

/// Rule `C-SCAN`: a dump of a salted folder goes into another one and says the same there; deleted rows are gone.
#[test]
fn a_dump_is_imported_again_and_deleted_rows_are_gone() {
    let lines = "put d.m 1356998400 1 host=a\nput d.m 1356998401 2.5 host=b\nput d.m 1356998402500 -3 host=c\n";
    let folder = folder_of(lines);
    let [data, copy] = ["data", "copy"].map(|name| folder.path().join(name));
    let query = ["1356998400", "1356998500", "none", "d.m"];
    let scan = |option: &'static str| [&["scan", option][..], &query].concat();
    let dump = tool(&data, 0, &scan("--import"));
    assert_eq!(dump.lines().count(), 3, "{dump}");
    let file = folder.path().join("dump");
    std::fs::write(&file, &dump).unwrap();
    tool(&copy, 0, &["import", file.to_str().unwrap()]);
    let ask = [&["query"][..], &query].concat();
    assert_eq!(tool(&copy, 0, &ask), tool(&data, 0, &ask));
    // `S-DELETE-ROW`: where cells bear the times of their points, one that is put again would stay hidden. The folder says so itself.
    assert!(Daemon::start(&data, "embedded", "[schema]\nuse_otsdb_timestamp = true\n").terminate().success());
    tool(&data, 3, &scan("--delete"));
    // `C-FSCK`: nor is anything mended there, but all of it is looked at.
    for fix in ["--fix", "--fix-all"] {
        tool(&data, 3, &["fsck", "--full-scan", fix]);
    }
    tool(&data, 0, &["fsck", "--full-scan"]);
    assert!(Daemon::start(&data, "embedded", "").terminate().success());
    assert_eq!(tool(&data, 0, &scan("--delete")), dump);
    assert_eq!(tool(&data, 0, &scan("--import")), "");
    assert_eq!(tool(&data, 0, &ask), "");
    tool(&data, 0, &["compact"]);
    assert_eq!(tool(&data, 0, &scan("--import")), "");
}

/// `S-DTCS`: who is given a folder alone reads, writes and folds it as its server does, also when the server was killed.
#[test]
fn s_dtcs_a_folder_says_who_wins_at_an_instant() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let query = ["query", "1356998400", "1356998500", "sum", "v.m"];
    let file = folder.path().join("points");
    let import = |points: &str| {
        std::fs::write(&file, points).unwrap();
        tool(&data, 0, &["import", file.to_str().unwrap()]);
    };
    for (kept, first, second, both) in [("true", 9, 8, 9), ("false", 2, 3, 2)] {
        let config = format!("[schema]\nuse_otsdb_timestamp = true\nuse_max_value = {kept}\n");
        let daemon = Daemon::start(&data, "embedded", &config);
        // A second and the millisecond that is it; the value that wins is the older one.
        let time: u32 = if kept == "true" { 1_356_998_401 } else { 1_356_998_402 };
        assert_eq!(daemon.talk(&format!("put v.m {time} {first} host=a\n")), "");
        assert_eq!(daemon.talk(&format!("put v.m {time}000 {second} host=a\n")), "");
        daemon.kill();
        let seen = || {
            let lines = tool(&data, 0, &query);
            let line = lines.lines().find(|line| line.contains(&format!("{time}000"))).unwrap().to_owned();
            line.split(' ').nth(2).unwrap().parse::<i32>().unwrap()
        };
        let backup = folder.path().join(kept);
        tool(&data, 0, &["backup", backup.to_str().unwrap()]);
        assert_eq!(seen(), both, "{kept}");
        import(&format!("v.m {time}000 {second} host=a\n"));
        tool(&data, 0, &["compact"]);
        assert_eq!(seen(), both, "{kept}");
    }
    // The setting is the operator's to change, by a server.
    let fold = |expected: &str| {
        let described = tool(&data, 0, &["shell", "-e", "describe 'tsdb'"]);
        assert!(described.contains(&format!("FOLD => '{expected}'")), "{described}");
    };
    fold("opentsdb-smaller");
    let config = folder.path().join("larger.toml");
    std::fs::write(&config, "[schema]\nuse_otsdb_timestamp = true\nuse_max_value = true\n").unwrap();
    tool(&data, 3, &["compact", "--config", config.to_str().unwrap()]);
    assert!(Daemon::start(&data, "embedded", "").terminate().success());
    fold("opentsdb");
}

/// Rule `C-SCAN`: rows are selected as a query selects series, so that no others are deleted.
#[test]
fn filters_select_rows_as_they_select_series() {
    let lines =
        "put f.m 1356998400 1 host=web01\nput f.m 1356998400 2 host=web02 dc=x\nput f.m 1356998400 3 host=db01\n";
    let folder = folder_of(lines);
    let data = folder.path().join("data");
    let check = |option: &'static str, tag: &'static str, expected: &[&str]| {
        let dump = tool(&data, 0, &["scan", option, "1356998400", "1356998500", "none", "f.m", tag]);
        let hosts = dump.lines().filter_map(|line| line.split("host=").nth(1)?.split(' ').next());
        let mut hosts: Vec<&str> = hosts.collect();
        hosts.sort_unstable();
        assert_eq!(hosts, expected, "{tag}: {dump}");
    };
    check("--import", "host=*", &["db01", "web01", "web02"]);
    check("--import", "host=web*", &["web01", "web02"]);
    check("--import", "host=not_literal_or(web01)", &["db01", "web02"]);
    check("--import", "host=iliteral_or(WEB01)", &["web01"]);
    check("--import", "dc=not_key()", &["db01", "web01"]);
    check("--import", "rack=not_key()", &["db01", "web01", "web02"]);
    check("--import", "host=not_key()", &[]);
    tool(&data, 2, &["scan", "1356998400", "none", "f.m", "host=regexp(()"]);
    check("--delete", "host=regexp(^web)", &["web01", "web02"]);
    check("--import", "host=*", &["db01"]);
}

/// Rule `C-SCAN`: where any of it makes no sense, no row of another query is deleted, nor those until now for a function that lacks.
#[test]
fn nothing_is_deleted_by_a_command_line_that_is_wrong() {
    let folder = folder_of("put w.m 1356998400 1 host=a\nput w.m 1400000000 2 host=a\n");
    let data = folder.path().join("data");
    let refused = |code: i32, words: &[&str]| {
        for command in [&["scan", "--delete"][..], &["fsck", "--fix-all"]] {
            tool(&data, code, &[command, words].concat());
        }
    };
    refused(2, &["2013/01/01", "2013/01/02", "w.m"]);
    refused(2, &["2013/01/02", "2013/01/01", "sum", "w.m"]);
    refused(2, &["2013/01/01", "2013/01/02", "sum", "w.m", "host", "=a"]);
    refused(1, &["2013/01/01", "2013/01/02", "sum", "w.m", "sum", "nope"]);
    assert_eq!(tool(&data, 0, &["scan", "--import", "2013/01/01", "sum", "w.m"]).lines().count(), 2);
}

/// Rule `C-IMPORT`: progress is told where there is no terminal to show a bar on.
#[test]
fn import_tells_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [data, file] = ["data", "dump"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&file, "i.m 1356998400 1 host=a\ni.m 1356998401 2 host=a\n").unwrap();
    let output = run(&["import", &file, "--data-dir", &data]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.lines().any(|line| line.contains("dump: 100 %, 2 points stored, ")), "{told}");
}

/// Rules `C-META`, `C-TREE`: meta objects are made of rows and go again, and trees grow of them.
#[test]
fn meta_objects_and_trees_are_made_after_the_fact() {
    let folder = folder_of("put t.a 1356998400 1 host=a\nput t.b 1356998400 2 host=a\nput t.a 1357002000 3 host=b\n");
    let data = folder.path().join("data");
    let made = tool(&data, 0, &["uid", "metasync"]);
    assert!(made.contains("3 series, 0 passed over") && made.contains("series: 3 objects made"), "{made}");
    assert!(made.contains("names:  5 objects made"), "{made}");
    assert_eq!(tool(&data, 0, &["uid", "treesync"]), "WARN  Tree processing is disabled\n");
    let config = folder.path().join("on.toml");
    std::fs::write(&config, "[meta]\ntree_processing = true\n").unwrap();
    let on = ["uid", "--config", config.to_str().unwrap(), "treesync"];
    assert_eq!(tool(&data, 0, &on), "WARN  No enabled trees were found\n");
    {
        let daemon = Daemon::start(&data, "embedded", "");
        assert_eq!(daemon.get("/api/uid/tsmeta?m=t.a").json().as_array().unwrap().len(), 2);
        assert_eq!(daemon.post("/api/tree", r#"{"name":"T","enabled":true}"#).status, 200);
        let rules = r#"[{"treeId":1,"type":"TAGK","field":"host"},{"treeId":1,"level":1,"type":"METRIC"}]"#;
        assert_eq!(daemon.post("/api/tree/rules", rules).status, 204);
        assert!(daemon.terminate().success());
    }
    assert_eq!(
        tool(&data, 0, &on),
        "3 series through 1 trees: 3 leaves, 0 collisions, 0 not matched, 0 passed over as a name or a cell of theirs is damaged\n"
    );
    {
        let daemon = Daemon::start(&data, "embedded", "");
        let root = daemon.get("/api/tree/branch?treeid=1").json();
        assert_eq!(root["branches"].as_array().unwrap().len(), 2);
        assert!(daemon.terminate().success());
    }
    // The root, two branches, three leaves; then the definition and two rules.
    assert_eq!(tool(&data, 0, &["uid", "treepurge", "1"]), "Completed tree deletion for: 1 (6 cells)\n");
    assert_eq!(tool(&data, 0, &["uid", "treepurge", "1", "true"]), "Completed tree deletion for: 1 (3 cells)\n");
    tool(&data, 2, &["uid", "treepurge"]);
    tool(&data, 2, &["uid", "treepurge", "0"]);
    let gone = tool(&data, 0, &["uid", "metapurge"]);
    assert_eq!(gone, "names:  5 objects removed\nseries: 6 objects and counters removed\n");
}
