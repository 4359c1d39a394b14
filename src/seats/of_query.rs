//! The seat of a query that may turn out to be large, and is given away while it waits for its turn among those.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use basalt_query::{Error, Gate, Result};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use super::{Seat, Seats};
use crate::metrics::Count;

/// How long it may wait: it keeps nobody else waiting meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks whether its client is gone.
const LOOK: Duration = Duration::from_millis(20);

/// What a query holds while it runs, for its [`Gate`].
#[derive(Debug)]
pub(crate) struct QuerySeat {
    seats: Arc<Seats>,
    handle: Handle,
    /// Which queries run, this one among them but while it waits.
    running: Arc<Count>,
    patience: Duration,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    seat: Option<Seat>,
    large: Option<OwnedSemaphorePermit>,
}

impl QuerySeat {
    /// Of a query that runs on a thread of `handle`'s and is counted in `running`.
    pub(crate) fn new(seats: &Arc<Seats>, seat: Seat, handle: Handle, running: &Arc<Count>) -> Self {
        let held = Mutex::new(Held { seat: Some(seat), large: None });
        Self { seats: Arc::clone(seats), handle, running: Arc::clone(running), patience: PATIENCE, held }
    }

    /// It has read all, and only answers from now on: the next large one may begin.
    pub(crate) fn has_read(&self) {
        self.held().large = None;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so many of the large queries' permits, in place of those that it has.
    fn pass_with(&self, permits: u32, is_ready: &dyn Fn() -> Result<bool>) -> Result<()> {
        let mut held = self.held();
        held.large = None;
        if is_ready()?
            && let Ok(permit) = Arc::clone(&self.seats.large).try_acquire_many_owned(permits)
        {
            held.large = Some(permit);
            return Ok(());
        }
        let place = self.seats.large_waiting.try_acquire().map_err(|_| Error::NoTurn)?;
        held.seat = None;
        self.running.sub(1);
        let turn = self.turn(permits, is_ready);
        self.running.add(1);
        drop(place);
        let (seat, large) = turn?;
        *held = Held { seat: Some(seat), large: Some(large) };
        Ok(())
    }

    fn turn(&self, permits: u32, is_ready: &dyn Fn() -> Result<bool>) -> Result<(Seat, OwnedSemaphorePermit)> {
        let late = Instant::now() + self.patience;
        let check = || {
            let is_ready = is_ready()?;
            if Instant::now() < late { Ok(is_ready) } else { Err(Error::NoTurn) }
        };
        let mut turn = pin!(Arc::clone(&self.seats.large).acquire_many_owned(permits));
        let large = loop {
            if let Ok(turn) = self.handle.block_on(async { timeout(LOOK, turn.as_mut()).await }) {
                break turn.map_err(|_| Error::NoTurn)?;
            }
            check()?;
        };
        while !check()? {
            self.handle.block_on(sleep(LOOK));
        }
        let seat = self.handle.block_on(self.seats.take()).map_err(|_| Error::NoTurn)?;
        Ok((seat, large))
    }
}

impl Gate for QuerySeat {
    fn pass(&self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        self.pass_with(1, &|| check().map(|()| true))
    }

    fn pass_alone(&self, is_ready: &dyn Fn() -> Result<bool>) -> Result<()> {
        self.pass_with(self.seats.large_count, is_ready)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::LARGE_WAITING;
    use super::*;

    async fn seated(seats: &Arc<Seats>, running: &Arc<Count>) -> QuerySeat {
        running.add(1);
        QuerySeat::new(seats, seats.take().await.unwrap(), Handle::current(), running)
    }

    fn pass(seat: &Arc<QuerySeat>) -> tokio::task::JoinHandle<Result<()>> {
        let seat = Arc::clone(seat);
        tokio::task::spawn_blocking(move || seat.pass(&|| Ok(())))
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    /// `Q-LIMIT`
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn q_limit_large_queries_have_half_of_the_seats_and_wait_without_one() {
        let (seats, running) = (Arc::new(Seats::new(4, 0)), Arc::default());
        let mut large = Vec::new();
        for _ in 0..4 {
            large.push(Arc::new(seated(&seats, &running).await));
        }
        for seat in &large[..2] {
            pass(seat).await.unwrap().unwrap();
        }
        assert!(seats.take().await.is_err());
        let waiting = [pass(&large[2]), pass(&large[3])];
        until(|| running.get() == 2).await;
        let others = [seats.take().await.unwrap(), seats.take().await.unwrap()];
        assert_eq!(seats.waiting_count(), 2);
        drop(others);
        // One has read all and keeps its seat, the other one is gone: both that wait may run.
        large[0].has_read();
        drop(large.remove(1));
        for turn in waiting {
            turn.await.unwrap().unwrap();
        }
        assert_eq!((running.get(), seats.waiting_count()), (4, 0));
        drop(large);
        assert_eq!((seats.running.available_permits(), seats.large.available_permits()), (4, 2));
    }

    /// `Q-LIMIT`
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn q_limit_one_runs_alone_when_the_other_large_ones_have_read_and_there_is_room() {
        let (seats, running) = (Arc::new(Seats::new(4, 0)), Arc::default());
        let (first, second) = (Arc::new(seated(&seats, &running).await), Arc::new(seated(&seats, &running).await));
        pass(&first).await.unwrap().unwrap();
        pass(&second).await.unwrap().unwrap();
        let has_room = Arc::new(AtomicBool::new(false));
        let alone = tokio::task::spawn_blocking({
            let (second, has_room) = (Arc::clone(&second), Arc::clone(&has_room));
            move || second.pass_alone(&|| Ok(has_room.load(Ordering::Relaxed)))
        });
        until(|| running.get() == 1).await;
        has_room.store(true, Ordering::Relaxed);
        assert!(!alone.is_finished());
        has_room.store(false, Ordering::Relaxed);
        first.has_read();
        until(|| seats.large.available_permits() == 0).await;
        assert_eq!(running.get(), 1);
        has_room.store(true, Ordering::Relaxed);
        alone.await.unwrap().unwrap();
        // Nobody is large beside it.
        assert!(Arc::clone(&seats.large).try_acquire_owned().is_err());
        second.has_read();
        assert_eq!(seats.large.available_permits(), 2);
    }

    /// `Q-LIMIT`, `Q-TIMEOUT`
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn q_limit_who_waits_ends_with_its_client_its_patience_or_where_too_many_wait() {
        let (seats, running) = (Arc::new(Seats::new(2, 0)), Arc::default());
        let first = Arc::new(seated(&seats, &running).await);
        pass(&first).await.unwrap().unwrap();
        let mut second = seated(&seats, &running).await;
        second.patience = Duration::ZERO;
        let second = Arc::new(second);
        assert!(matches!(pass(&second).await.unwrap(), Err(Error::NoTurn)));
        assert_eq!((seats.running.available_permits(), seats.waiting_count(), running.get()), (1, 0, 2));
        let third = Arc::new(seated(&seats, &running).await);
        let full = seats.large_waiting.try_acquire_many(u32::try_from(LARGE_WAITING).unwrap()).unwrap();
        assert!(matches!(pass(&third).await.unwrap(), Err(Error::NoTurn)));
        assert_eq!(seats.running.available_permits(), 0);
        drop(full);
        let is_gone = Arc::new(AtomicBool::new(false));
        let waits = tokio::task::spawn_blocking({
            let (third, is_gone) = (Arc::clone(&third), Arc::clone(&is_gone));
            move || third.pass(&|| if is_gone.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) })
        });
        until(|| seats.waiting_count() == 1).await;
        is_gone.store(true, Ordering::Relaxed);
        assert!(matches!(waits.await.unwrap(), Err(Error::Cancelled)));
        drop((first, second, third));
        assert_eq!((seats.running.available_permits(), seats.large.available_permits()), (2, 1));
    }
}
