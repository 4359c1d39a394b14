//! Writing as fast as the server answers, or at a rate.
//!
//! Each connection has a thread, which writes its own hosts' points down and waits for each answer before it sends more,
//! as collectors do. At a rate, request *n* of a connection is due at a moment that is known beforehand, and its
//! latency counts from then: a server that stalls is charged for all that waited (Tene's coordinated omission).
//! Telnet answers nothing; there a request is done when it is written, but for the points that error lines tell of, and the run
//! when the server has closed. What a lost telnet connection took with it nobody knows, so none is opened in its place.

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::data::{Form, Points, Workload};
use super::link::Link;
use super::recorder::Recorder;
use super::telnet::{Said, Telnet};
use super::{Run, Watch};
use crate::exit::Failure;
use crate::peer;

/// How long a server may take for one request.
const PATIENCE: Duration = Duration::from_mins(2);

/// How often a connection that waits looks whether the run is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// By which transport points go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// `/api/put`
    Json,
    /// telnet `put`
    Telnet,
}

/// What to write, and how.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) address: String,
    pub(crate) protocol: Protocol,
    pub(crate) gzip: bool,
    /// Behind `/api/put?`.
    pub(crate) parameters: String,
    pub(crate) batch: usize,
    pub(crate) connections: u64,
    /// Points a second of all connections; 0: as fast as it goes.
    pub(crate) rate: u64,
    /// When to end, though points are left.
    pub(crate) time_max: Option<Duration>,
    pub(crate) workload: Workload,
}

impl Plan {
    /// How long after the begin a request is due. Connections take turns, each at its own hosts' share of the rate.
    fn due(&self, connection: u64, request: u64) -> Option<Duration> {
        let (connections, hosts) = (u128::from(self.connections), u128::from(self.workload.hosts));
        let own = u128::from(self.workload.hosts_of(connection, self.connections));
        let turn = u128::from(request) * connections + u128::from(connection);
        // Saturating: numbers beyond are due never.
        let us = turn.saturating_mul(self.batch as u128 * 1_000_000).saturating_mul(hosts);
        let us = us.checked_div(own * connections * u128::from(self.rate))?;
        Some(Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX)))
    }
}

/// Runs it, or as much of it as its watch lets it.
///
/// # Errors
///
/// A connection that cannot be had at the start. Requests that are refused or lost are counted, and so are connections that
/// give up.
pub(crate) fn run(plan: &Plan, watch: &Watch) -> Result<Run, Failure> {
    let token = std::env::var(peer::TOKEN_VARIABLE).ok();
    let ready = |connection| {
        // Before it connects, so that the server waits for no series to be drawn.
        let points = plan.workload.stream(connection, plan.connections);
        let transport = match plan.protocol {
            Protocol::Json => Transport::Http(Link::connect(&plan.address, PATIENCE)?),
            Protocol::Telnet => Transport::Telnet(Telnet::connect(&plan.address, PATIENCE, token.as_deref())?),
        };
        Ok((points, transport))
    };
    super::run(plan.connections, ready, |connection, begun, (points, transport)| {
        Connection { plan, begun, watch, recorder: Recorder::default(), body: Vec::new() }
            .run(connection, points, transport)
    })
}

/// How points reach the server.
enum Transport<'a> {
    Http(Link<'a>),
    Telnet(Telnet),
}

impl Transport<'_> {
    /// Sends the points of one request; says how many bytes the answer has.
    ///
    /// # Errors
    ///
    /// Why they were refused or lost.
    fn put(&mut self, plan: &Plan, body: &[u8]) -> Result<u64, String> {
        let link = match self {
            Self::Http(link) => link,
            Self::Telnet(telnet) => return telnet.put(body).map(|()| 0).map_err(|cause| lost(plan, &cause)),
        };
        let path =
            if plan.parameters.is_empty() { "/api/put".to_owned() } else { format!("/api/put?{}", plan.parameters) };
        let encoding = if plan.gzip { "Content-Encoding: gzip\r\n" } else { "" };
        let head = peer::post_head(&plan.address, &path, encoding, body.len());
        link.ask(head.as_bytes(), body).map(|answer| answer.body_bytes)
    }

    /// Whether no more need be sent, after a request that failed; else it waits before the next.
    fn is_gone(&self) -> bool {
        match self {
            Self::Http(link) => {
                link.rest();
                link.is_gone()
            }
            Self::Telnet(_) => true,
        }
    }
}

fn lost(plan: &Plan, cause: &std::io::Error) -> String {
    format!("connection to {} lost: {cause}", plan.address)
}

struct Connection<'a> {
    plan: &'a Plan,
    begun: Instant,
    watch: &'a Watch,
    recorder: Recorder,
    body: Vec<u8>,
}

impl Connection<'_> {
    fn run(mut self, connection: u64, mut points: Points, mut transport: Transport<'_>) -> Recorder {
        let form = if self.plan.protocol == Protocol::Json { Form::Json } else { Form::Lines };
        let mut packed = Vec::new();
        for request in 0.. {
            let due = self.due(connection, request);
            let end = self.end();
            if end.is_some_and(|end| due.max(Some(Instant::now())) >= Some(end)) {
                self.leave(connection, request, end);
                break;
            }
            let written = points.batch(form, self.plan.batch, &mut self.body) as u64;
            if written == 0 {
                break;
            }
            if self.plan.gzip {
                packed = pack(&self.body, packed);
            }
            let due = due.unwrap_or_else(Instant::now);
            // Nobody wakes it, but it may wake by itself.
            while let Some(wait) = due.checked_duration_since(Instant::now()).filter(|_| !self.watch.ends()) {
                std::thread::park_timeout(wait.min(LOOK_EVERY));
            }
            if due > Instant::now() {
                break;
            }
            let sent = if self.plan.gzip { packed.as_slice() } else { self.body.as_slice() };
            self.recorder.sent_bytes += sent.len() as u64;
            match transport.put(self.plan, sent) {
                Ok(answer_bytes) => {
                    self.recorder.answered(self.begun.elapsed(), due.elapsed(), written);
                    self.recorder.answer_bytes += answer_bytes;
                    self.watch.done.fetch_add(written, Ordering::Relaxed);
                }
                Err(why) => {
                    self.recorder.refused(due.elapsed(), why);
                    if transport.is_gone() {
                        self.recorder.gave_up += 1;
                        let now = Instant::now();
                        self.leave(connection, request + 1, Some(end.map_or(now, |end| end.min(now))));
                        break;
                    }
                }
            }
            if let Transport::Telnet(telnet) = &mut transport {
                self.hear(telnet.said());
            }
        }
        if let Transport::Telnet(mut telnet) = transport {
            let waited = Instant::now();
            let (said, ended) = telnet.rest();
            self.hear(said);
            // One that was lost before is counted.
            if let Err(cause) = ended
                && self.recorder.gave_up == 0
            {
                self.recorder.refused(waited.elapsed(), lost(self.plan, &cause));
                self.recorder.gave_up += 1;
            }
        }
        self.recorder
    }

    /// Takes the points that a telnet server refused, each with a line, off those that are done.
    fn hear(&mut self, said: Said) {
        self.recorder.answer_bytes += said.bytes;
        let lines = said.lines.min(self.recorder.done);
        if lines > 0 {
            self.recorder.undone(lines, said.why());
            self.watch.done.fetch_sub(lines, Ordering::Relaxed);
        }
    }

    /// When the run ends at the latest; now where its watch ends it.
    fn end(&self) -> Option<Instant> {
        let last = self.plan.time_max.map(|most| self.begun + most);
        let now = self.watch.ends().then(Instant::now);
        last.into_iter().chain(now).min()
    }

    /// Charges the server for what was due by the end and was not sent, from a request on: each waits still.
    fn leave(&mut self, connection: u64, first: u64, end: Option<Instant>) {
        let (now, plan) = (Instant::now(), self.plan);
        let all = plan.workload.points_of(connection, plan.connections).div_ceil(plan.batch.max(1) as u64);
        for request in first..all {
            let Some(due) = self.due(connection, request).filter(|due| Some(*due) < end) else { break };
            self.recorder.unsent(now.saturating_duration_since(due));
        }
    }

    /// When a request is to be sent. `None` without a rate: when the one before is answered.
    fn due(&self, connection: u64, request: u64) -> Option<Instant> {
        Some(self.begun + self.plan.due(connection, request)?)
    }
}

/// `body` packed, in a buffer that is used again.
fn pack(body: &[u8], mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    let mut encoder = GzEncoder::new(buffer, Compression::fast());
    // Writing to memory cannot fail.
    encoder.write_all(body).and_then(|()| encoder.finish()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::TcpListener;

    use super::*;

    /// Takes puts of one connection; the first answer comes after `stall`.
    fn serve(listener: &TcpListener, stall: Duration) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream.try_clone().unwrap());
        let stalled = Instant::now() + stall;
        let (mut line, mut length) = (String::new(), 0);
        while input.read_line(&mut line).unwrap() > 0 {
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                input.read_exact(&mut vec![0; length]).unwrap();
                while let Some(wait) = stalled.checked_duration_since(Instant::now()) {
                    std::thread::park_timeout(wait);
                }
                stream.write_all(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n").unwrap();
            }
            line.clear();
        }
    }

    /// Five requests a second over one connection, for a second.
    fn plan(listener: &TcpListener) -> Plan {
        Plan {
            address: listener.local_addr().unwrap().to_string(),
            protocol: Protocol::Json,
            gzip: false,
            parameters: String::new(),
            batch: 10,
            connections: 1,
            rate: 50,
            time_max: Some(Duration::from_secs(1)),
            workload: Workload {
                seed: 1,
                hosts: 1,
                start_s: 1_500_000_000,
                step_s: 10,
                span_s: 10_000,
                late_percent: 0,
                decimals: 0,
            },
        }
    }

    /// Five requests are due in a second; the first of them is answered after 1.2 at the least.
    #[test]
    fn what_was_due_during_a_stall_at_the_end_is_charged() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let plan = plan(&listener);
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, Duration::from_millis(1_200)));
            run(&plan, &Watch::default()).unwrap().seen
        });
        assert_eq!((seen.requests, seen.unsent, seen.done), (1, 4, 10));
        // From 400 ms, of the last, to 1,200, of the first; at three digits.
        assert!(seen.latency().min_ms >= 399.5 && seen.latency().max_ms >= 1_199.5, "{:?}", seen.latency());
        assert_eq!(seen.seconds(), [0, 10]);
    }

    /// The server closes each connection with its request; that is lost, and so are the next four. Pauses between
    /// them are 100, 200 and 300 ms, and by the last of them four more are due.
    #[test]
    fn a_server_that_takes_nothing_any_more_is_charged() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let plan = Plan { rate: 100, time_max: None, ..plan(&listener) };
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
                }
            });
            run(&plan, &Watch::default()).unwrap().seen
        });
        assert_eq!((seen.requests, seen.failed, seen.gave_up, seen.done), (5, 5, 1, 0));
        assert!(!seen.seconds().is_empty(), "the plot reaches the end");
        assert!(seen.unsent >= 2, "{} of those due in 600 ms", seen.unsent);
        // The fifth was due after 400 ms and sent after 600.
        assert!(seen.latency().max_ms >= 199.5, "{:?}", seen.latency());
    }

    /// Refuses the first 24 points of a telnet connection with a long line each, and one more when all is sent.
    fn refuse(listener: &TcpListener) {
        let mut stream = listener.accept().unwrap().0;
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for (index, line) in lines.by_ref().take(24).enumerate() {
            assert!(line.unwrap().starts_with("put "));
            stream.write_all(format!("put: {index} {}\n", "no ".repeat(1_000)).as_bytes()).unwrap();
        }
        assert_eq!(lines.count(), 6);
        stream.write_all(b"put: the last").unwrap();
    }

    /// Three requests of ten points.
    #[test]
    fn points_that_telnet_refuses_are_not_done_and_their_requests_not_failed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let workload = Workload { span_s: 30, ..plan(&listener).workload };
        let plan = Plan { protocol: Protocol::Telnet, rate: 0, time_max: None, workload, ..plan(&listener) };
        let watch = Watch::default();
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| refuse(&listener));
            run(&plan, &watch).unwrap().seen
        });
        assert_eq!((seen.requests, seen.failed, seen.gave_up), (3, 0, 0), "{:?}", seen.first_failure);
        assert_eq!((seen.done, seen.refused_points, watch.done.into_inner()), (5, 25, 5));
        assert!(seen.first_failure.unwrap().starts_with("put: 0 no no") && seen.answer_bytes > 72_000);
    }

    /// The second request would be due after a day.
    #[test]
    fn a_run_ends_when_it_is_to_end_and_tells_what_it_did() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let workload = Workload { span_s: 10_000_000, ..plan(&listener).workload };
        let plan = Plan { batch: 100_000, rate: 1, time_max: None, workload, ..plan(&listener) };
        let watch = Watch::default();
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, Duration::ZERO));
            scope.spawn(|| {
                while watch.done.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                watch.ends.store(true, Ordering::Relaxed);
            });
            run(&plan, &watch).unwrap().seen
        });
        assert_eq!((seen.requests, seen.done, seen.unsent), (1, 100_000, 0));
    }

    /// Five hosts over four connections: the first has two of them, and is to send as much as two others.
    #[test]
    fn a_rate_is_kept_where_hosts_do_not_divide_by_connections() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let workload = Workload { hosts: 5, span_s: 1_000, ..plan(&listener).workload };
        let plan = Plan { rate: 500, connections: 4, workload, ..plan(&listener) };
        // 5,000 points: ten seconds.
        let all: Vec<u64> = (0..4).map(|connection| plan.workload.points_of(connection, 4) / 10).collect();
        assert_eq!(all, [200, 100, 100, 100]);
        for (connection, all) in (0..).zip(all) {
            assert_eq!(plan.due(connection, all), plan.due(connection, 0).map(|first| first + Duration::from_secs(10)));
        }
        let firsts: Vec<u128> = (0..4).map(|connection| plan.due(connection, 0).unwrap().as_millis()).collect();
        assert_eq!(firsts, [0, 25, 50, 75]);
        assert_eq!(Plan { rate: 0, ..plan }.due(1, 1), None);
    }
}
