//! Answers that are given before their request was read: the connection lives on, or the answer says that it does not.

use crate::auth::with_tokens;
use crate::daemon::Daemon;
use crate::http::Client;

const MIB: usize = 1 << 20;

fn head(path: &str, header: &str, bytes: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\n{header}Content-Length: {bytes}\r\n\r\n")
}

/// Asks with the head in a write of its own, as Python's `http.client` does. Sockets do not hold this body.
fn status_of(client: &mut Client, path: &str, header: &str) -> u16 {
    client.raw(head(path, header, 8 * MIB).as_bytes()).unwrap();
    client.raw(&vec![b' '; 8 * MIB]).unwrap();
    let told = client.read("POST").unwrap();
    assert_eq!(told.header("Connection"), None, "{path}");
    told.status
}

/// `P-AUTH`: a sender that must fetch a new token sees why.
#[test]
fn a_connection_lives_on_after_a_refusal_with_a_body() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let mut client = daemon.client();
    let header = |token: &str| format!("Authorization: Bearer {token}\r\n");
    for _ in 0..3 {
        assert_eq!(status_of(&mut client, "/api/put", ""), 401);
        assert_eq!(status_of(&mut client, "/api/query", &header(&tokens[0])), 403);
        assert_eq!(status_of(&mut client, "/api/nosuch", &header(&tokens[4])), 404);
        assert_eq!(status_of(&mut client, "/nosuch", &header(&tokens[4])), 404);
        assert_eq!(status_of(&mut client, "/api/histogram", &header(&tokens[4])), 503);
        assert_eq!(status_of(&mut client, "/api/version", &header(&tokens[4])), 200);
        assert_eq!(status_of(&mut client, "/metrics", &header(&tokens[4])), 405);
    }
    let many = format!("[{}]", " ".repeat(40));
    for _ in 0..200 {
        client.raw(head("/api/put", "", many.len()).as_bytes()).unwrap();
        client.raw(many.as_bytes()).unwrap();
        assert_eq!(client.read("POST").unwrap().status, 401);
    }
}

/// It is sent whole before the answer is looked for, with its length told and without.
#[test]
fn who_sends_all_of_a_body_that_is_too_large_is_told_so() {
    let daemon = Daemon::memory();
    for _ in 0..3 {
        let mut client = daemon.client();
        client.raw(head("/api/put", "", 100 * MIB).as_bytes()).unwrap();
        client.raw(&vec![b' '; 100 * MIB]).unwrap();
        let told = client.read("POST").unwrap();
        assert_eq!((told.status, told.header("Connection")), (413, Some("close")));
        assert!(client.read("POST").is_err(), "it is closed");
    }
    let mut client = daemon.client();
    let chunked = [("Transfer-Encoding", "chunked")];
    let told = client.request("POST", "/api/put", &chunked, &vec![b' '; 40 * MIB]).unwrap();
    assert_eq!((told.status, told.header("Connection")), (413, None));
    let told = client.request("POST", "/api/put", &chunked, &vec![b' '; 100 * MIB]).unwrap();
    assert_eq!((told.status, told.header("Connection")), (413, Some("close")));
}

/// Sockets do not hold what comes behind a head that is answered without a request.
#[test]
fn who_sends_on_behind_a_head_that_is_none_is_told_so() {
    let daemon = Daemon::memory();
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(MIB));
    for (head, status) in [(head("/ nothing", "", 32 * MIB), 400), (long, 431)] {
        let mut client = daemon.client();
        client.raw(head.as_bytes()).unwrap();
        client.raw(&vec![b' '; 32 * MIB]).unwrap();
        let told = client.read("POST").unwrap();
        assert_eq!((told.status, told.header("Connection")), (status, Some("close")));
        assert!(client.read("POST").is_err(), "it is closed");
    }
}

/// Nothing asks for the body of a request that is refused, or waits for what does not come.
#[test]
fn an_answer_whose_body_does_not_come_is_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, _tokens) = with_tokens(folder.path(), "");
    for (header, sent) in [("Expect: 100-continue\r\n", ""), ("", ""), ("", "[{")] {
        let mut client = daemon.client();
        client.raw((head("/api/put", header, 1000) + sent).as_bytes()).unwrap();
        let told = client.read("POST").unwrap();
        assert_eq!((told.status, told.header("Connection")), (401, Some("close")), "{header}{sent}");
        assert!(client.read("POST").is_err(), "it is closed");
    }
}

/// The end of a body that is none cannot be found.
#[test]
fn an_answer_to_a_broken_body_is_the_last() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    client.raw(b"POST /api/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").unwrap();
    let told = client.read("POST").unwrap();
    assert_eq!((told.status, told.header("Connection")), (400, Some("close")));
    assert!(client.read("POST").is_err(), "it is closed");
}

/// HTTP/1.0 may ask to keep a connection as well.
#[test]
fn an_older_client_is_told_one_thing() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    let head = "POST /nosuch HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 9\r\n\r\n";
    for (body, connection) in [("123456789", "keep-alive"), ("12345678", "close")] {
        client.raw(head.as_bytes()).unwrap();
        client.raw(body.as_bytes()).unwrap();
        let told = client.read("POST").unwrap();
        assert_eq!((told.status, told.header("Connection")), (404, Some(connection)));
    }
}

/// Who was asked for a body sends it.
#[test]
fn a_body_that_was_asked_for_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", "[http]\nmax_body_bytes = 100000\n");
    let mut client = daemon.client();
    let header = "Expect: 100-continue\r\nContent-Encoding: gzip\r\n";
    for _ in 0..3 {
        client.raw(head("/api/put", header, 90_000).as_bytes()).unwrap();
        assert_eq!(client.read("HEAD").unwrap().status, 100);
        client.raw(&vec![b'x'; 90_000]).unwrap();
        let told = client.read("POST").unwrap();
        assert_eq!((told.status, told.header("Connection")), (400, None), "{}", told.text());
    }
}

/// A server that ends does not listen to what a refused sender still has to say.
#[test]
fn a_connection_whose_last_answer_is_given_holds_up_no_end() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    client.raw(head("/api/put", "", 100 * MIB).as_bytes()).unwrap();
    assert_eq!(client.read("POST").unwrap().status, 413);
    let began = std::time::Instant::now();
    assert!(daemon.terminate().success());
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(client.read("POST").is_err());
}
