//! `Filter.proto` and `Comparator.proto`: each filter is a Java class's name and a message of its own.

use bytes::Bytes;
use prost::Message;

use super::rpc::BytesBytesPair;

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Comparator {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) serialized_comparator: Option<Bytes>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ByteArrayComparable {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) value: Option<Bytes>,
}

/// `BinaryComparator` and `BinaryPrefixComparator`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BinaryComparator {
    #[prost(message, required, tag = "1")]
    pub(crate) comparable: ByteArrayComparable,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RegexStringComparator {
    #[prost(string, required, tag = "1")]
    pub(crate) pattern: String,
    #[prost(int32, required, tag = "2")]
    pub(crate) pattern_flags: i32,
    #[prost(string, required, tag = "3")]
    pub(crate) charset: String,
    #[prost(string, optional, tag = "4")]
    pub(crate) engine: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SubstringComparator {
    #[prost(string, required, tag = "1")]
    pub(crate) substr: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Filter {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) serialized_filter: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct ColumnCountGetFilter {
    #[prost(int32, required, tag = "1")]
    pub(crate) limit: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct ColumnPaginationFilter {
    #[prost(int32, required, tag = "1")]
    pub(crate) limit: i32,
    #[prost(int32, optional, tag = "2")]
    pub(crate) offset: Option<i32>,
}

/// `ColumnPrefixFilter`, `PrefixFilter` and `InclusiveStopFilter`: bytes in the first field, required or not.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BytesFilter {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) bytes: Bytes,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnRangeFilter {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) min_column: Option<Bytes>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) min_column_inclusive: Option<bool>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) max_column: Option<Bytes>,
    #[prost(bool, optional, tag = "4")]
    pub(crate) max_column_inclusive: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct CompareFilter {
    #[prost(int32, required, tag = "1")]
    pub(crate) compare_op: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) comparator: Option<Comparator>,
}

/// `RowFilter`, `FamilyFilter`, `QualifierFilter` and `ValueFilter`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ComparingFilter {
    #[prost(message, required, tag = "1")]
    pub(crate) compare_filter: CompareFilter,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ColumnValueFilter {
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(crate) family: Bytes,
    #[prost(bytes = "bytes", required, tag = "2")]
    pub(crate) qualifier: Bytes,
    #[prost(int32, required, tag = "3")]
    pub(crate) compare_op: i32,
    #[prost(message, required, tag = "4")]
    pub(crate) comparator: Comparator,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SingleColumnValueFilter {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) column_family: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) column_qualifier: Option<Bytes>,
    #[prost(int32, required, tag = "3")]
    pub(crate) compare_op: i32,
    #[prost(message, required, tag = "4")]
    pub(crate) comparator: Comparator,
    #[prost(bool, optional, tag = "5")]
    pub(crate) filter_if_missing: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub(crate) latest_version_only: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SingleColumnValueExcludeFilter {
    #[prost(message, required, tag = "1")]
    pub(crate) single_column_value_filter: SingleColumnValueFilter,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct FilterList {
    #[prost(int32, required, tag = "1")]
    pub(crate) operator: i32,
    #[prost(message, repeated, tag = "2")]
    pub(crate) filters: Vec<Filter>,
}

/// `SkipFilter` and `WhileMatchFilter`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WrappingFilter {
    #[prost(message, required, tag = "1")]
    pub(crate) filter: Filter,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct FuzzyRowFilter {
    #[prost(message, repeated, tag = "1")]
    pub(crate) fuzzy_keys_data: Vec<BytesBytesPair>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) is_mask_v2: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct KeyOnlyFilter {
    #[prost(bool, required, tag = "1")]
    pub(crate) len_as_val: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct MultipleColumnPrefixFilter {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) sorted_prefixes: Vec<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct PageFilter {
    #[prost(int64, required, tag = "1")]
    pub(crate) page_size: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TimestampsFilter {
    #[prost(int64, repeated, packed = "true", tag = "1")]
    pub(crate) timestamps: Vec<i64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RowRange {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) start_row: Option<Bytes>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) start_row_inclusive: Option<bool>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) stop_row: Option<Bytes>,
    #[prost(bool, optional, tag = "4")]
    pub(crate) stop_row_inclusive: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct MultiRowRangeFilter {
    #[prost(message, repeated, tag = "1")]
    pub(crate) row_range_list: Vec<RowRange>,
}
