//! The threads that plain puts are served on, each with a scheduler of its own.
//!
//! A thread takes what its connections have sent, hands all of it to the store, and then makes it durable itself: one sync
//! for all of them, and no other thread is woken for it. On the threads that serve everything else a request would wake
//! the log's thread and be woken by it. A thread that waits for the disk keeps nobody waiting but senders who wait for
//! the same disk.
//!
//! Senders of small bodies wait for the disk most of the time, so some of them share a thread and with it each sync before the
//! next thread is used. Where there are more of them there is always somebody to serve: then the log's thread makes durable what
//! the others read. So it is for senders of large bodies, who would keep a thread busy: they are served where everything else is. A thread that is the
//! only one of its kind, as on two processors, keeps some that are larger while its connections are few: what a change of threads costs
//! there is more than what a second thread would win.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;

use super::{Ended, serve};
use crate::app::App;
use crate::server::Stop;

/// Connections on a thread before the next one gets any.
const TOGETHER: usize = 8;

/// A body of this many bytes is large: reading its points takes about as long as a sync of the log.
const LARGE_BYTES_MIN: usize = 32 << 10;

/// The same for the only thread there is while it makes durable what it reads. Another thread would read while this one syncs, but
/// on two processors the senders are there to fill that time, and each change of threads takes more than a tenth of what reading does.
const LARGE_BYTES_MIN_ONLY: usize = 256 << 10;

/// How often all that have something to do are given a turn before a push: who was answered by the last one is about to send
/// again, and comes while others' puts are read.
const TURNS: usize = 3;

/// The threads; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Loops {
    all: Vec<Loop>,
    /// Connections of all of them. Relaxed: by it threads push or do not, roughly.
    open: Arc<AtomicUsize>,
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

impl Loops {
    /// Starts so many threads; 0 stands for one less than there are processors, as the log's thread takes another. None are
    /// started where the system has no room for them: everything is served elsewhere then.
    pub(crate) fn start(count: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if count > 0 { count } else { (processors - 1).max(1) };
        let open = Arc::<AtomicUsize>::default();
        let started: io::Result<Vec<Loop>> = (0..count).map(|_| Loop::start(&open, count == 1)).collect();
        let all = started.unwrap_or_else(|cause| {
            tracing::warn!(%cause, "cannot start the threads of plain puts");
            Vec::new()
        });
        Self { all, open }
    }

    /// Answers plain puts on a connection until something else comes, the peer leaves, or `stop` is raised.
    pub(crate) async fn serve(&self, app: &Arc<App>, stream: TcpStream, stop: &Stop) -> Ended<TcpStream> {
        let Some(place) = self.place() else { return Ended::HandOver(Vec::new(), stream) };
        self.open.fetch_add(1, Ordering::Relaxed);
        let served = place.serve(app, stream, stop).await;
        self.open.fetch_sub(1, Ordering::Relaxed);
        match served {
            Ok(Ended::Large(received, stream)) => serve(app, (received, stream), stop.clone(), None).await,
            Ok(ended) => ended,
            Err(cause) => {
                tracing::debug!(%cause, "plain puts ended");
                Ended::Closed
            }
        }
    }

    /// Where a sender is served: some share a thread before the next one gets any.
    fn place(&self) -> Option<&Loop> {
        let open = |place: &&Loop| place.open.load(Ordering::Relaxed);
        let free = self.all.iter().find(|place| open(place) < TOGETHER);
        free.or_else(|| self.all.iter().min_by_key(open))
    }
}

impl Loop {
    fn start(open: &Arc<AtomicUsize>, is_only: bool) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let turn = Arc::new(Turn::new(open, is_only));
        handle.spawn(Arc::clone(&turn).wake_on_time());
        // An error is the news that the sender is gone.
        let run = move || runtime.block_on(ended).unwrap_or_default();
        std::thread::Builder::new().name("basalt-put".to_owned()).spawn(run)?;
        Ok(Self { handle, turn, open: AtomicUsize::new(0), _end: end })
    }

    async fn serve(&self, app: &Arc<App>, stream: TcpStream, stop: &Stop) -> io::Result<Ended<TcpStream>> {
        let (app, stream) = (Arc::clone(app), stream.into_std()?);
        let (stop, turn) = (stop.clone(), Arc::clone(&self.turn));
        self.open.fetch_add(1, Ordering::Relaxed);
        let serving = self.handle.spawn(async move {
            let stream = TcpStream::from_std(stream)?;
            serve(&app, (Vec::new(), stream), stop, Some(&turn)).await.with(TcpStream::into_std)
        });
        let served = serving.await;
        self.open.fetch_sub(1, Ordering::Relaxed);
        served.map_err(io::Error::other)??.with(TcpStream::from_std)
    }
}

/// What the tasks of one thread share: who of them has the store push what they submitted, or whom another thread answered.
#[derive(Debug)]
pub(super) struct Turn {
    /// Somebody will. Relaxed: it is looked at on one thread only.
    taken: AtomicBool,
    /// Connections of all threads. Relaxed, as there.
    open: Arc<AtomicUsize>,
    /// There is no other thread of plain puts.
    is_only: bool,
    /// Tasks of this thread whom another one has answered. Leaf lock.
    answered: Mutex<Vec<Waker>>,
    /// Says that some are there.
    some_answered: Notify,
}

/// Wakes a task of a thread together with others.
#[derive(Debug)]
struct Together {
    turn: Arc<Turn>,
    task: Waker,
}

impl Wake for Together {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_first = {
            let mut answered = self.turn.answered();
            answered.push(self.task.clone());
            answered.len() == 1
        };
        if is_first {
            self.turn.some_answered.notify_one();
        }
    }
}

impl Turn {
    fn new(open: &Arc<AtomicUsize>, is_only: bool) -> Self {
        let (taken, open) = (AtomicBool::new(false), Arc::clone(open));
        Self { taken, open, is_only, answered: Mutex::default(), some_answered: Notify::new() }
    }

    fn answered(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what another thread answers: it rouses this thread once for all whom it answers together, which would else take
    /// a call of the system for each.
    pub(super) async fn wait_together<T>(self: &Arc<Self>, pending: impl Future<Output = T>) -> T {
        let mut pending = pin!(pending);
        poll_fn(|context| {
            let together = Together { turn: Arc::clone(self), task: context.waker().clone() };
            pending.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(together))))
        })
        .await
    }

    /// Wakes who was answered, for as long as the thread lives.
    async fn wake_on_time(self: Arc<Self>) {
        loop {
            self.some_answered.notified().await;
            let answered = std::mem::take(&mut *self.answered());
            answered.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether what is submitted now is to be pushed here: while there are no more connections than one thread gets.
    pub(super) fn is_alone(&self) -> bool {
        self.open.load(Ordering::Relaxed) <= TOGETHER
    }

    /// Whether a body of so many bytes is too large for a thread that others share.
    pub(super) fn is_large(&self, body_bytes: usize) -> bool {
        let is_only = self.is_only && self.is_alone();
        body_bytes >= if is_only { LARGE_BYTES_MIN_ONLY } else { LARGE_BYTES_MIN }
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
        app.ingest.push();
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
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// 500 points of eight tags are some 110 KiB.
    #[test]
    fn only_a_thread_that_is_alone_keeps_bodies_of_some_hundred_points() {
        let check = |is_only, open, body_bytes: usize, is_large| {
            let turn = Turn::new(&Arc::new(AtomicUsize::new(open)), is_only);
            assert_eq!(turn.is_large(body_bytes), is_large, "{is_only} {open} {body_bytes}");
        };
        for (is_only, open) in [(true, TOGETHER), (true, TOGETHER + 1), (false, 1)] {
            check(is_only, open, 20 << 10, false);
            check(is_only, open, 110 << 10, !(is_only && open <= TOGETHER));
            check(is_only, open, 1 << 20, true);
            let is_kept = is_only && open <= TOGETHER;
            for (body_bytes, is_large) in
                [((32 << 10) - 1, false), (32 << 10, !is_kept), ((256 << 10) - 1, !is_kept), (256 << 10, true)]
            {
                check(is_only, open, body_bytes, is_large);
            }
        }
    }

    /// Answers come from another thread one by one and many at once, some before anybody waits for them.
    #[test]
    fn whoever_waits_together_is_woken() {
        let place = Loop::start(&Arc::default(), true).unwrap();
        let (askers, answers): (Vec<_>, Vec<_>) = (0..200).map(|_| oneshot::channel::<u32>()).unzip();
        let tasks: Vec<_> = answers
            .into_iter()
            .map(|answer| {
                let turn = Arc::clone(&place.turn);
                place.handle.spawn(async move { turn.wait_together(answer).await.unwrap() })
            })
            .collect();
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let told = |task| runtime.block_on(async { timeout(Duration::from_secs(20), task).await });
        let (mut tasks, mut askers) = (tasks.into_iter(), (0_u32..).zip(askers));
        for (number, asker) in askers.by_ref().take(3) {
            asker.send(number).unwrap();
            assert_eq!(told(tasks.next().unwrap()).expect("it is never woken").unwrap(), number);
        }
        askers.for_each(|(number, asker)| asker.send(number).unwrap());
        for (number, task) in (3..).zip(tasks) {
            assert_eq!(told(task).expect("it is never woken").unwrap(), number);
        }
    }
}
