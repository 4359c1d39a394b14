//! `POST /store`: commands of the shell on the running daemon's store, for `basalt shell --url`.
//!
//! The body is whole commands as the shell reads them; `line` is the number of their first line, `json` and `epoch` are
//! the shell's styles. The answer is what the shell prints, then a NUL byte, the answer's last, and one JSON
//! object: `{"end": bool}`, or `{"exit": code, "failed": text}`. An answer without it is broken.

use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use basalt_query::Cancel;
use basalt_shell::{Next, Shell, Style};
use serde_json::json;
use tokio::runtime::Handle;

use super::admin::Admin;
use super::call::Call;
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
    let seat = app.operators.take().await.map_err(ApiError::overloaded)?;
    let (pieces, body) = stream::channel(app.config.server.idle_patience(), &app.operators, Cancel::new());
    let handle = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut out = Out::new(pieces, handle);
        let told = {
            let mut shell = Shell::new(app.store(), &mut out, style).remote().at_line(line);
            let ran = shell.feed(&call.body).and_then(|next| shell.end().map(|()| next));
            match ran {
                Ok(next) => json!({"end": next == Next::End}),
                Err(failed) => {
                    let failure = Failure::from(failed);
                    json!({"exit": failure.exit as u8, "failed": failure.line})
                }
            }
        };
        out.finish(&told);
        drop(seat);
    });
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], axum::body::Body::new(body)).into_response())
}

/// What the shell prints, on its way to the connection.
pub(super) struct Out {
    pieces: Pieces,
    handle: Handle,
    buffer: Vec<u8>,
}

impl Out {
    pub(super) fn new(pieces: Pieces, handle: Handle) -> Self {
        Self { pieces, handle, buffer: Vec::new() }
    }

    pub(super) fn finish(mut self, told: &serde_json::Value) {
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
