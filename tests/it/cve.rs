//! OpenTSDB's vulnerabilities, tried on every parameter of every endpoint.
//!
//! CVE-2018-12972, CVE-2020-35476, CVE-2023-25826 and CVE-2023-36812 ran commands through a gnuplot script;
//! CVE-2018-13003, CVE-2018-12973 and CVE-2023-25827 wrote markup of the request into a page; static files were kept in
//! their folder by a test for `..` alone. Here no process is started, no file opened, and no markup repeated.

mod endpoints;
mod payloads;
mod trace;

use crate::daemon::Daemon;
use crate::http::{Client, Response};
use endpoints::{ENDPOINTS, Endpoint};
pub(crate) use payloads::escaped;
use payloads::{MARKUP, Payload};
use trace::Traced;

/// What every answer must have, whatever was asked.
fn check(what: &str, answer: &Response) {
    // A plain answer, a refusal, or an endpoint that is not there.
    assert!((200..500).contains(&answer.status) || answer.status == 501, "{what}: {} {}", answer.status, answer.text());
    assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"), "{what}");
    let policy = answer.header("Content-Security-Policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'self'"), "{what}: {policy}");
    let kind = answer.header("Content-Type").unwrap_or_default();
    if !kind.starts_with("application/json") && !kind.starts_with("text/plain") {
        let text = answer.text().to_ascii_lowercase();
        assert!(!MARKUP.iter().any(|markup| text.contains(markup)), "{what}: {kind}: {text}");
    }
}

fn ask(client: &mut Client, method: &str, target: &str, body: &str) {
    let answer = client.request(method, target, &[("Content-Type", "application/json")], body.as_bytes());
    check(
        &format!("{method} {target} {body}"),
        &answer.unwrap_or_else(|cause| panic!("{method} {target} {body}: {cause}")),
    );
}

/// One payload in every place of one endpoint.
fn attack(client: &mut Client, endpoint: &Endpoint, payload: &Payload) -> usize {
    let mut asked = 0;
    for name in endpoint.parameters.split_whitespace() {
        for method in endpoint.methods {
            ask(client, method, &endpoint.target_with(name, payload), "");
            asked += 1;
        }
    }
    for body in endpoint.bodies_with(payload) {
        for method in endpoint.methods.iter().filter(|method| **method != "GET") {
            ask(client, method, endpoint.path, &body);
            asked += 1;
        }
    }
    asked
}

#[test]
fn no_payload_in_any_parameter_starts_a_process_opens_a_file_or_reaches_a_page() {
    let canary = std::env::temp_dir().join(format!("basalt-canary-{}", std::process::id()));
    let daemon = Traced::start();
    let mut client = daemon.client();
    let point = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"h":"a"}}"#;
    assert_eq!(client.post("/api/put", point).unwrap().status, 204);
    // What is loaded on first use, such as the machine's zone, is loaded before.
    for endpoint in ENDPOINTS {
        ask(&mut client, endpoint.methods[0], endpoint.path, "");
    }
    let before = daemon.seen();
    let mut asked = 0;
    for payload in payloads::all(&canary.display().to_string()) {
        for endpoint in ENDPOINTS {
            asked += attack(&mut client, endpoint, &payload);
        }
    }
    daemon.check(&before);
    println!("{asked} requests to {} endpoints under {}: no process, no file", ENDPOINTS.len(), daemon.how());
    assert!(!canary.exists());
}

/// Telnet's words are parameters too.
#[test]
fn no_payload_in_a_telnet_line_starts_a_process() {
    let canary = std::env::temp_dir().join(format!("basalt-canary-telnet-{}", std::process::id()));
    let daemon = Traced::start();
    assert_eq!(daemon.talk("put m 1700000000 1 h=a\n"), "");
    let before = daemon.seen();
    for payload in payloads::all(&canary.display().to_string()) {
        let word = payload.text.replace(['\n', '\r', ' '], "_");
        for line in [
            format!("{word}\n"),
            format!("{}\n", payload.text),
            format!("put {word} 1700000000 1 h=a\n"),
            format!("put m {word} 1 h=a\n"),
            format!("put m 1700000000 {word} h=a\n"),
            format!("put m 1700000000 1 h={word}\n"),
            format!("put m 1700000000 1 {word}=a\n"),
            format!("stats {word}\nversion {word}\n"),
        ] {
            daemon.talk(&line);
        }
    }
    daemon.check(&before);
    assert!(!canary.exists());
}

/// Static files of OpenTSDB lie under `/s`; ours are in the program, and no spelling of a path leads out of it.
#[test]
fn no_spelling_of_a_path_leads_out_of_the_pages() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    let paths = payloads::traversals(10_000);
    assert_eq!(paths.len(), 10_000);
    for path in &paths {
        let answer = client.get(path).unwrap_or_else(|cause| panic!("{path}: {cause}"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(!answer.text().contains("root:"), "{path}");
        check(path, &answer);
    }
    println!("{} spellings, all 404", paths.len());
}

/// The lint that keeps it so: nothing of the program may name a process to start.
#[test]
fn the_product_has_no_way_to_start_a_process() {
    let rules = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/clippy.toml")).unwrap();
    assert!(rules.contains("disallowed-types") && rules.contains("std::process::Command"), "{rules}");
    for folder in ["src", "store/src", "engine/src", "schema/src", "ingest/src", "rewrite/src", "query/src"] {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for file in files(&root) {
            // A font lies among the sources too.
            let bytes = std::fs::read(&file).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let named = text.contains("process::Command") || text.contains("tokio::process") || text.contains("execv");
            assert!(!named, "{}", file.display());
        }
    }
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
