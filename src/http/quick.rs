//! Plain puts, as collectors send them all day: read from the receive buffer and answered without hyper.
//!
//! ```text
//! socket ─ buffer ─ head ─ points ─ ingest ─ push ─ 204
//!             └ anything but a plain put: the connection goes to hyper for good, with the bytes that were read
//! ```
//!
//! Invariant: what is answered here is answered as the router answers it. So nothing here looks at origins, parameters,
//! encodings or pieces of a body: a request that has any of them is handed over before a byte of it is acted on, and so
//! are a body that does not parse, a sender who may not store, and a body that does not fit beside others.
//!
//! Bound: a connection holds one body of at most [`BODY_BYTES_MAX`] and what came behind it. From 1 MiB on, or from less where
//! memory is scarce, it has a share of what all bodies may hold ([`BodyPool`](crate::bodies::BodyPool)), as hyper's bodies have; below,
//! connections times as much are the bound.

mod answers;
mod buffers;
mod head;
mod loops;
mod turn;
mod wire;

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::ready;
use std::time::{Duration, Instant};

use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use basalt_ingest::{DatapointEcho, Door, PutReport, Submission, decode_text};
use basalt_store::Lane;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::spawn_blocking;
use tokio::time::{Sleep, sleep};

use super::error::{self, ApiError};
use super::put::{self, Flags};
use super::{dress, gate, mode};
use crate::app::App;
use crate::bodies::Share;
use crate::room;
use crate::stop::{Stop, stopped};
use answers::{Writer, try_write, write_all};
use head::Head;
pub(crate) use loops::Loops;
use turn::{Bodies, Turn};
use wire::Stored;

/// Larger bodies are hyper's, whose buffers are memory mappings of their own. For bodies up to this size such mappings cost too
/// much: a third of the time at 5,000 points a request (1.1 MB).
const BODY_BYTES_MAX: usize = 2 << 20;

/// A body that takes longer to come is hyper's, which has rules for those that trickle.
const BODY_PATIENCE: Duration = Duration::from_secs(1);

/// The flags of a put without parameters.
const FLAGS: Flags = Flags { summary: false, details: false, sync: false, sync_timeout: None };

/// How the serving of plain puts ended.
#[derive(Debug)]
pub(crate) enum Ended<S> {
    /// The connection is over.
    Closed,
    /// Another kind of request came on this socket; these bytes of it were read.
    HandOver(Vec<u8>, S),
    /// The first large body was announced on this socket; these bytes of its request were read.
    Large(Vec<u8>, S),
}

impl<S> Ended<S> {
    /// The same, with the socket changed into another type.
    fn with<T>(self, change: impl FnOnce(S) -> io::Result<T>) -> io::Result<Ended<T>> {
        Ok(match self {
            Self::Closed => Ended::Closed,
            Self::HandOver(received, stream) => Ended::HandOver(received, change(stream)?),
            Self::Large(received, stream) => Ended::Large(received, change(stream)?),
        })
    }
}

/// Whether this server's configuration lets plain puts be answered here.
pub(crate) fn is_on(app: &App) -> bool {
    let config = &app.config;
    mode::serves(config, "/api/put") && !config.publish.enable
}

/// Answers plain puts until something else comes, the peer leaves, or `stop` is raised.
async fn serve(
    app: &Arc<App>,
    (received, stream): (Vec<u8>, TcpStream),
    mut stop: Stop,
    place: Option<(&Turn, Bodies)>,
) -> Ended<TcpStream> {
    let patience = app.config.server.idle_patience();
    let raised = stop.clone();
    let (reader, writer) = stream.into_split();
    let mut connection = Connection {
        app,
        place,
        reader,
        writer: Writer::new(writer),
        raised,
        is_ending: false,
        is_last: false,
        patience,
        body_bytes_max: app.config.http.max_body_bytes.min(BODY_BYTES_MAX),
        buffer: received,
        share: app.bodies.share(),
        pass: gate::Pass::default(),
        stored: Stored::new(),
        quiet_since: Instant::now(),
    };
    let ended = connection.run(pin!(sleep(patience)), pin!(stopped(&mut stop))).await;
    let Connection { reader, writer, .. } = connection;
    // However it ended, the last answer is written first.
    let stream = writer.into_half().await.and_then(|writer| reader.reunite(writer).map_err(io::Error::other));
    stream.and_then(|stream| ended.with(|()| Ok(stream))).unwrap_or(Ended::Closed)
}

struct Connection<'a> {
    app: &'a Arc<App>,
    /// The turn of the thread of puts that it is on, and what it may bring there; elsewhere all bodies are served.
    place: Option<(&'a Turn, Bodies)>,
    reader: OwnedReadHalf,
    writer: Writer,
    raised: Stop,
    /// `raised` was seen.
    is_ending: bool,
    /// The server ends: the connection is closed behind the next answer, which says so.
    is_last: bool,
    /// How long the peer may be silent.
    patience: Duration,
    body_bytes_max: usize,
    /// Bytes received for requests that are not taken yet. Without any it is no buffer of [`buffers`].
    buffer: Vec<u8>,
    /// The share that the body in `buffer` has of what all bodies may hold, until it is answered.
    share: Share,
    pass: gate::Pass,
    stored: Stored,
    /// When the last bytes came or went.
    quiet_since: Instant,
}

/// How a wait for bytes ended.
enum Woken {
    Received,
    /// No more will come, or the socket failed.
    Over,
    Silent,
    Stopping,
}

/// How far a body came.
enum Body {
    Whole,
    /// The rest is late, or finds no room: hyper waits for it, or refuses it.
    Late,
    /// The rest did not come, and the sender was told so.
    Stalled,
}

impl Connection<'_> {
    async fn run(
        &mut self,
        mut silence: Pin<&mut Sleep>,
        mut stopping: Pin<&mut impl Future<Output = ()>>,
    ) -> Ended<()> {
        loop {
            if self.buffer.is_empty() {
                match self.receive(silence.as_mut(), stopping.as_mut()).await {
                    Woken::Received => {}
                    // A request that came and is not seen yet began before the server's end too.
                    Woken::Stopping if self.has_unread() => continue,
                    Woken::Over | Woken::Silent | Woken::Stopping => return Ended::Closed,
                }
            }
            // Some clients end a body by a line end that its length does not count (RFC 9112, 2.2).
            let blank = self.buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if blank > 0 {
                self.drain(blank);
                continue;
            }
            let head = Head::read(&self.buffer, self.body_bytes_max);
            let head = head.filter(|head| head.bytes <= self.app.config.http.head_bytes_max());
            let head = head.filter(|head| self.pass.lets_put(&self.app.users, head.shown));
            let Some(Head { bytes, body_bytes, .. }) = head else { return self.hand_over() };
            if self.place.is_some_and(|(turn, bodies)| turn.is_large(body_bytes, bodies)) {
                return Ended::Large(std::mem::take(&mut self.buffer), ());
            }
            let (began, end) = (Instant::now(), bytes + body_bytes);
            match self.receive_to(end, silence.as_mut(), stopping.as_mut()).await {
                Body::Whole => {}
                Body::Late => return self.hand_over(),
                Body::Stalled => return Ended::Closed,
            }
            self.app.room.wait().await;
            let body = self.buffer.get(bytes..end).unwrap_or_default();
            let turn = self.place.map(|(turn, _)| turn);
            let Some(taken) = take(self.app, body, turn.map(|turn| turn.lane)) else { return self.hand_over() };
            self.drain(end);
            let taken = match taken {
                Taken::Known(since, submission) => {
                    if let Some(turn) = turn {
                        turn.push(self.app).await;
                    }
                    Ok((since, submission))
                }
                Taken::New(since, new) => take_new(self.app, new).await.map(|submission| (since, submission)),
                Taken::Refused(response) => Err(response),
            };
            let outcome = match taken {
                Ok((since, submission)) => {
                    let report = submission.await;
                    put::note(self.app, since, &report);
                    Ok(report)
                }
                Err(response) => Err(response),
            };
            self.is_last = *self.raised.borrow();
            let answered = match outcome {
                Ok(report) => self.answer(&report).await,
                Err(response) => self.write(response).await,
            };
            self.share.give_back();
            self.app.metrics.http_latency.record(began.elapsed());
            if answered.is_err() || self.is_last {
                return Ended::Closed;
            }
        }
    }

    fn hand_over(&mut self) -> Ended<()> {
        // Hyper's body takes its own.
        self.share.give_back();
        Ended::HandOver(std::mem::take(&mut self.buffer), ())
    }

    /// Forgets the first `end` bytes received; without more of them it has no buffer.
    fn drain(&mut self, end: usize) {
        self.buffer.drain(..end);
        if self.buffer.is_empty() {
            buffers::give(std::mem::take(&mut self.buffer));
        } else if self.buffer.capacity() > buffers::BYTES_KEPT {
            // A sender who never lets it run empty does not keep the room of its largest body.
            self.buffer.shrink_to_fit();
        }
    }

    /// Receives until there are `end` bytes.
    async fn receive_to(
        &mut self,
        end: usize,
        mut silence: Pin<&mut Sleep>,
        mut stopping: Pin<&mut impl Future<Output = ()>>,
    ) -> Body {
        // Meanwhile no more is read, and the sender waits.
        if !room::until(|| self.share.announce(end).is_ok()).await {
            return Body::Late;
        }
        let began = Instant::now();
        self.buffer.reserve(end.saturating_sub(self.buffer.len()));
        while self.buffer.len() < end {
            match self.receive(silence.as_mut(), stopping.as_mut()).await {
                Woken::Received if began.elapsed() < BODY_PATIENCE || self.buffer.len() >= end => {
                    if self.share.cover(self.buffer.len().min(end), end).is_err() {
                        return Body::Late;
                    }
                }
                // A request that began before the server's end is still answered.
                Woken::Stopping => {}
                Woken::Received | Woken::Over => return Body::Late,
                Woken::Silent => {
                    self.app.metrics.http_requests.add(1);
                    // The last answer of this connection; a peer that is gone needs none.
                    self.is_last = true;
                    self.write(ApiError::body_stalled().into_response()).await.unwrap_or_default();
                    return Body::Stalled;
                }
            }
        }
        Body::Whole
    }

    /// Waits for bytes and takes what is there.
    async fn receive(
        &mut self,
        mut silence: Pin<&mut Sleep>,
        mut stopping: Pin<&mut impl Future<Output = ()>>,
    ) -> Woken {
        loop {
            tokio::select! {
                biased;
                read = read_some(&mut self.reader, &mut self.buffer) => {
                    self.quiet_since = Instant::now();
                    // A socket that fails has as little to say as one that was closed.
                    return if matches!(read, Ok(1..)) { Woken::Received } else { Woken::Over };
                }
                () = stopping.as_mut(), if !self.is_ending => {
                    self.is_ending = true;
                    return Woken::Stopping;
                }
                // One timer for the whole life of the connection. It is moved on only when it fires, so a request sets none.
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

    /// Whether the system holds bytes for it of which the runtime has not heard, as on a machine that has other things to do.
    fn has_unread(&self) -> bool {
        rustix::io::ioctl_fionread(self.reader.as_ref()).is_ok_and(|count| count > 0)
    }

    /// Answers what became of the points.
    async fn answer(&mut self, report: &PutReport) -> io::Result<()> {
        if !report.errors.is_empty() {
            let echo = |_| None::<DatapointEcho<'_>>;
            let response = error::put_outcome(FLAGS, report, echo, &self.app.bodies, self.app.config.compat.strict);
            return self.write(response.unwrap_or_else(IntoResponse::into_response)).await;
        }
        let (bytes, patience) = (self.stored.bytes(self.is_last), self.patience);
        self.quiet_since = Instant::now();
        if let Some(answerer) = self.place.and_then(|(turn, _)| turn.answerer()) {
            return self.writer.lend(answerer, bytes, patience).await;
        }
        let half = self.writer.half().await?;
        // Fast path: the socket takes a few bytes at once, unless the peer does not read its answers.
        let written = try_write(half, &bytes)?;
        match bytes.get(written..) {
            None | Some([]) => Ok(()),
            Some(rest) => write_all(half, rest, patience).await,
        }
    }

    async fn write(&mut self, mut response: Response) -> io::Result<()> {
        error::report(self.app, &Method::POST, "/api/put", &mut response);
        dress(response.headers_mut(), true);
        if self.is_last {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let bytes = wire::encode(response).await;
        let written = write_all(self.writer.half().await?, &bytes, self.patience).await;
        self.quiet_since = Instant::now();
        written
    }
}

/// Reads what is there behind what was read; a buffer is taken for it as soon as something is.
async fn read_some(reader: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> io::Result<usize> {
    poll_fn(|context| {
        if buffer.capacity() == 0 {
            ready!(reader.as_ref().poll_read_ready(context))?;
            *buffer = buffers::take();
        }
        let read = pin!(reader.read_buf(buffer)).poll(context);
        if read.is_pending() && buffer.is_empty() {
            buffers::give(std::mem::take(buffer));
        }
        read
    })
    .await
}

/// What became of a body.
enum Taken {
    /// Its points were handed over after it was read at this instant. If they are held, a push must follow.
    Known(Instant, Submission),
    /// It was read at this instant, and has a name that must be looked up or made: how many points, and its bytes.
    New(Instant, (usize, Vec<u8>)),
    Refused(Response),
}

/// Reads a body and hands its points over if their series are known. `None` for one that is no put that parses: nothing is done with it.
fn take(app: &App, body: &[u8], held: Option<Lane>) -> Option<Taken> {
    let text = decode_text(body);
    let submitted = catch_unwind(AssertUnwindSafe(|| {
        let points = app.ingest.parse_put(&text).ok()?;
        app.metrics.http_requests.add(1);
        app.metrics.put_requests.add(1);
        app.metrics.puts_plain.add(1);
        let since = Instant::now();
        let submitted = match held {
            Some(lane) => app.ingest.submit_held(&points, Door::Http, lane),
            None => app.ingest.submit_known(&points, Door::Http),
        };
        Some((since, points.len(), submitted))
    }));
    Some(match submitted {
        Ok(submitted) => match submitted? {
            (since, _, Ok(Some(submission))) => Taken::Known(since, submission),
            (since, points, Ok(None)) => Taken::New(since, (points, body.to_vec())),
            (_, _, Err(cause)) => Taken::Refused(ApiError::of_ingest(&cause).into_response()),
        },
        Err(panic) => Taken::Refused(error::panicked(panic)),
    })
}

/// Reads the body again and hands over its points, on a thread that may wait for the UID table.
async fn take_new(app: &Arc<App>, (points, body): (usize, Vec<u8>)) -> Result<Submission, Response> {
    let seat = app.may_ask(points, Door::Http).await.map_err(|cause| ApiError::of_ingest(&cause).into_response())?;
    let app = Arc::clone(app);
    let submit = move || {
        let text = decode_text(&body);
        let submitted = app.ingest.parse_put(&text).and_then(|points| app.ingest.submit(&points, Door::Http));
        drop(seat);
        submitted
    };
    match spawn_blocking(submit).await {
        Ok(submitted) => submitted.map_err(|cause| ApiError::of_ingest(&cause).into_response()),
        Err(failed) => Err(error::panicked(Box::new(failed))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::sync::watch;
    use tokio::task::yield_now;

    use super::*;
    use crate::bodies::BodyPool;
    use crate::room::Room;

    /// What becomes of a plain put of one point, and the answer, while `meanwhile` is done.
    async fn put_beside(app: App, meanwhile: impl Future<Output = ()>) -> (Ended<()>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (_raise, stop) = watch::channel(false);
        let body = r#"{"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"}}"#;
        let request = format!("POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let app = Arc::new(app);
        let (ended, ()) = tokio::join!(serve(&app, (Vec::new(), stream), stop, None), meanwhile);
        let ended = ended.with(|_stream| Ok(())).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        (ended, answer)
    }

    /// `W-PUT-THROTTLE`
    #[tokio::test]
    async fn w_put_throttle_a_plain_put_waits_for_room() {
        let mut app = App::in_memory(|_| {}).await;
        let (room, looks) = Room::after(2);
        app.room = room;
        let (_, answer) = put_beside(app, async {}).await;
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
        assert_eq!(looks.load(Ordering::Relaxed), 0);
    }

    /// `W-PUT-THROTTLE`: where memory is scarce.
    #[tokio::test]
    async fn w_put_throttle_a_plain_put_waits_for_its_share_of_all_bodies() {
        let mut app = App::in_memory(|_| {}).await;
        app.bodies = BodyPool::of(1000, 10);
        let mut others = app.bodies.share();
        others.cover(1000, 1000).unwrap();
        let others_end = async {
            for _ in 0..1000 {
                yield_now().await;
            }
            drop(others);
        };
        let (ended, answer) = put_beside(app, others_end).await;
        assert!(matches!(ended, Ended::Closed) && answer.starts_with("HTTP/1.1 204 "), "{ended:?} {answer}");
    }
}
