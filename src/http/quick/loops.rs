//! The threads that plain puts are served on, each with a scheduler of its own.
//!
//! A thread takes what its connections have sent, hands all of it to the store, has it applied and then makes it durable itself: one
//! sync for all of them, and no other thread is woken for it. On the threads that serve everything else a request would wake
//! the log's thread and be woken by it. A thread that waits for the disk keeps nobody waiting but senders who wait for
//! the same disk.
//!
//! Senders of small bodies wait for the disk most of the time, so that many of them share a thread and with it each sync. Bodies of some
//! hundred points keep a thread busy: their senders are shared out among all threads, which then read and apply at the same time. While
//! there are few of them they stay together, too: the senders are there to fill the time of a sync, and each change of threads takes more
//! than a tenth of what reading does. Larger bodies yet are served where everything else is.
//!
//! Where there is one thread of small bodies alone, the thread of larger ones answers for it while it has none ([`answers`](super::answers)).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use basalt_store::Lane;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::answers::Answerer;
use super::turn::{Bodies, TOGETHER, Turn};
use super::{Ended, serve};
use crate::app::App;
use crate::stop::Stop;
use crate::threads;

/// The threads; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Loops {
    all: Vec<Loop>,
    /// The first so many take senders of small bodies.
    small: usize,
}

#[derive(Debug)]
struct Loop {
    handle: Handle,
    turn: Arc<Turn>,
    /// The thread ends when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Loops {
    /// Starts so many threads; 0 stands for one a processor. None are started where the system has no room for them: everything is
    /// served elsewhere then.
    pub(crate) fn start(count: usize) -> Self {
        let count = if count > 0 { count } else { threads::processors() };
        // The last one is for larger bodies alone: many threads of small ones cost more than they win.
        let small = (count - 1).max(1);
        let all = Self::start_all(count, small).unwrap_or_else(|cause| {
            tracing::warn!(%cause, "cannot start the threads of plain puts");
            Vec::new()
        });
        Self { all, small }
    }

    fn start_all(count: usize, small: usize) -> io::Result<Vec<Loop>> {
        let open_of_all = Arc::default();
        let mut all: Vec<Loop> = Vec::new();
        // From the last one on: it answers for the only one of small bodies.
        for lane in (0..=u16::MAX).map(Lane).take(count).rev() {
            let answers = all.first().filter(|_| small == 1);
            let answers = answers.map(|last| (Answerer::new(last.handle.clone()), Arc::clone(&last.turn)));
            all.insert(0, Loop::start(Turn::new(lane, Arc::clone(&open_of_all), small == 1, answers))?);
        }
        Ok(all)
    }

    /// Answers plain puts on a connection until something else comes, the peer leaves, or `stop` is raised.
    pub(crate) async fn serve(&self, app: &Arc<App>, stream: TcpStream, stop: &Stop) -> Ended<TcpStream> {
        let (mut received, mut stream) = (Vec::new(), stream);
        for bodies in [Bodies::Small, Bodies::Larger] {
            let Some(place) = self.place(bodies) else { return Ended::HandOver(received, stream) };
            match place.serve(app, (received, stream), stop, bodies).await {
                Ok(Ended::Large(rest, socket)) => (received, stream) = (rest, socket),
                Ok(ended) => return ended,
                Err(cause) => {
                    tracing::debug!(%cause, "plain puts ended");
                    return Ended::Closed;
                }
            }
        }
        serve(app, (received, stream), stop.clone(), None).await
    }

    /// Where a sender is served.
    fn place(&self, bodies: Bodies) -> Option<&Loop> {
        let open = |place: &&Loop| place.turn.open.load(Ordering::Relaxed);
        let small = self.all.iter().take(self.small);
        match bodies {
            Bodies::Small => small.clone().find(|place| open(place) < TOGETHER).or_else(|| small.min_by_key(open)),
            Bodies::Larger => self.all.iter().min_by_key(open),
        }
    }
}

impl Loop {
    fn start(turn: Turn) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        // An error is the news that the sender is gone.
        let run = move || runtime.block_on(ended).unwrap_or_default();
        std::thread::Builder::new().name("basalt-put".to_owned()).spawn(run)?;
        Ok(Self { handle, turn: Arc::new(turn), _end: end })
    }

    async fn serve(
        &self,
        app: &Arc<App>,
        (received, stream): (Vec<u8>, TcpStream),
        stop: &Stop,
        bodies: Bodies,
    ) -> io::Result<Ended<TcpStream>> {
        let (app, stream) = (Arc::clone(app), stream.into_std()?);
        let (stop, turn) = (stop.clone(), Arc::clone(&self.turn));
        let _here = (Counted::new(&self.turn.open), Counted::new(&self.turn.open_of_all));
        let serving = self.handle.spawn(async move {
            let stream = TcpStream::from_std(stream)?;
            serve(&app, (received, stream), stop, Some((&turn, bodies))).await.with(TcpStream::into_std)
        });
        serving.await.map_err(io::Error::other)??.with(TcpStream::from_std)
    }
}

/// One more, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::quick::turn::LENDS_FROM;

    #[test]
    fn half_of_a_large_push_is_answered_by_the_thread_of_larger_bodies_while_it_has_none() {
        let loops = Loops::start(2);
        let [small, larger] = [0, 1].map(|place| &loops.all[place].turn);
        let lent = |turn: &Turn, count: usize| {
            turn.submitted.store(count, Ordering::Relaxed);
            turn.share_answers();
            (0..count).map(|_| turn.answerer().is_some()).collect::<Vec<_>>()
        };
        assert_eq!(lent(small, LENDS_FROM - 1), [false; LENDS_FROM - 1]);
        assert_eq!(lent(small, LENDS_FROM), [[true; LENDS_FROM / 2], [false; LENDS_FROM / 2]].concat());
        assert!(small.answerer().is_none(), "nothing more was submitted");
        assert_eq!(lent(larger, LENDS_FROM), [false; LENDS_FROM]);
        larger.open.store(1, Ordering::Relaxed);
        assert_eq!(lent(small, LENDS_FROM), [false; LENDS_FROM]);
        for count in [1, 3] {
            assert!(Loops::start(count).all.iter().all(|place| place.turn.answers.is_none()), "{count}");
        }
    }

    #[test]
    fn a_sender_gets_a_thread_that_takes_its_bodies() {
        let place = |loops: &Loops, bodies| loops.place(bodies).map(|place| place.turn.lane.0);
        let fill =
            |loops: &Loops, lane: u16, open| loops.all[usize::from(lane)].turn.open.store(open, Ordering::Relaxed);
        let loops = Loops::start(3);
        assert_eq!((place(&loops, Bodies::Small), place(&loops, Bodies::Larger)), (Some(0), Some(0)));
        fill(&loops, 0, TOGETHER - 1);
        assert_eq!((place(&loops, Bodies::Small), place(&loops, Bodies::Larger)), (Some(0), Some(1)));
        fill(&loops, 0, TOGETHER);
        fill(&loops, 1, 1);
        assert_eq!((place(&loops, Bodies::Small), place(&loops, Bodies::Larger)), (Some(1), Some(2)));
        fill(&loops, 1, TOGETHER + 1);
        assert_eq!(place(&loops, Bodies::Small), Some(0), "the third is for larger bodies alone");
        let loops = Loops::start(1);
        fill(&loops, 0, 100);
        assert_eq!((place(&loops, Bodies::Small), place(&loops, Bodies::Larger)), (Some(0), Some(0)));
    }
}
