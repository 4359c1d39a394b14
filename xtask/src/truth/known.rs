//! Rules where HBase 2.6.4 answers otherwise than the suite asks, each with the reason for ours.

/// By rule.
pub(super) const KNOWN: &[(&str, &str)] = &[
    (
        "s_map_6_the_empty_key_is_both_ends",
        "HBase's client cannot look up the region of a row key of 32,767 bytes, as its own catalogue's key for it is longer; ours stores it",
    ),
    (
        "s_map_11_the_server_stamps",
        "HBase's server times go back with its clock, so that a later write may lie below an earlier one; ours never go back",
    ),
    (
        "s_scan_8_filters_of_rows",
        "HBase's MultiRowRangeFilter, reversed, loses the lower of two ranges when the upper one is open; ours gives both",
    ),
    (
        "u_10_deleting_the_only_version_brings_none_back",
        "HBASE-21596 is in 2.6.4: deleting the newest version shows an older one as long as no flush or compaction dropped it; ours shows none",
    ),
    ("s_ns_3_default_and_system", "HBase lets a user make a table in its system namespace; ours refuses"),
    ("s_ns_5_read_only_namespaces", "HBase knows READONLY of tables, not of namespaces"),
    ("s_split_1_bad_splits_are_refused", "HBase sorts splits that come unsorted; ours refuses them"),
    (
        "s_split_1_regions_split",
        "HBase takes a region's middle from its largest file's blocks and finds none within one block; ours takes the middle row",
    ),
];
