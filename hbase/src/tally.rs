//! What a client did and does, counted: by server, and in all. Numbers are shown; nothing is decided by them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::connection::Address;
use crate::error::{CallError, Error};

/// Servers whose counts are kept before those that nobody is connected to go.
const SERVERS_KEPT: usize = 1024;

/// What a client of a cluster did so far, and what is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// By server, in the order of their addresses.
    pub servers: Vec<ServerFigures>,
    /// Calls by HBase's name of the method: `Get`, `Mutate`, `Multi`, `Scan`, and all others.
    pub calls: Vec<(&'static str, u64)>,
    /// Attempts after the first, of whatever calls.
    pub retries: u64,
    /// Times that a region was not where it was looked for.
    pub relocations: u64,
    /// Times that a table's regions were read from the catalogue.
    pub lookups: u64,
    /// Regions whose places are kept.
    pub regions_kept: u64,
}

/// The same of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFigures {
    /// `host:port`.
    pub server: String,
    /// Connections open now.
    pub connections: u64,
    /// Connections opened so far.
    pub connected: u64,
    /// Calls sent.
    pub sent: u64,
    /// Calls sent and not answered yet.
    pub in_flight: u64,
    /// Calls that wait to be sent, as the bounds of what is in flight are reached.
    pub waiting: u64,
    /// Calls that had to wait so.
    pub waited: u64,
    /// Calls not answered in time.
    pub timed_out: u64,
    /// Answers to calls that were given up.
    pub late: u64,
    /// Calls that were under way when their connection ended.
    pub lost: u64,
    /// Calls answered by an exception.
    pub refused: u64,
}

/// A counter or a gauge. Orderings are relaxed.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counted while the answer is held.
    pub(crate) fn during(&self) -> During<'_> {
        self.add();
        During(self)
    }
}

/// One that is counted out when it is dropped.
#[derive(Debug)]
pub(crate) struct During<'a>(&'a Count);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.sub();
    }
}

/// One server's counts.
#[derive(Debug, Default)]
pub(crate) struct ServerTally {
    pub(crate) connections: Count,
    pub(crate) connected: Count,
    pub(crate) sent: Count,
    pub(crate) in_flight: Count,
    pub(crate) waiting: Count,
    pub(crate) waited: Count,
    pub(crate) late: Count,
    timed_out: Count,
    lost: Count,
    refused: Count,
}

impl ServerTally {
    /// Counts how a call ended.
    pub(crate) fn ended<T>(&self, told: &Result<T, CallError>) {
        match told {
            Err(CallError::Refused(_)) => self.refused.add(),
            Err(CallError::Unsent(Error::TimedOut { .. }) | CallError::Unknown(Error::TimedOut { .. })) => {
                self.timed_out.add();
            }
            Err(CallError::Unknown(_)) => self.lost.add(),
            Ok(_) | Err(CallError::Unsent(_)) => {}
        }
    }

    fn told(&self, server: &Address) -> ServerFigures {
        ServerFigures {
            server: server.to_string(),
            connections: self.connections.get(),
            connected: self.connected.get(),
            sent: self.sent.get(),
            in_flight: self.in_flight.get(),
            waiting: self.waiting.get(),
            waited: self.waited.get(),
            timed_out: self.timed_out.get(),
            late: self.late.get(),
            lost: self.lost.get(),
            refused: self.refused.get(),
        }
    }
}

/// A client's counts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) retries: Count,
    pub(crate) relocations: Count,
    pub(crate) lookups: Count,
    calls: [Count; METHODS.len()],
    /// Guards which servers there are; held for a look-up only.
    servers: Mutex<HashMap<Address, Arc<ServerTally>>>,
}

/// Methods that are counted by themselves; the last stands for all others.
const METHODS: [&str; 5] = ["Get", "Mutate", "Multi", "Scan", "other"];

impl Tally {
    /// Counts a call.
    pub(crate) fn call(&self, method: &str) {
        let at = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        if let Some(count) = self.calls.get(at) {
            count.add();
        }
    }

    /// A server's counts.
    pub(crate) fn of(&self, server: &Address) -> Arc<ServerTally> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() > SERVERS_KEPT {
            servers.retain(|_, tally| tally.connections.get() > 0);
        }
        Arc::clone(servers.entry(server.clone()).or_default())
    }

    /// All of it.
    pub(crate) fn told(&self, regions_kept: u64) -> Figures {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut servers: Vec<ServerFigures> = servers.iter().map(|(server, tally)| tally.told(server)).collect();
        servers.sort_by(|one, other| one.server.cmp(&other.server));
        Figures {
            servers,
            calls: METHODS.iter().copied().zip(self.calls.iter().map(Count::get)).collect(),
            retries: self.retries.get(),
            relocations: self.relocations.get(),
            lookups: self.lookups.get(),
            regions_kept,
        }
    }
}
