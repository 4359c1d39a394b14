//! Long work of a tool that a signal asks to end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::{Exit, Failure};
use crate::threads;

/// Does the work on a thread of its own. The first SIGINT or SIGTERM sets `ends`, by which the work ends when it can; the second does not
/// wait for it, and `at_once` is the line that the process ends with.
///
/// # Errors
///
/// Those of the work; signals or the thread that cannot be had.
pub(super) fn interruptible(
    ends: &AtomicBool,
    at_once: &str,
    work: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let fail = |cause: io::Error| Failure::new(Exit::Failure, format!("cannot listen for signals: {cause}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fail)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let (tell, told) = oneshot::channel();
        // Nobody hears it behind the second signal.
        let works = move || tell.send(work()).unwrap_or_default();
        Builder::new().spawn(works).map_err(|cause| threads::too_few(&cause.to_string()))?;
        let signalled = async {
            for _ in 0..2 {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                ends.store(true, Ordering::Relaxed);
            }
        };
        tokio::select! {
            verdict = told => verdict.unwrap_or_else(|_| Err(Failure::new(Exit::Failure, "BUG: the run panicked"))),
            () = signalled => Err(Failure::new(Exit::Failure, at_once)),
        }
    })
}
