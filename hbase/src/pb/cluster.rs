//! `HBase.proto`, `Registry.proto` and `Admin.proto`: servers, regions, and what a region server says of its own.

use bytes::Bytes;
use prost::Message;

use super::rpc::{BytesBytesPair, NameStringPair};

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ServerName {
    #[prost(string, required, tag = "1")]
    pub(crate) host_name: String,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) port: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TableName {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) namespace: Bytes,
    #[prost(bytes = "bytes", required, tag = "2")]
    pub(crate) qualifier: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegionInfo {
    #[prost(uint64, required, tag = "1")]
    pub(crate) region_id: u64,
    #[prost(message, required, tag = "2")]
    pub(crate) table_name: TableName,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) start_key: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) end_key: Option<Bytes>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) offline: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub(crate) split: Option<bool>,
    #[prost(int32, optional, tag = "7")]
    pub(crate) replica_id: Option<i32>,
}

/// What names a region: its whole name.
pub(crate) const REGION_NAME: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RegionSpecifier {
    #[prost(int32, required, tag = "1")]
    pub(crate) r#type: i32,
    #[prost(bytes = "bytes", required, tag = "2")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ColumnFamilySchema {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) name: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(crate) attributes: Vec<BytesBytesPair>,
    /// The cluster's own settings, as they are for this family alone.
    #[prost(message, repeated, tag = "3")]
    pub(crate) configuration: Vec<NameStringPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TableSchema {
    #[prost(message, optional, tag = "1")]
    pub(crate) table_name: Option<TableName>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) attributes: Vec<BytesBytesPair>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) column_families: Vec<ColumnFamilySchema>,
    /// The same for this table.
    #[prost(message, repeated, tag = "4")]
    pub(crate) configuration: Vec<NameStringPair>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct TableState {
    #[prost(int32, required, tag = "1")]
    pub(crate) state: i32,
}

/// A table that serves.
pub(crate) const ENABLED: i32 = 0;
/// A table that does not.
pub(crate) const DISABLED: i32 = 1;
/// A table that is about to serve.
pub(crate) const ENABLING: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegionLocation {
    #[prost(message, required, tag = "1")]
    pub(crate) region_info: RegionInfo,
    #[prost(message, optional, tag = "2")]
    pub(crate) server_name: Option<ServerName>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetActiveMasterResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) server_name: Option<ServerName>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetMetaRegionLocationsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) meta_locations: Vec<RegionLocation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetRegionInfoRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) region: RegionSpecifier,
    #[prost(bool, optional, tag = "2")]
    pub(crate) compaction_state: Option<bool>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) best_split_row: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetRegionInfoResponse {
    #[prost(int32, optional, tag = "2")]
    pub(crate) compaction_state: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(crate) best_split_row: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FlushRegionRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) region: RegionSpecifier,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct FlushRegionResponse {
    /// Whether there is a new file.
    #[prost(bool, optional, tag = "2")]
    pub(crate) flushed: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactRegionRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) region: RegionSpecifier,
    #[prost(bool, optional, tag = "2")]
    pub(crate) major: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetRegionLoadRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) table_name: Option<TableName>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetRegionLoadResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) region_loads: Vec<RegionLoad>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegionLoad {
    #[prost(message, required, tag = "1")]
    pub(crate) region_specifier: RegionSpecifier,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) storefiles: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(crate) storefile_size_mb: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub(crate) mem_store_size_mb: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) read_requests_count: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    pub(crate) write_requests_count: Option<u64>,
}
