//! Plain puts, taken from the receive buffer and answered without hyper, as collectors send them all day.
//!
//! ```text
//! socket ─ buffer ─ head ─ points ─ ingest ─ 204
//!             └ anything but a plain put: the connection goes to hyper for good, with the bytes that were read
//! ```
//!
//! Invariant: what is answered here is answered as the router answers it. So nothing here looks at tokens, origins,
//! parameters, encodings or pieces of a body: a request that has any of them is handed over before a byte of it is acted
//! on, and so is a body that does not parse.

mod head;
mod wire;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use basalt_ingest::{DatapointEcho, Door, PutReport, Submission, decode_text};
use tokio::net::TcpStream;
use tokio::task::block_in_place;
use tokio::time::{Sleep, sleep, timeout};

use super::error::{self, ApiError};
use super::put::{self, Flags};
use super::{dress, mode};
use crate::app::App;
use crate::server::{Stop, stopped};
use head::Head;
use wire::Stored;

/// Bytes of a buffer that begins.
const BUFFER_BYTES_MIN: usize = 16 << 10;

/// A larger buffer is not kept from one request to the next.
const BUFFER_BYTES_KEPT: usize = 256 << 10;

/// Larger bodies go to hyper's buffers, which are mappings of their own from about this size on.
const BODY_BYTES_MAX: usize = 1_000_000;

/// A body that takes longer to come is hyper's, which has rules for those that trickle.
const BODY_PATIENCE: Duration = Duration::from_secs(1);

/// The flags of a put without parameters.
const FLAGS: Flags = Flags { summary: false, details: false, sync_timeout: None };

/// How the serving of plain puts ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The connection is over.
    Closed,
    /// Something else was asked; these bytes were read of it.
    HandOver(Vec<u8>),
}

/// Whether this server answers plain puts here at all.
pub(crate) fn is_on(app: &App) -> bool {
    let config = &app.config;
    mode::serves(config, "/api/put") && !config.publish.enable && !config.server.idle_timeout_ms.is_zero()
}

/// Answers plain puts until something else comes, the peer leaves, or `stop` is raised.
pub(crate) async fn serve(app: &Arc<App>, stream: &TcpStream, stop: &mut Stop) -> Ended {
    let patience = app.config.server.idle_timeout_ms;
    let raised = stop.clone();
    let connection = Connection {
        app,
        stream,
        raised,
        is_ending: false,
        patience,
        body_bytes_max: app.config.http.max_body_bytes.min(BODY_BYTES_MAX),
        buffer: Vec::with_capacity(BUFFER_BYTES_MIN),
        stored: Stored::new(),
        quiet_since: Instant::now(),
    };
    connection.run(std::pin::pin!(sleep(patience)), std::pin::pin!(stopped(stop))).await
}

struct Connection<'a> {
    app: &'a Arc<App>,
    stream: &'a TcpStream,
    raised: Stop,
    /// It was seen to be raised.
    is_ending: bool,
    /// How long the peer may be silent.
    patience: Duration,
    body_bytes_max: usize,
    /// What was received and not answered yet.
    buffer: Vec<u8>,
    stored: Stored,
    /// When the last bytes came or went.
    quiet_since: Instant,
}

/// What a wait for bytes came to.
enum Woken {
    Received,
    /// No more will come, or the socket failed.
    Over,
    Silent,
    Stopping,
}

impl Connection<'_> {
    async fn run(mut self, mut silence: Pin<&mut Sleep>, mut stopping: Pin<&mut impl Future<Output = ()>>) -> Ended {
        loop {
            if *self.raised.borrow() {
                return Ended::Closed;
            }
            if self.buffer.is_empty() {
                match self.receive(silence.as_mut(), stopping.as_mut()).await {
                    Woken::Received => {}
                    Woken::Over | Woken::Silent | Woken::Stopping => return Ended::Closed,
                }
            }
            let head = Head::read(&self.buffer, self.body_bytes_max);
            let Some(head) = head.filter(|_| !self.app.users.are_asked()) else {
                return Ended::HandOver(self.buffer);
            };
            let (began, end) = (Instant::now(), head.bytes + head.body_bytes);
            self.buffer.reserve(end.saturating_sub(self.buffer.len()));
            while self.buffer.len() < end {
                match self.receive(silence.as_mut(), stopping.as_mut()).await {
                    Woken::Received if began.elapsed() < BODY_PATIENCE || self.buffer.len() >= end => {}
                    // The request that came before the end is answered.
                    Woken::Stopping => {}
                    Woken::Silent => {
                        self.app.metrics.http_requests.add(1);
                        return self.refuse(ApiError::body_stalled()).await;
                    }
                    Woken::Received | Woken::Over => return Ended::HandOver(self.buffer),
                }
            }
            let body = self.buffer.get(head.bytes..end).unwrap_or_default();
            let answered = match take(self.app, body) {
                Taken::Not => return Ended::HandOver(self.buffer),
                Taken::Submitted(since, submission) => {
                    let report = submission.await;
                    put::note(self.app, since, &report);
                    self.answer(&report).await
                }
                Taken::Refused(response) => self.write(response).await,
            };
            self.app.metrics.http_latency.record(began.elapsed());
            if answered.is_err() {
                return Ended::Closed;
            }
            self.buffer.drain(..end);
            if self.buffer.capacity() > BUFFER_BYTES_KEPT && self.buffer.is_empty() {
                self.buffer = Vec::with_capacity(BUFFER_BYTES_MIN);
            }
        }
    }

    /// Waits for bytes and takes what is there.
    async fn receive(
        &mut self,
        mut silence: Pin<&mut Sleep>,
        mut stopping: Pin<&mut impl Future<Output = ()>>,
    ) -> Woken {
        loop {
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => return Woken::Over,
                Ok(_) => {
                    self.quiet_since = Instant::now();
                    return Woken::Received;
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Woken::Over,
            }
            tokio::select! {
                biased;
                ready = self.stream.readable() => if ready.is_err() { return Woken::Over },
                () = stopping.as_mut(), if !self.is_ending => {
                    self.is_ending = true;
                    return Woken::Stopping;
                }
                // One timer for the connection's life, put off when it fires: none is set for a request.
                () = silence.as_mut() => {
                    let due = self.quiet_since + self.patience;
                    if due <= Instant::now() {
                        return Woken::Silent;
                    }
                    silence.as_mut().reset(due.into());
                }
            }
        }
    }

    /// Tells what became of the points.
    async fn answer(&mut self, report: &PutReport) -> io::Result<()> {
        if !report.errors.is_empty() {
            let echo = |_| None::<DatapointEcho<'_>>;
            let response = error::put_outcome(FLAGS, report, echo, self.app.config.compat.strict);
            return self.write(response.unwrap_or_else(IntoResponse::into_response)).await;
        }
        let bytes = self.stored.bytes();
        // Fast path: the socket takes a few bytes at once, unless the peer does not read its answers.
        let written = match self.stream.try_write(bytes) {
            Ok(written) => written,
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => 0,
            Err(cause) => return Err(cause),
        };
        self.quiet_since = Instant::now();
        match bytes.get(written..) {
            None | Some([]) => Ok(()),
            Some(rest) => write_all(self.stream, rest, self.patience).await,
        }
    }

    async fn write(&mut self, mut response: Response) -> io::Result<()> {
        dress(response.headers_mut(), true);
        let written = write_all(self.stream, &wire::encode(response).await, self.patience).await;
        self.quiet_since = Instant::now();
        written
    }

    /// Answers a request that was not read to its end, which is the last of its connection.
    async fn refuse(mut self, error: ApiError) -> Ended {
        // A peer that is gone needs no answer.
        self.write(error.into_response()).await.unwrap_or_default();
        Ended::Closed
    }
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        timeout(patience, stream.writable()).await.map_err(|_| io::ErrorKind::TimedOut)??;
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// What became of a body.
enum Taken {
    /// Nothing: it is no put that can be read.
    Not,
    /// Its points are on their way since then.
    Submitted(Instant, Submission),
    Refused(Response),
}

/// Reads a body and hands its points over.
fn take(app: &App, body: &[u8]) -> Taken {
    let text = decode_text(body);
    let submitted = catch_unwind(AssertUnwindSafe(|| {
        let points = app.ingest.parse_put(&text).ok()?;
        app.metrics.http_requests.add(1);
        app.metrics.put_requests.add(1);
        let since = Instant::now();
        let submission = app.ingest.submit_known(&points, Door::Http).and_then(|known| match known {
            Some(submission) => Ok(submission),
            // A new name is looked up and made in the tables, which blocks.
            None => block_in_place(|| app.ingest.submit(&points, Door::Http)),
        });
        Some((since, submission))
    }));
    match submitted {
        Ok(None) => Taken::Not,
        Ok(Some((since, Ok(submission)))) => Taken::Submitted(since, submission),
        Ok(Some((_, Err(cause)))) => Taken::Refused(ApiError::of_ingest(&cause).into_response()),
        Err(panic) => Taken::Refused(error::panicked(panic)),
    }
}
