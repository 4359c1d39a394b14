//! The command line: exit codes and texts.

use crate::daemon::run;

fn check(arguments: &[&str], code: i32, expected: &str) {
    let output = run(arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert!(text.contains(expected), "{arguments:?}: {text}");
}

#[test]
fn help_and_version_are_no_failure() {
    check(&["--help"], 0, "Examples:");
    check(&["serve", "--help"], 0, "--listen <ADDR:PORT>");
    check(&["version"], 0, "speaks OpenTSDB 2.4");
    check(&["--version"], 0, env!("CARGO_PKG_VERSION"));
}

/// As `head` does, who has what he wanted.
#[test]
fn who_stops_reading_is_told_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for words in [&["version"][..], &["shell", "--store", "memory", "-e", "list"], &["advise", "--example"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_basalt"));
        let output = command.args(words).stdout(writer.try_clone().unwrap()).output().unwrap();
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(1), ""), "{words:?}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_2() {
    check(&[], 2, "\nbasalt: no command is given: one of those above is needed\n");
    check(&["nonsense"], 2, "\nbasalt: wrong command line: unrecognized subcommand 'nonsense'\n");
    check(&["uid", "gerp", "x"], 2, "gerp is no sub-command, nor one of metrics, tagk, tagv; see `basalt uid --help`");
    check(&["serve", "--nope"], 2, "--nope");
    check(&["serve", "--store", "tape"], 2, "embedded");
}

#[test]
fn a_wrong_configuration_is_exit_3_and_names_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("basalt.toml");
    std::fs::write(&file, "[server]\nlisen = '127.0.0.1:0'\n").unwrap();
    let path = file.to_str().unwrap();
    check(&["serve", "--config", path], 3, "`server.lisen`");
    check(&["config", "check", "--config", path], 3, "did you mean `server.listen`?");
    check(&["serve", "--config", "/nowhere/basalt.toml"], 3, "/nowhere/basalt.toml");
    check(&["serve", "--listen", "nowhere"], 3, "an address and port");
}

/// A tool begins no store in a folder that holds something else; one that only reads, not in an empty one either.
#[test]
fn a_folder_that_is_no_data_folder_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (data, target) = (folder.path().join("data"), folder.path().join("target"));
    let (named, aim) = (data.to_str().unwrap(), target.to_str().unwrap());
    let tools: [&[&str]; 11] = [
        &["verify"],
        &["repair", "--fix"],
        &["inspect"],
        &["backup", aim],
        &["compact"],
        &["fsck", "--full-scan"],
        &["uid", "grep", "x"],
        &["mkmetric", "m"],
        &["query", "1h-ago", "sum", "m"],
        &["search", "lookup", "m"],
        &["shell", "-e", "list"],
    ];
    for (step, expected) in ["there is no data folder", "is no data folder", "is no data folder"].iter().enumerate() {
        match step {
            0 => {}
            1 => std::fs::create_dir(&data).unwrap(),
            _ => std::fs::write(data.join("notes"), "mine").unwrap(),
        }
        let all = if step == 1 { &tools[..4] } else { &tools };
        for words in all {
            check(&[*words, &["--data-dir", named]].concat(), 1, expected);
        }
        check(&["migrate", "--from", named, "--to", aim], 1, "name it with --from");
        let left = std::fs::read_dir(&data).map_or(0, Iterator::count);
        assert_eq!(left, usize::from(step == 2));
    }
    // What cannot be read makes no folder either.
    check(&["import", "/nowhere.gz", "--data-dir", aim], 1, "cannot read /nowhere.gz");
    check(&["import", named, "--data-dir", aim], 1, "it is a folder");
    check(&["import", "/nowhere.gz", "--url", "127.0.0.1:1"], 1, "cannot read /nowhere.gz");
    assert!(!target.exists());
}

#[test]
fn a_public_address_needs_a_word() {
    check(&["serve", "--store", "memory", "--listen", "0.0.0.0:0"], 3, "--insecure");
}

/// `config check` refuses what `serve` refuses, with the same line: what only the reader of a setting can see, too.
#[test]
fn what_is_checked_as_good_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("basalt.toml");
    let path = file.to_str().unwrap();
    for (text, line) in [
        ("[query]\ntimezone = 'Mars/Olympus'\n", "query.timezone"),
        ("[log]\nlevel = 'basalt=loud'\n", "log.level"),
        ("[log]\nlevel = 'warning'\n", "`warning` is not one of error, warn, info"),
        ("[server]\nauth_file = '/nowhere/tokens'\n", "/nowhere/tokens"),
        ("[schema]\nhistograms = '['\n", "schema.histograms"),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in [&["config", "check"][..], &["serve", "--store", "memory", "--listen", "127.0.0.1:0"][..]] {
            check(&[command, &["--config", path]].concat(), 3, line);
        }
    }
    check(&["config", "check", "--listen", "0.0.0.0:4242"], 3, "--insecure");
    check(&["config", "check", "--listen", "0.0.0.0:4242", "--insecure"], 0, "configuration is good");
    let rollups = r#"{"aggregationIds":{"sum":0},"intervals":[
        {"table":"t","preAggregationTable":"p","interval":"10m","rowSpan":"1n"}]}"#;
    std::fs::write(&file, format!("[rollups]\nenable = true\nconfig = '''{rollups}'''\n")).unwrap();
    check(&["config", "check", "--config", path], 0, "a row of 10m has 4608 intervals");
}

/// S-NS-1: tables may be named in a namespace. Whether the store has it is seen when it is opened, and is a wrong setting then.
#[test]
fn s_ns_1_tables_in_a_namespace_are_served_once_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, data) = (path("basalt.toml"), path("data"));
    let tables = ["data", "uid", "tree", "meta"].map(|table| format!("{table}_table = 'tsd:{table}'\n")).concat();
    let rollups = r#"{"aggregationIds":{"sum":0},"intervals":[{"table":"down:t","preAggregationTable":"down:p",
        "interval":"1h","rowSpan":"1n"}]}"#;
    std::fs::write(&file, format!("[schema]\n{tables}[rollups]\nenable = true\nconfig = '''{rollups}'''\n")).unwrap();
    check(&["config", "check", "--config", &file], 0, "configuration is good");
    let config = ["--config", &file, "--data-dir", &data];
    let make = "create_namespace 'tsd'; create_namespace 'down'";
    let shell = ["shell", "--create", "--data-dir", &data, "-e"];
    check(&[&shell[..], &["list"]].concat(), 0, "0 row(s)");
    check(&[&["mkmetric", "m"][..], &config].concat(), 3, "unknown namespace 'tsd'");
    check(&[&shell[..], &[make]].concat(), 0, "");
    check(&[&["mkmetric", "m"][..], &config].concat(), 0, "metrics m: [0, 0, 1]");
    check(&[&shell[..], &["list"]].concat(), 0, "down:p\ndown:t\ntsd:data\ntsd:meta\ntsd:tree\ntsd:uid\n");
}

/// Points that are meant for a cluster are not taken into a folder of this machine.
#[test]
fn masters_without_the_store_hbase_are_refused() {
    let masters = ["--hbase-masters", "127.0.0.1:1"];
    for command in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0", "--store", "memory"][..]] {
        check(&[command, &masters].concat(), 2, "--hbase-masters needs --store hbase");
    }
    check(&["config", "check", "--store", "hbase", "--hbase-masters", "127.0.0.1:1"], 0, "configuration is good");
}

/// A cluster has no files here: that is said at once, whether it answers or not, and whether or not there is a folder of before.
#[test]
fn a_cluster_is_neither_backed_up_nor_compacted_by_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, data) = (path("basalt.toml"), path("data"));
    let text = format!("[store]\nkind = 'hbase'\ndata_dir = '{data}'\n[hbase]\nmasters = '127.0.0.1:1'\n");
    std::fs::write(&file, text).unwrap();
    let refused = || {
        check(&["backup", "--config", &file, &path("backup")], 3, "only the embedded store can be backed up");
        check(&["compact", "--config", &file], 3, "only the embedded store has files to compact");
    };
    refused();
    check(&["shell", "--create", "--data-dir", &data, "-e", "list"], 0, "0 row(s)");
    refused();
}

/// What `config show` prints is a file that means the same.
#[test]
fn shown_settings_can_be_read_back() {
    let output = run(&["config", "show"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("basalt.toml");
    std::fs::write(&file, &output.stdout).unwrap();
    check(&["config", "check", "--config", file.to_str().unwrap()], 0, "configuration is good");
    check(&["config", "show", "--config", file.to_str().unwrap()], 0, "listen = \"127.0.0.1:4242\"");
}

/// Also where nothing is logged before the command's end.
#[test]
fn a_level_of_the_log_that_is_none_is_refused() {
    let url = ["--url", "http://127.0.0.1:1"];
    let on_a_server = [["compact"], ["backup"], ["shell"]].map(|command| [&command[..], &url].concat());
    let [compact, backup, shell] = &on_a_server;
    for command in
        [&["config", "show"][..], compact, &[backup, &["target"][..]].concat(), &[shell, &["-e", "list"][..]].concat()]
    {
        check(&[command, &["--log-level", "nonsense"]].concat(), 3, "`nonsense`");
    }
}

/// `F-CONF`: an `opentsdb.conf` is read as it is; what nobody knows is told, not refused.
#[test]
fn an_opentsdb_conf_is_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("opentsdb.conf");
    std::fs::write(&file, "tsd.network.port = 5555\ntsd.plugin.own = 1\n").unwrap();
    check(&["config", "check", "--config", file.to_str().unwrap()], 0, "unknown key `tsd.plugin.own`");
    check(&["config", "show", "--config", file.to_str().unwrap()], 0, "listen = \"127.0.0.1:5555\"");
}

/// A limit of a control group above the one that the process is in counts, and the budgets are shares of it.
#[test]
#[ignore = "makes control groups, which takes root and their first version"]
fn budgets_are_shares_of_what_control_groups_allow() {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.split_once(":memory:")).unwrap().1;
    let above = format!("/sys/fs/cgroup/memory{own}/basalt-{}", std::process::id());
    let group = format!("{above}/below");
    std::fs::create_dir_all(&group).unwrap();
    let limit =
        |of: &str, bytes: u64| std::fs::write(format!("{of}/memory.limit_in_bytes"), bytes.to_string()).unwrap();
    limit(&above, 512 << 20);
    limit(&group, 1 << 30);
    let script = format!("echo $$ > {group}/cgroup.procs && exec {} config show", env!("CARGO_BIN_EXE_basalt"));
    let shown = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    std::fs::remove_dir(&group).unwrap();
    std::fs::remove_dir(&above).unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line = shown.lines().find(|line| line.starts_with("memtables_bytes")).unwrap();
    assert!(
        line.starts_with("memtables_bytes = 23068672 ")
            && line.ends_with("from the memory of this machine or container"),
        "{line}"
    );
}
