//! `POST /store`: commands of the shell on the running daemon's store, for `basalt shell --url`.
//!
//! The body is whole commands as the shell reads them; `line` is the number of their first line, `json` and `epoch` are
//! the shell's styles. The answer is what the shell prints, then a NUL byte, the answer's last, and one JSON
//! object: `{"end": bool}`, or `{"exit": code, "failed": text}`. An answer without it is broken.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use basalt_query::Cancel;
use basalt_shell::{Next, Shell, Style};
use serde_json::json;
use tokio::runtime::Handle;

use super::admin::Admin;
use super::call::Call;
use super::content;
use super::error::ApiError;
use super::stream::{self, Pieces};
use crate::app::App;
use crate::exit::Failure;

/// Printed bytes that make a piece of the answer.
const PIECE_BYTES: usize = 32 * 1024;

/// Runs the commands and streams what they print.
pub(crate) async fn shell(_: Admin, State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let has = |name| call.params.last(name).is_some_and(|value| value != "false");
    let style = Style { json: has("json"), epoch: has("epoch") };
    let line = match call.params.last("line") {
        Some(line) => line.parse().map_err(|_| ApiError::bad("`line` is a line number"))?,
        None => 1,
    };
    printed(app, move |app, out| {
        let mut shell = Shell::new(app.store(), out, style).remote().at_line(line);
        let next = shell.feed(&call.body)?;
        shell.end()?;
        Ok(next == Next::End)
    })
    .await
}

/// As [`printed`], for work that tells a line when it is done.
pub(super) async fn told(
    app: Arc<App>,
    work: impl FnOnce(&App) -> Result<String, Failure> + Send + 'static,
) -> Result<Response, ApiError> {
    printed(app, |app, out| {
        out.buffer.extend(work(app)?.bytes());
        Ok(false)
    })
    .await
}

/// As [`told`], for work that has something to tell also where it fails.
pub(super) async fn told_anyway(
    app: Arc<App>,
    work: impl FnOnce(&App, &mut String) -> Result<(), Failure> + Send + 'static,
) -> Result<Response, ApiError> {
    printed(app, |app, out| {
        let mut text = String::new();
        let done = work(app, &mut text);
        out.buffer.extend(text.bytes());
        done.map(|()| false)
    })
    .await
}

/// Runs `work` with an operator's seat and streams what it prints, and at last whether the shell is to end, or how it failed.
///
/// # Errors
///
/// 503 when all seats are taken.
async fn printed(
    app: Arc<App>,
    work: impl FnOnce(&App, &mut Out) -> Result<bool, Failure> + Send + 'static,
) -> Result<Response, ApiError> {
    let seat = app.operators.take().await.map_err(ApiError::overloaded)?;
    let (pieces, body) = stream::channel(app.config.server.idle_patience(), &app.operators, Cancel::new());
    let mut out = Out { pieces, handle: Handle::current(), buffer: Vec::new() };
    tokio::task::spawn_blocking(move || {
        let told = match work(&app, &mut out) {
            Ok(end) => json!({"end": end}),
            Err(failure) => json!({"exit": failure.exit as u8, "failed": failure.line}),
        };
        out.finish(&told);
        drop(seat);
    });
    Ok(content::body_of("text/plain; charset=utf-8", Body::new(body)))
}

/// What is printed, on its way to the connection.
struct Out {
    pieces: Pieces,
    handle: Handle,
    buffer: Vec<u8>,
}

impl Out {
    fn finish(mut self, told: &serde_json::Value) {
        self.buffer.push(0);
        self.buffer.extend_from_slice(told.to_string().as_bytes());
        self.pieces.finish(&self.handle, self.buffer);
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES && !self.pieces.send(&self.handle, std::mem::take(&mut self.buffer)) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
