//! `POST /store/compact`: flush and major compaction of one table of the running daemon's store, for `basalt compact --url`.
//!
//! The body is the table's name. The answer is as `/store`'s, and comes when it is done.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_store::TableName;

use super::admin::Admin;
use super::call::Call;
use super::error::ApiError;
use super::store;
use crate::app::App;
use crate::store::compacted;

/// Compacts a table and tells how large it was and is.
pub(crate) async fn compact(_: Admin, State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let name = call.line().and_then(|name| name.parse().ok());
    let table: TableName = name.ok_or_else(|| ApiError::bad("The body is a table's name"))?;
    store::told(app, move |app| compacted(app.store().as_ref(), &table)).await
}
