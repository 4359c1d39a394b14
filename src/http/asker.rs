//! Who sends a request: the address of the connection and the headers, as lists of queries tell them.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::{Map, Value};

use crate::auth::Role;
use crate::register::Asker;

/// Longest part of a header's value that is kept.
const VALUE_BYTES_MAX: usize = 256;
/// Headers whose values are somebody's secret.
const SECRETS: &[&str] = &["authorization", "cookie", "proxy-authorization"];

/// The ends of a connection; they ride along with each of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) peer: SocketAddr,
    /// The server's own; `None` where the system does not tell.
    pub(crate) own: Option<IpAddr>,
}

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<Ends>().map(|ends| ends.peer);
        let mut headers = Map::new();
        for (name, value) in &parts.headers {
            let text = if SECRETS.contains(&name.as_str()) {
                "*******".to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).chars().take(VALUE_BYTES_MAX).collect()
            };
            match headers.get_mut(name.as_str()) {
                Some(Value::String(before)) if before.len() < VALUE_BYTES_MAX => before.extend([",", &text]),
                Some(_) => {}
                None => drop(headers.insert(name.as_str().to_owned(), text.into())),
            }
        }
        Ok(Self {
            remote: peer.map_or_else(String::new, |peer| peer.to_string()),
            address: peer.map_or_else(String::new, |peer| peer.ip().to_string()),
            headers: headers.into(),
            role: parts.extensions.get::<Role>().copied().unwrap_or(Role::Guest),
        })
    }
}
