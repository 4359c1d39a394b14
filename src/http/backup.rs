//! `POST /store/backup`: a backup of the running daemon's store, for `basalt backup --url`.
//!
//! The body is the folder to write it into, an absolute path on the daemon's machine. The answer is as `/store`'s.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::admin::Admin;
use super::call::Call;
use super::error::ApiError;
use super::store;
use crate::app::App;
use crate::store::{backed_up, check_target, refused};

/// Takes a backup and tells how large it is.
pub(crate) async fn backup(_: Admin, State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    let target = call
        .line()
        .map(PathBuf::from)
        .filter(|target| target.is_absolute())
        .ok_or_else(|| ApiError::bad("The body is an absolute path on the server's machine"))?;
    let engine = app.open_store().engine().cloned();
    let engine = engine.ok_or_else(|| ApiError::bad("Only the embedded store can be backed up"))?;
    store::told(app, move |app| {
        check_target(&app.config, &target)?;
        let done = engine.backup(&target, &mut |_| {}).map_err(|cause| refused(&cause))?;
        Ok(backed_up(&done, &target))
    })
    .await
}
