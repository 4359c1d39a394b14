//! An answer that is made whole on a thread of its own, before any of it is sent.

use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use basalt_query::{Cancel, QueryEngine};

use super::error::ApiError;
use super::json::{self, JSON};
use super::query::{CancelOnDrop, count_refusal};
use crate::app::App;

/// Runs `work` as a query runs: with a seat, counted, and cancelled when the client hangs up.
///
/// # Errors
///
/// As `work`; 503 when all seats are taken; 500 if it panics.
pub(crate) async fn answer(
    app: Arc<App>,
    work: impl FnOnce(&QueryEngine, &Cancel) -> basalt_query::Result<Vec<u8>> + Send + 'static,
) -> Result<Response, ApiError> {
    let outcome = run(&app, work).await;
    if let Err(error) = &outcome {
        count_refusal(&app, error);
    }
    outcome.map(|bytes| json::body_of(JSON, bytes))
}

async fn run(
    app: &Arc<App>,
    work: impl FnOnce(&QueryEngine, &Cancel) -> basalt_query::Result<Vec<u8>> + Send + 'static,
) -> Result<Vec<u8>, ApiError> {
    let seat = app.seats.take().await.map_err(ApiError::overloaded)?;
    let cancel = Cancel::new();
    let _guard = CancelOnDrop::new(cancel.clone());
    let of_the_thread = Arc::clone(app);
    let outcome = tokio::task::spawn_blocking(move || {
        let metrics = &of_the_thread.metrics;
        let began = Instant::now();
        metrics.queries_running.add(1);
        let outcome = work(of_the_thread.queries(), &cancel);
        metrics.queries_running.sub(1);
        metrics.query_latency.record(began.elapsed());
        match &outcome {
            Ok(_) => metrics.queries_ok.add(1),
            Err(_) if cancel.is_cancelled() => metrics.queries_cancelled.add(1),
            Err(_) => {}
        }
        drop(seat);
        outcome
    });
    let outcome = outcome.await.map_err(|cause| ApiError::internal(cause.to_string()))?;
    outcome.map_err(|cause| ApiError::of_query(&cause, app.config.compat.strict))
}
