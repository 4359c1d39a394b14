//! Who gets through to an endpoint (`P-AUTH`): what a request asks to do, by its plain path and method, and who shows
//! which token.
//!
//! A token is shown as `Authorization: Bearer TOKEN`, or as the password of `Basic`, which Grafana, Telegraf and curl have.
//! What is not in the lists here asks to read: nobody unknown learns which paths there are.

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, Method, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::asker::Ends;
use super::error::ApiError;
use super::params::Params;
use crate::app::App;
use crate::auth::{Permission, Role, Users};
use crate::metrics::{Count, Refused};

/// Looks at who asks for the plain path of `request`, and gives their role.
///
/// # Errors
///
/// 401 for nobody known, 403 for somebody who may not.
pub(crate) fn admit(app: &App, path: &str, request: &Request) -> Result<Role, ApiError> {
    let Some(asked) = permission(path, request.method(), is_edit(request)).filter(|_| app.users.are_asked()) else {
        return Ok(Role::Administrator);
    };
    let (count, error): (fn(&Refused) -> &Count, _) =
        match request.headers().get(AUTHORIZATION).and_then(|shown| role(&app.users, shown)) {
            Some(role) if role.may(asked) => return Ok(role),
            Some(_) => (|refused| &refused.forbidden, ApiError::not_allowed()),
            None => (|refused| &refused.unauthorized, ApiError::unauthorized()),
        };
    count(&app.metrics.http_refused).add(1);
    if error.status() == StatusCode::UNAUTHORIZED && request.headers().contains_key(AUTHORIZATION) {
        // Never what was shown: it may be another server's token, or this one's with a slip in it.
        let peer = request.extensions().get::<Ends>().map(|ends| ends.peer.to_string());
        tracing::warn!(peer, path, "a token was refused");
    }
    if is_query(path) {
        count(&app.metrics.query_refused).add(1);
    }
    Err(error)
}

/// Who puts on a connection: what they showed last, as long as the list of tokens is the one that it was looked up in.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    generation: u64,
    shown: Vec<u8>,
}

impl Pass {
    /// Whether whoever shows this may put, as [`admit`] sees it. Nothing is counted or logged here: who may not is the router's
    /// to refuse.
    ///
    /// *Cost*: the same as before under the same list is told by comparison. It may take longer the more is right, but what is
    /// wrong once goes with its connection to the router, where hashes are looked up.
    pub(crate) fn lets_put(&mut self, users: &Users, shown: Option<&[u8]>) -> bool {
        // Before the look-up: a list that changes meanwhile is another one for the next request.
        let generation = users.generation();
        if generation == 0 {
            return true;
        }
        let Some(shown) = shown else { return false };
        // Fast path: a collector sends the same head all day.
        if (self.generation, self.shown.as_slice()) == (generation, shown) {
            return true;
        }
        let role = HeaderValue::from_bytes(shown).ok().and_then(|shown| role(users, &shown));
        let may = role.is_some_and(|role| role.may(Permission::Write));
        if may {
            *self = Self { generation, shown: shown.to_vec() };
        }
        may
    }
}

/// Whether points are asked for.
fn is_query(path: &str) -> bool {
    path == "/api/query" || path.starts_with("/api/query/") || path == "/q"
}

/// What a request asks to do; nothing where anybody may.
fn permission(path: &str, method: &Method, is_edit: bool) -> Option<Permission> {
    let mut pieces = path.trim_start_matches('/').split('/');
    let (first, second) = (pieces.next().unwrap_or_default(), pieces.next().unwrap_or_default());
    let third = pieces.next().unwrap_or_default();
    // Whatever does not surely read.
    let changes = is_edit || *method != Method::GET;
    match (first, second) {
        // A balancer asks whether the server is there.
        ("healthz" | "readyz", _) => None,
        ("store" | "diediedie" | "logs", _) | ("api", "dropcaches") => Some(Permission::Operate),
        ("api", "put" | "rollup" | "histogram") => Some(Permission::Write),
        // These change on GET as well.
        ("api", "uid") if matches!(third, "assign" | "rename") => Some(Permission::Write),
        ("api", "annotation" | "annotations" | "tree" | "uid") if changes => Some(Permission::Write),
        ("api", "query") if *method == Method::DELETE => Some(Permission::Operate),
        _ => Some(Permission::Read),
    }
}

/// Whether a GET means another method (`H-OVERRIDE`); parameters that cannot be read are the endpoint's to refuse.
fn is_edit(request: &Request) -> bool {
    Params::of(request.uri()).is_ok_and(|params| params.last("method_override").is_some())
}

/// The role of whoever shows this.
fn role(users: &Users, shown: &HeaderValue) -> Option<Role> {
    let (scheme, shown) = shown.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return users.role(None, shown.trim());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(shown.trim()).ok()?).ok()?;
    let (name, token) = pair.split_once(':')?;
    users.role(Some(name), token)
}
