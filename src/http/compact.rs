//! `POST /store/compact`: flush and major compaction of one table of the running daemon's store, for `basalt compact --url`.
//!
//! The body is the table's name. The answer is as `/store`'s, and comes when it is done.

use std::io::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use basalt_query::Cancel;
use basalt_store::TableName;
use serde_json::json;
use tokio::runtime::Handle;

use super::admin::Admin;
use super::call::Call;
use super::error::ApiError;
use super::store::Out;
use super::stream;
use crate::app::App;
use crate::cli::compacted;

/// Compacts a table and tells how large it was and is.
pub(crate) async fn compact(_: Admin, State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let name = std::str::from_utf8(&call.body).ok().and_then(|name| name.trim_end_matches('\n').parse().ok());
    let table: TableName = name.ok_or_else(|| ApiError::bad("The body is a table's name"))?;
    let seat = app.operators.take().await.map_err(ApiError::overloaded)?;
    let (pieces, body) = stream::channel(app.config.server.idle_patience(), &app.operators, Cancel::new());
    let handle = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut out = Out::new(pieces, handle);
        let told = match compacted(app.store().as_ref(), &table) {
            Ok(line) => {
                // Into memory: it cannot fail.
                out.write_all(line.as_bytes()).unwrap_or_default();
                json!({"end": false})
            }
            Err(failure) => json!({"exit": failure.exit as u8, "failed": failure.line}),
        };
        out.finish(&told);
        drop(seat);
    });
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], axum::body::Body::new(body)).into_response())
}
