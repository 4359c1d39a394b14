//! What the connections on one thread of puts share: who of them pushes what all have submitted, and who writes the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use basalt_store::Lane;
use tokio::task::yield_now;

use super::answers::Answerer;
use crate::app::App;

/// Senders of small bodies on a thread before the next one gets any.
pub(super) const TOGETHER: usize = 8;

/// Up to so many bytes a body is small: reading its points takes less than a sync of the log.
const SMALL_BYTES_MAX: usize = 32 << 10;

/// Up to so many bytes a body is read on these threads.
const LARGER_BYTES_MAX: usize = 256 << 10;

/// How often all that have something to do are given a turn before a push: who was answered by the last one is about to send
/// again, and comes while others' puts are read.
const TURNS: usize = 3;

/// A push of so many bodies has some of its answers written by the answerer: for fewer, to wake that thread takes more than it saves.
pub(super) const LENDS_FROM: usize = 24;

/// Which bodies a connection may bring to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bodies {
    /// Small ones, and larger ones where they would go to no other thread or are few.
    Small,
    /// Those of some hundred points, too.
    Larger,
}

/// What the tasks of one thread share: who of them has the store push what they submitted, and who answers.
#[derive(Debug)]
pub(super) struct Turn {
    /// Where the store keeps what they submitted, until the push.
    pub(super) lane: Lane,
    /// Somebody will push. Relaxed: it is looked at on one thread only.
    taken: AtomicBool,
    /// Bodies for the next push. Relaxed: as `taken`.
    pub(super) submitted: AtomicUsize,
    /// How many of the next answers the answerer is to write. Relaxed: as `taken`.
    lent: AtomicUsize,
    /// Connections. Relaxed: new ones are dealt out by them, roughly.
    pub(super) open: AtomicUsize,
    /// Connections of all threads. Relaxed: by it bodies are large or are not, roughly.
    pub(super) open_of_all: Arc<AtomicUsize>,
    /// There is no other thread of small bodies.
    is_only: bool,
    /// Who else may write answers, while there is nothing to do on that thread's own turn.
    pub(super) answers: Option<(Answerer, Arc<Turn>)>,
}

impl Turn {
    pub(super) fn new(
        lane: Lane,
        open_of_all: Arc<AtomicUsize>,
        is_only: bool,
        answers: Option<(Answerer, Arc<Turn>)>,
    ) -> Self {
        let [submitted, lent, open] = [0; 3].map(AtomicUsize::new);
        Self { lane, taken: AtomicBool::new(false), submitted, lent, open, open_of_all, is_only, answers }
    }

    /// Who is to write the next answer; `None` for the thread itself.
    pub(super) fn answerer(&self) -> Option<&Answerer> {
        let left = self.lent.load(Ordering::Relaxed).checked_sub(1)?;
        self.lent.store(left, Ordering::Relaxed);
        self.answers.as_ref().filter(|(_, turn)| turn.open.load(Ordering::Relaxed) == 0).map(|(answerer, _)| answerer)
    }

    /// Whether a body of so many bytes is too large for this thread.
    pub(super) fn is_large(&self, body_bytes: usize, bodies: Bodies) -> bool {
        let are_few = || self.is_only && self.open_of_all.load(Ordering::Relaxed) <= TOGETHER;
        let keeps_larger = bodies == Bodies::Larger || are_few();
        body_bytes > if keeps_larger { LARGER_BYTES_MAX } else { SMALL_BYTES_MAX }
    }

    /// Has everything pushed that was submitted, once all tasks that can have had their turns.
    pub(super) async fn push(&self, app: &App) {
        self.submitted.fetch_add(1, Ordering::Relaxed);
        if self.taken.swap(true, Ordering::Relaxed) {
            return;
        }
        let taken = Taken(&self.taken);
        for _ in 0..TURNS {
            yield_now().await;
        }
        drop(taken);
        app.ingest.push(self.lane);
        self.share_answers();
    }

    /// What was submitted is about to be answered: the first half by the answerer, if it is enough, while this thread writes the other.
    pub(super) fn share_answers(&self) {
        let count = self.submitted.swap(0, Ordering::Relaxed);
        self.lent.store(if count < LENDS_FROM { 0 } else { count / 2 }, Ordering::Relaxed);
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
            let turn = Turn::new(Lane(0), Arc::new(AtomicUsize::new(open)), is_only, None);
            let is_large = [0, 1].map(|more| turn.is_large(bytes_max + more, bodies));
            assert_eq!(is_large, [false, true], "{is_only} {open} {bodies:?} {bytes_max}");
        };
        check(true, TOGETHER, Bodies::Small, LARGER_BYTES_MAX);
        check(true, TOGETHER + 1, Bodies::Small, SMALL_BYTES_MAX);
        check(false, 1, Bodies::Small, SMALL_BYTES_MAX);
        check(true, TOGETHER + 1, Bodies::Larger, LARGER_BYTES_MAX);
        check(false, 1, Bodies::Larger, LARGER_BYTES_MAX);
    }
}
