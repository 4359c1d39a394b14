//! `POST /store/verify`: the running daemon proves its files, for `basalt verify --url`.
//!
//! The answer is as `/store`'s, and comes when it is done.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::admin::Admin;
use super::error::ApiError;
use super::store;
use crate::app::App;
use crate::store::scrubbed;

/// Proves every file but the log's, and tells which are damaged.
pub(crate) async fn scrub(_: Admin, State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let engine = app.open_store().engine().cloned();
    let engine = engine.ok_or_else(|| ApiError::bad("Only the embedded store has files to verify"))?;
    store::told_anyway(app, move |_, told| scrubbed(&engine, told)).await
}
