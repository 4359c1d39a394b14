//! An answer that is made on a thread of its own: found whole, and sent while it is written.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use basalt_query::{Cancel, Gate, QueryEngine};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::content::{self, JSON};
use super::error::ApiError;
use super::stream::{self, Pieces};
use crate::app::App;
use crate::seats::{QuerySeat, Seat};

/// Where an answer's pieces go; says whether anybody still reads.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Vec<u8>) -> bool;

/// Runs `work` as a query runs: with a seat, counted, and cancelled when the client hangs up. The answer is sent while it is written:
/// `write` hands pieces of what `work` found to its sink and gives back the last one; `None` when nobody reads any more. Until the first
/// piece a failure is an answer of its own. A slow one is logged with its `path`.
///
/// # Errors
///
/// As `work`; 503 when all seats are taken; 500 if it panics.
pub(crate) async fn in_pieces<T: 'static>(
    app: Arc<App>,
    path: &'static str,
    work: impl FnOnce(&QueryEngine, &Cancel) -> basalt_query::Result<T> + Send + 'static,
    write: impl FnOnce(&T, Sink<'_>) -> Option<Vec<u8>> + Send + 'static,
) -> Result<Response, ApiError> {
    let run = move |sending: &mut Sending<'_>| {
        match work(&sending.queries, sending.cancel) {
            Ok(found) => {
                // What was found is held until the end is read.
                if sending.send(|sink| write(&found, sink)) {
                    sending.until_read();
                }
            }
            Err(cause) => sending.refuse(ApiError::of_query(&cause, sending.app.config.compat.strict)),
        }
        if let Some(took_ms) = sending.slow_ms() {
            tracing::info!(took_ms, path, "slow query");
        }
    };
    let body = match app.seats.take().await {
        Ok(seat) => on_thread(&app, seat, run).await,
        Err(full) => Err(ApiError::overloaded(full)),
    };
    let body = body.inspect_err(|error| count_refusal(&app, error))?;
    Ok(content::body_of(JSON, body))
}

/// Counts a query that was not answered.
pub(super) fn count_refusal(app: &App, error: &ApiError) {
    let metrics = &app.metrics;
    match error.status().as_u16() {
        // A store that does not answer is one, too.
        _ if error.is_trouble() => metrics.queries_failed.add(1),
        503 => metrics.queries_shed.add(1),
        408 | 500.. => metrics.queries_failed.add(1),
        _ => metrics.queries_bad.add(1),
    }
}

/// Runs `work` on a thread of its own and gives the body that it sends. The seat is given back when the answer is read, so that slow
/// readers are bounded too.
///
/// # Errors
///
/// What `work` refuses with; 500 if it panics.
pub(super) async fn on_thread(
    app: &Arc<App>,
    seat: Seat,
    work: impl FnOnce(&mut Sending<'_>) + Send + 'static,
) -> Result<Body, ApiError> {
    let cancel = Cancel::new();
    let (pieces, chunks) = stream::channel(app.config.server.idle_patience(), &app.seats, cancel.clone());
    let (said, heard) = oneshot::channel();
    let (app, handle) = (Arc::clone(app), Handle::current());
    let thread = tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        let running = app.metrics.queries_running.hold();
        let seat = QuerySeat::new(&app.seats, seat, handle.clone(), &app.metrics.queries_running);
        let seat = Arc::new(seat);
        let queries = app.queries().behind(Arc::clone(&seat) as Arc<dyn Gate>);
        let said = Some(said);
        work(&mut Sending { app: &app, queries, cancel: &cancel, began, handle, seat: &seat, said, pieces });
        drop(running);
        app.metrics.query_latency.record(began.elapsed());
        drop(seat);
    });
    match heard.await {
        Ok(Ok(Some(whole))) => Ok(whole.into()),
        Ok(Ok(None)) => Ok(Body::new(chunks)),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            // It panicked, and runs no more when that is told.
            drop(thread.await);
            Err(ApiError::internal("The query ended without an answer; the log says more"))
        }
    }
}

/// The sending side of an answer, on the thread that makes it.
pub(super) struct Sending<'a> {
    pub(super) app: &'a App,
    /// Behind this query's own gate.
    pub(super) queries: QueryEngine,
    pub(super) cancel: &'a Cancel,
    began: Instant,
    handle: Handle,
    seat: &'a QuerySeat,
    /// Says first: the answer whole, `None` where it comes in pieces, or why there is none.
    said: Option<oneshot::Sender<Result<Option<Vec<u8>>, ApiError>>>,
    pieces: Pieces,
}

impl Sending<'_> {
    /// Sends what `write` hands to its sink and the last piece, which it gives back; `false` when nobody reads any more.
    pub(super) fn send(&mut self, write: impl FnOnce(Sink<'_>) -> Option<Vec<u8>>) -> bool {
        self.seat.has_read();
        self.app.metrics.queries_ok.add(1);
        let Self { handle, said, pieces, .. } = self;
        let last = write(&mut |piece| {
            if let Some(said) = said.take() {
                said.send(Ok(None)).unwrap_or_default();
            }
            pieces.send(handle, piece)
        });
        let sent = match (said.take(), last) {
            (Some(said), Some(whole)) => said.send(Ok(Some(whole))).is_ok(),
            (None, Some(last)) => pieces.finish(handle, last),
            (_, None) => false,
        };
        if !sent {
            self.app.metrics.queries_cancelled.add(1);
        }
        sent
    }

    /// Waits until all that was sent is read, as long as it may take.
    pub(super) fn until_read(&self) {
        self.pieces.until_read(&self.handle);
    }

    /// There is no answer. A client that is gone hears nothing.
    pub(super) fn refuse(&mut self, error: ApiError) {
        if self.cancel.is_cancelled() {
            self.app.metrics.queries_cancelled.add(1);
        }
        if let Some(said) = self.said.take() {
            said.send(Err(error)).unwrap_or_default();
        }
    }

    /// The milliseconds that it took, where they are to be logged.
    pub(super) fn slow_ms(&self) -> Option<u64> {
        let took = self.began.elapsed();
        let is_slow = took >= self.app.config.log.slow_query_ms;
        is_slow.then(|| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::HttpBody as _;
    use http_body_util::{BodyExt as _, Collected};

    use super::*;

    #[tokio::test]
    async fn a_query_that_panics_runs_no_more() {
        let app = Arc::new(App::in_memory(|_| {}).await);
        let answer = in_pieces::<()>(Arc::clone(&app), "/x", |_, _| panic!("a test's"), |&(), _| None).await;
        assert_eq!(answer.unwrap_err().status().as_u16(), 500);
        assert_eq!(app.metrics.queries_running.get(), 0);
        assert!(app.seats.take().await.is_ok());
    }

    #[tokio::test]
    async fn an_answer_is_whole_or_in_pieces_and_breaks_where_it_has_no_end() {
        let app = Arc::new(App::in_memory(|_| {}).await);
        let check = async |pieces: &'static [&str], last: Option<&'static str>, expected: Option<&str>| {
            let cancelled = app.metrics.queries_cancelled.get();
            let write = move |&(): &(), sink: Sink<'_>| {
                pieces.iter().all(|piece| sink(piece.as_bytes().to_vec())).then_some(())?;
                last.map(|last| last.as_bytes().to_vec())
            };
            let answer = in_pieces(Arc::clone(&app), "/x", |_, _| Ok(()), write).await;
            let body = answer.ok().map(Response::into_body);
            let is_whole = body.as_ref().is_some_and(|body| body.size_hint().exact().is_some());
            let text = match body {
                Some(body) => body.collect().await.ok().map(Collected::to_bytes),
                None => None,
            };
            assert_eq!(text.as_deref(), expected.map(str::as_bytes));
            assert_eq!(is_whole, expected.is_some() && pieces.is_empty(), "{expected:?}");
            let is_sent = app.metrics.queries_cancelled.get() == cancelled;
            assert_eq!(is_sent, expected.is_some(), "{expected:?}");
        };
        check(&[], Some("[]"), Some("[]")).await;
        check(&["[1", ",2"], Some("]"), Some("[1,2]")).await;
        check(&["[1", ",2"], None, None).await;
        check(&[], None, None).await;
    }
}
