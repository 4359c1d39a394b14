//! Ctrl-C of a person whose command runs: what it prints ends, and with it the command.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure};
use crate::threads;

/// As shells tell of a program that Ctrl-C ended.
const ENDED_BY_INTERRUPT: i32 = 130;

/// Whether a command is to end. Relaxed: it ends a line sooner or later.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// Hears Ctrl-C from here on. A second one, of a command that prints nothing and so does not end, ends the process.
    ///
    /// # Errors
    ///
    /// No thread that hears it.
    pub(super) fn hear(&self) -> Result<(), Failure> {
        let fail = |cause: io::Error| Failure::new(Exit::Failure, format!("cannot listen for signals: {cause}"));
        let raised = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fail)?;
        let mut heard = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt()).map_err(fail)?
        };
        let hears = move || {
            while runtime.block_on(heard.recv()).is_some() {
                if raised.0.swap(true, Ordering::Relaxed) {
                    // The command that runs is not waited for, as with a signal that nobody hears.
                    std::process::exit(ENDED_BY_INTERRUPT);
                }
            }
        };
        Builder::new().spawn(hears).map(drop).map_err(|cause| threads::too_few(&cause.to_string()))
    }

    /// Whether there was one since this was asked before.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// What is printed until there is one.
    pub(super) fn over<W: Write>(&self, out: W) -> Out<W> {
        Out { out, interrupts: self.clone() }
    }
}

/// Where a command prints, which fails once there was an interrupt.
#[derive(Debug)]
pub(super) struct Out<W> {
    out: W,
    interrupts: Interrupts,
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupts.0.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        self.out.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use basalt_shell::{Shell, Style};
    use basalt_store::MemoryStore;

    use super::super::fed;
    use super::*;
    use crate::clock::WallClock;

    /// Has the interrupt come behind the first bytes that are printed.
    struct Presses(Interrupts, Vec<u8>);

    impl Write for Presses {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1.is_empty() {
                self.0.0.store(true, Ordering::Relaxed);
            }
            self.1.write_all(bytes).map(|()| bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_interrupt_ends_the_command_and_not_the_shell() {
        let interrupts = Interrupts::default();
        let mut printed = interrupts.over(Presses(interrupts.clone(), Vec::new()));
        let mut shell = Shell::new(Arc::new(MemoryStore::new(Arc::new(WallClock))), &mut printed, Style::default());
        for line in ["create 't', 'f'; list", "list"] {
            fed(&mut shell, line, &interrupts).unwrap();
        }
        drop(shell);
        let text = String::from_utf8(printed.out.1).unwrap();
        assert_eq!(text, "Created table t\nTABLE\nt\n1 row(s)\n", "one list, by the second line");
    }
}
