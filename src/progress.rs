//! How far a long run is, as lines on standard error where there is no terminal to show a bar on.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a line is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// How often a line on a terminal moves.
const TICK: Duration = Duration::from_millis(200);

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

/// Does work that does not tell how far it is, and tells now and then how long it has been at it: by a line, or on a terminal by one
/// that moves. The work may not print.
pub(crate) fn meanwhile<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let bar = ProgressBar::new_spinner().with_style(spinner()).with_message(what.to_owned());
    let every = if bar.is_hidden() { TELL_EVERY } else { TICK };
    let tell = || {
        if bar.is_hidden() {
            say(&format!("{what}: since {} s", began.elapsed().as_secs()));
        } else {
            bar.tick();
        }
    };
    let answer = telling(every, tell, work);
    // The line is gone before anything else is printed.
    bar.finish_and_clear();
    answer
}

/// As [`meanwhile`], for a server: by lines of its log.
pub(crate) fn meanwhile_logged<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    telling(TELL_EVERY, || tracing::info!(since_s = began.elapsed().as_secs(), "{what}"), work)
}

/// Does work, and calls `tell` again and again until it is done.
fn telling<T>(every: Duration, tell: impl Fn() + Send, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        let tell = move || {
            while is_done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tell();
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
        assert_eq!(telling(Duration::ZERO, tell, work), 7);
    }
}
