//! `RPC.proto`: what stands around each call.

use bytes::Bytes;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserInformation {
    #[prost(string, required, tag = "1")]
    pub(crate) effective_user: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VersionInfo {
    #[prost(string, required, tag = "1")]
    pub(crate) version: String,
    #[prost(string, required, tag = "2")]
    pub(crate) url: String,
    #[prost(string, required, tag = "3")]
    pub(crate) revision: String,
    #[prost(string, required, tag = "4")]
    pub(crate) user: String,
    #[prost(string, required, tag = "5")]
    pub(crate) date: String,
    #[prost(string, required, tag = "6")]
    pub(crate) src_checksum: String,
    #[prost(uint32, optional, tag = "7")]
    pub(crate) version_major: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub(crate) version_minor: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConnectionHeader {
    #[prost(message, optional, tag = "1")]
    pub(crate) user_info: Option<UserInformation>,
    #[prost(string, optional, tag = "2")]
    pub(crate) service_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) cell_block_codec_class: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(crate) version_info: Option<VersionInfo>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct CellBlockMeta {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) length: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExceptionResponse {
    #[prost(string, optional, tag = "1")]
    pub(crate) exception_class_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) stack_trace: Option<String>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) do_not_retry: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) call_id: Option<u32>,
    #[prost(string, optional, tag = "3")]
    pub(crate) method_name: Option<String>,
    #[prost(bool, optional, tag = "4")]
    pub(crate) request_param: Option<bool>,
    #[prost(message, optional, tag = "5")]
    pub(crate) cell_block_meta: Option<CellBlockMeta>,
    /// Milliseconds after which the server need not begin any more.
    #[prost(uint32, optional, tag = "7")]
    pub(crate) timeout: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) call_id: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) exception: Option<ExceptionResponse>,
    #[prost(message, optional, tag = "3")]
    pub(crate) cell_block_meta: Option<CellBlockMeta>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NameBytesPair {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) value: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NameStringPair {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    #[prost(string, required, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BytesBytesPair {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) first: Bytes,
    #[prost(bytes = "bytes", required, tag = "2")]
    pub(crate) second: Bytes,
}

/// A request or an answer without fields.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Empty {}
