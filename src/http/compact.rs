//! `POST /store/compact`: flush and major compaction of one table of the running daemon's store, for `basalt compact --url`.
//!
//! The body is the table's name. The answer is as `/store`'s, and comes when it is done. An empty body asks which tables are to be
//! compacted where none is named; they are told as by the shell's `list`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_store::TableName;
use serde_json::json;

use super::admin::Admin;
use super::call::Call;
use super::error::ApiError;
use super::store;
use crate::app::App;
use crate::store::{compacted, compacted_unless_told};

/// Compacts a table and tells how large it was and is.
pub(crate) async fn compact(_: Admin, State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    if call.body.is_empty() {
        return store::told(app, |app| {
            let tables = compacted_unless_told(app.store().as_ref(), app.open_store().schema_config())?;
            let lines: Vec<_> = tables.iter().map(|table| json!({"table": table.to_string()}).to_string()).collect();
            Ok(lines.join("\n"))
        })
        .await;
    }
    let name = call.line().and_then(|name| name.parse().ok());
    let table: TableName = name.ok_or_else(|| ApiError::bad("The body is a table's name"))?;
    store::told(app, move |app| compacted(app.store().as_ref(), &table)).await
}
