//! An answer that is made on a thread of its own: found whole, and sent while it is written.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use basalt_query::{Cancel, QueryEngine};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::error::ApiError;
use super::json::{self, JSON};
use super::query::{CancelOnDrop, count_refusal};
use super::stream;
use crate::app::App;

/// Runs `work` as a query runs: with a seat, counted, and cancelled when the client hangs up. The answer is sent while it is written:
/// `write` hands pieces of what `work` found to its sink, which says whether anybody still reads, and gives back the last one; `None` when
/// nobody does. Until the first piece a failure is an answer of its own. A slow one is logged with its `path`.
///
/// # Errors
///
/// As `work`; 503 when all seats are taken; 500 if it panics.
pub(crate) async fn in_pieces<T: 'static>(
    app: Arc<App>,
    path: &'static str,
    work: impl FnOnce(&QueryEngine, &Cancel) -> basalt_query::Result<T> + Send + 'static,
    write: impl FnOnce(&T, &mut dyn FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> + Send + 'static,
) -> Result<Response, ApiError> {
    let outcome = begin(&app, path, work, write).await;
    if let Err(error) = &outcome {
        count_refusal(&app, error);
    }
    outcome.map(|body| json::body_of(JSON, body))
}

async fn begin<T: 'static>(
    app: &Arc<App>,
    path: &'static str,
    work: impl FnOnce(&QueryEngine, &Cancel) -> basalt_query::Result<T> + Send + 'static,
    write: impl FnOnce(&T, &mut dyn FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> + Send + 'static,
) -> Result<Body, ApiError> {
    let seat = app.seats.take().await.map_err(ApiError::overloaded)?;
    let cancel = Cancel::new();
    let guard = CancelOnDrop::new(cancel.clone());
    let (pieces, chunks) = stream::channel(app.config.server.idle_patience(), &app.seats, guard);
    let (said, heard) = oneshot::channel();
    let (of_the_thread, handle) = (Arc::clone(app), Handle::current());
    let thread = tokio::task::spawn_blocking(move || {
        let metrics = &of_the_thread.metrics;
        let began = Instant::now();
        let running = metrics.queries_running.hold();
        match work(of_the_thread.queries(), &cancel) {
            Ok(found) => {
                metrics.queries_ok.add(1);
                // What was found is held until the end is read.
                let sent = Sending { handle: &handle, said: Some(said), pieces }.send(|sink| write(&found, sink));
                if !sent {
                    metrics.queries_cancelled.add(1);
                }
            }
            Err(cause) => {
                if cancel.is_cancelled() {
                    metrics.queries_cancelled.add(1);
                }
                // A client that is gone hears nothing.
                said.send(Err(cause)).unwrap_or_default();
            }
        }
        drop(running);
        let took = began.elapsed();
        metrics.query_latency.record(took);
        if took >= of_the_thread.config.log.slow_query_ms {
            tracing::info!(took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX), path, "slow query");
        }
        drop(seat);
    });
    match heard.await {
        Ok(Ok(Some(whole))) => Ok(whole.into()),
        Ok(Ok(None)) => Ok(Body::new(chunks)),
        Ok(Err(cause)) => Err(ApiError::of_query(&cause, app.config.compat.strict)),
        // It panicked.
        Err(_) => {
            let cause = thread.await.err().map_or_else(String::new, |cause| cause.to_string());
            Err(ApiError::internal(cause))
        }
    }
}

/// What the thread says first: the answer whole, `None` where it comes in pieces, or why there is none.
type Said = oneshot::Sender<basalt_query::Result<Option<Vec<u8>>>>;

/// The sending side of an answer.
struct Sending<'a> {
    handle: &'a Handle,
    /// Until the first piece.
    said: Option<Said>,
    pieces: stream::Pieces,
}

impl Sending<'_> {
    /// Sends what `write` writes; `false` when nobody reads any more.
    fn send(self, write: impl FnOnce(&mut dyn FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>>) -> bool {
        let Self { handle, mut said, mut pieces } = self;
        let last = write(&mut |piece| {
            if let Some(said) = said.take() {
                said.send(Ok(None)).unwrap_or_default();
            }
            pieces.send(handle, piece)
        });
        match (said, last) {
            (Some(said), Some(whole)) => said.send(Ok(Some(whole))).is_ok(),
            (None, Some(last)) => {
                let sent = pieces.finish(handle, last);
                if sent {
                    pieces.until_read(handle);
                }
                sent
            }
            (_, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::config::{Config, StoreKind};
    use crate::seats::Seats;

    /// What a client gets of an answer whose pieces are these, and its end if it has one: whole, or the body's outcome.
    async fn sent(pieces: &'static [&str], last: Option<&'static str>) -> (Option<Vec<u8>>, Option<Vec<u8>>, bool) {
        let cancel = CancelOnDrop::new(Cancel::new());
        let (sender, chunks) = stream::channel(Duration::from_secs(9), &Arc::new(Seats::new(1, 1)), cancel);
        let (said, heard) = oneshot::channel();
        let handle = Handle::current();
        let thread = tokio::task::spawn_blocking(move || {
            let sending = Sending { handle: &handle, said: Some(said), pieces: sender };
            sending.send(|sink| {
                for piece in pieces {
                    sink(piece.as_bytes().to_vec()).then_some(())?;
                }
                last.map(|last| last.as_bytes().to_vec())
            })
        });
        let whole = heard.await.ok().and_then(Result::ok);
        let body = match whole {
            Some(None) => Body::new(chunks).collect().await.ok().map(|body| body.to_bytes().to_vec()),
            _ => None,
        };
        (whole.flatten(), body, thread.await.unwrap())
    }

    #[tokio::test]
    async fn a_query_that_panics_runs_no_more() {
        let mut config = Config::default();
        config.store.kind = StoreKind::Memory;
        let app = Arc::new(App::open(config).await.unwrap());
        let answer = in_pieces::<()>(Arc::clone(&app), "/x", |_, _| panic!("a test's"), |&(), _| None).await;
        assert_eq!(answer.unwrap_err().status().as_u16(), 500);
        assert_eq!(app.metrics.queries_running.get(), 0);
        assert!(app.seats.take().await.is_ok());
    }

    #[tokio::test]
    async fn an_answer_is_whole_or_in_pieces_and_breaks_where_it_has_no_end() {
        let text = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(sent(&[], Some("[]")).await, (text("[]"), None, true));
        assert_eq!(sent(&["[1", ",2"], Some("]")).await, (None, text("[1,2]"), true));
        assert_eq!(sent(&["[1", ",2"], None).await, (None, None, false));
        assert_eq!(sent(&[], None).await, (None, None, false));
    }
}
