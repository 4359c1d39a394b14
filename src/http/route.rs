//! Paths: OpenTSDB's way of reading them, and the table of endpoints.
//!
//! Pieces match without regard to case, `/api/v1/x` is `/api/x`, a higher version is refused, and
//! what follows an endpoint's own pieces is ignored (`/api/version/` is `/api/version`).

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::routing::{any, get, post};

use super::error::ApiError;
use super::{
    annotation, assets, backup, classic, compact, expression, health, last, logs, page, process, put, query, scrub,
    search, service, stats, store, suggest, tree, ts_meta, uid, uid_meta,
};
use crate::app::App;

/// Endpoints whose second piece after `/api/` tells them apart.
const TWO_PIECES: &[&str] = &["uid", "search", "annotation", "annotations", "tree"];

/// The names below endpoints that take any other second piece for none: `/api/config/x` is `/api/config`.
const NAMED_BELOW: &[(&str, &[&str])] = &[
    ("query", &["exp", "gexp", "last"]),
    ("config", &["filters"]),
    ("stats", &["jvm", "query", "region_clients", "threads"]),
];

/// All endpoints under their plain names.
pub(crate) fn table(app: &Arc<App>) -> Router {
    let router = Router::new()
        .route("/", get(|| async { super::content::body_of("text/html; charset=UTF-8", page::home()) }))
        .route("/q", any(classic::get))
        .route("/s/{*name}", get(assets::below))
        .route("/favicon.ico", get(assets::favicon))
        .route("/logs", any(logs::recent))
        .route("/diediedie", any(service::diediedie))
        .route("/api/put", post(put::put))
        .route("/api/rollup", post(put::rollup))
        .route("/api/histogram", any(put::histogram))
        .route("/api/query", get(query::get).post(query::post).delete(query::get))
        .route("/api/query/exp", post(expression::post))
        .route("/api/query/gexp", get(query::formulas))
        .route("/api/query/last", get(last::get).post(last::post))
        .route("/api/suggest", get(suggest::get).post(suggest::post))
        .route("/suggest", get(suggest::get).post(suggest::get))
        .route("/api/aggregators", get(service::aggregators).post(service::aggregators))
        .route("/aggregators", get(service::aggregators).post(service::aggregators))
        .route("/api/annotation", any(annotation::one))
        .route("/api/annotation/{*rest}", any(annotation::below))
        .route("/api/annotations", any(annotation::range))
        .route("/api/annotations/{*rest}", any(annotation::below))
        .route("/api/search", any(search::untyped))
        .route("/api/search/{kind}", any(search::typed))
        .route("/api/tree", any(tree::whole))
        .route("/api/tree/{kind}", any(tree::below))
        .route("/api/uid/assign", any(uid::assign))
        .route("/api/uid/rename", any(uid::rename))
        .route("/api/uid/uidmeta", any(uid_meta::meta))
        .route("/api/uid/tsmeta", any(ts_meta::meta))
        .route("/api/uid", any(|| async { ApiError::no_uid_endpoint() }))
        .route("/api/uid/{*rest}", any(|| async { ApiError::no_uid_endpoint() }))
        .route("/api/version", get(service::version).post(service::version))
        .route("/version", get(service::version_lines).post(service::version_lines))
        .route("/api/config", get(service::config).post(service::config))
        .route("/api/config/filters", get(service::filters).post(service::filters))
        .route("/api/dropcaches", get(service::dropcaches).delete(service::dropcaches))
        .route("/api/serializers", get(service::serializers).post(service::serializers))
        .route("/api/status", get(service::status).post(service::status))
        .route("/api/stats/jvm", get(process::jvm).post(process::jvm))
        .route("/api/stats/query", get(stats::queries).post(stats::queries))
        .route("/api/stats/threads", get(process::threads).post(process::threads))
        .route("/api/stats/region_clients", get(process::region_clients).post(process::region_clients))
        .route("/api/stats", get(stats::api).post(stats::api))
        .route("/stats", get(stats::lines).post(stats::lines))
        .route("/store", post(store::shell))
        .route("/store/backup", post(backup::backup))
        .route("/store/compact", post(compact::compact))
        .route("/store/verify", post(scrub::scrub))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics));
    router
        .fallback(|| async { ApiError::no_endpoint() })
        .method_not_allowed_fallback(|method: Method| async move { ApiError::method(&method) })
        .with_state(Arc::clone(app))
}

/// Whether errors on this path have the API's shape: OpenTSDB's API, and our own tools' door.
pub(crate) fn is_api(path: &str) -> bool {
    is_below(path, &["api", "store"])
}

/// Whether it is an endpoint of ours for operators, which OpenTSDB has no words for.
pub(crate) fn is_for_operators(path: &str) -> bool {
    is_below(path, &["healthz", "readyz", "metrics"])
}

/// Whether what is asked there is given up when its asker hangs up: queries, and what operators ask of the store.
pub(crate) fn ends_with_its_asker(path: &str) -> bool {
    let asks = || path.split('/').any(|piece| piece.eq_ignore_ascii_case("query"));
    is_below(path, &["q", "store"]) || is_below(path, &["api"]) && asks()
}

/// Whether the first piece of a path is one of these; empty ones are none, as to [`plain`].
fn is_below(path: &str, pieces: &[&str]) -> bool {
    let first = path.split('/').find(|piece| !piece.is_empty());
    first.is_some_and(|first| pieces.iter().any(|piece| first.eq_ignore_ascii_case(piece)))
}

/// The plain name of the endpoint that `uri` means, with its query string kept.
///
/// # Errors
///
/// 501 for an API version above 1, 400 for a version that is no number.
pub(crate) fn plain(uri: &Uri) -> Result<Uri, ApiError> {
    let mut pieces = uri.path().split('/').skip(1).map(str::to_ascii_lowercase).filter(|piece| !piece.is_empty());
    let first = pieces.next().unwrap_or_default();
    let path = if ["s", "store"].contains(&first.as_str()) {
        // Our own doors are below theirs.
        std::iter::once(first).chain(pieces).fold(String::new(), |path, piece| path + "/" + &piece)
    } else if first == "api" {
        let mut second = pieces.next().unwrap_or_default();
        if let Some(version) =
            second.strip_prefix('v').filter(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
        {
            accept(version)?;
            second = pieces.next().unwrap_or_default();
        }
        match pieces.next() {
            Some(third) if TWO_PIECES.contains(&second.as_str()) || is_named_below(&second, &third) => {
                format!("/api/{second}/{third}")
            }
            _ => format!("/api/{second}"),
        }
    } else {
        format!("/{first}")
    };
    let whole = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    whole.parse().map_err(|_| ApiError::bad("Bad request path"))
}

fn is_named_below(second: &str, third: &str) -> bool {
    NAMED_BELOW.iter().any(|(endpoint, names)| *endpoint == second && names.contains(&third))
}

fn accept(version: &str) -> Result<(), ApiError> {
    match version.parse::<u32>() {
        Ok(0 | 1) => Ok(()),
        Ok(higher) => Err(ApiError::version(higher.into())),
        Err(_) => Err(ApiError::bad_with(
            "Invalid API version format supplied",
            format!("API version [{version}] cannot be parsed to an integer"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, expected: &str) {
        let plain = plain(&uri.parse().unwrap()).map(|uri| uri.to_string()).map_err(|error| error.status().as_u16());
        let expected = expected.parse().map_or(Ok(expected.to_owned()), Err);
        assert_eq!(plain, expected, "{uri}");
    }

    #[test]
    fn paths_are_read_as_opentsdb_reads_them() {
        check("/api/version", "/api/version");
        check("/API/V1/Version?a=B", "/api/version?a=B");
        check("/api/version/", "/api/version");
        check("/api/version/extra", "/api/version");
        check("/api/v1", "/api/");
        check("/api", "/api/");
        check("/api/vx/version", "/api/vx");
        check("/api/v2/version", "501");
        check("/api/v1x/version", "400");
        check("/api/config/Filters", "/api/config/filters");
        check("/api/config/foo", "/api/config");
        check("/api/v1/stats/Threads/x", "/api/stats/threads");
        check("/api/stats/foo/bar?a", "/api/stats?a");
        check("/api/query/last", "/api/query/last");
        check("/api/query/foo", "/api/query");
        check("/Suggest?type=metrics", "/suggest?type=metrics");
        check("/s/Graph.CSS", "/s/graph.css");
        check("/s/", "/s");
        check("/store/backup", "/store/backup");
        check("/s/../../etc/passwd", "/s/../../etc/passwd");
        check("/", "/");
    }

    #[test]
    fn queries_and_what_operators_ask_end_with_their_asker() {
        let ends = ["/api/query", "//API/v1/Query/exp", "/q", "/Store/compact"].map(ends_with_its_asker);
        assert_eq!(ends, [true; 4]);
        let ends = ["/api/put", "/api/v1/put/", "/api/suggest", "/query", "/metrics", "/"].map(ends_with_its_asker);
        assert_eq!(ends, [false; 6]);
    }
}
