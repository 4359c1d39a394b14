//! Telnet on the shared port.

use std::io::{Read, Write};

use crate::daemon::{Daemon, run};

/// `T-VERSION`, `T-HELP`, `T-DROPCACHES`, `T-EXIT`, `T-UNKNOWN`.
#[test]
fn commands_are_answered_in_opentsdbs_words() {
    let daemon = Daemon::memory();
    let said = daemon.talk("version\r\nhelp\nfoo bar\n\ndropcaches\n");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("net.opentsdb.tools 2.4.1 built at revision"), "{said}");
    assert!(lines[1].starts_with("Built on "), "{said}");
    assert_eq!(lines[2], "available commands: stats dropcaches version exit help put rollup histogram status ");
    assert_eq!(lines[3], "unknown command: foo.  Try `help'.");
    assert_eq!(lines[4], "unknown command: .  Try `help'.");
    assert_eq!(lines[5], "Caches dropped.");
    assert_eq!(lines.len(), 6);
}

/// `T-HELP`: strictly the words of OpenTSDB 2.4 alone, and `diediedie` where it ends the server.
#[test]
fn help_tells_the_commands_that_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[server]\nallow_diediedie = true\nauth_allow_all = true\n[compat]\nstrict = true\n";
    let daemon = Daemon::start(&folder.path().join("data"), "memory", settings);
    let words = "stats dropcaches version exit help put rollup histogram diediedie auth";
    assert_eq!(daemon.talk("help\n"), format!("available commands: {words} \n"));
}

/// `T-STATS`.
#[test]
fn stats_are_lines_that_could_be_put() {
    let daemon = Daemon::memory();
    for line in daemon.talk("stats\n").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words[0].starts_with("tsd."), "{line}");
        assert!(words[1].parse::<u64>().is_ok() && words[2].parse::<u64>().is_ok(), "{line}");
        assert!(words.last().unwrap().starts_with("host="), "{line}");
    }
}

/// `T-LIMIT`.
#[test]
fn an_endless_line_is_refused_and_the_connection_closed() {
    let daemon = Daemon::memory();
    let mut stream = daemon.connect();
    stream.write_all(&[b'x'; 3_000]).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap_or_default();
    assert!(said.contains("longer than 1024 bytes"), "{said}");
    assert!(daemon.talk(&format!("{}\n", "x".repeat(1_024))).starts_with("unknown command: xxx"));
}

/// `https://` on the port ends at once, and does not wait for an answer that never comes.
#[test]
fn a_tls_handshake_is_no_telnet_line() {
    let daemon = Daemon::memory();
    let mut stream = daemon.connect();
    stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").unwrap();
    // Closed with bytes unread, which may come as a reset.
    let mut said = Vec::new();
    let ended = stream.read_to_end(&mut said);
    let is_end = ended.map_or_else(|cause| cause.kind() == std::io::ErrorKind::ConnectionReset, |length| length == 0);
    assert!(is_end, "{said:?}");
}

/// Who puts by telnet need not read what is answered: the operator is told of points that are not stored. So is he by HTTP of a
/// table that is gone or closed to changes, as one that another program shares may be.
#[test]
fn lines_that_the_store_does_not_take_are_told_in_the_log() {
    let daemon = Daemon::memory();
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let shell = |command| assert!(run(&["shell", "--url", &url, "-e", command]).status.success(), "{command}");
    let log = || daemon.get("/logs").text();
    let line = "put a.m 1356998400 1 host=a\n";
    assert_eq!(daemon.talk(line), "");
    shell("disable 'tsdb'");
    assert_eq!(daemon.talk(&line.repeat(2)).lines().count(), 2);
    let told = log();
    let told: Vec<&str> = told.lines().filter(|line| line.contains("lines were not stored")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("table 'tsdb' is disabled"), "{told:?}");
    assert_eq!(daemon.talk("put a.m x 1 host=a\n").lines().count(), 1);
    assert_eq!(log().matches("lines were not stored").count(), 1, "the sender's own fault");

    shell("enable 'tsdb'");
    shell("alter 'tsdb', READONLY => 'true'");
    let put = r#"{"metric":"a.m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}"#;
    let read_only = "table 'tsdb' is set READONLY";
    let refused = daemon.post("/api/put", put);
    assert!(refused.status == 503 && refused.text().contains(read_only), "{}", refused.text());
    assert_eq!(log().matches(read_only).count(), 1);
    assert_eq!(daemon.post("/api/annotation", r#"{"startTime":1356998400,"description":"a"}"#).status, 503);
    assert_eq!(log().matches(read_only).count(), 2);

    shell("disable 'tsdb'");
    shell("drop 'tsdb'");
    assert_eq!(daemon.talk(line).lines().count(), 1);
    assert_eq!(log().matches("unknown table 'tsdb'").count(), 1);
    assert_eq!(daemon.post("/api/put", put).status, 503);
    assert_eq!(log().matches("unknown table 'tsdb'").count(), 2);
}
