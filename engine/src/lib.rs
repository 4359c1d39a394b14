//! The embedded store: WAL, memtable, SSTable, manifest, regions, compaction.
