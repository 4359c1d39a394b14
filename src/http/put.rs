//! `/api/put`, `/api/rollup`, `/api/histogram`: the body's points to `ingest`, its report back in OpenTSDB's words (`W-PUT-*`).
//!
//! A point is acknowledged when it is durable, whatever flags the request has: `sync` asks for what
//! is always given, and beside it `sync_timeout` bounds how long the client waits for it.

mod answer;

pub(crate) use answer::{Flags, PutAnswer};

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use basalt_ingest::{
    DatapointEcho, Door, HistogramEcho, Permit, PutReport, RawPoint, RollupEcho, Submission, decode_text,
    parse_histograms, parse_rollups,
};
use bytes::Bytes;
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::charset;
use super::error::{self, ApiError};
use super::params::Params;
use crate::app::App;

/// Takes points in.
pub(crate) async fn put(State(app): State<Arc<App>>, params: Params, request: Request) -> Result<Response, ApiError> {
    let bytes = read(&app, &params, request).await?;
    to_its_end(put_body(app, params, bytes)).await
}

async fn put_body(app: Arc<App>, params: Params, bytes: Bytes) -> Result<Response, ApiError> {
    let text = decode_text(&bytes);
    let points = app.ingest.parse_put(&text).map_err(|cause| refuse(&app, &cause))?;
    let flags = Flags::of(&params, app.config.compat.strict)?;
    let began = Instant::now();
    let known = app.ingest.submit_known(&points, Door::Http).map_err(|cause| ApiError::of_ingest(&cause))?;
    let submit = |permit| app.ingest.submit_permitted(&points, Door::Http, permit);
    let report = acknowledge(&app, flags, (began, known), (points.iter(), submit)).await?;
    app.publisher.points(&points, &report.errors);
    let echo = |index: usize| points.get(index).map(DatapointEcho);
    error::put_outcome(flags, &report, echo, &app.bodies, app.config.compat.strict)
}

/// Takes rollups and pre-aggregates in (`W-ROLLUP-HTTP`).
pub(crate) async fn rollup(
    State(app): State<Arc<App>>,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let bytes = read(&app, &params, request).await?;
    to_its_end(rollup_body(app, params, bytes)).await
}

async fn rollup_body(app: Arc<App>, params: Params, bytes: Bytes) -> Result<Response, ApiError> {
    let text = decode_text(&bytes);
    let rollups = parse_rollups(&text, app.ingest.limits()).map_err(|cause| refuse(&app, &cause))?;
    let flags = Flags::of(&params, app.config.compat.strict)?;
    let submit = |permit| app.ingest.submit_permitted_rollups(&rollups, Door::Http, permit);
    let points = rollups.iter().map(|rollup| &rollup.point);
    let report = acknowledge(&app, flags, (Instant::now(), None), (points, submit)).await?;
    let echo = |index: usize| rollups.get(index).map(RollupEcho);
    error::put_outcome(flags, &report, echo, &app.bodies, app.config.compat.strict)
}

/// Takes histograms in (`W-HISTO-HTTP`). Without a codec there are none, whatever the method.
pub(crate) async fn histogram(
    State(app): State<Arc<App>>,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    if app.config.schema.histograms.is_empty() {
        return Err(ApiError::no_histograms());
    }
    if request.method() != Method::POST {
        return Err(ApiError::method(request.method()));
    }
    let bytes = read(&app, &params, request).await?;
    to_its_end(histogram_body(app, params, bytes)).await
}

async fn histogram_body(app: Arc<App>, params: Params, bytes: Bytes) -> Result<Response, ApiError> {
    let text = decode_text(&bytes);
    let histograms = parse_histograms(&text, app.ingest.limits()).map_err(|cause| refuse(&app, &cause))?;
    let flags = Flags::of(&params, app.config.compat.strict)?;
    let submit = |permit| app.ingest.submit_permitted_histograms(&histograms, Door::Http, permit);
    let points = histograms.iter().map(|histogram| &histogram.point);
    let report = acknowledge(&app, flags, (Instant::now(), None), (points, submit)).await?;
    let echo = |index: usize| histograms.get(index).map(HistogramEcho);
    error::put_outcome(flags, &report, echo, &app.bodies, app.config.compat.strict)
}

/// Does what is to be done with a body that was read, also where its sender leaves meanwhile: what is stored is counted and
/// published.
async fn to_its_end(
    body: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
) -> Result<Response, ApiError> {
    match tokio::spawn(body).await {
        Ok(answer) => answer,
        // A panic is told as that of any handler.
        Err(failed) => std::panic::resume_unwind(failed.try_into_panic().unwrap_or_else(|failed| Box::new(failed))),
    }
}

/// Reads a body, and waits for room for its points, unless the sender says how long he waits.
async fn read(app: &App, params: &Params, request: Request) -> Result<Bytes, ApiError> {
    app.metrics.put_requests.add(1);
    let (parts, body) = request.into_parts();
    let bytes = charset::read(app, &parts.headers, body).await?;
    if !params.has("sync_timeout") {
        app.room.wait().await;
    }
    Ok(bytes)
}

/// A body that nothing was taken of.
fn refuse(app: &App, cause: &basalt_ingest::Error) -> ApiError {
    app.ingest.stats().refuse_body();
    ApiError::of_ingest(cause)
}

/// Hands a body's points over, unless they are, and waits for what becomes of them.
async fn acknowledge<'p, 't: 'p>(
    app: &App,
    flags: Flags,
    (began, known): (Instant, Option<Submission>),
    (points, submit): (impl ExactSizeIterator<Item = &'p RawPoint<'t>>, impl FnOnce(Permit) -> Submission),
) -> Result<PutReport, ApiError> {
    let mut submission = if let Some(submission) = known {
        submission
    } else {
        let refused = |cause: basalt_ingest::Error| ApiError::of_ingest(&cause);
        let count = points.len();
        // Under way from here on, as they take memory while they wait for a seat.
        let permit = app.ingest.permit_of(points, Door::Http).map_err(refused)?;
        // A new name is looked up and made in the tables, which blocks.
        let _seat = app.may_ask(count, Door::Http).await.map_err(refused)?;
        block_in_place(|| submit(permit))
    };
    let report = match flags.patience() {
        None => submission.await,
        Some(patience) => match timeout(patience, &mut submission).await {
            Ok(report) => report,
            Err(_) => submission.time_out(),
        },
    };
    note(app, began, &report);
    Ok(report)
}

/// Counts and logs a put that began then.
pub(crate) fn note(app: &App, began: Instant, report: &PutReport) {
    app.metrics.put_latency.record(began.elapsed());
    if let Some(first) = report.errors.first() {
        let (errors, reason) = (report.errors.len(), first.problem.http_text());
        tracing::debug!(stored = report.stored, errors, reason, "put with errors");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use axum::body::Body;

    use super::*;
    use crate::room::Room;

    /// `W-PUT-THROTTLE`: what waits for a seat takes memory.
    #[tokio::test(start_paused = true)]
    async fn w_put_throttle_puts_with_new_names_are_under_way_while_they_wait() {
        let app = Arc::new(App::in_memory(|_| {}).await);
        let mut seats = Vec::new();
        while let Ok(seat) = app.may_ask(0, Door::Http).await {
            seats.push(seat);
        }
        let point = r#"{"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"}}"#;
        let body = || Bytes::from(format!("[{point},{point}]"));
        let params = || Params::of(&"/api/put".parse().unwrap()).unwrap();
        let waits = [
            tokio::spawn(put_body(Arc::clone(&app), params(), body())),
            tokio::spawn(rollup_body(Arc::clone(&app), params(), body())),
            tokio::spawn(histogram_body(Arc::clone(&app), params(), body())),
        ];
        tokio::time::sleep(Duration::from_secs(1)).await;
        let under_way = app.ingest.levels();
        assert!(under_way.inflight_points == 6 && under_way.inflight_bytes > 0, "{under_way:?}");
        for wait in waits {
            assert_eq!(wait.await.unwrap().unwrap_err().status().as_u16(), 503);
        }
        assert_eq!(app.ingest.levels().inflight_points, 0);
    }

    /// `W-PUT-THROTTLE`: every put waits for room, but who says for how long does not.
    #[tokio::test(start_paused = true)]
    async fn w_put_throttle_puts_wait_for_room() {
        for (uri, left) in [("/api/put", 0), ("/api/put?sync&sync_timeout=5", 3)] {
            let mut app = App::in_memory(|_| {}).await;
            let (room, looks) = Room::after(3);
            app.room = room;
            let params = Params::of(&uri.parse().unwrap()).unwrap();
            let request = Request::post(uri).body(Body::from("[]")).unwrap();
            assert_eq!(read(&app, &params, request).await.unwrap(), "[]");
            assert_eq!(looks.load(Ordering::Relaxed), left, "{uri}");
        }
    }

    fn check(query: &str, strict: bool, told_and_waited: Option<(Option<u64>, Option<u64>)>) {
        let params = Params::of(&format!("/api/put?{query}").parse().unwrap()).unwrap();
        let found = Flags::of(&params, strict).ok().map(|flags| (flags.sync_timeout, flags.patience()));
        let millis = |time: Option<u64>| time.map(Duration::from_millis);
        assert_eq!(found, told_and_waited.map(|(told, waited)| (millis(told), millis(waited))), "{query}");
    }

    /// `W-PUT-SYNCTIMEOUT`: time-outs are told whenever they are asked for, and happen with `sync` alone.
    #[test]
    fn w_put_synctimeout_counts_with_sync() {
        check("sync&sync_timeout=5", false, Some((Some(5), Some(5))));
        check("sync_timeout=5", false, Some((Some(5), None)));
        check("sync_timeout=%2B5&sync=false", false, Some((Some(5), Some(5))));
        check("sync&sync_timeout=0", false, Some((None, None)));
        check("sync&sync_timeout=-5", true, Some((None, None)));
        check("sync&sync_timeout=", false, Some((None, None)));
        for broken in ["sync_timeout=x", "sync_timeout=99999999999", "sync_timeout=1&sync_timeout=1.5"] {
            check(broken, false, None);
        }
        check("sync_timeout=", true, None);
    }
}
