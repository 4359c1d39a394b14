//! A body that a thread writes and a connection reads, with room for a few pieces between them.
//!
//! A reader that stops reading stops the writer; one that stays stopped too long loses the rest, and
//! its connection, so that a broken answer never looks like a whole one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::query::CancelOnDrop;

/// Pieces written and not yet read.
const PIECES_MAX: usize = 4;

enum Piece {
    Data(Bytes),
    /// Without it the answer is broken.
    End,
}

/// The writing side, on a thread.
#[derive(Debug)]
pub(crate) struct Pieces {
    sender: mpsc::Sender<Piece>,
    patience: Duration,
}

/// The reading side. Dropped, it cancels the query that fills it.
#[derive(Debug)]
pub(crate) struct Chunks {
    receiver: mpsc::Receiver<Piece>,
    ended: bool,
    _cancel: CancelOnDrop,
}

/// Both sides; `patience` is how long one piece may wait to be read.
pub(crate) fn channel(patience: Duration, cancel: CancelOnDrop) -> (Pieces, Chunks) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    (Pieces { sender, patience }, Chunks { receiver, ended: false, _cancel: cancel })
}

impl Pieces {
    /// Hands over a piece; `false` when nobody will read it.
    pub(crate) fn send(&mut self, handle: &Handle, piece: Vec<u8>) -> bool {
        self.put(handle, Piece::Data(piece.into()))
    }

    /// Hands over the last piece.
    pub(crate) fn finish(mut self, handle: &Handle, piece: Vec<u8>) {
        if self.send(handle, piece) {
            self.put(handle, Piece::End);
        }
    }

    fn put(&mut self, handle: &Handle, piece: Piece) -> bool {
        handle.block_on(self.put_within(piece))
    }

    async fn put_within(&self, piece: Piece) -> bool {
        matches!(timeout(self.patience, self.sender.send(piece)).await, Ok(Ok(())))
    }
}

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Piece::Data(piece))) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            Poll::Ready(Some(Piece::End)) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use basalt_query::Cancel;
    use http_body_util::BodyExt as _;

    use super::*;

    fn stream(patience: Duration) -> (Pieces, Chunks, Cancel) {
        let cancel = Cancel::new();
        let (pieces, chunks) = channel(patience, CancelOnDrop::new(cancel.clone()));
        (pieces, chunks, cancel)
    }

    /// Runs `write` on a thread that may block, as a query does.
    async fn write<T: Send + 'static>(write: impl FnOnce(&Handle) -> T + Send + 'static) -> T {
        let handle = Handle::current();
        tokio::task::spawn_blocking(move || write(&handle)).await.unwrap()
    }

    #[tokio::test]
    async fn a_finished_answer_is_whole_and_an_unfinished_one_breaks() {
        let (mut pieces, chunks, _) = stream(Duration::from_secs(9));
        write(move |handle| {
            assert!(pieces.send(handle, b"ab".to_vec()));
            pieces.finish(handle, b"c".to_vec());
        })
        .await;
        assert_eq!(Body::new(chunks).collect().await.unwrap().to_bytes(), "abc");
        let (mut pieces, chunks, _) = stream(Duration::from_secs(9));
        write(move |handle| assert!(pieces.send(handle, b"ab".to_vec()))).await;
        assert!(Body::new(chunks).collect().await.is_err());
    }

    /// `Q-TIMEOUT`: a client that hangs up ends its query.
    #[tokio::test]
    async fn a_dropped_body_cancels_and_stops_the_writer() {
        let (mut pieces, chunks, cancel) = stream(Duration::from_secs(9));
        assert!(!cancel.is_cancelled());
        drop(chunks);
        assert!(cancel.is_cancelled());
        assert!(!write(move |handle| pieces.send(handle, vec![1])).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stopped_loses_the_rest() {
        let (pieces, chunks, _) = stream(Duration::from_secs(60));
        let mut sent = 0;
        while pieces.put_within(Piece::Data(Bytes::from_static(b"x"))).await {
            sent += 1;
        }
        assert_eq!(sent, PIECES_MAX);
        drop(pieces);
        assert!(Body::new(chunks).collect().await.is_err());
    }
}
