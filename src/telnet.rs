//! Telnet: OpenTSDB's line protocol on the shared port.
//!
//! ```text
//! socket ─ lines ─ runs of puts ─ ingest, one durable batch a run ─ error lines
//!                └ any other command ─ after the run before it ─ reply
//! ```
//!
//! Invariants. A reply to any later command is written only after every put before it is durable,
//! so a client may use `version` as a barrier. While a batch is being stored nothing is read, which
//! pushes back on a fast sender. A peer that never reads its error lines loses them, never its puts.

mod command;
mod lines;
mod put;
pub(crate) mod reply;
mod session;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::app::App;
use crate::stop::Stop;

pub(crate) use put::{PutKind, put_lines, put_points};

/// Serves one connection to its end.
pub(crate) async fn serve(app: &Arc<App>, stream: TcpStream, peer: SocketAddr, stop: Stop) {
    if let Err(cause) = session::Session::new(Arc::clone(app), stream).run(stop).await {
        tracing::debug!(%peer, %cause, "telnet connection ended");
    }
}
