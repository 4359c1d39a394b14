//! `basalt-torture`: takes the daemon and its store through crashes, faults and damage, and holds them to a ledger.
//!
//! ```text
//!            ┌ kill9, power, full, fsync, io-error, clock, backup ─► basalt serve, a process ┐
//! rig of a row                                                                               ├─► ledger ─► verdict
//!            └ sim, countdown, trunc, flip, atomic ─► the engine, on a disk in memory or not ┘
//! ```
//!
//! Each rig is a file. A row passes, fails with the command that replays it, or is skipped with the reason; the last
//! line counts them. What each proves: `torture/README.md`.

#![expect(clippy::disallowed_types, reason = "the program under test is a process")]

mod atomic;
mod backup;
mod campaign;
mod check;
mod cli;
mod clock;
mod countdown;
mod daemon;
mod disk;
mod fault;
mod flip;
mod folder;
mod fsync;
mod full;
mod http;
mod kill9;
mod ledger;
mod load;
mod power;
mod sim;
mod tickets;
mod trunc;
mod verdict;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
