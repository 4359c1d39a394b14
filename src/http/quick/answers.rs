//! Answers to plain puts that another thread writes.
//!
//! An answer wakes its sender, which takes as long as reading its put does. Where one thread reads all small bodies it is busy all the
//! time then, while the processor beside it has nothing to do until the senders come again. So the thread of larger bodies, as
//! long as it has none, writes a part of the answers.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::timeout;

/// The half of a socket that answers go out by: here, or lent to the thread that writes the last answer.
#[derive(Debug)]
pub(super) struct Writer {
    half: Option<OwnedWriteHalf>,
    lent: Option<oneshot::Receiver<io::Result<OwnedWriteHalf>>>,
}

impl Writer {
    pub(super) fn new(half: OwnedWriteHalf) -> Self {
        Self { half: Some(half), lent: None }
    }

    /// The half, once the last answer is written.
    ///
    /// # Errors
    /// That answer could not be written, which ends the connection.
    pub(super) async fn half(&mut self) -> io::Result<&mut OwnedWriteHalf> {
        if let Some(lent) = self.lent.take() {
            self.half = Some(lent.await.map_err(io::Error::other)??);
        }
        self.half.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// As [`Writer::half`], for good.
    ///
    /// # Errors
    /// As [`Writer::half`].
    pub(super) async fn into_half(mut self) -> io::Result<OwnedWriteHalf> {
        self.half().await?;
        self.half.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Has an answer written by another thread. The peer must take the rest of it within `patience` each time it takes some.
    ///
    /// # Errors
    /// As [`Writer::half`].
    pub(super) async fn lend(&mut self, to: &Answerer, bytes: Bytes, patience: Duration) -> io::Result<()> {
        self.half().await?;
        if let Some(half) = self.half.take() {
            let (back, lent) = oneshot::channel();
            self.lent = Some(lent);
            to.take(Answer { half, bytes, patience, back });
        }
        Ok(())
    }
}

/// An answer on its way; with `back` its sender's connection gets the half again.
#[derive(Debug)]
struct Answer {
    half: OwnedWriteHalf,
    bytes: Bytes,
    patience: Duration,
    back: oneshot::Sender<io::Result<OwnedWriteHalf>>,
}

/// A thread that writes answers for another one.
#[derive(Debug)]
pub(super) struct Answerer {
    thread: Handle,
    waiting: Arc<Mutex<Waiting>>,
}

/// At most one answer for each connection of the thread that lends.
#[derive(Debug, Default)]
struct Waiting {
    answers: Vec<Answer>,
    /// Somebody is about to write them.
    is_served: bool,
}

impl Answerer {
    pub(super) fn new(thread: Handle) -> Self {
        Self { thread, waiting: Arc::default() }
    }

    fn take(&self, answer: Answer) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.answers.push(answer);
        if !std::mem::replace(&mut waiting.is_served, true) {
            drop(waiting);
            self.thread.spawn(write_waiting(Arc::clone(&self.waiting)));
        }
    }
}

/// Writes what waits, until nothing does: the thread is woken once for many answers.
async fn write_waiting(waiting: Arc<Mutex<Waiting>>) {
    let mut answers = Vec::new();
    loop {
        {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.answers.is_empty() {
                waiting.is_served = false;
                return;
            }
            std::mem::swap(&mut waiting.answers, &mut answers);
        }
        answers.drain(..).for_each(Answer::write);
        yield_now().await;
    }
}

impl Answer {
    fn write(self) {
        let Self { half, bytes, patience, back } = self;
        let rest = match try_write(&half, &bytes) {
            Ok(written) if written < bytes.len() => bytes.slice(written..),
            // Whoever lent the half may be gone; then it ends with what it was lent for.
            written => return drop(back.send(written.map(|_| half))),
        };
        tokio::spawn(async move {
            let written = write_all(&half, &rest, patience).await;
            back.send(written.map(|()| half))
        });
    }
}

/// Writes what the socket takes at once; gives how many bytes.
pub(super) fn try_write(half: &OwnedWriteHalf, bytes: &[u8]) -> io::Result<usize> {
    match half.try_write(bytes) {
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => Ok(0),
        written => written,
    }
}

/// Writes all of it. The peer has `patience` to take some, each time.
pub(super) async fn write_all(half: &OwnedWriteHalf, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        timeout(patience, half.writable()).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let written = try_write(half, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::tcp::OwnedReadHalf;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// More than a socket takes at once.
    const LARGE_BYTES: usize = 32 << 20;

    /// The writer of one end, its reader, and the other end.
    async fn connected() -> (Writer, OwnedReadHalf, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, writer) = stream.into_split();
        (Writer::new(writer), reader, peer)
    }

    fn answerer() -> Answerer {
        Answerer::new(Handle::current())
    }

    #[tokio::test]
    async fn what_is_lent_is_written_in_its_order_and_comes_back() {
        let (answerer, (mut writer, reader, mut peer)) = (answerer(), connected().await);
        for word in ["one ", "two "] {
            writer.lend(&answerer, word.into(), PATIENCE).await.unwrap();
        }
        write_all(writer.half().await.unwrap(), b"three", PATIENCE).await.unwrap();
        writer.lend(&answerer, " four".into(), PATIENCE).await.unwrap();
        drop(reader.reunite(writer.into_half().await.unwrap()).unwrap());
        let mut received = String::new();
        peer.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "one two three four");
    }

    #[tokio::test]
    async fn a_peer_that_takes_its_answer_slowly_keeps_nobody_else() {
        let answerer = answerer();
        let (mut slow, _slow_reader, mut slow_peer) = connected().await;
        let (mut quick, _quick_reader, mut quick_peer) = connected().await;
        slow.lend(&answerer, vec![1; LARGE_BYTES].into(), PATIENCE).await.unwrap();
        quick.lend(&answerer, "answer".into(), PATIENCE).await.unwrap();
        let mut answer = [0; 6];
        quick_peer.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
        let mut received = vec![0; LARGE_BYTES];
        slow_peer.read_exact(&mut received).await.unwrap();
        assert!(received.iter().all(|byte| *byte == 1));
        slow.half().await.unwrap();
    }

    #[tokio::test]
    async fn who_does_not_take_its_answer_is_given_up() {
        let (mut writer, _reader, _peer) = connected().await;
        writer.lend(&answerer(), vec![1; LARGE_BYTES].into(), Duration::from_millis(20)).await.unwrap();
        assert_eq!(writer.half().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(writer.half().await.is_err() && writer.into_half().await.is_err());
    }

    #[tokio::test]
    async fn a_sender_that_is_gone_keeps_no_other() {
        let answerer = answerer();
        let (mut gone, reader, peer) = connected().await;
        gone.lend(&answerer, "answer".into(), PATIENCE).await.unwrap();
        drop((gone, reader, peer));
        let (mut writer, _reader, mut peer) = connected().await;
        writer.lend(&answerer, "answer".into(), PATIENCE).await.unwrap();
        let mut answer = [0; 6];
        peer.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
    }
}
