//! `Client.proto`, `Cell.proto` and `Comparator.proto`: rows read and changed.

use bytes::Bytes;
use prost::Message;

use super::cluster::RegionSpecifier;
use super::filter::{Comparator, Filter};
use super::rpc::NameBytesPair;

/// `MutationProto.MutationType`.
pub(crate) const APPEND: i32 = 0;
/// As above.
pub(crate) const INCREMENT: i32 = 1;
/// As above.
pub(crate) const PUT: i32 = 2;
/// As above.
pub(crate) const DELETE: i32 = 3;

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Column {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) family: Bytes,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) qualifier: Vec<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct TimeRange {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) from: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) to: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Get {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) row: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(crate) column: Vec<Column>,
    #[prost(message, optional, tag = "4")]
    pub(crate) filter: Option<Filter>,
    #[prost(message, optional, tag = "5")]
    pub(crate) time_range: Option<TimeRange>,
    #[prost(uint32, optional, tag = "6")]
    pub(crate) max_versions: Option<u32>,
}

/// A cell within a message; most come in a cell block instead.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Cell {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) row: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) qualifier: Option<Bytes>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) timestamp: Option<u64>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) kind: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(crate) value: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CellResult {
    #[prost(message, repeated, tag = "1")]
    pub(crate) cell: Vec<Cell>,
    /// How many cells of the cell block are this result's.
    #[prost(int32, optional, tag = "2")]
    pub(crate) associated_cell_count: Option<i32>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) partial: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Condition {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) row: Bytes,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) qualifier: Option<Bytes>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) compare_type: Option<i32>,
    #[prost(message, optional, tag = "5")]
    pub(crate) comparator: Option<Comparator>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct QualifierValue {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) qualifier: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) value: Option<Bytes>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnValue {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) family: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(crate) qualifier_value: Vec<QualifierValue>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct MutationProto {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) row: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) mutate_type: Option<i32>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) column_value: Vec<ColumnValue>,
    #[prost(int32, optional, tag = "6")]
    pub(crate) durability: Option<i32>,
    #[prost(int32, optional, tag = "8")]
    pub(crate) associated_cell_count: Option<i32>,
    #[prost(uint64, optional, tag = "9")]
    pub(crate) nonce: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MutateRequest {
    #[prost(message, required, tag = "1")]
    pub(crate) region: RegionSpecifier,
    #[prost(message, required, tag = "2")]
    pub(crate) mutation: MutationProto,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) nonce_group: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MutateResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) result: Option<CellResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Action {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) index: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) mutation: Option<MutationProto>,
    #[prost(message, optional, tag = "3")]
    pub(crate) get: Option<Get>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegionAction {
    #[prost(message, required, tag = "1")]
    pub(crate) region: RegionSpecifier,
    #[prost(bool, optional, tag = "2")]
    pub(crate) atomic: Option<bool>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) action: Vec<Action>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MultiRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) region_action: Vec<RegionAction>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) nonce_group: Option<u64>,
    /// The old place of a condition, which every HBase of 2.0 and after reads.
    #[prost(message, optional, tag = "3")]
    pub(crate) condition: Option<Condition>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResultOrException {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) index: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) result: Option<CellResult>,
    #[prost(message, optional, tag = "3")]
    pub(crate) exception: Option<NameBytesPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegionActionResult {
    #[prost(message, repeated, tag = "1")]
    pub(crate) result_or_exception: Vec<ResultOrException>,
    #[prost(message, optional, tag = "2")]
    pub(crate) exception: Option<NameBytesPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MultiResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) region_action_result: Vec<RegionActionResult>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) processed: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scan {
    #[prost(message, repeated, tag = "1")]
    pub(crate) column: Vec<Column>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) attribute: Vec<NameBytesPair>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) start_row: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) stop_row: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub(crate) filter: Option<Filter>,
    #[prost(message, optional, tag = "6")]
    pub(crate) time_range: Option<TimeRange>,
    #[prost(uint32, optional, tag = "7")]
    pub(crate) max_versions: Option<u32>,
    #[prost(bool, optional, tag = "8")]
    pub(crate) cache_blocks: Option<bool>,
    #[prost(uint32, optional, tag = "9")]
    pub(crate) batch_size: Option<u32>,
    #[prost(uint64, optional, tag = "10")]
    pub(crate) max_result_size: Option<u64>,
    #[prost(bool, optional, tag = "13")]
    pub(crate) load_column_families_on_demand: Option<bool>,
    #[prost(bool, optional, tag = "15")]
    pub(crate) reversed: Option<bool>,
    #[prost(uint32, optional, tag = "17")]
    pub(crate) caching: Option<u32>,
    #[prost(bool, optional, tag = "21")]
    pub(crate) include_start_row: Option<bool>,
    #[prost(bool, optional, tag = "22")]
    pub(crate) include_stop_row: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScanRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) region: Option<RegionSpecifier>,
    #[prost(message, optional, tag = "2")]
    pub(crate) scan: Option<Scan>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) scanner_id: Option<u64>,
    #[prost(uint32, optional, tag = "4")]
    pub(crate) number_of_rows: Option<u32>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) close_scanner: Option<bool>,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) next_call_seq: Option<u64>,
    #[prost(bool, optional, tag = "7")]
    pub(crate) client_handles_partials: Option<bool>,
    #[prost(bool, optional, tag = "8")]
    pub(crate) client_handles_heartbeats: Option<bool>,
    #[prost(bool, optional, tag = "10")]
    pub(crate) renew: Option<bool>,
    #[prost(uint32, optional, tag = "11")]
    pub(crate) limit_of_rows: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScanResponse {
    #[prost(uint32, repeated, packed = "false", tag = "1")]
    pub(crate) cells_per_result: Vec<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) scanner_id: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) more_results: Option<bool>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) results: Vec<CellResult>,
    #[prost(bool, repeated, packed = "false", tag = "7")]
    pub(crate) partial_flag_per_result: Vec<bool>,
    #[prost(bool, optional, tag = "8")]
    pub(crate) more_results_in_region: Option<bool>,
}
