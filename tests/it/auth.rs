//! Who gets through where the server asks for tokens (`P-AUTH`, `T-AUTH`): every endpoint by every role.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::daemon::{Daemon, run};
use crate::http::Response;

const ROLES: [&str; 5] = ["guest", "reader", "putonly", "writer", "administrator"];

/// Which roles a request is for; the first letters of [`ROLES`], and `*` for anybody.
const TABLE: &[(&str, &str, &str)] = &[
    ("*", "GET", "/healthz"),
    ("*", "GET", "/readyz"),
    ("rwa", "GET", "/"),
    ("rwa", "GET", "/s/graph.css"),
    ("rwa", "GET", "/favicon.ico"),
    ("rwa", "GET", "/metrics"),
    ("rwa", "GET", "/nosuch"),
    ("rwa", "GET", "/q?start=1700000000&m=sum:m&ascii"),
    ("rwa", "GET", "/suggest?type=metrics"),
    ("rwa", "GET", "/aggregators"),
    ("rwa", "GET", "/version"),
    ("rwa", "GET", "/stats"),
    ("a", "GET", "/logs"),
    ("a", "POST", "/logs"),
    ("a", "GET", "/diediedie"),
    ("a", "POST", "/store"),
    ("a", "POST", "/store/backup"),
    ("a", "POST", "/store/compact"),
    ("a", "POST", "/store/verify"),
    ("pwa", "POST", "/api/put"),
    ("pwa", "POST", "/API/V1/Put"),
    ("pwa", "POST", "/api/rollup"),
    ("pwa", "POST", "/api/histogram"),
    ("rwa", "GET", "/api/query?start=1700000000&m=sum:m"),
    ("rwa", "POST", "/api/query"),
    ("rwa", "GET", "/api/query/last?timeseries=m"),
    ("rwa", "GET", "/api/query/gexp?start=1700000000&exp=scale(sum:m,1)"),
    ("rwa", "POST", "/api/query/exp"),
    ("a", "DELETE", "/api/query?start=1700000000&m=sum:m"),
    ("rwa", "GET", "/api/suggest?type=metrics"),
    ("rwa", "POST", "/api/suggest"),
    ("rwa", "GET", "/api/aggregators"),
    ("rwa", "GET", "/api/version"),
    ("rwa", "GET", "/api/config"),
    ("rwa", "GET", "/api/config/filters"),
    ("rwa", "GET", "/api/serializers"),
    ("rwa", "GET", "/api/status"),
    ("rwa", "GET", "/api/stats"),
    ("rwa", "GET", "/api/stats/query"),
    ("rwa", "GET", "/api/stats/jvm"),
    ("rwa", "GET", "/api/search/lookup?m=m"),
    ("rwa", "POST", "/api/search/lookup"),
    ("a", "GET", "/api/dropcaches"),
    ("rwa", "GET", "/api/annotation?start_time=1700000000"),
    ("pwa", "POST", "/api/annotation"),
    ("pwa", "PUT", "/api/annotation"),
    ("pwa", "DELETE", "/api/annotation"),
    ("pwa", "GET", "/api/annotation?start_time=1700000000&method_override=delete"),
    ("pwa", "POST", "/api/annotation/bulk"),
    ("rwa", "GET", "/api/annotations?start_time=1700000000"),
    ("pwa", "DELETE", "/api/annotations"),
    ("rwa", "GET", "/api/tree"),
    ("pwa", "POST", "/api/tree"),
    ("pwa", "GET", "/api/tree/rule?treeid=1&method_override=delete"),
    ("pwa", "GET", "/api/uid/assign?metric=n"),
    ("pwa", "POST", "/api/uid/assign"),
    ("pwa", "GET", "/api/uid/rename?metric=m&name=n"),
    ("rwa", "GET", "/api/uid/uidmeta?uid=000001&type=metric"),
    ("pwa", "POST", "/api/uid/uidmeta"),
    ("pwa", "GET", "/api/uid/tsmeta?tsuid=000001&method_override=post"),
    ("rwa", "GET", "/api/nosuch"),
];

/// The daemon that knows one name a role, and their tokens in the order of [`ROLES`].
pub(crate) fn with_tokens(folder: &Path, more: &str) -> (Daemon, Vec<String>) {
    let (mut file, mut tokens) = (String::new(), Vec::new());
    for role in ROLES {
        let made = run(&["token", role, role]);
        let printed = String::from_utf8(made.stdout).unwrap();
        let (token, line) = printed.split_once('\n').unwrap();
        tokens.push(token.to_owned());
        file += line.trim_end();
        file.push('\n');
    }
    std::fs::write(folder.join("tokens"), &file).unwrap();
    (with_file(folder, more), tokens)
}

fn with_file(folder: &Path, more: &str) -> Daemon {
    let file = folder.join("tokens");
    let config = format!("[server]\nauth_file = '{}'\nauth_reload_ms = 20\n{more}", file.display());
    Daemon::start(&folder.join("data"), "memory", &config)
}

fn ask(daemon: &Daemon, method: &str, path: &str, authorization: Option<&str>) -> Response {
    let mut headers = vec![("x-basalt-admin", "test")];
    headers.extend(authorization.map(|value| ("Authorization", value)));
    daemon.client().request(method, path, &headers, b"").unwrap()
}

/// Whoever may only read does not write by a method that is no endpoint's, however the path is spelled.
#[test]
fn heads_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    for slashes in ["/", "//"] {
        for path in [
            "api/annotation?start_time=1700000000&description=x",
            "api/annotations?start_time=1700000000&description=x",
            "api/uid/uidmeta?uid=000001&type=metric&notes=x",
            "api/uid/tsmeta?m=m{a=b}&create=true&description=x",
        ] {
            for (role, token) in ROLES.iter().zip(&tokens) {
                let bearer = format!("Bearer {token}");
                let target = format!("{slashes}{path}");
                let answer = daemon.client().request("HEAD", &target, &[("Authorization", &bearer)], b"").unwrap();
                assert_eq!(answer.status, 405, "{role} {target}");
            }
        }
    }
    let bearer = format!("Bearer {}", tokens[4]);
    let path = "/api/annotation?start_time=1700000000";
    let found = daemon.client().request("GET", path, &[("Authorization", &bearer)], b"").unwrap();
    assert_eq!(found.status, 404, "{}", found.text());
}

#[test]
fn p_auth_every_endpoint_is_for_the_roles_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let mut wrong = Vec::new();
    for (roles, method, path) in TABLE {
        let nobody = ask(&daemon, method, path, None);
        let unknown = ask(&daemon, method, path, Some("Bearer 00"));
        for (who, answer) in [("nobody", &nobody), ("unknown", &unknown)] {
            if (*roles == "*") != (answer.status == 200) || (*roles != "*") != (answer.status == 401) {
                wrong.push(format!("{method} {path} by {who}: {}", answer.status));
            }
        }
        for (role, token) in ROLES.iter().zip(&tokens) {
            let status = ask(&daemon, method, path, Some(&format!("Bearer {token}"))).status;
            let may = *roles == "*" || roles.contains(role.chars().next().unwrap());
            if may == matches!(status, 401 | 403) {
                wrong.push(format!("{method} {path} by {role}: {status}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn p_auth_a_delete_in_a_body_is_the_operators() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "[query]\nallow_delete = true\n");
    let bearer = |role: usize| format!("Bearer {}", tokens[role]);
    let put = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    let query = r#"{"start":1700000000,"end":1700000009,"queries":[{"aggregator":"sum","metric":"m"}],"delete":true}"#;
    let post = |path: &str, body: &str, role: usize| {
        let headers = [("Authorization", bearer(role)), ("Content-Type", "application/json".to_owned())];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        daemon.client().request("POST", path, &headers, body.as_bytes()).unwrap()
    };
    assert_eq!(post("/api/put", put, 2).status, 204);
    assert_eq!(post("/api/query", query, 3).status, 403);
    assert_eq!(post("/api/query", &query.replace("true", "false"), 3).json()[0]["dps"]["1700000000"], 1);
    assert_eq!(post("/api/query", query, 4).status, 200);
    assert_eq!(post("/api/query", query, 4).text(), "[]");
}

#[test]
fn p_auth_clients_show_tokens_as_they_can() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let refused = ask(&daemon, "GET", "/api/version", None);
    assert_eq!(refused.header("WWW-Authenticate"), Some("Basic realm=\"basalt\""));
    assert_eq!(refused.json()["error"]["code"], 401);
    let basic = |name: &str, token: &str| format!("Basic {}", STANDARD.encode(format!("{name}:{token}")));
    let status = |value: &str| ask(&daemon, "GET", "/api/version", Some(value)).status;
    assert_eq!(status(&basic("reader", &tokens[1])), 200);
    assert_eq!(status(&basic("writer", &tokens[1])), 401, "the name of another");
    assert_eq!(status(&format!("bearer {}", tokens[1])), 200);
    for broken in ["", "Bearer", "Basic", "Basic ====", "Basic cmVhZGVy", "Digest x", "Bearer \u{ff}"] {
        assert_eq!(status(broken), 401, "{broken}");
    }
}

/// `T-AUTH`.
#[test]
fn t_auth_telnet_shows_its_token_first() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let put = "put m 1700000000 1 a=b\n";
    assert_eq!(daemon.talk(&format!("version\n{put}auth x\n")), "AUTH_FAIL\r\nAUTH_FAIL\r\nAUTH_FAIL\r\n");
    let said = daemon.talk(&format!("auth putonly {}\n{put}nosuch\nstats\n", tokens[2]));
    let forbidden = "forbidden: the role of your token does not allow this\n";
    assert_eq!(said, format!("AUTH_SUCCESS\r\nunknown command: nosuch.  Try `help'.\n{forbidden}"));
    assert_eq!(
        daemon.talk(&format!("auth {}\n{put}dropcaches\n", tokens[1])),
        format!("AUTH_SUCCESS\r\n{forbidden}{forbidden}")
    );
    assert_eq!(daemon.talk(&format!("auth {}\ndropcaches\n", tokens[4])), "AUTH_SUCCESS\r\nCaches dropped.\n");
    let reader = format!("Bearer {}", tokens[1]);
    let stored = ask(&daemon, "GET", "/api/query?start=1699999999&end=1700000009&m=sum:m", Some(&reader));
    assert_eq!(stored.json()[0]["dps"]["1700000000"], 1);
}

/// Who was refused is counted, by door and by whether they were known; `O-STATS` has OpenTSDB's names for it.
#[test]
fn p_auth_refusals_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let (putter, reader) = (format!("Bearer {}", tokens[2]), format!("Bearer {}", tokens[1]));
    let query = "/api/query?start=1700000000&m=sum:m";
    assert_eq!(ask(&daemon, "GET", query, None).status, 401);
    assert_eq!(ask(&daemon, "GET", query, Some(&putter)).status, 403);
    assert_eq!(ask(&daemon, "GET", "/api/version", Some("Bearer 00")).status, 401);
    daemon.talk(&format!("auth x\nauth {}\nput m 1700000000 1 a=b\n", tokens[1]));
    let page = ask(&daemon, "GET", "/metrics", Some(&reader)).text();
    let stats = ask(&daemon, "GET", "/api/stats", Some(&reader)).json();
    let told = |name: &str, door: &str| {
        let stat = stats
            .as_array()
            .unwrap()
            .iter()
            .find(|stat| stat["metric"] == name && (door.is_empty() || stat["tags"]["type"] == door));
        stat.unwrap()["value"].as_str().unwrap().parse::<u64>().unwrap()
    };
    for (door, reason, count) in [
        ("http", "unauthorized", 2),
        ("http", "forbidden", 1),
        ("telnet", "unauthorized", 1),
        ("telnet", "forbidden", 1),
    ] {
        let line = format!("basalt_refused_total{{door=\"{door}\",reason=\"{reason}\"}} {count}");
        assert!(page.lines().any(|found| found == line), "{line}: {page}");
        assert_eq!(told(&format!("tsd.rpc.{reason}"), door), count);
    }
    assert_eq!((told("tsd.http.query.unauthorized", ""), told("tsd.http.query.forbidden", "")), (1, 1));
}

#[test]
fn p_auth_a_token_taken_away_lets_nobody_in_and_a_wrong_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let file = folder.path().join("tokens");
    let reader = format!("Bearer {}", tokens[1]);
    let until = |status: u16| {
        let end = std::time::Instant::now() + crate::http::TIMEOUT;
        while ask(&daemon, "GET", "/api/version", Some(&reader)).status != status {
            assert!(std::time::Instant::now() < end, "never {status}");
        }
    };
    // At once: a file that is empty for a moment has nobody in it.
    #[expect(clippy::disallowed_methods, reason = "no crash is to be survived here")]
    let replace = |text: &str| {
        let beside = folder.path().join("tokens.new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(&beside, &file).unwrap();
    };
    let text = std::fs::read_to_string(&file).unwrap();
    let others: String =
        text.lines().filter(|line| !line.starts_with("reader ")).fold(String::new(), |all, line| all + line + "\n");
    replace(&others);
    until(401);
    replace(&text);
    until(200);
    // An administrator's token outlives a file that is wrong.
    replace("who is this");
    let administrator = format!("Bearer {}", tokens[4]);
    for _ in 0..50 {
        assert_eq!(ask(&daemon, "GET", "/api/version", Some(&administrator)).status, 200);
    }
}

/// A token that is refused, and a file that changed, are lines of the log; a token never is.
#[test]
fn p_auth_the_log_tells_of_refused_tokens_and_changed_files() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    assert_eq!(ask(&daemon, "GET", "/api/version", Some("Bearer 5ec2e7")).status, 401);
    daemon.talk("auth 5ec2e7\n");
    let administrator = format!("Bearer {}", tokens[4]);
    let log = || ask(&daemon, "GET", "/logs", Some(&administrator)).text();
    let refused: Vec<String> =
        log().lines().filter(|line| line.contains("a token was refused")).map(str::to_owned).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|line| line.contains("\tWARN\t") && line.contains("peer=127.0.0.1:")), "{refused:?}");
    assert!(refused[1].contains("path=/api/version"), "{refused:?}");
    assert!(log().contains("roles were read and are in force"));
    let file = folder.path().join("tokens");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "# one line more\n").unwrap();
    let end = std::time::Instant::now() + crate::http::TIMEOUT;
    while !log().contains("roles were changed and are in force") {
        assert!(std::time::Instant::now() < end, "{}", log());
    }
    // Read again many times a second; said once.
    assert_eq!(log().matches("roles were read and").count(), 1);
    assert!(!log().contains("5ec2e7") && tokens.iter().all(|token| !log().contains(token.as_str())));
}

#[test]
fn p_auth_a_file_that_is_wrong_at_start_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "ann king x").unwrap();
    let mut command = Daemon::command(&folder.path().join("data"), "memory");
    let ended = command.env("BASALT_SERVER__AUTH_FILE", &file).output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        said.contains("tokens: line 1: `king` is no role: guest, reader, putonly, writer, administrator"),
        "{said}"
    );
}
