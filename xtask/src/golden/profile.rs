//! The oracle's profiles on Basalt's side.

/// What `tests/oracle/conf.sh` gives the profile `rollup`.
const ROLLUPS: &str = r#"histograms = '{"net.opentsdb.core.SimpleHistogramDecoder": 42}'
[rollups]
enable = true
config = '''
{"aggregationIds": {"sum": 0, "count": 1, "min": 2, "max": 3},
 "intervals": [
  {"table": "tsdb", "preAggregationTable": "tsdb-preagg", "interval": "1m", "rowSpan": "1h", "defaultInterval": true},
  {"table": "tsdb-10m", "preAggregationTable": "tsdb-10m-preagg", "interval": "10m", "rowSpan": "1d"},
  {"table": "tsdb-1h", "preAggregationTable": "tsdb-1h-preagg", "interval": "1h", "rowSpan": "1n"},
  {"table": "tsdb-1d", "preAggregationTable": "tsdb-1d-preagg", "interval": "1d", "rowSpan": "1y"}]}
'''
"#;

/// Nothing is made by itself, nor deleted by a query.
const CLOSED: &str = "auto_create_metrics = false\nauto_create_tagks = false\nauto_create_tagvs = false\n";

/// The configuration that makes Basalt stand where the daemon of this profile stands, in TOML.
pub(crate) fn settings(profile: &str) -> String {
    let rest = match profile {
        "closed" => CLOSED,
        "meta" => {
            "[meta]\nrealtime_uid = true\nrealtime_ts = true\ntsuid_incrementing = true\ntsuid_tracking = true\n\
             tree_processing = true\n"
        }
        "filtered" => {
            "uid_width_metric = 2\nuid_width_tagk = 1\nuid_width_tagv = 1\n[uid]\nfilter = true\n\
             pattern_delimiter = ';'\nmetric_patterns = '^[a-z.]+$'\ntagk_patterns = '^[a-z]+$;^.{2,5}$'\n"
        }
        "rollup" => ROLLUPS,
        "appends" => "enable_appends = true\n",
        _ => "",
    };
    // Strict answers show the order of rows, and with it a salt that was asked for; our own default they must not show.
    let salt = if profile == "salted" { "salt_width = 1\nsalt_buckets = 20\n" } else { "" };
    let delete = profile != "closed";
    format!("[compat]\nstrict = true\n[query]\nallow_delete = {delete}\n[schema]\n{salt}{rest}")
}
