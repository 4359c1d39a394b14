//! How far a long run is, as lines on standard error where there is no terminal to show a bar on.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a line is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// When a person who waits is told for the first time what for: work that is done by then is not told of.
const TELL_FIRST: Duration = Duration::from_secs(1);

/// The same where lines are told, which stay: those of a machine that is merely busy are nobody's.
const TELL_FIRST_LINE: Duration = Duration::from_secs(2);

/// How often a line on a terminal moves.
const TICK: Duration = Duration::from_millis(200);

/// The line on the terminal that moves. Held for one look, never over I/O; nothing else is locked under it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Lines of progress: when the last was told, or the run began; none on a terminal.
#[derive(Debug)]
pub(crate) struct ProgressLog(Cell<Option<Instant>>);

impl ProgressLog {
    /// A run that begins.
    pub(crate) fn new() -> Self {
        Self(Cell::new((!stderr().is_terminal()).then(Instant::now)))
    }

    /// Tells a line if the last one was told long enough ago.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        if self.is_due(TELL_EVERY, Instant::now()) {
            say(&line());
        }
    }

    /// Tells a line whenever the last one was told, as at the end of a part.
    pub(crate) fn tell_now(&self, line: impl FnOnce() -> String) {
        if self.is_due(Duration::ZERO, Instant::now()) {
            say(&line());
        }
    }

    /// Whether a line is to be told; if so it counts as told.
    fn is_due(&self, every: Duration, now: Instant) -> bool {
        let is_due = self.0.get().is_some_and(|told| now.saturating_duration_since(told) >= every);
        if is_due {
            self.0.set(Some(now));
        }
        is_due
    }
}

/// Does work that does not tell how far it is, and tells a person who waits for it how long it has been at it: by a line now and then,
/// or on a terminal by one that moves. What the work says meanwhile goes by [`beside`].
pub(crate) fn meanwhile<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let bar = ProgressBar::new_spinner().with_style(spinner()).with_message(what.to_owned());
    let times = if bar.is_hidden() { (TELL_FIRST_LINE, TELL_EVERY) } else { (TELL_FIRST, TICK) };
    let tell = || {
        if bar.is_hidden() {
            say(&format!("{what}: since {} s", began.elapsed().as_secs()));
        } else {
            shown().get_or_insert_with(|| bar.clone());
            bar.tick();
        }
    };
    let answer = telling(times, tell, work);
    // The line is gone before anything else is printed.
    shown().take();
    bar.finish_and_clear();
    answer
}

/// As [`meanwhile`], for a server: by lines of its log.
pub(crate) fn meanwhile_logged<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let tell = || tracing::info!(since_s = began.elapsed().as_secs(), "{what}");
    telling((TELL_EVERY, TELL_EVERY), tell, work)
}

/// Writes to the terminal, perhaps, with the line away that moves there.
pub(crate) fn beside<T>(write: impl FnOnce() -> T) -> T {
    let bar = shown().clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work, and calls `tell` after the first of the times and whenever the second has gone by, until it is done.
fn telling<T>((first, every): (Duration, Duration), tell: impl Fn() + Send, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        let tell = move || {
            let mut pause = first;
            while is_done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                tell();
                pause = every;
            }
        };
        // Where no thread can be started the work is done all the same.
        let telling = std::thread::Builder::new().spawn_scoped(scope, tell);
        let answer = work();
        drop(done);
        if let Ok(telling) = telling {
            telling.join().unwrap_or_default();
        }
        answer
    })
}

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn say(line: &str) {
    // Nobody can be told that standard error is gone.
    writeln!(stderr(), "{line}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_every_ten_seconds_and_none_on_a_terminal() {
        let began = Instant::now();
        let log = ProgressLog(Cell::new(Some(began)));
        let at = |seconds| log.is_due(TELL_EVERY, began + Duration::from_secs(seconds));
        assert_eq!(
            [at(0), at(9), at(10), at(11), at(19), at(35), at(44), at(45)],
            [false, false, true, false, false, true, false, true]
        );
        assert!(log.is_due(Duration::ZERO, began), "at the end of a part");
        assert!(!ProgressLog(Cell::new(None)).is_due(TELL_EVERY, began + Duration::from_hours(1)));
    }

    #[test]
    fn work_is_done_and_not_waited_for_any_longer() {
        let began = Instant::now();
        assert_eq!(meanwhile("a count", || 1 + 1), 2);
        assert!(began.elapsed() < TELL_EVERY);
    }

    #[test]
    fn work_that_takes_long_is_told_of_again_and_again() {
        let (told, is_told) = sync_channel(0);
        let tell = || told.send(()).unwrap_or_default();
        let work = || {
            is_told.recv().and_then(|()| is_told.recv()).unwrap();
            drop(is_told);
            7
        };
        assert_eq!(telling((Duration::ZERO, Duration::ZERO), tell, work), 7);
    }

    /// Who waits for the second line has waited for the first.
    #[test]
    fn the_first_line_does_not_wait_for_the_time_between_two() {
        let (told, is_told) = sync_channel(1);
        let tell = || told.try_send(()).unwrap_or_default();
        let work = || is_told.recv_timeout(Duration::from_mins(1)).is_ok();
        assert!(telling((Duration::ZERO, Duration::from_hours(1)), tell, work));
    }
}
