//! The oracle's profiles on Basalt's side.

/// The configuration that makes Basalt stand where the daemon of this profile stands, in TOML.
pub(crate) fn settings(profile: &str) -> String {
    let schema = match profile {
        "closed" => "[schema]\nauto_create_metrics = false\nauto_create_tagks = false\nauto_create_tagvs = false\n",
        "salted" => "[schema]\nsalt_width = 1\nsalt_buckets = 20\n",
        // Whether points are appended to one cell is no question here: both kinds of cell read alike.
        _ => "",
    };
    format!("[compat]\nstrict = true\n[query]\nallow_delete = true\n{schema}")
}
