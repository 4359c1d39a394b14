//! `basalt`: a time-series database that speaks OpenTSDB, in one process.
//!
//! ```text
//! main ─ cli ─ serve ─┬─ config, log
//!                     ├─ app (store, schema, ingest, query, metrics)
//!                     └─ server ─┬─ http
//!                                └─ telnet
//! ```
//!
//! This crate knows HTTP, telnet, JSON answers, the command line and the clock on the wall. What a
//! point or a query means is told by the crates below.

mod advise;
mod app;
mod aside;
mod auth;
mod bench;
mod bodies;
mod cli;
mod clock;
mod config;
mod descriptors;
mod exit;
mod heap;
mod http;
mod import;
mod log;
mod metrics;
mod migrate;
mod peer;
mod preflight;
mod proc;
mod progress;
mod publish;
mod register;
mod reload;
mod remote;
mod rewriting;
mod room;
mod seats;
mod server;
mod stats;
mod stop;
mod store;
mod telnet;
mod threads;
mod version;

use std::process::ExitCode;

/// What a request or a batch takes is given back soon and taken again: glibc's allocator gives it to the system in between, and each
/// page of it is then faulted in anew. What nobody takes again goes back after ten seconds, by threads of its own.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let ended = cli::run();
    log::end(ended.as_ref().err());
    ended.map_or_else(|failure| failure.exit.into(), |()| ExitCode::SUCCESS)
}
