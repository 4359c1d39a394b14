//! Work that comes in numbered pieces, done by as many threads as there are processors.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

/// Does every piece; what each came to, in no order, or the first failure that was found.
pub(crate) fn each<T: Send>(pieces: Range<u64>, one: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    // Relaxed: a ticket, nothing is read by it.
    let next = AtomicU64::new(pieces.start);
    let done: Mutex<Result<Vec<T>>> = Mutex::new(Ok(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(came_to) = take(&next, pieces.end, &one) {
                    note(&mut done.lock().unwrap_or_else(PoisonError::into_inner), came_to);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Does the next piece, if there is one.
fn take<T>(next: &AtomicU64, end: u64, one: &impl Fn(u64) -> Result<T>) -> Option<Result<T>> {
    let piece = next.fetch_add(1, Ordering::Relaxed);
    let came_to = (piece < end).then(|| one(piece))?;
    if came_to.is_err() {
        // The others stop at their next ticket.
        next.store(end, Ordering::Relaxed);
    }
    Some(came_to)
}

fn note<T>(done: &mut Result<Vec<T>>, came_to: Result<T>) {
    match (&mut *done, came_to) {
        (Ok(all), Ok(came_to)) => all.push(came_to),
        (Ok(_), Err(error)) => *done = Err(error),
        (Err(_), _) => {}
    }
}
