//! The file of limits by metric (`P-LIMITS`): read at start, and again as often as `query.limits_reload_ms` says.
//!
//! A file that cannot be read at start ends the start, since limits that somebody wrote down would not hold; later it is
//! a warning, and the limits in force stay.

use crate::reload::Reloaded;

/// The file.
pub(crate) const FILE: Reloaded = Reloaded {
    what: "limits by metric",
    path: |app| &app.config.query.limits_file,
    every: |app| app.config.query.limits_reload_ms,
    replace: |app, text| app.queries().overrides().replace(text).map_err(|cause| cause.to_string()),
};
