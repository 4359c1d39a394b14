//! Peers that hang up while their answer is made.
//!
//! Whoever closes the sending half of a connection looks like one who is gone, and may still read: `nc -N` and busybox's `nc` do so behind
//! their last byte. So only what costs much is given up for it, and that a moment later.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::io::ReadBuf;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::sleep;

/// How long somebody who sends no more is still taken for a reader.
const GRACE: Duration = Duration::from_secs(1);

/// The reading half of a socket. Locked for one poll at a time, by the task of its connection alone.
pub(super) type Shared = Arc<Mutex<OwnedReadHalf>>;

/// Polls the half with what `poll` does.
pub(super) fn with<T>(reader: &Shared, poll: impl FnOnce(Pin<&mut OwnedReadHalf>) -> T) -> T {
    poll(Pin::new(&mut *reader.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Ends when a peer has hung up; never while what it sent is not read, as the rest of a body or more requests.
pub(super) type HungUp = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Looks at a half of which somebody else reads.
pub(super) fn hung_up(reader: Shared) -> HungUp {
    Box::pin(async move {
        let mut first = [0];
        let mut peek = |context: &mut Context<'_>| {
            with(&reader, |mut reader| reader.poll_peek(context, &mut ReadBuf::new(&mut first)))
        };
        loop {
            match poll_fn(&mut peek).await {
                Ok(0) => return sleep(GRACE).await,
                Ok(_) => sleep(GRACE).await,
                Err(_) => return,
            }
        }
    })
}

/// Why there is no answer, or no more of it.
pub(super) fn nobody() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the peer hung up")
}

/// `answer`, which breaks off where the peer hangs up before all of it is made.
pub(super) fn watch(answer: Response, hung_up: HungUp) -> Response {
    answer.map(|body| Body::new(Watched { body, hung_up }))
}

struct Watched {
    body: Body,
    hung_up: HungUp,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        ready!(self.hung_up.as_mut().poll(context));
        Poll::Ready(Some(Err(axum::Error::new(nobody()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncRead as _, AsyncWriteExt as _};
    use tokio::net::tcp::OwnedWriteHalf;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    struct Endless;

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            Poll::Pending
        }
    }

    async fn ends() -> (TcpStream, Shared, OwnedWriteHalf) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (reader, writer) = listener.accept().await.unwrap().0.into_split();
        (client, Arc::new(Mutex::new(reader)), writer)
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_peer_waits_for_is_given_up_when_it_sends_no_more_and_not_when_it_asks_more() {
        const LONG: Duration = Duration::from_hours(1);
        let (mut client, reader, _writer) = ends().await;
        let mut answer = watch(Response::new(Body::new(Endless)), hung_up(Arc::clone(&reader)));
        assert!(timeout(LONG, answer.body_mut().frame()).await.is_err(), "it only waits");
        client.shutdown().await.unwrap();
        let ended = timeout(LONG, answer.body_mut().frame()).await.unwrap();
        assert_eq!(ended.unwrap().unwrap_err().to_string(), "the peer hung up");
        let (mut client, reader, _writer) = ends().await;
        client.write_all(b"GET").await.unwrap();
        client.shutdown().await.unwrap();
        let mut hung_up = hung_up(Arc::clone(&reader));
        assert!(timeout(LONG, hung_up.as_mut()).await.is_err(), "it asked for more");
        let mut read = [0; 3];
        let all = poll_fn(|context| with(&reader, |reader| reader.poll_read(context, &mut ReadBuf::new(&mut read))));
        all.await.unwrap();
        assert!(timeout(LONG, hung_up).await.is_ok(), "that was all");
    }
}
