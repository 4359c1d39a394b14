//! What servers that do nearly nothing need of HTTP.

use anyhow::{Context, Result};

/// Says that points are taken.
pub const STORED: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// Says that it is ready to whoever asks anything else.
pub const READY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Bytes of the head and of the body behind it, once the head is there.
pub fn head_of(received: &[u8]) -> Result<Option<(usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let httparse::Status::Complete(head) = httparse::Request::new(&mut headers).parse(received)? else {
        return Ok(None);
    };
    let length = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let body = length.map_or(Ok(0), |length| std::str::from_utf8(length.value)?.parse().context("a length"))?;
    Ok(Some((head, body)))
}
