//! What every store is held to: one suite, run over the memory store, the embedded engine and a real HBase alike, and
//! [random histories](history) that two stores are led through side by side.
//!
//! ```ignore
//! basalt_store::conformance_suite!(EngineFixture::new); // one #[test] a rule
//! ```
//!
//! Each rule is a function named by its code of the seeds' checklist. Most hold their answer at every stage of a cell's
//! life: in the memtable, after reopening, flushed, after a minor and after a major compaction.
//!
//! | codes | where |
//! |---|---|
//! | S-MAP-3..8, -10, -11, -15, -16; S-NAME-3; S-PUT-1, -3, -4; S-TYPE-1, -2; S-KEY-4; S-CNT-1..3; S-ACID-1, -2 (but for crashes) | `rows` |
//! | append, check-and-mutate, handles | `rows` |
//! | S-GET-1..5; S-SCAN-1..3, -5..8, -10, -11 | `reads` |
//! | S-SCAN-8: values, columns, times, pages, while-match, skip, lists | `filters` |
//! | S-DEL-1..11; U-4, U-6, U-9..11; D-35 | `deletes` |
//! | S-VERS-1, -3..9; S-TTL-1, -2, -4; S-KEEP-1..3; U-7, U-8 | `versions` |
//! | S-NAME-1, -2; S-ADMIN-1, -2; S-CF-7; S-SPLIT-1, -7, -8; S-PERF-1, -3, -4, -5 (answers, not costs) | `tables` |
//! | S-NS-1..6; S-ADMIN-1, -2 (disabled, truncated) | `namespaces` |
//! | snapshots; S-NS-4 of them and of splits | `snapshots` |
//! | S-MAP-12, -13, -17; S-VERS-2; S-KEY-2; S-SCAN-4, -5; S-SIZE-1; S-LIST-7; S-PERF-1, -3, -4, -6 (costs) | `costs` |
//! | S-CONS-1; S-IDX-6; S-PUT-2; S-MAP-9, -16, -18; S-VERS-10; S-TTL-3; S-CF-2; U-5 | `changes` |
//! | R-3..10 | `layouts` |
//! | D-3..6, -9, -12, -13, -34 | `contradictions` |
//! | S-MAP-1 | [`history`] |
//!
//! What is the engine's alone has its code in the name of one of the engine's tests: splits by size (S-PERF-2), blocks
//! kept in memory (S-PERF-5), crashes (S-ACID-2, S-CNT-2, S-IDX-6). `docs/data-model.md` says for every code where it is.

mod changes;
mod contradictions;
mod costs;
mod deletes;
mod filters;
pub mod history;
mod layouts;
mod namespaces;
mod reads;
mod rows;
mod scene;
mod snapshots;
mod tables;
mod versions;

use std::sync::Arc;

pub use changes::*;
pub use contradictions::*;
pub use costs::*;
pub use deletes::*;
pub use filters::*;
pub use layouts::*;
pub use namespaces::*;
pub use reads::*;
pub use rows::*;
pub use snapshots::*;
pub use tables::*;
pub use versions::*;

use crate::{ManualClock, Store};

/// A store under test, empty when the fixture is new. It compacts only when it is told to.
pub trait Fixture {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// The clock that the store was made with.
    fn clock(&self) -> &ManualClock;

    /// Closes the store and opens it again over the same data. A store that keeps nothing does nothing.
    fn reopen(&mut self);
}

/// One rule of the suite: it panics where the store breaks it.
pub type Rule = fn(&mut dyn Fixture);

/// Every rule by its name, for whoever runs them outside of `cargo test`.
pub fn rules() -> Vec<(&'static str, Rule)> {
    crate::conformance_suite!(table)
}

/// Makes a `#[test]` of every rule. Takes a path to a function without arguments that gives a new [`Fixture`].
#[macro_export]
macro_rules! conformance_suite {
    (@ (table) $($rule:ident)*) => {
        vec![$((stringify!($rule), $crate::conformance::$rule as $crate::conformance::Rule)),*]
    };
    (@ ($fixture:path) $($rule:ident)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::conformance::$rule(&mut $fixture());
            }
        )*
    };
    ($($what:tt)*) => {
        $crate::conformance_suite! { @ ($($what)*)
            s_map_3_unknown_tables_are_refused
            s_map_4_row_keys_are_bytes
            s_map_5_rows_are_sorted
            s_map_6_the_empty_key_is_both_ends
            s_map_7_rows_absent_from_a_family
            s_map_8_qualifiers_are_bytes
            s_map_10_each_version_by_its_time
            s_map_11_the_server_stamps
            s_map_15_the_webtable
            s_name_3_unknown_families_fail_their_row
            s_put_1_upsert
            s_put_3_times_of_ones_own
            s_put_4_overwriting
            s_type_1_values_are_bytes
            s_type_2_values_are_bounded
            s_key_4_families_apart
            s_cnt_1_increments_are_atomic
            s_cnt_3_counters_are_big_endian
            s_cnt_1_a_counter_dated_ahead_counts_on
            s_cnt_1_each_change_is_a_version_of_its_own
            s_cnt_1_no_delete_within_the_millisecond_hides_a_change
            append_goes_on_from_what_is_there
            rows_come_with_handles_or_without
            check_and_mutate_holds_the_newest_value
            check_and_mutate_takes_an_empty_value_for_none
            check_and_mutate_changes_one_row
            s_acid_1_rows_are_atomic
            s_get_1_what_was_asked
            s_get_2_a_get_is_a_short_scan
            s_get_3_the_largest_version
            s_get_4_versions_newest_first
            s_get_5_time_ranges
            s_scan_1_ranges
            s_scan_2_prefix_scans_and_dropped_scanners
            s_scan_3_inclusive_stop
            s_scan_5_columns_and_pieces
            s_scan_6_the_order_of_cells
            s_scan_7_reversed
            s_scan_8_filters_of_rows
            s_scan_8_open_ranges_of_rows_reversed
            s_scan_8_any_of_a_list_reversed
            s_scan_8_filters_of_cells
            s_scan_8_filters_of_row_keys
            s_scan_8_filters_of_columns
            s_scan_8_filters_of_values
            s_scan_8_one_columns_value_decides_about_its_row
            s_scan_8_a_filter_sees_one_version_more_than_wanted
            s_scan_8_filters_of_times
            s_scan_8_pages_of_rows
            s_scan_8_while_something_matches
            s_scan_8_rows_skipped_whole
            s_scan_8_lists_of_filters_of_cells
            s_scan_8_rows_in_pieces_are_judged_by_no_row_filter
            s_scan_10_batches_change_no_answer
            s_scan_11_limit
            s_del_1_tombstones_mask_and_go_at_major_compaction
            s_del_1_a_raw_read_shows_the_dead
            s_del_2_delete_one_version
            s_del_3_delete_a_column
            s_del_4_delete_a_family
            s_del_4_a_family_tombstone_below_the_empty_qualifier
            s_del_4_a_column_prefix_passes_over_no_family_tombstone
            s_del_5_a_row_delete_is_one_tombstone_a_family
            s_del_6_no_time_means_the_servers_own
            s_del_7_deletes_mask_later_puts_until_major_compaction
            s_del_8_a_put_within_the_deletes_millisecond_is_masked
            s_del_8_a_put_after_a_delete_is_seen_though_the_clock_went_back
            s_del_9_a_delete_before_compaction_shows_an_older_version
            s_del_9_a_delete_after_compaction_shows_none
            s_del_10_kept_deletes_keep_their_tombstones
            s_del_11_future_tombstones_go_at_major_compaction
            s_del_11_a_purge_delay_is_a_number
            s_del_11_tombstones_outlive_major_compactions_by_the_purge_delay
            u_4_tombstones_mask_earlier_writes_only
            u_4_deleted_versions_still_count
            u_6_delete_a_familys_version
            u_9_delete_the_newest_version
            u_10_deleting_the_only_version_brings_none_back
            u_10_deleting_nothing_hides_no_older_put
            u_11_the_delay_holds_for_every_recent_tombstone
            d_35_minor_compactions_change_no_answer
            s_vers_1_any_number_of_versions
            s_vers_3_of_one_version_the_last_written_wins
            s_vers_4_versions_out_of_order
            s_vers_5_one_version_by_default
            s_vers_6_excess_versions_go_at_major_compaction
            s_vers_7_versions_are_altered
            s_vers_8_min_versions_below_versions
            s_vers_9_min_versions_outlive_ttl
            s_ttl_1_expiry
            s_ttl_1_expired_tombstones_hold_no_scan_up
            s_ttl_2_expired_rows_are_absent
            s_ttl_4_ttl_counts_from_the_cells_time
            s_keep_1_deleted_cells_at_their_time
            s_keep_2_kept_deletes_are_bounded
            s_keep_3_raw_scans_show_tombstones
            u_7_kept_until_ttl
            u_8_the_range_comes_before_the_count
            s_name_2_family_names
            s_ns_1_namespaces_part_tables
            s_ns_2_create_alter_drop
            s_ns_3_default_and_system
            s_ns_4_quotas
            s_ns_5_read_only_namespaces
            s_ns_6_server_groups_are_not_supported
            s_admin_1_create_truncate_drop
            s_admin_1_truncate_keeps_or_merges_regions
            s_admin_2_alter_online
            s_admin_2_disabled_tables_do_not_serve
            s_cf_7_settings_are_kept
            s_split_1_regions_tile_the_keys
            s_split_1_bad_splits_are_refused
            s_split_1_regions_split
            s_split_1_splits_that_cannot_be_are_refused
            s_split_7_create_is_told_apart
            s_split_8_regions_count_their_load
            s_perf_settings_change_no_answer
            snapshots_are_listed
            snapshots_are_stamped_by_the_stores_clock
            snapshots_are_cloned
            snapshots_are_restored
            snapshots_are_restored_over_an_emptied_table
            s_ns_4_snapshots_respect_quotas
            s_idx_6_a_trigger_keeps_an_index
            s_cons_1_constraints_refuse_by_name
            s_put_2_a_buffer_is_written_when_it_is_flushed
            s_put_2_a_batch_of_operations_has_an_outcome_each
            s_map_9_families_and_their_columns
            s_map_16_each_level_of_the_map
            s_map_18_four_operations
            s_vers_10_new_families_have_the_stores_default
            s_ttl_3_an_hour_is_an_hour
            s_cf_2_a_flush_makes_no_file_of_an_idle_family
            u_5_row_keys_are_bounded
            r_3_a_logs_elements
            r_4_hashes_and_a_time
            r_5_numbers_for_names
            r_6_customers_and_orders
            r_7_a_customer_and_its_orders_in_one_scan
            r_8_an_order_of_three_tables
            r_9_an_order_of_one_table
            r_10_lines_with_their_address
            d_3_a_hash_of_the_user_spreads_users_not_one_users_rows
            d_4_aligned_times_fall_in_few_buckets
            d_5_a_known_time_is_one_get_whatever_the_buckets
            d_6_hexadecimal_keys_fall_in_three_of_ten_regions
            d_9_a_random_ending_spreads_nothing
            d_12_an_index_holds_the_rest_of_the_key
            d_13_padding_with_a_letter_breaks_the_order
            d_34_a_long_as_text_is_two_and_a_half_times_as_long
            s_map_12_absent_cells_take_no_space
            s_map_13_families_lie_apart
            s_map_17_a_cell_is_read_with_its_block
            s_vers_2_the_newest_is_met_first
            s_key_2_only_the_key_is_an_index
            s_scan_4_prefixes_are_ranges_and_endings_are_not
            s_scan_5_a_slice_of_a_wide_row_costs_the_slice
            s_size_1_every_cell_carries_its_coordinates
            s_list_7_tall_and_wide_carry_the_same_bytes
            s_perf_1_bloom_filters_spare_blocks
            s_perf_4_block_size_is_what_a_get_pays
            s_perf_3_compression_changes_bytes_not_answers
            s_perf_6_block_encodings_change_no_answer
        }
    };
}

#[cfg(test)]
mod tests;
