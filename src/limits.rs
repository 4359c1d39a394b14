//! The file of limits by metric (`P-LIMITS`): read at start, and again as often as `query.limits_reload_ms` says.
//!
//! A file that cannot be read at start ends the start, since limits that somebody wrote down would not hold; later it is
//! a warning, and the limits in force stay.

use basalt_query::LimitOverrides;

use crate::reload::Reloaded;

/// The file.
pub(crate) const FILE: Reloaded = Reloaded {
    setting: "query.limits_file",
    what: "limits by metric",
    path: |config| &config.query.limits_file,
    every: |config| config.query.limits_reload_ms,
    check: |text| replace(&LimitOverrides::default(), text),
    replace: |app, text| replace(app.queries().overrides(), text),
};

fn replace(overrides: &LimitOverrides, text: &str) -> Result<usize, String> {
    overrides.replace(text).map_err(|cause| cause.to_string())
}
