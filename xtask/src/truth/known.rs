//! Rules where HBase 2.6.4 answers otherwise than the suite asks, each with the reason for ours.

/// The reason of the rules on costs.
const COST: &str =
    "HBase tells its clients of no cell, block or byte that a read looked at; ours are asked of counters";

/// By rule. Where it is HBase's own fault, the histories keep off it: `basalt_store::conformance::history`.
pub(super) const KNOWN: &[(&str, &str)] = &[
    (
        "s_map_11_the_server_stamps",
        "HBase's server times go back with its clock, so that a later write may lie below an earlier one; ours never go back",
    ),
    (
        "s_del_8_a_put_after_a_delete_is_seen_though_the_clock_went_back",
        "HBase's server times go back with its clock, so that the delete masks nothing written before; ours go on behind the tombstone's",
    ),
    (
        "s_cnt_1_no_delete_within_the_millisecond_hides_a_change",
        "HBase stamps an increment or append of a deleted cell with the tombstone's own millisecond, so that it is answered and never seen; ours come after it",
    ),
    (
        "s_scan_8_open_ranges_of_rows_reversed",
        "HBase's MultiRowRangeFilter, reversed, loses the lower of two ranges when the upper one is open; ours gives both",
    ),
    (
        "s_scan_8_any_of_a_list_reversed",
        "HBase's FilterListWithOR, reversed, takes the cells behind one filter's seek hint for passed and loses them; ours gives them",
    ),
    (
        "s_del_4_a_column_prefix_passes_over_no_family_tombstone",
        "HBase seeks over the family's tombstone where it lies below a put of the empty qualifier, and shows deleted cells; ours stay masked",
    ),
    (
        "u_4_deleted_versions_still_count",
        "HBase leaves out files whose times lie outside of the range before it counts, so that flushes change the answer; ours counts all",
    ),
    (
        "u_10_deleting_the_only_version_brings_none_back",
        "HBASE-21596 is in 2.6.4: deleting the newest version shows an older one as long as no flush or compaction dropped it; ours shows none",
    ),
    (
        "s_ttl_1_expired_tombstones_hold_no_scan_up",
        "HBase's scan never ends: it seeks past an expired tombstone of the empty qualifier to the very address of the put, which it holds for not reached (KeyValueHeap compares sequence numbers, the file's reader does not)",
    ),
    ("s_ns_5_read_only_namespaces", "HBase knows READONLY of tables, not of namespaces"),
    (
        "snapshots_are_restored_over_an_emptied_table",
        "HBase deletes files that the snapshot needs when the table restored from it is truncated: the next restore ends in CorruptedSnapshotException",
    ),
    (
        "s_ns_4_snapshots_respect_quotas",
        "HBase counts the parent of a split, which the snapshot still holds, as a region of the clone; ours counts regions that serve",
    ),
    ("s_split_1_bad_splits_are_refused", "HBase sorts splits that come unsorted; ours refuses them"),
    (
        "s_split_1_regions_split",
        "HBase takes a region's middle from its largest file's blocks and finds none within one block; ours takes the middle row",
    ),
    (
        "snapshots_are_stamped_by_the_stores_clock",
        "HBase's master stamps by the wall's clock, which no hook of the driver's turns",
    ),
    (
        "s_idx_6_a_trigger_keeps_an_index",
        "HBase's triggers are coprocessors, Java classes; it keeps the attribute and does nothing",
    ),
    (
        "s_cons_1_constraints_refuse_by_name",
        "HBase's constraints are Java classes; it keeps the attribute and does nothing",
    ),
    ("s_map_13_families_lie_apart", COST),
    ("s_map_17_a_cell_is_read_with_its_block", COST),
    ("s_vers_2_the_newest_is_met_first", COST),
    ("s_key_2_only_the_key_is_an_index", COST),
    ("s_scan_4_prefixes_are_ranges_and_endings_are_not", COST),
    ("s_perf_1_bloom_filters_spare_blocks", COST),
    ("s_perf_4_block_size_is_what_a_get_pays", COST),
    (
        "s_list_7_tall_and_wide_carry_the_same_bytes",
        "raw cells cost the same there too, but HBase's files are larger than the cells in them; ours are smaller",
    ),
    (
        "s_perf_3_compression_changes_bytes_not_answers",
        "the driver's HBase has no native codec, so its files stay as large; the answers are the same",
    ),
    (
        "s_perf_6_block_encodings_change_no_answer",
        "HBase's NONE writes every key whole; ours has one layout for all names, which is half as large",
    ),
];
