//! The whole program from outside: the real binary over real sockets.

#![cfg_attr(test, expect(clippy::disallowed_types, reason = "the program under test is a process"))]

#[cfg(test)]
mod advise;
#[cfg(test)]
mod annotations;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod compact;
#[cfg(test)]
mod cve;
#[cfg(test)]
mod daemon;
#[cfg(test)]
mod disk_full;
#[cfg(test)]
mod durable;
#[cfg(test)]
mod fsck;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod grafana;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod http;
#[cfg(test)]
mod last;
#[cfg(test)]
mod meta;
#[cfg(test)]
mod migrate;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod plain_put;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod points;
#[cfg(test)]
mod queries;
#[cfg(test)]
mod repair;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod service;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod telnet;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod unread;
