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
        let sending = async { timeout(self.patience, self.sender.send(piece)).await };
        matches!(handle.block_on(sending), Ok(Ok(())))
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
