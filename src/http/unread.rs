//! Bodies that nobody had read to their end when their answer was there, such as that of a put without a token.
//!
//! OpenTSDB reads a request whole before it looks at it. Here hyper closes the connection over what it did not read, and the answer does
//! not say so: the next request on it is lost. So the rest is read and forgotten, or else the answer tells that it is the last.
//!
//! Bound: of the rest only a frame of the socket is in memory, whatever the pool of bodies holds.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, StatusCode, Version};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long an answer waits for the next piece of a body that only its connection needs.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long for all of them.
const TIME_MAX: Duration = Duration::from_secs(10);

/// What an answer needs to know of the body of its request.
#[derive(Debug)]
pub(super) struct Unread {
    /// None where there was no body.
    rest: Option<oneshot::Receiver<Rest>>,
    /// The sender waits to be asked for it.
    is_expecting: bool,
    version: Version,
}

/// A body that was given up.
#[derive(Debug)]
struct Rest {
    body: Incoming,
    /// Somebody began to read it.
    is_asked: bool,
    /// It was no body, such as a chunk without a length.
    is_broken: bool,
}

/// The same request; its body comes back when nobody wants more of it.
pub(super) fn lend(request: hyper::Request<Incoming>) -> (Request, Unread) {
    let mut unread =
        Unread { rest: None, is_expecting: request.headers().contains_key(EXPECT), version: request.version() };
    if request.body().is_end_stream() {
        return (request.map(Body::new), unread);
    }
    let (back, rest) = oneshot::channel();
    unread.rest = Some(rest);
    let lend =
        |body| Body::new(Lent { rest: Some(Rest { body, is_asked: false, is_broken: false }), back: Some(back) });
    (request.map(lend), unread)
}

impl Unread {
    /// Reads what is left of the body, if that is at most `bytes_max` and comes soon; else `response` says that it is the last.
    pub(super) async fn settle(self, bytes_max: usize, response: &mut Response) {
        // Empty, too, once it was read to its end.
        let rest = self.rest.and_then(|mut rest| rest.try_recv().ok());
        let Some(Rest { body, is_asked, is_broken }) = rest else { return };
        // To read a body is to ask for it.
        let is_unasked = self.is_expecting && !is_asked;
        // Who was kept waiting for it already has waited enough.
        let is_late = response.status() == StatusCode::REQUEST_TIMEOUT;
        let is_hopeless = is_unasked || is_late || is_broken;
        if is_hopeless || !timeout(TIME_MAX, forget(body, bytes_max)).await.unwrap_or_default() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            // To an answer of HTTP/1.1 on a connection that HTTP/1.0 asked to keep, hyper adds that it is kept.
            *response.version_mut() = self.version;
        }
    }
}

/// Whether `body` came to its end.
async fn forget(mut body: Incoming, bytes_max: usize) -> bool {
    let mut left = bytes_max as u64;
    while !body.is_end_stream() {
        if body.size_hint().lower() > left {
            return false;
        }
        match timeout(PAUSE_MAX, body.frame()).await {
            Ok(Some(Ok(frame))) => match left.checked_sub(frame.data_ref().map_or(0, Bytes::len) as u64) {
                Some(less) => left = less,
                None => return false,
            },
            Ok(None) => break,
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
    true
}

/// The body of a request, as its handler has it.
struct Lent {
    /// None behind its end.
    rest: Option<Rest>,
    back: Option<oneshot::Sender<Rest>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        rest.is_asked = true;
        let frame = ready!(Pin::new(&mut rest.body).poll_frame(context));
        match frame {
            Some(Ok(_)) => {}
            Some(Err(_)) => rest.is_broken = true,
            None if rest.is_broken => {}
            None => self.rest = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.as_ref().map_or(SizeHint::with_exact(0), |rest| rest.body.size_hint())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(rest), Some(back)) = (self.rest.take(), self.back.take())
            && !rest.body.is_end_stream()
        {
            // An answer that was given up, with its connection, waits for nothing.
            drop(back.send(rest));
        }
    }
}
