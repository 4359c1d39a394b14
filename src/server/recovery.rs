//! What a connection is told while the store is being opened: the log of the last run is replayed and the series index read, or a cluster
//! looked for.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::join;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::linger::linger;
use crate::config::{Config, StoreKind};
use crate::http::{body_of, not_open, not_ready};
use crate::stop::Stop;

/// How long one such connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the opening of a store waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The log of the last run is replayed, then the series index read.
    Replay,
    /// A cluster is asked where its parts are.
    Cluster,
}

impl Awaited {
    /// By these settings.
    pub(crate) fn of(config: &Config) -> Self {
        if config.store.kind == StoreKind::Hbase { Self::Cluster } else { Self::Replay }
    }

    /// For `/readyz`: its state and the reason.
    const fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::Replay => ("recovering", "the log of the last run is being replayed, or the series index read"),
            Self::Cluster => ("waiting", "the HBase cluster has not answered yet"),
        }
    }

    /// For everyone else: in few words, and in more.
    const fn message(self) -> (&'static str, &'static str) {
        match self {
            Self::Replay => (
                "Recovering",
                "The log of the last run is being replayed, or the series index read; ask again in a while",
            ),
            Self::Cluster => ("Waiting for HBase", "The HBase cluster has not answered yet; ask again in a while"),
        }
    }
}

/// Answers one HTTP request and closes: alive on `/healthz`, 503 on all else. The next connection may find the app.
pub(super) async fn refuse(stream: TcpStream, awaited: Awaited, mut stop: Stop) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false).title_case_headers(true);
    let service = service_fn(move |request: hyper::Request<Incoming>| async move {
        Ok::<_, Infallible>(answer(request.uri().path(), awaited))
    });
    let (mut reader, writer) = stream.into_split();
    let serving = builder.serve_connection(TokioIo::new(join(&mut reader, writer)), service);
    // Nobody is waited for any longer, and a broken connection is nobody's loss.
    if matches!(timeout(PATIENCE, serving).await, Ok(Ok(()))) {
        linger(&mut reader, &mut stop).await;
    }
}

fn answer(path: &str, awaited: Awaited) -> Response<Body> {
    let mut response = match path {
        "/healthz" => body_of("application/json; charset=UTF-8", json!({ "status": "ok" }).to_string()),
        "/readyz" => {
            let (status, reason) = awaited.reason();
            not_ready(&json!({ "status": status, "reason": reason }))
        }
        _ => {
            let (message, details) = awaited.message();
            not_open(message, details)
        }
    };
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::watch;

    use super::*;
    use crate::server::Server;

    async fn ask(port: u16, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        said
    }

    /// A load balancer learns that the daemon lives and is not ready, and why; a telnet sender is kept waiting.
    async fn check(kind: StoreKind, ready_says: &str, put_says: &str) {
        let mut config = Config::default();
        config.store.kind = kind;
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), 16).unwrap();
        let port = server.local().port();
        let (raise, stop) = watch::channel(false);
        let (_open, ready) = watch::channel(None);
        let running = tokio::spawn(server.run(config.server.clone(), Awaited::of(&config), ready, stop));
        for (path, status, text) in [
            ("/healthz", "200 OK", "\"status\":\"ok\""),
            ("/readyz", "503 Service Unavailable", ready_says),
            ("/api/put", "503 Service Unavailable", put_says),
        ] {
            let said = ask(port, path).await;
            assert!(said.starts_with(&format!("HTTP/1.1 {status}")) && said.contains(text), "{path}: {said}");
        }
        let mut telnet = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        telnet.write_all(b"version\n").await.unwrap();
        raise.send_replace(true);
        running.await.unwrap();
        assert_eq!(telnet.read(&mut [0]).await.unwrap_or(0), 0);
    }

    /// Its client would see a broken connection in place of the answer, and not know that it may come again.
    #[tokio::test]
    async fn who_sends_a_large_body_is_answered_too() {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), 16).unwrap();
        let port = server.local().port();
        let (raise, stop) = watch::channel(false);
        let (_open, ready) = watch::channel(None);
        let running = tokio::spawn(server.run(Config::default().server, Awaited::Replay, ready, stop));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let length = 8 << 20;
        let head = format!("POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; length]).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 503") && said.contains("Retry-After"), "{said}");
        raise.send_replace(true);
        running.await.unwrap();
    }

    #[tokio::test]
    async fn while_the_log_is_replayed_the_port_answers_that_it_is() {
        let reason = "\"reason\":\"the log of the last run is being replayed, or the series index read\"";
        check(StoreKind::Embedded, reason, "\"message\":\"Recovering\"").await;
    }

    #[tokio::test]
    async fn while_a_cluster_is_looked_for_the_port_answers_that_it_is() {
        let reason = "\"reason\":\"the HBase cluster has not answered yet\"";
        check(StoreKind::Hbase, reason, "\"message\":\"Waiting for HBase\"").await;
    }
}
