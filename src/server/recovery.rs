//! What a connection is told while the store is being opened, which replays the log of the last run.

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
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::{body_of, not_ready, recovering};

/// How long one such connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers one HTTP request and closes: alive on `/healthz`, 503 on all else. The next connection may find the app.
pub(super) async fn refuse(stream: TcpStream) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false).title_case_headers(true);
    let serving = builder.serve_connection(TokioIo::new(stream), service_fn(answer));
    // Nobody is waited for any longer, and a broken connection is nobody's loss.
    drop(timeout(PATIENCE, serving).await);
}

async fn answer(request: hyper::Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let mut response = match request.uri().path() {
        "/healthz" => body_of("application/json; charset=UTF-8", json!({ "status": "ok" }).to_string()),
        "/readyz" => {
            not_ready(&json!({ "status": "recovering", "reason": "the log of the last run is being replayed" }))
        }
        _ => recovering(),
    };
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::watch;

    use super::*;
    use crate::config::Config;
    use crate::server::Server;

    async fn ask(port: u16, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        said
    }

    /// A load balancer learns that the daemon lives and is not ready; a telnet sender is kept waiting.
    #[tokio::test]
    async fn while_the_log_is_replayed_the_port_answers_that_it_is() {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), 16).unwrap();
        let port = server.local().port();
        let (raise, stop) = watch::channel(false);
        let (_open, ready) = watch::channel(None);
        let running = tokio::spawn(server.run(Config::default().server, ready, stop));
        for (path, status, text) in [
            ("/healthz", "200 OK", "\"status\":\"ok\""),
            ("/readyz", "503 Service Unavailable", "\"status\":\"recovering\""),
            ("/api/put", "503 Service Unavailable", "\"message\":\"Recovering\""),
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
}
