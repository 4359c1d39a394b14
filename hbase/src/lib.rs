//! The store contract over a real HBase 2.x, by HBase's own RPC: protobuf over TCP, no gateway and no Java.
//!
//! ```text
//!  Store call ─► HBaseStore ─► region by hbase:meta ─► server's connection ─► frame ─► HBase
//!                (a task)        locations              many calls under way    pb, cells
//!                   ▲                 ▲                                            │
//!                   └── answer ◄── remedy: relocate, back off, again, reopen ◄── exception
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | contract | [`store`](HBaseStore), [`options`](HBaseOptions), [`error`](Error) |
//! | rows changed | `write`, `update` |
//! | rows read | `read`, `scan`, `request`, `filter` |
//! | tables, namespaces, snapshots | `admin`, `descriptor` |
//! | many rows in few calls | `multi` |
//! | where regions are | `locations`, `region_call` |
//! | where servers are | `cluster`, `registrars`, `zookeeper` |
//! | calls and their answers | `connection`, `frame`, `cells`, `pb` |
//! | what HBase refuses | `exception`, `patience` |
//! | what was asked, counted | [`tally`](Figures) |
//!
//! **What HBase does otherwise than the contract asks** is told in `docs/data-model.md`, rule by rule. **Not supported:**
//! SASL and Kerberos (a cluster that asks for them is told as such, and nothing is tried again), encryption, region replicas, cell tags.

mod admin;
mod cells;
mod cluster;
mod connection;
mod descriptor;
mod error;
mod exception;
#[cfg(test)]
mod fake;
mod filter;
mod frame;
mod locations;
mod multi;
mod options;
mod patience;
mod pb;
mod read;
mod region_call;
mod registrars;
mod request;
mod scan;
mod store;
mod tally;
#[cfg(test)]
mod tests;
mod update;
mod write;
mod zookeeper;

pub use error::{Error, Result};
pub use options::HBaseOptions;
pub use store::HBaseStore;
pub use tally::{Figures, ServerFigures};
