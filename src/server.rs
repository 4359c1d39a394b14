//! One port for HTTP and telnet: accept, tell them apart by the first byte, bound how many, drain.
//!
//! The first byte decides as in OpenTSDB: `A` to `Z` begins an HTTP method, anything else a telnet
//! command. It is peeked at, not read, so both protocols start from an untouched socket.

mod hangup;
mod linger;
mod recovery;

pub(crate) use recovery::Awaited;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::CONNECTION;
use axum::response::Response;
use bytes::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, ReadBuf, join};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

use crate::app::App;
use crate::config;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use crate::http::Ends;
use crate::http::quick::{self, Ended, Loops};
use crate::stop::{Stop, stopped};
use crate::{http, telnet};
use hangup::{HungUp, Shared};
use linger::linger;

/// Most headers of one request; further ones are answered 431.
const HEADERS_MAX: usize = 100;

/// Connections at once whatever the configuration says. What the system's bound of open files leaves is lower as a rule.
const SEATS_MAX: usize = 1 << 20;

/// Pause after a failed accept (no file descriptors left), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The app, once the store is open.
pub(crate) type Ready = watch::Receiver<Option<Arc<App>>>;

/// The listening port.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    local: SocketAddr,
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    ///
    /// Exit code 1 if it is taken or not ours to take.
    pub(crate) fn bind(listen: SocketAddr, backlog: u32) -> Result<Self, Failure> {
        let listener = listen_on(listen, backlog).map_err(|cause| {
            let line = match cause.kind() {
                io::ErrorKind::AddrInUse => {
                    format!("port in use: another program listens on {listen}; stop it or choose --listen ADDR:PORT")
                }
                _ => format!("cannot listen on {listen}: {cause}"),
            };
            Failure::new(Exit::Failure, line)
        })?;
        let local = listener
            .local_addr()
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot listen on {listen}: {cause}")))?;
        Ok(Self { listener, local })
    }

    /// The address taken, with the port chosen if it was 0.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Accepts until `stop` is raised, then waits for open requests, at most the time that
    /// `server.shutdown_timeout_ms` gives. Until the app is there, HTTP is told so and telnet waits.
    pub(crate) async fn run(self, config: config::Server, awaited: Awaited, ready: Ready, mut stop: Stop) {
        let seats_count = seats_count(config.max_connections);
        let seats = Arc::new(Semaphore::new(seats_count));
        // Who is answered, as health checks are, must find a seat beside those that wait for the app.
        let benches = Arc::new(Semaphore::new(seats_count.div_ceil(2)));
        let loops = Arc::new(Loops::start(config.worker_threads));
        let places = Places { seats, benches, loops, refused: Arc::default() };
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stopped(&mut stop) => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    seat((&ready, awaited), &places, config.header_patience(), (stream, peer), &stop);
                }
                Err(cause) => {
                    tracing::warn!(%cause, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        let everyone = u32::try_from(seats_count).unwrap_or(u32::MAX);
        if timeout(config.shutdown_timeout_ms, places.seats.acquire_many(everyone)).await.is_err() {
            let left = seats_count - places.seats.available_permits();
            tracing::warn!(connections = left, "requests were still open when the time to drain was over");
        }
    }
}

/// How many may be connected at once; 0 is as many as the system gives.
fn seats_count(max_connections: usize) -> usize {
    let wanted = if max_connections == 0 { SEATS_MAX } else { max_connections.min(SEATS_MAX) };
    descriptors::connections_max(wanted, descriptors::bound())
}

/// A socket that listens; its connections notice peers that are gone without a word.
fn listen_on(listen: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_keepalive(true)?;
    socket.bind(listen)?;
    socket.listen(backlog)
}

/// What connections share.
#[derive(Clone, Debug)]
struct Places {
    seats: Arc<Semaphore>,
    /// Where telnet waits for the app.
    benches: Arc<Semaphore>,
    loops: Arc<Loops>,
    /// Connections closed for want of room that the app's metrics do not have yet: whoever may ask for these adds them first. Relaxed: a
    /// number alone.
    refused: Arc<AtomicU64>,
}

/// Gives a connection a seat and a task, or closes it if all seats are taken.
fn seat(
    (ready, awaited): (&Ready, Awaited),
    places: &Places,
    patience: Duration,
    (stream, peer): (TcpStream, SocketAddr),
    stop: &Stop,
) {
    let app = ready.borrow().clone();
    let Ok(seat) = Arc::clone(&places.seats).try_acquire_owned() else {
        match &app {
            Some(app) => app.metrics.connections_rejected.add(1),
            None => drop(places.refused.fetch_add(1, Ordering::Relaxed)),
        }
        tracing::warn!(%peer, "connection refused: server.max_connections are open, or as many as the bound of open files leaves");
        return;
    };
    let (mut ready, mut stop, places) = (ready.clone(), stop.clone(), places.clone());
    tokio::spawn(async move {
        let early = match app {
            Some(app) => Early::Serve(app),
            None => early((&stream, peer), patience, &places.benches, &mut ready, &mut stop).await,
        };
        match early {
            Early::Serve(app) => {
                app.metrics.connections_rejected.add(places.refused.swap(0, Ordering::Relaxed));
                app.metrics.connections_total.add(1);
                let open = app.metrics.connections_open.hold();
                connection(&app, &places.loops, (stream, peer), stop).await;
                drop(open);
            }
            Early::Full => drop(places.refused.fetch_add(1, Ordering::Relaxed)),
            Early::Refuse => recovery::refuse(stream, awaited, stop).await,
            Early::Close => {}
        }
        drop::<OwnedSemaphorePermit>(seat);
    });
}

/// The first byte of a client that speaks TLS, such as one that asks by `https://`. It waits for bytes that telnet never says.
const TLS_HANDSHAKE: u8 = 0x16;

/// What becomes of a connection.
enum Early {
    Serve(Arc<App>),
    /// HTTP goes away with an answer.
    Refuse,
    /// Too many wait.
    Full,
    Close,
}

/// Looks at a connection that came before the app: telnet waits for it, if there is room to wait, and HTTP is told to come again.
///
/// One that waits and leaves is not missed: the points that it sent lie in the socket, and are to be stored.
async fn early(
    (stream, peer): (&TcpStream, SocketAddr),
    patience: Duration,
    benches: &Semaphore,
    ready: &mut Ready,
    stop: &mut Stop,
) -> Early {
    let mut first = [0_u8; 1];
    let peeked = tokio::select! {
        peeked = timeout(patience, stream.peek(&mut first)) => peeked,
        () = stopped(stop) => return Early::Close,
    };
    match (peeked, first) {
        (Ok(Ok(1)), [b'A'..=b'Z']) => ready.borrow().clone().map_or(Early::Refuse, Early::Serve),
        (Ok(Ok(1)), _) => {
            let Ok(_place) = benches.try_acquire() else {
                tracing::warn!(%peer, "telnet connection closed: half of server.max_connections wait for the store");
                return Early::Full;
            };
            tokio::select! {
            app = ready.wait_for(Option::is_some) => {
                app.ok().and_then(|app| app.clone()).map_or(Early::Close, Early::Serve)
            }
            () = stopped(stop) => Early::Close,
            }
        }
        _ => Early::Close,
    }
}

/// Serves one connection to its end.
async fn connection(app: &Arc<App>, loops: &Loops, (stream, peer): (TcpStream, SocketAddr), mut stop: Stop) {
    // Without it a small answer waits for the peer's delayed acknowledgement; failing is harmless.
    stream.set_nodelay(true).unwrap_or_default();
    let mut first = [0_u8; 1];
    let peeked = tokio::select! {
        peeked = timeout(app.config.server.header_patience(), stream.peek(&mut first)) => peeked,
        () = stopped(&mut stop) => return,
    };
    match (peeked, first) {
        (Ok(Ok(1)), [b'P']) if quick::is_on(app) => match loops.serve(app, stream, &stop).await {
            Ended::Closed => {}
            Ended::HandOver(received, stream) | Ended::Large(received, stream) => {
                serve_http(app, (received, stream), peer, stop).await;
            }
        },
        (Ok(Ok(1)), [b'A'..=b'Z']) => serve_http(app, (Vec::new(), stream), peer, stop).await,
        (Ok(Ok(1)), [TLS_HANDSHAKE]) => {
            tracing::warn!(%peer, "a TLS connection was closed: there is no TLS here, ask by http:// or put a proxy before the port");
        }
        (Ok(Ok(1)), _) => telnet::serve(app, stream, peer, stop).await,
        // Closed at once (Telegraf tests its connection so), silent, or reset: nobody to answer.
        (Ok(Ok(_) | Err(_)) | Err(_), _) => {}
    }
}

/// How long a request whose head has come in part may take for the rest of it once the server ends.
const HEAD_GRACE: Duration = Duration::from_secs(1);

/// How far the requests of a connection came. Relaxed, both: the task of the connection alone sets and reads them.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes came behind the last request, and are no whole head yet.
    is_begun: AtomicBool,
    /// A request is being answered.
    is_asked: AtomicBool,
    /// The answer said that it is the last, as its request was not read whole.
    lingers: AtomicBool,
}

/// A socket of which some bytes were read already; their memory is given back when they have been read again.
struct Resumed {
    received: Bytes,
    reader: Shared,
    progress: Arc<Progress>,
}

impl AsyncRead for Resumed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.received.is_empty() {
            let filled = buffer.filled().len();
            let read = hangup::with(&self.reader, |reader| reader.poll_read(context, buffer));
            if buffer.filled().len() > filled && !self.progress.is_asked.load(Ordering::Relaxed) {
                self.progress.is_begun.store(true, Ordering::Relaxed);
            }
            return read;
        }
        self.progress.is_begun.store(true, Ordering::Relaxed);
        let bytes = self.received.len().min(buffer.remaining());
        buffer.put_slice(&self.received.split_to(bytes));
        if self.received.is_empty() {
            self.received = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

/// Serves HTTP on a socket of which some bytes were read already.
async fn serve_http(app: &Arc<App>, (received, stream): (Vec<u8>, TcpStream), peer: SocketAddr, mut stop: Stop) {
    let ends = Ends { peer, own: stream.local_addr().ok().map(|own| own.ip()) };
    let progress = Arc::new(Progress::default());
    let (reader, writer) = stream.into_split();
    let reader = Arc::new(Mutex::new(reader));
    let resumed = Resumed { received: received.into(), reader: Arc::clone(&reader), progress: Arc::clone(&progress) };
    let ended = converse(app, (resumed, writer), ends, &mut stop).await;
    if let Err(cause) = &ended {
        tracing::debug!(%peer, %cause, "http connection ended");
    }
    // Of a head that is none, or too long, hyper tells the peer by itself.
    let is_no_head = ended.is_err_and(|cause| cause.is_parse());
    if (is_no_head || progress.lingers.load(Ordering::Relaxed))
        && let Some(reader) = Arc::into_inner(reader)
    {
        linger(&mut reader.into_inner().unwrap_or_else(PoisonError::into_inner), &mut stop).await;
    }
}

/// Answers requests until the last of them.
async fn converse(
    app: &Arc<App>,
    (reader, writer): (Resumed, OwnedWriteHalf),
    ends: Ends,
    stop: &mut Stop,
) -> hyper::Result<()> {
    let config: &config::Config = &app.config;
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.server.idle_patience())
        .max_headers(HEADERS_MAX)
        .max_buf_size(config.http.head_bytes_max())
        .half_close(true)
        .title_case_headers(true);
    let app = Arc::clone(app);
    let router = http::router(&app);
    let progress = Arc::clone(&reader.progress);
    let (served, watched) = (Arc::clone(&progress), Arc::clone(&reader.reader));
    let service = service_fn(move |request| {
        served.is_begun.store(false, Ordering::Relaxed);
        served.is_asked.store(true, Ordering::Relaxed);
        let hung_up = http::ends_with_its_asker(request.uri().path()).then(|| hangup::hung_up(Arc::clone(&watched)));
        let (answer, served) = (http::answer(Arc::clone(&app), router.clone(), ends, request), Arc::clone(&served));
        async move {
            let answer = unless(answer, hung_up).await?;
            served.is_asked.store(false, Ordering::Relaxed);
            served.lingers.store(answer.headers().contains_key(CONNECTION), Ordering::Relaxed);
            Ok::<_, io::Error>(answer)
        }
    });
    // A peer that stopped reading its answer is as idle as one that stopped asking.
    let mut stream = TimeoutStream::new(join(reader, writer));
    stream.set_write_timeout(Some(config.server.idle_patience()));
    let serving = builder.serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // In this order: a connection of which nothing was looked at would be ended with what was received.
        biased;
        ended = serving.as_mut() => ended,
        () = stopped(stop) => {
            serving.as_mut().graceful_shutdown();
            let ended = timeout(HEAD_GRACE, serving.as_mut()).await;
            let is_asked = progress.is_asked.load(Ordering::Relaxed);
            match ended {
                Ok(ended) => ended,
                // A head in part is no request that anybody waits for.
                Err(_) if progress.is_begun.load(Ordering::Relaxed) && !is_asked => Ok(()),
                Err(_) => serving.await,
            }
        }
    }
}

/// The answer, unless the peer hangs up before all of it is made.
async fn unless(
    answer: impl Future<Output = Result<Response, Infallible>>,
    hung_up: Option<HungUp>,
) -> io::Result<Response> {
    let Some(mut hung_up) = hung_up else {
        let Ok(answer) = answer.await;
        return Ok(answer);
    };
    tokio::select! {
        biased;
        Ok(answer) = answer => Ok(hangup::watch(answer, hung_up)),
        () = hung_up.as_mut() => Err(hangup::nobody()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::config::{Config, StoreKind};

    /// Health checks must find a seat while agents wait for the store.
    #[tokio::test]
    async fn telnet_waits_for_the_app_as_far_as_there_is_room_and_http_does_not() {
        let listener = listen_on(SocketAddr::from(([127, 0, 0, 1], 0)), 8).unwrap();
        let (_make_ready, ready) = watch::channel(None);
        let (raise, stop) = watch::channel(false);
        let benches = Arc::new(Semaphore::new(1));
        let mut ends = Vec::new();
        for said in ["put m 1 1 a=b", "GET /healthz", "put m 2 1 a=b"] {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            let (stream, peer) = listener.accept().await.unwrap();
            let (mut ready, mut stop, of_task) = (ready.clone(), stop.clone(), Arc::clone(&benches));
            ends.push(tokio::spawn(async move {
                let patience = Duration::from_mins(1);
                let early = early((&stream, peer), patience, &of_task, &mut ready, &mut stop).await;
                drop(client);
                early
            }));
            // The next comes when this one waits, or has gone.
            while benches.available_permits() == 1 && !ends[0].is_finished() {
                tokio::task::yield_now().await;
            }
        }
        let mut ends = ends.into_iter();
        let (waits, health, late) = (ends.next().unwrap(), ends.next().unwrap(), ends.next().unwrap());
        assert!(matches!(health.await, Ok(Early::Refuse)));
        assert!(matches!(late.await, Ok(Early::Full)));
        assert!(!waits.is_finished());
        raise.send(true).unwrap();
        assert!(matches!(waits.await, Ok(Early::Close)));
        assert_eq!(benches.available_permits(), 1);
    }

    /// Those that found no place to wait for the app, and no seat at all.
    #[tokio::test]
    async fn who_is_closed_before_the_app_is_there_is_counted() {
        let mut config = Config::default();
        (config.store.kind, config.server.max_connections) = (StoreKind::Memory, 2);
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 8).unwrap();
        let local = server.local();
        let (make_ready, ready) = watch::channel(None);
        let (_raise, stop) = watch::channel(false);
        let running = tokio::spawn(server.run(config.server.clone(), Awaited::of(&config), ready, stop));
        let app = Arc::new(App::open(config).await.unwrap());
        let mut ends = Vec::new();
        // The third is closed for want of a seat, as the second says nothing and keeps its own until it does.
        for said in ["version\n", "", "version\n"] {
            let mut client = TcpStream::connect(local).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            ends.push(client);
        }
        let mut answer = [0; 16];
        let closed = |read: io::Result<usize>| assert_eq!(read.unwrap_or(0), 0);
        closed(ends[2].read(&mut answer).await);
        ends[1].write_all(b"version\n").await.unwrap();
        closed(ends[1].read(&mut answer).await);
        assert_eq!(app.metrics.connections_rejected.get(), 0);
        make_ready.send(Some(Arc::clone(&app))).unwrap();
        assert!(ends[0].read(&mut answer).await.unwrap() > 0);
        assert_eq!(app.metrics.connections_rejected.get(), 2);
        running.abort();
    }
}
