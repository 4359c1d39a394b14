//! Which endpoints there are (`H-MODE`): `server.mode`, `http.enable_api`, `http.enable_ui`.
//!
//! What is switched off is not there: 404, as for any unknown path.

use crate::config::{Config, Mode};

/// When an endpoint of OpenTSDB's is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Always,
    /// Unless write-only.
    Reads,
    /// Unless read-only.
    Writes,
}

/// Whether the plain path `path` leads anywhere under these settings. Paths that are none of
/// OpenTSDB's (health, numbers) are not looked at.
pub(crate) fn serves(config: &Config, path: &str) -> bool {
    let mut pieces = path.trim_start_matches('/').split('/');
    let (on, access) = match pieces.next().unwrap_or_default() {
        "api" => (config.http.enable_api, api_access(pieces.next().unwrap_or_default())),
        "" | "s" | "favicon.ico" | "suggest" | "q" => (config.http.enable_ui, Access::Reads),
        "aggregators" | "logs" | "stats" | "version" | "diediedie" => (config.http.enable_ui, Access::Always),
        _ => (true, Access::Always),
    };
    on && match config.server.mode {
        Mode::ReadWrite => true,
        Mode::ReadOnly => access != Access::Writes,
        Mode::WriteOnly => access != Access::Reads,
    }
}

/// OpenTSDB's lists: reading annotations counts as writing there.
fn api_access(endpoint: &str) -> Access {
    match endpoint {
        "query" | "search" | "suggest" => Access::Reads,
        "put" | "rollup" | "histogram" | "annotation" | "annotations" | "tree" | "uid" => Access::Writes,
        _ => Access::Always,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mode: Mode, api: bool, ui: bool, there: &str, absent: &str) {
        let mut config = Config::default();
        config.server.mode = mode;
        config.http.enable_api = api;
        config.http.enable_ui = ui;
        for path in there.split(' ').filter(|path| !path.is_empty()) {
            assert!(serves(&config, path), "{mode:?}: {path} is there");
        }
        for path in absent.split(' ').filter(|path| !path.is_empty()) {
            assert!(!serves(&config, path), "{mode:?}: {path} is absent");
        }
    }

    /// `H-MODE`.
    #[test]
    fn a_mode_takes_endpoints_away() {
        let reads = "/api/query /api/query/last /api/search/lookup /api/suggest /q /suggest /s /";
        let writes = "/api/put /api/rollup /api/histogram /api/annotation /api/annotations /api/tree /api/uid/assign";
        let always = "/api/stats /api/config /api/dropcaches /api/version /stats /logs /version /metrics /healthz";
        check(Mode::ReadWrite, true, true, &format!("{reads} {writes} {always}"), "");
        check(Mode::ReadOnly, true, true, &format!("{reads} {always}"), writes);
        check(Mode::WriteOnly, true, true, &format!("{writes} {always}"), reads);
        check(Mode::ReadWrite, false, true, "/q /metrics", "/api/put /api/version /api/");
        check(Mode::ReadWrite, true, false, "/api/put /metrics", "/q / /logs /version");
    }
}
