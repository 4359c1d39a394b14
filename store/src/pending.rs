//! An answer that comes later, the same for an engine of threads and a client of sockets.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::{Error, Result};

/// An answer under way: `.await` it in async code, [`Pending::wait`] for it on a thread.
///
/// Dropping it does not undo what was asked.
#[derive(Debug)]
#[must_use = "the answer says whether it was done"]
pub struct Pending<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    Ready(Option<Result<T>>),
    Waiting(oneshot::Receiver<Result<T>>),
}

/// The other end of a [`Pending`]: whoever does the work answers here. Dropped unanswered, it answers
/// [`Error::Closed`].
#[derive(Debug)]
pub struct Completer<T>(oneshot::Sender<Result<T>>);

impl<T> Completer<T> {
    /// Gives the answer. One that nobody waits for any longer is dropped.
    pub fn complete(self, answer: Result<T>) {
        // The asker may be gone; its answer is then nobody's.
        drop(self.0.send(answer));
    }
}

impl<T> Pending<T> {
    /// An answer that is here already.
    pub fn ready(answer: Result<T>) -> Self {
        Self(State::Ready(Some(answer)))
    }

    /// An answer to come, and the end that gives it.
    pub fn channel() -> (Completer<T>, Self) {
        let (sender, receiver) = oneshot::channel();
        (Completer(sender), Self(State::Waiting(receiver)))
    }

    /// Waits on this thread.
    ///
    /// # Errors
    /// The answer's own, or `Unavailable` when the store closed without one.
    ///
    /// # Panics
    /// On a thread that runs async tasks: there, `.await` it.
    pub fn wait(self) -> Result<T> {
        match self.0 {
            State::Ready(answer) => answer.unwrap_or(Err(Error::Closed)),
            State::Waiting(receiver) => receiver.blocking_recv().unwrap_or(Err(Error::Closed)),
        }
    }
}

impl<T: Unpin> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(Error::Closed))),
            State::Waiting(receiver) => Pin::new(receiver).poll(cx).map(|got| got.unwrap_or(Err(Error::Closed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_completer_is_an_answer() {
        let (completer, pending) = Pending::<u8>::channel();
        drop(completer);
        assert!(matches!(pending.wait(), Err(Error::Closed)));
        let (completer, pending) = Pending::channel();
        completer.complete(Ok(7));
        assert_eq!(pending.wait().unwrap(), 7);
    }
}
