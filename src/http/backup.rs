//! `POST /store/backup`: a backup of the running daemon's store, for `basalt backup --url`.
//!
//! The body is the folder to write it into, an absolute path on the daemon's machine. The answer is as `/store`'s.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use basalt_query::Cancel;
use serde_json::json;
use tokio::runtime::Handle;

use super::admin::Admin;
use super::call::Call;
use super::error::ApiError;
use super::store::Out;
use super::stream;
use crate::app::App;
use crate::cli::backed_up;
use crate::store::{check_target, refused};

/// Takes a backup and tells how large it is.
pub(crate) async fn backup(_: Admin, State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let target = std::str::from_utf8(&call.body).ok().map(|path| PathBuf::from(path.trim_end_matches('\n')));
    let target = target
        .filter(|target| target.is_absolute())
        .ok_or_else(|| ApiError::bad("The body is an absolute path on the server's machine"))?;
    let engine = app.engine().ok_or_else(|| ApiError::bad("Only the embedded store can be backed up"))?;
    let seat = app.operators.take().await.map_err(ApiError::overloaded)?;
    let (pieces, body) = stream::channel(app.config.server.idle_patience(), &app.operators, Cancel::new());
    let handle = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut out = Out::new(pieces, handle);
        let told = take(&app, &engine, &target, &mut out);
        out.finish(&told);
        drop(seat);
    });
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], axum::body::Body::new(body)).into_response())
}

fn take(app: &App, engine: &basalt_engine::Engine, target: &Path, out: &mut Out) -> serde_json::Value {
    let done = check_target(&app.config, target)
        .and_then(|()| engine.backup(target, &mut |_| {}).map_err(|cause| refused(&cause)));
    match done {
        Ok(done) => {
            // Into memory: it cannot fail.
            out.write_all(backed_up(&done, target).as_bytes()).unwrap_or_default();
            json!({"end": false})
        }
        Err(failure) => json!({"exit": failure.exit as u8, "failed": failure.line}),
    }
}
