//! `/api/put`: the body's points to `ingest`, its report back in OpenTSDB's words (`W-PUT-*`).
//!
//! A point is acknowledged when it is durable, whatever flags the request has: `sync` asks for what
//! is always given, `sync_timeout` bounds how long the client waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::response::Response;
use basalt_ingest::{DatapointEcho, Door, PutReport, RawPoint, decode_text, parse_put};
use serde::Serialize;
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::body;
use super::error::{self, ApiError};
use super::params::Params;
use crate::app::App;

/// The flags of a put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    pub(crate) summary: bool,
    pub(crate) details: bool,
    /// How long to wait for durability; OpenTSDB waits only with `sync`, and tells time-outs without it too.
    pub(crate) sync_timeout: Option<Duration>,
}

impl Flags {
    fn of(params: &Params) -> Result<Self, ApiError> {
        let patience = match params.last("sync_timeout").filter(|text| !text.is_empty()) {
            Some(text) => {
                text.parse().map_err(|_| ApiError::bad("Unable to parse 'sync_timeout' as a number of milliseconds"))?
            }
            None => 0,
        };
        Ok(Self {
            summary: params.has("summary"),
            details: params.has("details"),
            sync_timeout: (patience > 0).then(|| Duration::from_millis(patience)),
        })
    }
}

/// Takes points in.
pub(crate) async fn put(State(app): State<Arc<App>>, params: Params, request: Request) -> Result<Response, ApiError> {
    app.metrics.put_requests.add(1);
    let flags = Flags::of(&params)?;
    let (parts, body) = request.into_parts();
    let (limit, patience) = (app.config.http.max_body_bytes, app.config.server.idle_timeout_ms);
    let bytes = body::read(&parts.headers, body, limit, patience).await?;
    let began = Instant::now();
    let text = decode_text(&bytes);
    let points = parse_put(&text, app.ingest.limits()).map_err(|cause| {
        app.ingest.stats().refuse_body();
        ApiError::of_ingest(&cause)
    })?;
    // A new name is looked up and made in the tables, which blocks.
    let submitted = block_in_place(|| app.ingest.submit(&points, Door::Http));
    let mut submission = submitted.map_err(|cause| ApiError::of_ingest(&cause))?;
    let report = match flags.sync_timeout {
        None => submission.await,
        Some(patience) => match timeout(patience, &mut submission).await {
            Ok(report) => report,
            Err(_) => submission.time_out(),
        },
    };
    app.metrics.put_latency.record(began.elapsed());
    app.publisher.points(&points, &report.errors);
    if let Some(first) = report.errors.first() {
        let (errors, reason) = (report.errors.len(), first.problem.http_text());
        tracing::debug!(stored = report.stored, errors, reason, "put with errors");
    }
    error::put_outcome(flags, &report, &points, app.config.compat.strict)
}

/// What `summary` and `details` give, member by member in OpenTSDB's order.
#[derive(Debug, Serialize)]
pub(crate) struct Told<'a> {
    success: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeouts: Option<u64>,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<ToldError<'a>>>,
}

#[derive(Debug, Serialize)]
struct ToldError<'a> {
    datapoint: Option<DatapointEcho<'a>>,
    error: String,
}

impl<'a> Told<'a> {
    /// `timed_out` of the report's failures ran out of time.
    pub(crate) fn new(flags: Flags, report: &PutReport, timed_out: u64, points: &'a [RawPoint<'a>]) -> Self {
        let errors = || {
            let told = report.errors.iter().map(|error| ToldError {
                datapoint: points.get(error.index).map(DatapointEcho),
                error: error.problem.http_text(),
            });
            told.collect()
        };
        Self {
            success: report.stored,
            timeouts: flags.sync_timeout.map(|_| timed_out),
            failed: report.rejected + report.failed - timed_out,
            errors: flags.details.then(errors),
        }
    }
}
