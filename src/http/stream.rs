//! A body that a thread writes and a connection reads, with room for a few pieces between them.
//!
//! A reader that stops reading stops the writer; one that stays stopped too long loses the rest, and
//! its connection, so that a broken answer never looks like a whole one. Too long is much shorter when
//! somebody waits for the seat that the answer holds.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use basalt_query::Cancel;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::seats::Seats;

/// Pieces written and not yet read.
const PIECES_MAX: usize = 4;

/// How long one piece may wait to be read while somebody waits for the seat; a long one as long as it takes at this speed.
const CONTESTED_PATIENCE: Duration = Duration::from_secs(2);
const CONTESTED_BYTES_PER_SECOND_MIN: u64 = 128 << 10;

enum Piece {
    Data(Bytes),
    /// Without it the answer is broken.
    End,
}

/// The writing side, on a thread.
#[derive(Debug)]
pub(crate) struct Pieces {
    sender: mpsc::Sender<Piece>,
    /// Bytes of the longest piece so far: it may be what the next one waits for.
    longest: u64,
    patience: Duration,
    seats: Arc<Seats>,
}

/// The reading side. Dropped, it cancels the query that fills it.
#[derive(Debug)]
pub(crate) struct Chunks {
    receiver: mpsc::Receiver<Piece>,
    ended: bool,
    cancel: Cancel,
}

/// Both sides; `patience` is how long one piece may wait to be read while nobody waits for one of the seats.
pub(crate) fn channel(patience: Duration, seats: &Arc<Seats>, cancel: Cancel) -> (Pieces, Chunks) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    (Pieces { sender, longest: 0, patience, seats: Arc::clone(seats) }, Chunks { receiver, ended: false, cancel })
}

impl Pieces {
    /// Hands over a piece; `false` when nobody will read it.
    pub(crate) fn send(&mut self, handle: &Handle, piece: Vec<u8>) -> bool {
        self.put(handle, Piece::Data(piece.into()))
    }

    /// Hands over the last piece; `false` when nobody will read it.
    pub(crate) fn finish(&mut self, handle: &Handle, piece: Vec<u8>) -> bool {
        self.send(handle, piece) && self.put(handle, Piece::End)
    }

    /// Waits until all pieces are read, as long as it may take: whoever finished holds memory and a seat for them. What is read later is
    /// not lost.
    pub(crate) fn until_read(&self, handle: &Handle) {
        handle.block_on(self.read());
    }

    async fn read(&self) {
        // All places are free when the last piece is taken.
        drop(self.wait(self.sender.reserve_many(PIECES_MAX)).await);
    }

    fn put(&mut self, handle: &Handle, piece: Piece) -> bool {
        handle.block_on(self.put_within(piece))
    }

    async fn put_within(&mut self, piece: Piece) -> bool {
        if let Piece::Data(bytes) = &piece {
            self.longest = self.longest.max(bytes.len() as u64);
        }
        self.wait(self.sender.send(piece)).await.is_some_and(|sent| sent.is_ok())
    }

    /// Waits for what the reader does, as long as it may take; `None` where it takes longer.
    async fn wait<T>(&self, step: impl Future<Output = T>) -> Option<T> {
        let slowest = Duration::from_millis(self.longest * 1000 / CONTESTED_BYTES_PER_SECOND_MIN);
        let contested = CONTESTED_PATIENCE.max(slowest).min(self.patience);
        let mut step = pin!(step);
        // Fast path: the reader reads.
        if let Ok(done) = timeout(contested, step.as_mut()).await {
            return Some(done);
        }
        // Slow path: it does not, and keeps its place only while nobody else wants it.
        tokio::select! {
            done = step => Some(done),
            () = self.seats.wanted() => None,
            () = sleep(self.patience.saturating_sub(contested)) => None,
        }
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

impl Drop for Chunks {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt as _;

    use super::*;

    fn stream(patience: Duration) -> (Pieces, Chunks, Cancel) {
        let cancel = Cancel::new();
        let (pieces, chunks) = channel(patience, &Arc::new(Seats::new(1, 1)), cancel.clone());
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

    /// `Q-LIMIT`: an answer that is finished takes memory until its end is read, or for as long as one piece may wait.
    #[tokio::test(start_paused = true)]
    async fn who_finished_waits_for_the_end_to_be_read() {
        for reads in [true, false] {
            let (mut pieces, mut chunks, _) = stream(Duration::from_mins(1));
            for piece in [Piece::Data(Bytes::from_static(b"x")), Piece::End] {
                assert!(pieces.put_within(piece).await);
            }
            let began = tokio::time::Instant::now();
            let waiting = tokio::spawn(async move { pieces.read().await });
            for _ in 0..2 {
                sleep(Duration::from_secs(9)).await;
                assert!(!waiting.is_finished());
                assert!(!reads || chunks.frame().await.is_none_or(|piece| piece.is_ok()));
            }
            waiting.await.unwrap();
            assert_eq!(began.elapsed().as_secs(), if reads { 18 } else { 60 });
            let rest = Body::new(chunks).collect().await.unwrap().to_bytes();
            assert_eq!(rest, if reads { "" } else { "x" }, "what is read later is not lost");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stopped_loses_the_rest() {
        let (mut pieces, chunks, _) = stream(Duration::from_mins(1));
        let mut sent = 0;
        while pieces.put_within(Piece::Data(Bytes::from_static(b"x"))).await {
            sent += 1;
        }
        assert_eq!(sent, PIECES_MAX);
        drop(pieces);
        assert!(Body::new(chunks).collect().await.is_err());
    }

    /// `Q-TIMEOUT`: readers that stop must not keep all others from asking.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stopped_loses_its_seat_to_one_who_waits() {
        let seats = Arc::new(Seats::new(1, 1));
        let (mut pieces, _chunks) = channel(Duration::from_hours(1), &seats, Cancel::new());
        let seat = seats.take().await.unwrap();
        let began = tokio::time::Instant::now();
        let writing = tokio::spawn(async move {
            while pieces.put_within(Piece::Data(Bytes::from_static(b"x"))).await {}
            drop(seat);
        });
        assert!(seats.take().await.is_ok());
        writing.await.unwrap();
        assert!(began.elapsed() <= CONTESTED_PATIENCE + Duration::from_secs(1), "{:?}", began.elapsed());
    }

    /// One that reads, if slowly, keeps its seat.
    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_of_long_pieces_gets_all_of_them_while_somebody_waits() {
        let seats = Arc::new(Seats::new(1, 1));
        let (mut pieces, mut chunks) = channel(Duration::from_hours(1), &seats, Cancel::new());
        let _seat = seats.take().await.unwrap();
        let waiting = Arc::clone(&seats);
        // Who was sent away comes again.
        let waits = tokio::spawn(async move { while waiting.take().await.is_err() {} });
        let piece = Bytes::from(vec![0; 512 << 10]);
        // Longer than a piece of no bytes may wait, as the last ones wait for this one.
        let seconds_a_piece = piece.len() as u64 / (2 * CONTESTED_BYTES_PER_SECOND_MIN) + 1;
        assert!(seconds_a_piece > CONTESTED_PATIENCE.as_secs());
        let reading = tokio::spawn(async move {
            while !chunks.ended {
                sleep(Duration::from_secs(seconds_a_piece)).await;
                assert!(chunks.frame().await.is_none_or(|frame| frame.is_ok()));
            }
        });
        for _ in 0..2 * PIECES_MAX {
            assert!(pieces.put_within(Piece::Data(piece.clone())).await);
        }
        assert!(pieces.put_within(Piece::Data(Bytes::from_static(b"]"))).await && pieces.put_within(Piece::End).await);
        reading.await.unwrap();
        waits.abort();
    }
}
