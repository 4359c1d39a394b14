//! A request read whole: its method, its parameters, its body.
//!
//! Endpoints that edit (annotations, meta objects) may be reached by clients that can only GET: `method_override` names
//! the method meant (rule `H-OVERRIDE`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::Method;
use basalt_schema::EditMode;
use bytes::Bytes;

use super::charset;
use super::error::ApiError;
use super::fields::{Fault, Fields};
use super::json::{self, Rest};
use super::params::Params;
use crate::app::App;

/// POST merges, PUT replaces.
pub(super) fn mode_of(method: &Method) -> EditMode {
    if *method == Method::PUT { EditMode::Replace } else { EditMode::Merge }
}

/// A request whose body is in memory.
#[derive(Debug)]
pub(crate) struct Call {
    /// The method of the request line.
    pub(crate) method: Method,
    pub(crate) params: Params,
    /// Inflated; empty for none.
    pub(crate) body: Bytes,
    /// `compat.strict`.
    pub(crate) strict: bool,
}

impl Call {
    /// The method meant: a GET may name another.
    ///
    /// # Errors
    ///
    /// 405 for one that is none of the four, by name or by itself.
    pub(crate) fn meant(&self) -> Result<Method, ApiError> {
        let Some(name) = self.params.last("method_override").filter(|_| self.method == Method::GET) else {
            let is_known = [Method::GET, Method::POST, Method::PUT, Method::DELETE].contains(&self.method);
            return if is_known { Ok(self.method.clone()) } else { Err(ApiError::method(&self.method)) };
        };
        match name.to_ascii_lowercase().as_str() {
            "" => Err(ApiError::override_refused("Missing method override value")),
            "get" => Ok(Method::GET),
            "post" => Ok(Method::POST),
            "put" => Ok(Method::PUT),
            "delete" => Ok(Method::DELETE),
            _ => Err(ApiError::override_refused("Unknown or unsupported method override value")),
        }
    }

    /// The body, which must not be empty.
    ///
    /// # Errors
    ///
    /// 400.
    pub(crate) fn content(&self) -> Result<&Bytes, ApiError> {
        if self.body.is_empty() { Err(ApiError::missing_body()) } else { Ok(&self.body) }
    }

    /// What follows the JSON of the body may be a part of what is to be changed; OpenTSDB leaves it alone.
    fn rest(&self) -> Rest {
        let only_reads = self.meant().is_ok_and(|method| method == Method::GET);
        if self.strict || only_reads { Rest::Left } else { Rest::Refused }
    }

    /// The body, an object.
    ///
    /// # Errors
    ///
    /// As [`Fields::parse`].
    pub(crate) fn fields(&self) -> Result<Fields, Fault> {
        Fields::parse(&self.body, self.rest())
    }

    /// What `read` makes of the body, an object.
    ///
    /// # Errors
    ///
    /// As [`Fields::parse`] and `read`.
    pub(crate) fn object<T>(&self, read: impl FnOnce(&Fields) -> Result<T, Fault>) -> Result<T, Fault> {
        self.fields().and_then(|fields| read(&fields))
    }

    /// The body, a list of objects.
    ///
    /// # Errors
    ///
    /// As [`Fields::parse_list`].
    pub(crate) fn list(&self) -> Result<Vec<Fields>, Fault> {
        Fields::parse_list(&self.body, self.rest())
    }

    /// The body as a line of text.
    pub(crate) fn line(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok().map(|line| line.trim_end_matches('\n'))
    }
}

impl FromRequest<Arc<App>> for Call {
    type Rejection = ApiError;

    async fn from_request(request: Request<Body>, app: &Arc<App>) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = charset::read(app, &parts.headers, body).await?;
        json::check_size(&body)?;
        Ok(Self { method: parts.method, params: Params::of(&parts.uri)?, body, strict: app.config.compat.strict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, query: &str, expected: &str) {
        let params = Params::of(&format!("/api/annotation?{query}").parse().unwrap()).unwrap();
        let meant = Call { method, params, body: Bytes::new(), strict: false }.meant();
        let found = meant.map_or_else(|error| error.status().as_u16().to_string(), |method| method.to_string());
        assert_eq!(found, expected, "{query}");
    }

    /// `H-OVERRIDE`.
    #[test]
    fn a_get_may_mean_another_method_and_no_other_may() {
        check(Method::GET, "", "GET");
        check(Method::GET, "method_override=delete", "DELETE");
        check(Method::GET, "method_override=PuT", "PUT");
        check(Method::POST, "method_override=delete", "POST");
        check(Method::GET, "method_override=", "405");
        check(Method::GET, "method_override=patch", "405");
        check(Method::HEAD, "", "405");
    }
}
