//! Request bodies: read whole, inflated as they come, never more than the bound.
//!
//! The bound counts inflated bytes while they are inflated, so a gzip bomb costs at most the bound
//! and one frame of the socket.

use std::io::{self, Write};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::error::ApiError;

/// Reads `body` to its end: chunked or not, `gzip`, `deflate` or plain.
///
/// # Errors
///
/// 413 over `limit` inflated bytes (before reading, if the length is announced), 408 if a piece
/// does not come within `patience`, 400 for damaged compression or an encoding that is not known.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: usize, patience: Duration) -> Result<Bytes, ApiError> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > limit)) {
        return Err(ApiError::body_too_large(limit));
    }
    let mut inflater = Inflater::new(headers, limit)?;
    let mut body = body;
    loop {
        let frame = match timeout(patience, body.frame()).await {
            Err(_) => return Err(ApiError::body_stalled()),
            Ok(None) => break,
            Ok(Some(Err(cause))) => return Err(ApiError::bad_with("Cannot read the request body", cause.to_string())),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Some(piece) = frame.data_ref() {
            inflater.feed(piece).map_err(|cause| explain(&cause, limit))?;
        }
    }
    inflater.finish().map_err(|cause| explain(&cause, limit))
}

fn explain(cause: &io::Error, limit: usize) -> ApiError {
    if cause.kind() == io::ErrorKind::FileTooLarge {
        return ApiError::body_too_large(limit);
    }
    ApiError::bad_with("Cannot decompress the request body", cause.to_string())
}

/// A buffer that refuses to grow over its limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Inflater {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Deflate(Box<ZlibDecoder<Bounded>>),
}

impl Inflater {
    fn new(headers: &HeaderMap, limit: usize) -> Result<Self, ApiError> {
        let sink = Bounded { bytes: Vec::new(), limit };
        let encoding = headers.get(CONTENT_ENCODING).map_or(Ok(""), |value| value.to_str()).unwrap_or("unreadable");
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Plain(sink)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(sink)))),
            "deflate" | "x-deflate" => Ok(Self::Deflate(Box::new(ZlibDecoder::new(sink)))),
            other => {
                Err(ApiError::bad_with("Unsupported content encoding", format!("`{other}` is not gzip or deflate")))
            }
        }
    }

    fn feed(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.write_all(piece),
            Self::Gzip(sink) => sink.write_all(piece),
            Self::Deflate(sink) => sink.write_all(piece),
        }
    }

    fn finish(self) -> io::Result<Bytes> {
        let sink = match self {
            Self::Plain(sink) => sink,
            Self::Gzip(sink) => sink.finish()?,
            Self::Deflate(sink) => sink.finish()?,
        };
        Ok(Bytes::from(sink.bytes))
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    async fn read_with(encoding: &'static str, body: Vec<u8>, limit: usize) -> Result<Bytes, u16> {
        let mut headers = HeaderMap::new();
        if !encoding.is_empty() {
            headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
        }
        read(&headers, Body::from(body), limit, Duration::from_secs(9)).await.map_err(|error| error.status().as_u16())
    }

    #[tokio::test]
    async fn a_body_may_fill_its_bound_and_not_pass_it() {
        assert_eq!(read_with("", vec![7; 100], 100).await.unwrap().len(), 100);
        assert_eq!(read_with("", vec![7; 101], 100).await, Err(413));
        assert_eq!(read_with("gzip", gzip(&[7; 100]), 100).await.unwrap().len(), 100);
    }

    #[tokio::test]
    async fn a_gzip_bomb_stops_at_the_bound() {
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(read_with("gzip", bomb, 100_000).await, Err(413));
    }

    #[tokio::test]
    async fn damaged_or_unknown_compression_is_a_bad_request() {
        assert_eq!(read_with("gzip", b"no gzip at all".to_vec(), 100).await, Err(400));
        let whole = gzip(b"some text");
        assert_eq!(read_with("gzip", whole[..whole.len() - 6].to_vec(), 100).await, Err(400));
        assert_eq!(read_with("br", vec![1], 100).await, Err(400));
    }
}
