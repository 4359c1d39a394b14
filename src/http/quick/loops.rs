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

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use basalt_store::Lane;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::yield_now;

use super::{Ended, serve};
use crate::app::App;
use crate::server::Stop;

/// Senders of small bodies on a thread before the next one gets any.
const TOGETHER: usize = 8;

/// Up to so many bytes a body is small: reading its points takes less than a sync of the log.
const SMALL_BYTES_MAX: usize = 32 << 10;

/// Up to so many bytes a body is read on these threads.
const LARGER_BYTES_MAX: usize = 256 << 10;

/// How often all that have something to do are given a turn before a push: who was answered by the last one is about to send
/// again, and comes while others' puts are read.
const TURNS: usize = 3;

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
    /// Its connections. Relaxed: new ones are dealt out by them, roughly.
    open: AtomicUsize,
    /// The thread ends when it is dropped.
    _end: oneshot::Sender<()>,
}

/// Which bodies a connection may bring to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bodies {
    /// Small ones, and larger ones where they would go to no other thread or are few.
    Small,
    /// Those of some hundred points, too.
    Larger,
}

impl Loops {
    /// Starts so many threads; 0 stands for one a processor. None are started where the system has no room for them: everything is
    /// served elsewhere then.
    pub(crate) fn start(count: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if count > 0 { count } else { processors };
        // The last one is for larger bodies alone: many threads of small ones cost more than they win.
        let small = (count - 1).max(1);
        let open = Arc::default();
        let lanes = (0..=u16::MAX).map(Lane).take(count);
        let started = lanes.map(|lane| Loop::start(Turn::new(lane, Arc::clone(&open), small == 1)));
        let all = started.collect::<io::Result<_>>().unwrap_or_else(|cause| {
            tracing::warn!(%cause, "cannot start the threads of plain puts");
            Vec::new()
        });
        Self { all, small }
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
        let open = |place: &&Loop| place.open.load(Ordering::Relaxed);
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
        Ok(Self { handle, turn: Arc::new(turn), open: AtomicUsize::new(0), _end: end })
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
        let _here = (Counted::new(&self.open), Counted::new(&self.turn.open));
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

/// What the tasks of one thread share: who of them has the store push what they submitted.
#[derive(Debug)]
pub(super) struct Turn {
    /// Where the store keeps what they submitted, until the push.
    pub(super) lane: Lane,
    /// Somebody will push. Relaxed: it is looked at on one thread only.
    taken: AtomicBool,
    /// Connections of all threads. Relaxed: by it bodies are large or are not, roughly.
    open: Arc<AtomicUsize>,
    /// There is no other thread of small bodies.
    is_only: bool,
}

impl Turn {
    fn new(lane: Lane, open: Arc<AtomicUsize>, is_only: bool) -> Self {
        Self { lane, taken: AtomicBool::new(false), open, is_only }
    }

    /// Whether a body of so many bytes is too large for this thread.
    pub(super) fn is_large(&self, body_bytes: usize, bodies: Bodies) -> bool {
        let are_few = || self.is_only && self.open.load(Ordering::Relaxed) <= TOGETHER;
        let keeps_larger = bodies == Bodies::Larger || are_few();
        body_bytes > if keeps_larger { LARGER_BYTES_MAX } else { SMALL_BYTES_MAX }
    }

    /// Has everything pushed that was submitted, once all tasks that can have had their turns.
    pub(super) async fn push(&self, app: &App) {
        if self.taken.swap(true, Ordering::Relaxed) {
            return;
        }
        let taken = Taken(&self.taken);
        for _ in 0..TURNS {
            yield_now().await;
        }
        drop(taken);
        app.ingest.push(self.lane);
    }
}

/// Gives the turn back, also where the task that took it ends meanwhile.
struct Taken<'a>(&'a AtomicBool);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 500 points of eight tags are some 110 KiB.
    #[test]
    fn few_senders_of_some_hundred_points_stay_together_and_many_are_shared_out() {
        let check = |is_only, open, bodies, bytes_max: usize| {
            let turn = Turn::new(Lane(0), Arc::new(AtomicUsize::new(open)), is_only);
            let is_large = [0, 1].map(|more| turn.is_large(bytes_max + more, bodies));
            assert_eq!(is_large, [false, true], "{is_only} {open} {bodies:?} {bytes_max}");
        };
        check(true, TOGETHER, Bodies::Small, LARGER_BYTES_MAX);
        check(true, TOGETHER + 1, Bodies::Small, SMALL_BYTES_MAX);
        check(false, 1, Bodies::Small, SMALL_BYTES_MAX);
        check(true, TOGETHER + 1, Bodies::Larger, LARGER_BYTES_MAX);
        check(false, 1, Bodies::Larger, LARGER_BYTES_MAX);
    }

    #[test]
    fn a_sender_gets_a_thread_that_takes_its_bodies() {
        let place = |loops: &Loops, bodies| loops.place(bodies).map(|place| place.turn.lane.0);
        let fill = |loops: &Loops, lane: u16, open| loops.all[usize::from(lane)].open.store(open, Ordering::Relaxed);
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
