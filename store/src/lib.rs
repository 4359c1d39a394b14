//! What a wide-column store is: HBase's data model as types, one contract for every store, the rules that
//! decide what a reader sees, and the reference store that all others are measured against.
//!
//! ```text
//! table ── column families ── rows (sorted by key) ── columns (family:qualifier) ── versions (newest first)
//!
//! MutationBatch ──► Store::apply ──► Pending          Scan, Get ──► Store ──► Scanner of RowBatch
//!                     MemoryStore (here) · Engine (embedded) · HBase (over its own RPC)
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | table, column family | [`table`](TableDescriptor) |
//! | namespace | [`namespace`](NamespaceDescriptor) |
//! | cell, version, tombstone | [`cell`](CellRef) |
//! | mutation, durability | [`mutation`](MutationBatch); what follows from what is there: [`modify`](CheckAndMutate) |
//! | scan, get, filter | [`scan`](Scan), [`filter`](Filter) |
//! | answer | [`batch`](RowBatch), [`scanner`](Scanner), [`pending`](Pending), what it took: [`cost`](Cost) |
//! | contract | [`store`](Store), over another one: [`forward`](Forward), [`split`](SplitPolicy), [`snapshot`](SnapshotInfo) |
//! | what is derived from rows | [`side_log`](SideLog) |
//! | row rewrite hook | [`fold`](Fold) |
//! | what runs with a change | constraints and [`trigger`](Trigger)s |
//! | much at once | [`bulk`](WriteBuffer) |
//! | what a reader sees | [`retention`](Retention), [`reader`](RowReader) |
//! | what a design is told before there is data | [`advise`] |
//! | the reference | [`memory`](MemoryStore) |
//! | what every store is held to | `conformance` (feature of that name) |

pub mod advise;
mod batch;
mod bulk;
mod cell;
mod clock;
mod comparison;
#[cfg(any(test, feature = "conformance"))]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the suite is made of assertions: it is there to panic"
)]
#[expect(clippy::missing_panics_doc, reason = "each of its functions panics when the store breaks the rule")]
pub mod conformance;
mod cost;
mod error;
mod filter;
mod fold;
mod forward;
mod memory;
mod modify;
mod mutation;
mod name;
mod namespace;
mod packed;
mod pending;
mod reader;
mod retention;
mod scan;
mod scanner;
mod side_log;
mod snapshot;
mod split;
mod store;
mod table;
mod trigger;

pub use batch::{CellView, RowBatch, RowBatchBuilder, RowView};
pub use bulk::{Operation, Outcome, WriteBuffer, run_operations};
pub use cell::{CellKind, CellRef, SeqNo, Timestamp};
pub use clock::{Clock, ManualClock};
pub use comparison::Comparison;
pub use cost::Cost;
pub use error::{Error, ErrorKind, Result, with_causes};
pub use filter::{
    Advance, CellVerdict, ColumnRange, ColumnTest, Comparator, Filter, FilterRun, FuzzyKey, Kept, ListOperator,
    RowRange, RowVerdict,
};
pub use fold::{Fold, FoldedRow, RowPut};
pub use forward::Forward;
pub use memory::MemoryStore;
pub use modify::{Append, CheckAndMutate, Increment};
pub use mutation::{
    BatchFamily, CellMutation, Durability, Lane, MutationBatch, RowBuilder, RowHandle, RowMutation, check_row_key,
};
pub use name::TableName;
pub use namespace::{NamespaceDescriptor, NamespaceLoad, Namespaces};
pub use packed::{Packed, PackedPoint, PackedRow, PackedRows, Packing, RowSummary};
pub use pending::{Completer, Pending};
pub use reader::{RowReader, Selection};
pub use retention::{Pass, Retention, Rules, Verdict};
pub use scan::{Columns, FamilyColumns, Get, Scan, TimeRange};
pub use scanner::{ScanSender, Scanner};
pub use side_log::SideLog;
pub use snapshot::{SnapshotInfo, check_snapshot_name};
pub use split::{REGION_BYTES_MAX_DEFAULT, SplitAt, SplitPolicy, no_split};
pub use store::{Applied, Compaction, RegionInfo, RowFailure, Store, TruncatedRegions};
pub use table::{
    BLOCK_ENCODINGS, BloomFilter, Compression, FamilyDescriptor, KeepDeletedCells, TableDescriptor, TableState,
};
pub use trigger::{Guards, Newest, RowChange, Trigger};
