//! Who may do what only an operator may: whoever sits on this machine and says so.
//!
//! Where tokens are asked for, an administrator's is (`gate`). Beside that, three things are asked together: the connection comes
//! from this machine; the request names this machine as its host, so that no web page whose name was bent to this address gets in; and it carries a
//! header that a page of another origin cannot send without being let by CORS, which never allows this one.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;

use super::asker::Peer;
use super::error::ApiError;
use crate::app::App;

/// The header that an operator's tool sends, with any value.
pub(crate) const HEADER: &str = "x-basalt-admin";

/// A request by an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admin;

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        let is_near = parts.extensions.get::<Peer>().is_some_and(|Peer(peer)| peer.ip().to_canonical().is_loopback());
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        if is_near && host.is_some_and(is_this_machine) && parts.headers.contains_key(HEADER) {
            return Ok(Self);
        }
        Err(ApiError::forbidden(
            "This is for the operator: only from the server's own machine, with basalt's own tools",
        ))
    }
}

/// Whether a `Host` header names this machine.
fn is_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_names_are_its_own() {
        for host in ["localhost", "LOCALHOST:4242", "127.0.0.1:4242", "127.9.9.9", "[::1]:80"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "192.0.2.1:4242", "[::2]", "0x7f.1"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
