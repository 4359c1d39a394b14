//! Who may do what only an operator may: whoever sits on this machine and says so.
//!
//! Where tokens are asked for, an administrator's is (`gate`). Beside that, three things are asked together: the connection comes
//! from this machine; the request names this machine as its host, so that no web page whose name was bent to this address gets in; and it carries a
//! header that a page of another origin cannot send without being let by CORS, which never allows this one. What a proxy says it
//! passes on does not come from this machine, wherever the proxy is; one that says nothing of itself is the operator's to close
//! (`docs/operations.md`).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;

use super::asker::Ends;
use super::error::ApiError;
use crate::app::App;

/// The header that an operator's tool sends, with any value.
pub(crate) const HEADER: &str = "x-basalt-admin";

/// The headers by which proxies tell for whom they ask.
const OF_PROXIES: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// A request by an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admin;

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        if let (Some(ends), Some(host)) = (parts.extensions.get::<Ends>(), host)
            && is_own(ends.peer.ip(), ends)
            && names_own(host, ends)
            && parts.headers.contains_key(HEADER)
            && !OF_PROXIES.iter().any(|name| parts.headers.contains_key(*name))
        {
            return Ok(Self);
        }
        Err(ApiError::forbidden(
            "This is for the operator: only from the server's own machine, with basalt's own tools",
        ))
    }
}

/// Whether an address is this machine's: a loopback one, or the one at which the connection arrived. What comes from that comes
/// from here, as answers to it never leave.
fn is_own(ip: IpAddr, ends: &Ends) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ends.own.is_some_and(|own| own.to_canonical() == ip)
}

/// Whether a `Host` header names this machine.
fn names_own(host: &str, ends: &Ends) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|ip| is_own(ip, ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(peer: &str, own: &str) -> Ends {
        Ends { peer: peer.parse().unwrap(), own: Some(own.parse().unwrap()) }
    }

    #[test]
    fn only_this_machines_names_are_its_own() {
        let ends = ends("127.0.0.1:9", "127.0.0.1");
        for host in ["localhost", "LOCALHOST:4242", "127.0.0.1:4242", "127.9.9.9", "[::1]:80"] {
            assert!(names_own(host, &ends), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "192.0.2.1:4242", "[::2]", "0x7f.1"] {
            assert!(!names_own(host, &ends), "{host}");
        }
    }

    #[test]
    fn the_address_that_a_connection_arrived_at_is_this_machines() {
        let near = ends("192.0.2.1:9", "192.0.2.1");
        assert!(is_own(near.peer.ip(), &near) && names_own("192.0.2.1:4242", &near));
        assert!(!names_own("192.0.2.2:4242", &near) && !names_own("evil.example", &near));
        // A socket of both families tells both ends as IPv6.
        let mapped = ends("[::ffff:192.0.2.1]:9", "::ffff:192.0.2.1");
        assert!(is_own(mapped.peer.ip(), &mapped) && names_own("192.0.2.1", &mapped));
        let far = ends("192.0.2.7:9", "192.0.2.1");
        assert!(!is_own(far.peer.ip(), &far));
    }
}
