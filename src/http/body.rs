//! Request bodies: read whole, inflated as they come, never more than the bound of one and that of all together ([`BodyPool`]).
//!
//! The bound counts inflated bytes while they are inflated, so a gzip bomb costs at most the bound
//! and one frame of the socket. A body that trickles is given up, however short its pauses are.

mod buffer;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout};

use super::error::ApiError;
use crate::app::App;
use crate::bodies::BodyPool;
use crate::config::Config;
use buffer::Buffer;

/// Slowest that a body may come on the whole, in bytes a second: a modem's pace.
const BYTES_PER_SECOND_MIN: u64 = 4 << 10;
/// Bytes that a report may have. Of a long one this is address space, of which only what is written becomes memory.
const REPORT_BYTES_MAX: usize = 1 << 30;

/// Refuses a body in chunks where they are switched off, as OpenTSDB does unless it is told to take them. A body of known
/// length is taken whatever its length, where OpenTSDB takes one over some 8 KiB for chunked.
///
/// # Errors
///
/// 400.
pub(crate) fn refuse_chunked(config: &Config, headers: &HeaderMap) -> Result<(), ApiError> {
    if !config.http.enable_chunked && headers.contains_key(TRANSFER_ENCODING) {
        return Err(ApiError::bad("Chunked request not supported."));
    }
    Ok(())
}

/// Reads `body` to its end: chunked or not, `gzip`, `deflate` or plain.
///
/// # Errors
///
/// 413 over `http.max_body_bytes` inflated bytes (before reading, if the length is announced), 503 if bodies hold `http.bodies_bytes_max`,
/// 408 if a piece does not come within `server.idle_timeout_ms` or all of them are slower than any line, 400 for damaged compression or
/// an encoding that is not known.
pub(crate) async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let (limit, patience) = (app.config.http.max_body_bytes, app.config.server.idle_patience());
    read_within(headers, body, limit, patience, &app.bodies).await
}

async fn read_within(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    pool: &Arc<BodyPool>,
) -> Result<Bytes, ApiError> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > limit)) {
        return Err(ApiError::body_too_large(limit));
    }
    let mut inflater = Inflater::new(headers, limit, announced, pool)?;
    let (mut body, began, mut received) = (body, Instant::now(), 0);
    loop {
        let allowed = patience + Duration::from_millis(received * 1000 / BYTES_PER_SECOND_MIN);
        let left = allowed.saturating_sub(began.elapsed()).min(patience);
        let frame = match timeout(left, body.frame()).await {
            Err(_) => return Err(ApiError::body_stalled()),
            Ok(None) => break,
            Ok(Some(Err(cause))) => return Err(ApiError::bad_with("Cannot read the request body", cause.to_string())),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(piece) = frame.into_data() {
            received += piece.len() as u64;
            // Fast path: a body that came in one piece is not copied. Its announced length is within the limit.
            if announced == Some(received) && received == piece.len() as u64 && matches!(inflater, Inflater::Plain(_)) {
                return Ok(piece);
            }
            if let Some(first) = piece.first() {
                inflater = inflater.at(*first);
            }
            inflater.feed(&piece).map_err(|cause| explain(&cause, limit, pool))?;
        }
        if body.is_end_stream() {
            break;
        }
    }
    if received == 0 {
        // Nothing, however it is said to be packed.
        return Ok(Bytes::new());
    }
    inflater.finish().map_err(|cause| explain(&cause, limit, pool))
}

/// What `write` makes of a body, at most `limit` bytes: it counts as any other body does.
///
/// # Errors
///
/// 503 as of [`read`].
pub(super) fn made(
    limit: usize,
    pool: &Arc<BodyPool>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Bytes, ApiError> {
    let mut buffer = Buffer::new(limit, None, pool);
    write(&mut buffer).map_err(|cause| explain(&cause, limit, pool))?;
    Ok(buffer.into_bytes())
}

/// What `write` makes of a report, or of an answer that may be as large: it counts as a body does, from when it is written until it is
/// sent. `None` where it does not fit beside the others.
pub(super) fn kept(pool: &Arc<BodyPool>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Option<Bytes> {
    let mut buffer = Buffer::new(pool.bytes_max().min(REPORT_BYTES_MAX), None, pool);
    write(&mut buffer).ok()?;
    Some(buffer.into_bytes())
}

fn explain(cause: &io::Error, limit: usize, pool: &BodyPool) -> ApiError {
    match cause.kind() {
        io::ErrorKind::FileTooLarge => ApiError::body_too_large(limit),
        io::ErrorKind::QuotaExceeded => {
            pool.refused.add(1);
            ApiError::bodies_too_large(pool.bytes_max())
        }
        io::ErrorKind::OutOfMemory => ApiError::overloaded("there is no memory for the body"),
        _ => ApiError::bad_with("Cannot decompress the request body", cause.to_string()),
    }
}

enum Inflater {
    Plain(Buffer),
    Gzip(Box<MultiGzDecoder<Buffer>>),
    /// `deflate`, of which nothing came yet: its first byte tells whether it is wrapped.
    Unseen(Buffer),
    Zlib(Box<ZlibDecoder<Buffer>>),
    Deflate(Box<DeflateDecoder<Buffer>>),
}

/// Whether this names one or several codings that we cannot undo.
fn is_coding(encoding: &str) -> bool {
    encoding.contains(',') || ["br", "zstd", "compress", "x-compress"].contains(&encoding)
}

impl Inflater {
    fn new(headers: &HeaderMap, limit: usize, announced: Option<u64>, pool: &Arc<BodyPool>) -> Result<Self, ApiError> {
        let sink = |announced: Option<u64>| Buffer::new(limit, announced, pool);
        let encoding = headers.get(CONTENT_ENCODING).map_or(Ok(""), |value| value.to_str()).unwrap_or("unreadable");
        match encoding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(sink(None))))),
            "deflate" | "x-deflate" => Ok(Self::Unseen(sink(None))),
            other if is_coding(other) => {
                Err(ApiError::bad_with("Unsupported content encoding", format!("`{other}` is not gzip or deflate")))
            }
            // None, or a word that is no coding, most often a charset: the body is what it looks like.
            _ => Ok(Self::Plain(sink(announced))),
        }
    }

    /// `self`, once it knows what `first` begins.
    fn at(self, first: u8) -> Self {
        match self {
            // Clients send both: what RFC 9110 calls `deflate` is wrapped by zlib, whose first byte ends in 8. As the first of a bare
            // stream that would be a stored block with bits set that are padding.
            Self::Unseen(sink) if first & 0x0F == 8 => Self::Zlib(Box::new(ZlibDecoder::new(sink))),
            Self::Unseen(sink) => Self::Deflate(Box::new(DeflateDecoder::new(sink))),
            known => known,
        }
    }

    fn feed(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) | Self::Unseen(sink) => sink.write_all(piece),
            Self::Gzip(sink) => sink.write_all(piece).map_err(|cause| behind(cause, sink.get_ref())),
            Self::Zlib(sink) => sink.write_all(piece),
            Self::Deflate(sink) => sink.write_all(piece),
        }
    }

    fn finish(self) -> io::Result<Bytes> {
        let sink = match self {
            Self::Plain(sink) | Self::Unseen(sink) => sink,
            Self::Gzip(sink) => sink.finish().map_err(|cause| match cause.kind() {
                io::ErrorKind::InvalidInput => io::Error::new(cause.kind(), CUT),
                _ => cause,
            })?,
            Self::Zlib(sink) => sink.finish()?,
            Self::Deflate(sink) => sink.finish()?,
        };
        Ok(sink.into_bytes())
    }
}

/// What is behind a whole member and too short for a head looks so, too.
const CUT: &str = "its gzip data is cut or damaged, or something follows it that is none, such as a line's end; send it whole and alone";

/// Tells what is behind a whole member and is none, which by its own words is a bad head.
fn behind(cause: io::Error, unpacked: &Buffer) -> io::Error {
    if unpacked.length() == 0 || cause.to_string() != "invalid gzip header" {
        return cause;
    }
    io::Error::new(
        cause.kind(),
        "what follows its gzip data is no gzip data, such as padding; send the body without it",
    )
}

#[cfg(test)]
mod tests {
    use axum::http::header::RETRY_AFTER;
    use axum::response::IntoResponse as _;
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
        let (body, pool) = (Body::from(body), BodyPool::new(limit));
        let read = read_within(&headers, body, limit, Duration::from_secs(9), &pool).await;
        read.map_err(|error| error.status().as_u16())
    }

    #[tokio::test]
    async fn a_body_may_fill_its_bound_and_not_pass_it() {
        assert_eq!(read_with("", vec![7; 100], 100).await.unwrap().len(), 100);
        assert_eq!(read_with("", vec![7; 101], 100).await, Err(413));
        assert_eq!(read_with("gzip", gzip(&[7; 100]), 100).await.unwrap().len(), 100);
    }

    /// A collector drops what gets 400.
    #[test]
    fn a_body_that_no_memory_is_had_for_may_come_again() {
        let explained = |kind: io::ErrorKind| explain(&kind.into(), 9, &BodyPool::new(9)).into_response();
        assert_eq!(explained(io::ErrorKind::InvalidData).status().as_u16(), 400);
        let no_memory = explained(io::ErrorKind::OutOfMemory);
        assert_eq!((no_memory.status().as_u16(), no_memory.headers().contains_key(RETRY_AFTER)), (503, true));
    }

    #[test]
    fn gzip_data_that_is_cut_or_not_alone_is_told() {
        let whole = gzip(b"[]");
        for body in [&whole[..whole.len() - 4], &[&*whole, b"\r\n"].concat()] {
            let mut sink = MultiGzDecoder::new(Buffer::new(99, None, &BodyPool::new(99)));
            sink.write_all(body).unwrap();
            let told = Inflater::Gzip(Box::new(sink)).finish().unwrap_err();
            assert_eq!(told.to_string(), CUT);
        }
    }

    #[tokio::test]
    async fn a_gzip_bomb_stops_at_the_bound() {
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(read_with("gzip", bomb, 100_000).await, Err(413));
    }

    /// Two in turn, of which the first is still held; plain and inflated.
    #[tokio::test]
    async fn what_does_not_fit_beside_other_bodies_may_come_again() {
        const LIMIT: usize = 3 << 20;
        let (pool, text) = (BodyPool::new(LIMIT), vec![7; 2 << 20]);
        let mut zipped = HeaderMap::new();
        zipped.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
        for (headers, body) in [(HeaderMap::new(), text.clone()), (zipped, gzip(&text))] {
            let read = || read_within(&headers, Body::from(body.clone()), LIMIT, Duration::from_secs(9), &pool);
            let refused = pool.refused.get();
            let first = read().await.unwrap();
            let error = read().await.unwrap_err();
            assert_eq!((error.status().as_u16(), pool.refused.get()), (503, refused + 1));
            assert!(error.into_response().headers().contains_key(RETRY_AFTER));
            assert_eq!((first.len(), pool.used_bytes()), (text.len(), 2 << 20));
            drop(first);
            assert_eq!(read().await.unwrap(), text);
            assert_eq!(pool.used_bytes(), 0);
        }
    }

    /// A byte now and then, each well within the patience.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up() {
        let pieces = futures_of(1_000_000, Duration::from_secs(5));
        let patience = Duration::from_mins(1);
        let began = Instant::now();
        let read = read_within(&HeaderMap::new(), Body::new(pieces), 100, patience, &BodyPool::new(100)).await;
        assert_eq!(read.map_err(|error| error.status().as_u16()), Err(408));
        assert!(began.elapsed() < patience * 2, "{:?}", began.elapsed());
    }

    /// A body of `count` bytes with a pause before each.
    fn futures_of(count: usize, pause: Duration) -> Trickle {
        Trickle { left: count, pause, next: Box::pin(tokio::time::sleep(pause)) }
    }

    struct Trickle {
        left: usize,
        pause: Duration,
        next: std::pin::Pin<Box<tokio::time::Sleep>>,
    }

    impl hyper::body::Body for Trickle {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<io::Result<hyper::body::Frame<Bytes>>>> {
            std::task::ready!(self.next.as_mut().poll(cx));
            self.next = Box::pin(tokio::time::sleep(self.pause));
            self.left -= 1;
            std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(b" ")))))
        }
    }

    /// `W-PUT-GZIP`: `deflate` with its wrapper and without, as Netty takes both; and nothing at all, which is no damage.
    #[tokio::test]
    async fn deflate_may_be_bare() {
        let text = vec![7; 1000];
        let mut wrapped = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        wrapped.write_all(&text).unwrap();
        assert_eq!(read_with("deflate", wrapped.finish().unwrap(), 1000).await.unwrap(), text);
        for level in [Compression::none(), Compression::fast(), Compression::best()] {
            let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), level);
            bare.write_all(&text).unwrap();
            let bare = bare.finish().unwrap();
            assert_eq!(read_with("deflate", bare.clone(), 999).await, Err(413));
            assert_eq!(read_with("deflate", bare, 1000).await.unwrap(), text);
        }
        for encoding in ["gzip", "deflate", ""] {
            assert_eq!(read_with(encoding, Vec::new(), 1000).await.unwrap(), "", "{encoding}");
        }
    }

    #[tokio::test]
    async fn damaged_or_unknown_compression_is_a_bad_request() {
        assert_eq!(read_with("gzip", b"no gzip at all".to_vec(), 100).await, Err(400));
        let whole = gzip(b"some text");
        assert_eq!(read_with("gzip", whole[..whole.len() - 6].to_vec(), 100).await, Err(400));
        for encoding in ["br", "zstd", "gzip, gzip"] {
            assert_eq!(read_with(encoding, vec![1], 100).await, Err(400), "{encoding}");
        }
    }

    #[tokio::test]
    async fn what_follows_gzip_data_is_named() {
        let refusal = async |body: Vec<u8>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
            let (body, pool) = (Body::from(body), BodyPool::new(100));
            format!("{:?}", read_within(&headers, body, 100, Duration::from_secs(9), &pool).await.unwrap_err())
        };
        let said = refusal([gzip(b"{}"), vec![0; 512]].concat()).await;
        assert!(said.contains("what follows its gzip data is no gzip data"), "{said}");
        let said = refusal(vec![0; 512]).await;
        assert!(said.contains("invalid gzip header"), "{said}");
    }

    /// `W-PUT-GZIP`: OpenTSDB looks for gzip and deflate alone.
    #[tokio::test]
    async fn an_encoding_that_is_no_coding_leaves_a_body_as_it_is() {
        for encoding in ["utf-8", "UTF-8", "none", "identity"] {
            assert_eq!(read_with(encoding, b"{}".to_vec(), 100).await.unwrap(), "{}", "{encoding}");
        }
    }
}
