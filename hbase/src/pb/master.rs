//! `Master.proto`, `Snapshot.proto` and `ErrorHandling.proto`: what the active master does.

use bytes::Bytes;
use prost::Message;

use super::cluster::{RegionInfo, TableName, TableSchema, TableState};
use super::rpc::NameStringPair;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateTableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table_schema: TableSchema,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) split_keys: Vec<Bytes>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) nonce: Option<u64>,
}

/// `EnableTable`, `DisableTable` and `DeleteTable`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table_name: TableName,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TruncateTableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table_name: TableName,
    #[prost(bool, optional, tag = "2")]
    pub(crate) preserve_splits: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModifyTableRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table_name: TableName,
    #[prost(message, required, tag = "2")]
    pub(crate) table_schema: TableSchema,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SplitTableRegionRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) region_info: RegionInfo,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) split_row: Option<Bytes>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceDescriptor {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) name: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(crate) configuration: Vec<NameStringPair>,
}

/// `CreateNamespace` and `ModifyNamespace`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) namespace_descriptor: NamespaceDescriptor,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce: Option<u64>,
}

/// `DeleteNamespace` and `GetNamespaceDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceNameRequest {
    #[prost(string, required, tag = "1")]
    pub(crate) namespace_name: String,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetNamespaceDescriptorResponse {
    #[prost(message, required, tag = "1")]
    pub(crate) namespace_descriptor: NamespaceDescriptor,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListNamespaceDescriptorsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) namespace_descriptor: Vec<NamespaceDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTableDescriptorsRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) table_names: Vec<TableName>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTableDescriptorsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) table_schema: Vec<TableSchema>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct GetTableNamesRequest {
    #[prost(bool, optional, tag = "2")]
    pub(crate) include_sys_tables: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTableNamesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) table_names: Vec<TableName>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTableStateRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) table_name: TableName,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct GetTableStateResponse {
    #[prost(message, required, tag = "1")]
    pub(crate) table_state: TableState,
}

/// The answer of every call that begins a procedure, but a snapshot's.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct ProcedureResponse {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) proc_id: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct GetProcedureResultRequest {
    #[prost(uint64, required, tag = "1")]
    pub(crate) proc_id: u64,
}

/// A procedure that the master has forgotten, or never knew.
pub(crate) const PROCEDURE_NOT_FOUND: i32 = 0;
/// A procedure that has ended, well or not.
pub(crate) const PROCEDURE_FINISHED: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetProcedureResultResponse {
    #[prost(int32, required, tag = "1")]
    pub(crate) state: i32,
    #[prost(message, optional, tag = "5")]
    pub(crate) exception: Option<ForeignExceptionMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ForeignExceptionMessage {
    #[prost(message, optional, tag = "2")]
    pub(crate) generic_exception: Option<GenericExceptionMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GenericExceptionMessage {
    #[prost(string, optional, tag = "1")]
    pub(crate) class_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SnapshotDescription {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    #[prost(string, optional, tag = "2")]
    pub(crate) table: Option<String>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) creation_time: Option<i64>,
}

/// `Snapshot` and `RestoreSnapshot`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SnapshotRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) snapshot: SnapshotDescription,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) nonce_group: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct SnapshotResponse {
    #[prost(int64, optional, tag = "2")]
    pub(crate) proc_id: Option<i64>,
}

/// `DeleteSnapshot` and `IsSnapshotDone`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OneSnapshotRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) snapshot: SnapshotDescription,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct IsSnapshotDoneResponse {
    #[prost(bool, optional, tag = "1")]
    pub(crate) done: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetCompletedSnapshotsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) snapshots: Vec<SnapshotDescription>,
}
