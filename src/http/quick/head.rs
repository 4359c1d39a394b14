//! Heads of the one kind of request that is answered from the receive buffer.

use httparse::{EMPTY_HEADER, Request, Status};

use super::super::charset::Charset;

/// Most headers of such a head; collectors send some five.
const HEADERS_MAX: usize = 32;

/// Headers that change how a request is read or answered: whoever sends one is served by hyper. No other has a meaning for
/// a put.
const MEANINGFUL: [&str; 7] = ["content-encoding", "expect", "origin", "te", "trailer", "transfer-encoding", "upgrade"];

/// A plain put: where its body lies behind the head, and who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// Bytes of the head.
    pub(super) bytes: usize,
    /// Bytes of the body.
    pub(super) body_bytes: usize,
    /// The value of `Authorization`.
    pub(super) shown: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    /// The head that `received` begins with, if it is a plain put's and all of it is there.
    ///
    /// Plain is `POST /api/put` of HTTP/1.1 that stays connected, without parameters, with one length from 1 to
    /// `body_bytes_max`, in UTF-8, one `Authorization` at most and none of the headers that mean more.
    pub(super) fn read(received: &'a [u8], body_bytes_max: usize) -> Option<Self> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut request = Request::new(&mut headers);
        let Ok(Status::Complete(bytes)) = request.parse(received) else { return None };
        if (request.method, request.path, request.version) != (Some("POST"), Some("/api/put"), Some(1)) {
            return None;
        }
        let (mut body_bytes, mut shown) = (None, None);
        for header in request.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let length = length(header.value).filter(|length| (1..=body_bytes_max).contains(length))?;
                if body_bytes.replace(length).is_some() {
                    return None;
                }
            } else if header.name.eq_ignore_ascii_case("connection") {
                if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
            } else if header.name.eq_ignore_ascii_case("authorization") {
                if shown.replace(header.value).is_some() {
                    return None;
                }
            } else if header.name.eq_ignore_ascii_case("content-type") {
                // Bodies in other charsets are decoded before they are read.
                if Charset::of(header.value) != Ok(Charset::Utf8) {
                    return None;
                }
            } else if MEANINGFUL.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
                return None;
            }
        }
        body_bytes.map(|body_bytes| Self { bytes, body_bytes, shown })
    }
}

/// A length in digits alone.
fn length(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(first: &str, headers: &str) -> Option<usize> {
        let text = format!("{first}\r\nHost: x\r\n{headers}\r\nbody");
        let head = Head::read(text.as_bytes(), 1000)?;
        assert_eq!(text.get(head.bytes..), Some("body"));
        Some(head.body_bytes)
    }

    const PUT: &str = "POST /api/put HTTP/1.1";

    #[test]
    fn a_plain_put_is_told_by_its_head() {
        assert_eq!(read(PUT, "Content-Length: 4\r\n"), Some(4));
        assert_eq!(read(PUT, "Content-Length: 4\r\nContent-Type: application/json; charset=UTF-8\r\n"), Some(4));
        assert_eq!(read(PUT, "content-length:1000\r\nCONNECTION: Keep-Alive\r\nAccept-Encoding: gzip\r\n"), Some(1000));
    }

    #[test]
    fn who_sends_it_is_told_with_it() {
        let shown = |header: &str| {
            let text = format!("{PUT}\r\n{header}Content-Length: 4\r\n\r\n");
            Head::read(text.as_bytes(), 1000).unwrap().shown.map(<[u8]>::to_vec)
        };
        assert_eq!(shown(""), None);
        assert_eq!(shown("AUTHORIZATION:  Bearer x \r\n").as_deref(), Some(b"Bearer x".as_slice()));
        assert_eq!(shown("Authorization: \r\n").as_deref(), Some(b"".as_slice()));
    }

    #[test]
    fn whatever_means_more_is_for_hyper() {
        for first in [
            "POST /api/put?details HTTP/1.1",
            "POST /api/put/ HTTP/1.1",
            "POST /API/put HTTP/1.1",
            "PUT /api/put HTTP/1.1",
            "POST /api/put HTTP/1.0",
            "POST /api/put",
        ] {
            assert_eq!(read(first, "Content-Length: 4\r\n"), None, "{first}");
        }
        for headers in [
            "",
            "Content-Length: 0\r\n",
            "Content-Length: 1001\r\n",
            "Content-Length: +4\r\n",
            "Content-Length: 4, 4\r\n",
            "Content-Length: 99999999999999999999999\r\n",
            "Content-Length: 4\r\nContent-Length: 4\r\n",
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 4\r\nConnection: close\r\n",
            "Content-Length: 4\r\nContent-Type: application/json; charset=ISO-8859-1\r\n",
            "Content-Length: 4\r\nContent-Type: application/json; charset=nosuch\r\n",
            "Content-Length: 4\r\nConnection: keep-alive, upgrade\r\n",
            "Content-Length: 4\r\nAuthorization: a\r\nAuthorization: a\r\n",
        ] {
            assert_eq!(read(PUT, headers), None, "{headers}");
        }
        for name in MEANINGFUL {
            assert_eq!(read(PUT, &format!("Content-Length: 4\r\n{}: x\r\n", name.to_uppercase())), None, "{name}");
        }
        let many = "X: 1\r\n".repeat(HEADERS_MAX);
        assert_eq!(read(PUT, &format!("Content-Length: 4\r\n{many}")), None);
    }

    #[test]
    fn a_head_that_is_not_all_there_is_none_yet() {
        let text = format!("{PUT}\r\nContent-Length: 4\r\n\r\n");
        for cut in 0..text.len() {
            assert_eq!(Head::read(&text.as_bytes()[..cut], 1000), None, "{cut}");
        }
        assert!(Head::read(text.as_bytes(), 1000).is_some());
    }
}
