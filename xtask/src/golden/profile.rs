//! The oracle's profiles on Basalt's side.

/// The configuration that makes Basalt stand where the daemon of this profile stands, in TOML.
pub(crate) fn settings(profile: &str) -> String {
    let rest = match profile {
        "closed" => "auto_create_metrics = false\nauto_create_tagks = false\nauto_create_tagvs = false\n",
        "meta" => {
            "[meta]\nrealtime_uid = true\nrealtime_ts = true\ntsuid_incrementing = true\ntsuid_tracking = true\n\
             tree_processing = true\n"
        }
        "filtered" => {
            "uid_width_metric = 2\nuid_width_tagk = 1\nuid_width_tagv = 1\n[uid]\nfilter = true\n\
             pattern_delimiter = ';'\nmetric_patterns = '^[a-z.]+$'\ntagk_patterns = '^[a-z]+$;^.{2,5}$'\n"
        }
        // Whether points are appended to one cell is no question here: both kinds of cell read alike.
        _ => "",
    };
    // Strict answers show the order of rows, and with it the salt.
    let salt = if profile == "salted" { "salt_width = 1\nsalt_buckets = 20\n" } else { "salt_width = 0\n" };
    format!("[compat]\nstrict = true\n[query]\nallow_delete = true\n[schema]\n{salt}{rest}")
}
