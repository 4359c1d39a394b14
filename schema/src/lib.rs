//! OpenTSDB's tables on any store: what a point, a series and a name are in bytes, and who knows them.
//!
//! ```text
//! name ─ names (rules) ─ uid ─┐
//! tags ───────────────────────┴─ tsuid ─ salt ─ row_key ──┐
//! time ─ point_time ─ base_time ─┬────────────────────────┤ a data row
//! value ─ value ──── qualifier ──┴─ point ─ cell ─────────┘
//!                                             │ compacted, append, annotation
//!                                             └─ row (decode), fold (join), remainder (delete); tsb1 (blocks of rows)
//!
//! schema ─ opens tables (tables, config), gives names UIDs (uids, uid_table), knows every series (index),
//! finds them by name (lookup), keeps remarks (annotations,
//! uid_meta, ts_meta; realtime makes them as points come), orders series (tree)
//! ```
//!
//! The codec modules are pure: bytes in, types out; no store, no clock, no lock. The bytes are those of OpenTSDB 2.4:
//! `golden.rs` holds them against dumps of the real one.

mod annotation;
mod annotations;
mod append;
mod base_time;
mod cell;
mod compacted;
mod config;
mod duplicates;
mod error;
mod fold;
#[cfg(any(test, fuzzing))]
pub mod foreign;
mod generation;
mod hex;
mod histogram;
mod index;
mod indexed_store;
mod inline;
mod java;
mod json_cell;
mod lookup;
mod mend;
mod meta_json;
mod meta_sync;
mod names;
mod point;
mod point_time;
mod qualifier;
mod realtime;
mod remainder;
mod rollup;
mod row;
mod row_fsck;
mod row_key;
mod salt;
mod schema;
mod tables;
mod tags_text;
mod tree;
mod ts_meta;
mod tsb1;
mod tsuid;
mod uid;
mod uid_dice;
mod uid_filter;
mod uid_fsck;
mod uid_kind;
mod uid_meta;
mod uid_table;
mod uids;
mod uids_found;
mod value;

#[cfg(test)]
mod golden;

pub use annotation::{Annotation, AnnotationQualifier, annotation_column, annotation_offset_ms, annotation_start_ms};
pub use annotations::{AnnotationEdit, AnnotationPlace};
pub use append::{APPEND_QUALIFIER, append_point_into, mended_append};
pub use base_time::BaseTime;
pub use cell::RowCell;
pub use compacted::CompactedCell;
pub use config::{AutoCreate, Realtime, SchemaConfig};
pub use duplicates::{Duplicates, LargerOrSmaller};
pub use error::{Damage, Error, JavaByte, NameRole, Result};
pub use fold::RowFold;
pub use hex::{decode as hex_decode, lower as hex_lower, upper_into as hex_into};
pub use histogram::{Bounds, Histogram, HistogramDamage, histogram_column, histogram_offset_ms};
pub use index::{Departed, Forget, IdTable, LogRead, RebuildReport, RowHandles, SeriesId, SeriesIndex, Writing};
pub use indexed_store::IndexedStore;
pub use inline::InlineBytes;
pub use java::{JAVA_MAP_CAPACITY, java_map_order, java_pattern};
pub use json_cell::EditMode;
pub use lookup::{FoundSeries, Lookup, LookupPage};
pub use meta_sync::{MetaPurge, MetaSync};
pub use names::NameRules;
pub use point::{PointCell, StoredPoint, point_cell};
pub use point_time::PointTime;
pub use qualifier::{ColumnKind, PointKind, Qualifier, QualifierBytes};
pub use remainder::RowRemainder;
pub use rollup::{Rollup, RollupAggregate, RollupSettings, Rollups, RowSpan};
pub use row::RowPoints;
pub use row_fsck::{RowFsck, RowFsckCounts, RowFsckOptions, RowMend};
pub use row_key::{KeyLayout, RowKey, SeriesKey};
pub use salt::{MetricSalting, Salt, Salting, TagsHash};
pub use schema::{Schema, SeriesNames};
pub use tables::{DATA_FAMILY, Tables, UID_NAME_FAMILY};
pub use tags_text::tags_text;
pub use tree::{Branch, CompiledTree, Leaf, RuleEdit, RuleKind, Tree, TreeEdit, TreeId, TreeRule, TreeSync, TreeTrial};
pub use ts_meta::{COUNTER_QUALIFIER, TsMeta, TsMetaEdit, TsMetaSaid};
pub use tsb1::{Tsb1, Tsb1Block};
pub use tsuid::{Tsuid, tag_pairs};
pub use uid::{TagPair, Uid, UidWidth, UidWidths};
pub use uid_dice::UidDice;
pub use uid_filter::UidFilter;
pub use uid_fsck::{Finding, Severity, UidFsck, UidFsckOptions, UidMend, UidReport};
pub use uid_kind::UidKind;
pub use uid_meta::{UidMeta, UidMetaEdit};
pub use uid_table::{UidTable, UidUsage, decode_name};
pub use uids::Uids;
pub use uids_found::UidsFound;
pub use value::{Door, Value, ValueBytes};
