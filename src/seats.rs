//! How many queries, or others, run and how many wait for their turn; everyone else is sent away at once.
//!
//! Of the queries those that read much may have half of the seats, and wait in a queue of their own without one.

mod of_query;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub(crate) use of_query::QuerySeat;

/// How long one may wait for its turn.
const TURN_PATIENCE: Duration = Duration::from_secs(10);
/// How many large queries wait at most: each has a thread.
pub(crate) const LARGE_WAITING: usize = 64;

/// The right to run, for a query or another; given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    _permit: OwnedSemaphorePermit,
}

/// All seats of the daemon.
#[derive(Debug)]
pub(crate) struct Seats {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    /// How many may wait.
    places: usize,
    /// Told when somebody begins to wait.
    arrivals: Notify,
    /// How many large queries run at once.
    large_count: u32,
    large: Arc<Semaphore>,
    large_waiting: Semaphore,
}

impl Seats {
    /// `running` at once, `waiting` more before further ones are refused.
    pub(crate) fn new(running: usize, waiting: usize) -> Self {
        let large_count = (running / 2).max(1);
        Self {
            running: Arc::new(Semaphore::new(running)),
            waiting: Semaphore::new(waiting),
            places: waiting,
            arrivals: Notify::new(),
            large_count: u32::try_from(large_count).unwrap_or(u32::MAX),
            large: Arc::new(Semaphore::new(large_count)),
            large_waiting: Semaphore::new(LARGE_WAITING),
        }
    }

    /// Ends when somebody waits for a seat; at once if somebody does already.
    pub(crate) async fn wanted(&self) {
        loop {
            // Made before the look, so that who arrives between the two is noticed.
            let arrival = self.arrivals.notified();
            if self.waiting.available_permits() < self.places {
                return;
            }
            arrival.await;
        }
    }

    /// How many wait for a seat.
    pub(crate) fn waiting_count(&self) -> u64 {
        let taken = |of: usize, places: &Semaphore| of.saturating_sub(places.available_permits()) as u64;
        taken(self.places, &self.waiting) + taken(LARGE_WAITING, &self.large_waiting)
    }

    /// Takes a seat, waiting for it if a place to wait is free.
    ///
    /// # Errors
    ///
    /// What is full, or that the turn did not come, in words that fit queries and all others.
    pub(crate) async fn take(&self) -> Result<Seat, &'static str> {
        const FULL: &str = "as many requests of this kind as may run and wait do so already";
        const LATE: &str = "the turn of this request did not come within 10 seconds";
        const { assert!(TURN_PATIENCE.as_secs() == 10) };
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(Seat { _permit: permit });
        }
        let place = self.waiting.try_acquire().map_err(|_| FULL)?;
        self.arrivals.notify_waiters();
        let turn = timeout(TURN_PATIENCE, Arc::clone(&self.running).acquire_owned()).await;
        drop(place);
        match turn {
            Ok(Ok(permit)) => Ok(Seat { _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(LATE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_one_after_the_last_place_is_sent_away() {
        let seats = Arc::new(Seats::new(1, 1));
        let running = seats.take().await.unwrap();
        let waits = tokio::spawn({
            let seats = Arc::clone(&seats);
            async move { seats.take().await.is_ok() }
        });
        while seats.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(seats.take().await.is_err());
        drop(running);
        assert!(waits.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_is_that_all_is_full_or_that_the_turn_did_not_come() {
        let seats = Seats::new(1, 0);
        let _running = seats.take().await.unwrap();
        assert!(seats.take().await.unwrap_err().contains("as many requests of this kind"));
        let seats = Seats::new(1, 1);
        let _running = seats.take().await.unwrap();
        assert!(seats.take().await.unwrap_err().contains("within 10 seconds"));
    }
}
