//! One connection to one service of one server: many calls under way, each found again by its number.
//!
//! Two tasks hold the socket's halves: one writes requests in the order they come, one reads answers and hands each to
//! whoever waits for it. *Bounds*: calls and bytes under way, by a permit each; a call that finds none waits, and counts
//! as unsent when its time ends there.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::error::{CallError, Error, Result};
use crate::exception::Exception;
use crate::frame::{self, ANSWER_BYTES_MAX, Answer, Body, Request};
use crate::options::HBaseOptions;
use crate::tally::ServerTally;

/// Requests that wait for the writing task; those after them wait with their callers.
const QUEUE_MAX: usize = 64;
/// Requests' bytes are counted in pieces of this size, so that the count fits a semaphore's.
const PIECE_BYTES: usize = 1 << 10;
/// How much of its time a call may wait before it is sent, and its server be told none the less that it is left.
const WAIT_UNTOLD_MS: u32 = 20;
/// Bytes gathered before they are written, and asked for at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl Address {
    /// Reads `host:port`; an IPv6 address stands in brackets, or is told in full, all eight parts of it, as Java writes it.
    ///
    /// # Errors
    /// `Invalid`
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Self::parse_or(text, None)
    }

    /// The same; where no port is told, it is this one. An IPv6 address alone needs no brackets.
    ///
    /// # Errors
    /// `Invalid`
    pub(crate) fn parse_or(text: &str, port: Option<u16>) -> Result<Self> {
        let text = text.trim();
        let wrong = |why: &str| Error::Setting { what: "an HBase address", reason: format!("'{text}' {why}").into() };
        let no_address = || wrong("is no host:port");
        let is_ipv6 = |host: &str| host.parse::<Ipv6Addr>().is_ok();
        let (host, told) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("has a bracket that is not closed"))?;
            let told = rest.strip_prefix(':');
            if told.is_none() && !rest.is_empty() {
                return Err(wrong("goes on behind its bracket without a colon"));
            }
            (host, told)
        } else if is_ipv6(text) {
            (text, None)
        } else {
            text.rsplit_once(':').map_or((text, None), |(host, told)| (host, Some(told)))
        };
        if host.is_empty() {
            return Err(no_address());
        }
        if !text.starts_with('[') && host.contains(':') && !is_ipv6(host) {
            return Err(wrong("has colons and is no IPv6 address; one with a port is written [address]:port"));
        }
        let port = match told {
            Some(told) => told.parse().map_err(|_| no_address())?,
            None if is_ipv6(host) => port.ok_or_else(|| wrong("is an IPv6 address without a port: [address]:port"))?,
            None => port.ok_or_else(no_address)?,
        };
        Ok(Self { host: host.into(), port })
    }
}

/// A service of a server; each has connections of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Service {
    /// Where the cluster's parts are.
    Registry,
    /// Tables made and changed.
    Master,
    /// Rows read and changed.
    Client,
    /// Regions flushed, compacted and asked for their load.
    Admin,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Registry => "ClientMetaService",
            Self::Master => "MasterService",
            Self::Client => "ClientService",
            Self::Admin => "AdminService",
        }
    }
}

type Told = std::result::Result<Body, Exception>;

/// Who waits for which answer.
#[derive(Debug)]
struct Calls {
    server: Box<str>,
    tally: Arc<ServerTally>,
    /// How long a server that was asked may say nothing at all.
    silence_max: Duration,
    /// Guards the waiting calls and the end; held for a look-up only.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    waiting: HashMap<u32, oneshot::Sender<std::result::Result<Told, Error>>>,
    /// Why it ended, once it did.
    ended: Option<Error>,
    /// When it was asked for the first time since it was heard last; `None` where it was not asked since.
    unheard_since: Option<Instant>,
    /// Whether it was heard at all.
    is_known: bool,
}

impl Calls {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic elsewhere leaves a map of whole entries.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it: whoever waits is told why.
    fn end(&self, reason: impl Into<Box<str>>) {
        let mut reason = reason.into();
        if !self.state().is_known {
            reason = format!("{reason}, and it never said a word, as where it asks for SASL").into();
        }
        self.end_by(&Error::Lost { server: self.server.clone(), reason });
    }

    fn end_by(&self, error: &Error) {
        let waiting = {
            let mut state = self.state();
            if state.ended.is_none() {
                self.tally.connections.sub();
                state.ended = Some(error.clone());
            }
            std::mem::take(&mut state.waiting)
        };
        for waiter in waiting.into_values() {
            // One that is gone needs no answer.
            drop(waiter.send(Err(error.clone())));
        }
    }

    fn hand_over(&self, answer: Answer) -> Result<()> {
        let waiter = {
            let mut state = self.state();
            (state.unheard_since, state.is_known) = (None, true);
            answer.call_id.and_then(|id| state.waiting.remove(&id))
        };
        match (waiter, answer.body) {
            (Some(waiter), told) => drop(waiter.send(Ok(told))),
            // Answers to calls that were given up are passed over; an exception without a call is about all of them.
            (None, Err(exception)) if answer.call_id.is_none_or(|id| id > i32::MAX.unsigned_abs()) => {
                if exception.asks_for_login() {
                    return Err(Error::LoginRequired { server: self.server.clone(), message: exception.message });
                }
                return Err(exception.into());
            }
            (None, _) => self.tally.late.add(),
        }
        Ok(())
    }
}

/// A connection. Dropped, it is closed.
#[derive(Debug)]
pub(crate) struct Connection {
    calls: Arc<Calls>,
    queue: mpsc::Sender<Request>,
    /// Calls under way.
    under_way: Semaphore,
    /// Their bytes, in pieces.
    pieces: Semaphore,
    pieces_max: usize,
    // Relaxed: numbers only have to differ.
    last_id: AtomicU32,
    tasks: [AbortHandle; 2],
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.calls.end("it was closed");
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Connection {
    /// Connects, and says who speaks.
    ///
    /// # Errors
    /// `Unreachable`
    pub(crate) async fn open(
        (address, service): (&Address, Service),
        tally: Arc<ServerTally>,
        options: &HBaseOptions,
        deadline: Instant,
    ) -> Result<Self> {
        let unreachable =
            |reason: String| Error::Unreachable { what: address.to_string().into(), reason: reason.into() };
        let connect = TcpStream::connect((&*address.host, address.port));
        let stream = match timeout_at(deadline, connect).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(cause)) => return Err(unreachable(cause.to_string())),
            Err(_) => return Err(unreachable("nothing answered in time".to_owned())),
        };
        stream.set_nodelay(true).map_err(|cause| unreachable(cause.to_string()))?;
        let (input, mut output) = stream.into_split();
        let hello = frame::preamble(&options.user, service.name());
        timeout_at(deadline, output.write_all(&hello))
            .await
            .map_err(|_| unreachable("it took no greeting in time".to_owned()))?
            .map_err(|cause| unreachable(cause.to_string()))?;
        let state = State { waiting: HashMap::new(), ended: None, unheard_since: None, is_known: false };
        tally.connections.add();
        tally.connected.add();
        // Less than a call may take, of which some goes by before it is sent.
        let silence_max = options.call_timeout / 2;
        let (server, state) = (address.to_string().into(), Mutex::new(state));
        let calls = Arc::new(Calls { server, tally, silence_max, state });
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        let writing = tokio::spawn(write(output, requests, Arc::clone(&calls))).abort_handle();
        let reading = tokio::spawn(read(input, Arc::clone(&calls))).abort_handle();
        let pieces_max = (options.calls_bytes_max / PIECE_BYTES).clamp(1, Semaphore::MAX_PERMITS >> 1);
        Ok(Self {
            calls,
            queue,
            under_way: Semaphore::new(options.calls_max.max(1)),
            pieces: Semaphore::new(pieces_max),
            pieces_max,
            last_id: AtomicU32::new(0),
            tasks: [writing, reading],
        })
    }

    /// Whether it ended, and another is needed.
    pub(crate) fn is_ended(&self) -> bool {
        self.calls.state().ended.is_some()
    }

    /// Asks, and waits for the answer and the cells beside it.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been done.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: &'static str,
        ask: &impl Message,
        cells: Bytes,
        deadline: Instant,
    ) -> std::result::Result<(A, Bytes), CallError> {
        // HBase's numbers are signed; ours go round below its negative ones.
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) & i32::MAX.unsigned_abs();
        let left_ms = || milliseconds(deadline.saturating_duration_since(Instant::now()));
        let build = |left_ms| frame::request(id, method, left_ms, ask, cells.clone()).map_err(CallError::Unsent);
        let told_ms = left_ms();
        let mut request = build(told_ms)?;
        let tally = &self.calls.tally;
        let waits = tally.waiting.during();
        if self.under_way.available_permits() == 0 {
            tally.waited.add();
        }
        let permits = timeout_at(deadline, self.permits(request.len())).await;
        let _permits = permits.map_err(|_| CallError::Unsent(self.timed_out(method)))?.map_err(CallError::Unsent)?;
        let room = timeout_at(deadline, self.queue.reserve()).await;
        let room = room.map_err(|_| CallError::Unsent(self.timed_out(method)))?;
        let room = room.map_err(|_| CallError::Unsent(self.why_ended()))?;
        // A server must not begin what nobody waits for any more.
        let left_ms = left_ms();
        if left_ms.saturating_add(WAIT_UNTOLD_MS) < told_ms {
            request = build(left_ms)?;
        }
        let (waiter, answer) = oneshot::channel();
        let waiting = Waiting::new(&self.calls, id, waiter).map_err(CallError::Unsent)?;
        room.send(request);
        drop(waits);
        tally.sent.add();
        let _in_flight = tally.in_flight.during();
        let told = timeout_at(deadline, answer).await;
        drop(waiting);
        let told = told.map_err(|_| CallError::Unknown(self.timed_out(method)))?;
        let told = told.map_err(|_| CallError::Unknown(Error::Ended))?.map_err(CallError::Unknown)?;
        let body = told.map_err(CallError::Refused)?;
        body.read().map_err(CallError::Unknown)
    }

    async fn permits(&self, bytes: usize) -> Result<(SemaphorePermit<'_>, SemaphorePermit<'_>)> {
        let pieces = bytes.div_ceil(PIECE_BYTES).clamp(1, self.pieces_max);
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        let call = self.under_way.acquire().await.map_err(|_| Error::Ended)?;
        Ok((call, self.pieces.acquire_many(pieces).await.map_err(|_| Error::Ended)?))
    }

    fn timed_out(&self, call: &'static str) -> Error {
        Error::TimedOut { server: self.calls.server.clone(), call }
    }

    fn why_ended(&self) -> Error {
        self.calls.state().ended.clone().unwrap_or(Error::Ended)
    }
}

/// A call's place among those that wait; given back when the caller goes. A server that says nothing at all is gone, and its
/// connection with it; one that had no time to answer is not.
struct Waiting<'a> {
    calls: &'a Calls,
    id: u32,
}

impl<'a> Waiting<'a> {
    fn new(calls: &'a Calls, id: u32, waiter: oneshot::Sender<std::result::Result<Told, Error>>) -> Result<Self> {
        let mut state = calls.state();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        state.waiting.insert(id, waiter);
        state.unheard_since.get_or_insert_with(Instant::now);
        Ok(Self { calls, id })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let is_silent = {
            let mut state = self.calls.state();
            let unheard_since = state.waiting.remove(&self.id).and(state.unheard_since);
            unheard_since.is_some_and(|since| since.elapsed() >= self.calls.silence_max)
        };
        if is_silent {
            self.calls.end("the server fell silent");
        }
    }
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).clamp(1, i32::MAX.unsigned_abs())
}

async fn write(output: OwnedWriteHalf, mut requests: mpsc::Receiver<Request>, calls: Arc<Calls>) {
    let mut output = BufWriter::with_capacity(BUFFER_BYTES, output);
    while let Some(request) = requests.recv().await {
        if let Err(cause) = write_one(&mut output, &request, requests.is_empty()).await {
            calls.end(cause.to_string());
            return;
        }
    }
}

async fn write_one(output: &mut BufWriter<OwnedWriteHalf>, request: &Request, is_last: bool) -> std::io::Result<()> {
    output.write_all(&request.head).await?;
    output.write_all(&request.cells).await?;
    // More are at hand: they go out together.
    if is_last { output.flush().await } else { Ok(()) }
}

async fn read(input: OwnedReadHalf, calls: Arc<Calls>) {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    loop {
        let frame = match read_one(&mut input).await {
            Ok(frame) => frame,
            Err(cause) => return calls.end(cause.to_string()),
        };
        match Answer::decode(frame).and_then(|answer| calls.hand_over(answer)) {
            Ok(()) => {}
            Err(error @ Error::LoginRequired { .. }) => return calls.end_by(&error),
            Err(error) => return calls.end(error.to_string()),
        }
    }
}

async fn read_one(input: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Bytes> {
    let length = input.read_u32().await? as usize;
    if length > ANSWER_BYTES_MAX {
        return Err(std::io::Error::other(format!("an answer of {length} bytes is announced")));
    }
    // Grows as bytes come: a length alone reserves nothing.
    let mut frame = Vec::with_capacity(length.min(BUFFER_BYTES));
    let read = input.take(length as u64).read_to_end(&mut frame).await?;
    if read < length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(frame.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let check = |text: &str, host: &str, port: u16| {
            assert_eq!(Address::parse(text).unwrap(), Address { host: host.into(), port });
        };
        check("hbase-1.local:16000", "hbase-1.local", 16000);
        check(" 10.0.0.1:1 ", "10.0.0.1", 1);
        check("[::1]:16000", "::1", 16000);
        assert_eq!(Address::parse_or("zk", Some(2181)).unwrap().port, 2181);
        assert_eq!(Address::parse_or("zk:1", Some(2181)).unwrap().port, 1);
        assert!(Address::parse_or("", Some(2181)).is_err());
        for bad in ["", "host", ":1", "host:", "host:70000"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_ipv6_address_is_whole_or_refused() {
        let check = |text: &str, host: &str, port: u16| {
            let address = Address::parse_or(text, Some(2181)).unwrap();
            assert_eq!(address, Address { host: host.into(), port }, "{text}");
            assert_eq!(Address::parse(&address.to_string()).unwrap(), address, "{text}");
        };
        check("::1", "::1", 2181);
        check("fd00::12:2181", "fd00::12:2181", 2181);
        check("[fd00::12]:2182", "fd00::12", 2182);
        check("[fd00::12]", "fd00::12", 2181);
        check("[fe80::1%eth0]:2182", "fe80::1%eth0", 2182);
        // As a region server without a name is told in the catalogue.
        check("fd00:0:0:0:0:0:0:12:16020", "fd00:0:0:0:0:0:0:12", 16020);
        for (bad, why) in [
            ("[::1", "not closed"),
            ("[::1]2181", "without a colon"),
            ("[]:2181", "no host:port"),
            ("[::1]:", "no host:port"),
            ("fe80::1%eth0:2181", "[address]:port"),
            ("zk1:2181:2182", "[address]:port"),
        ] {
            let told = Address::parse_or(bad, Some(2181)).unwrap_err().to_string();
            assert!(told.contains(bad) && told.contains(why), "{told}");
        }
        let told = Address::parse("fd00::12").unwrap_err().to_string();
        assert!(told.contains("without a port"), "{told}");
    }
}
