//! HBase's messages, each with the fields that are used here alone; protobuf passes over the others.
//!
//! Source: the `.proto` files of HBase 2.6 (`hbase-protocol-shaded`). Enumerations are kept as their numbers, so that a
//! newer server's unknown one is an answer to judge and no message that cannot be read.

pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod filter;
pub(crate) mod master;
pub(crate) mod rpc;
