//! What every connection shares: settings, numbers, and the crates that do the work.

use std::sync::Arc;
use std::time::Instant;

use basalt_ingest::{Door, Ingest, IngestCounts, IngestLimits};
use basalt_query::{Compat, Limits, Options, QueryEngine, parse_zone};
use basalt_rewrite::Rewriter;
use basalt_schema::{IndexedStore, Schema, UidKind, UidTable, UidUsage};
use basalt_store::Store;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use crate::auth::Users;
use crate::bodies::BodyPool;
use crate::config::{Config, Durability};
use crate::exit::{Exit, Failure};
use crate::metrics::Metrics;
use crate::publish::Publisher;
use crate::register::Register;
use crate::rewriting;
use crate::room::Room;
use crate::seats::{LARGE_WAITING, Seat, Seats};
use crate::store::{self, OpenStore, OpenTables, recorded};

/// How many operators' commands run at once, and how many wait.
const OPERATORS_RUNNING: usize = 4;
const OPERATORS_WAITING: usize = 16;
/// Puts that look up or make names at once, and those that wait for it: each may hold a thread for as long as a cluster is away,
/// and threads are bounded.
const ASKERS_RUNNING: usize = 64;
const ASKERS_WAITING: usize = 1_024;
/// All others that read or write names, annotations and the like at once, and that wait for it: threads as well.
const LOOKERS_RUNNING: usize = 64;
const LOOKERS_WAITING: usize = 1_024;

/// Threads that may wait for the store, a disk or a reader at once: those with a seat of one kind or another, and the few that the daemon
/// has for itself. 512 at least, as tokio has it: a seat bounds what runs, and threads bound nothing.
pub(crate) fn blocking_threads(config: &Config) -> usize {
    const OTHERS: usize = 64;
    const AT_LEAST: usize = 512;
    let queries = config.query.max_concurrent + LARGE_WAITING;
    (queries + LOOKERS_RUNNING + ASKERS_RUNNING + OPERATORS_RUNNING + OTHERS).max(AT_LEAST)
}

/// The running daemon, behind one `Arc`.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    /// When it began to serve.
    pub(crate) started: Instant,
    /// This machine's name, for the `host` tag of our own numbers.
    pub(crate) host: String,
    /// How requests for queries are read.
    pub(crate) query_options: Options,
    /// Which queries run and ran.
    pub(crate) register: Arc<Register>,
    /// Who may run a query now.
    pub(crate) seats: Arc<Seats>,
    /// Which operator's commands may run now.
    pub(crate) operators: Arc<Seats>,
    /// Who may hold a thread now that waits for names.
    pub(crate) askers: Arc<Seats>,
    /// Who may hold a thread now that reads or writes names, annotations and the like.
    pub(crate) lookers: Seats,
    /// What all bodies of requests may hold.
    pub(crate) bodies: Arc<BodyPool>,
    /// Whether there is room for points.
    pub(crate) room: Room,
    /// Who may do what.
    pub(crate) users: Users,
    /// Where points go.
    pub(crate) ingest: Arc<Ingest>,
    /// Who hears of what is stored.
    pub(crate) publisher: Publisher,
    /// What folds rows, where the store does not by itself.
    pub(crate) rewriter: Option<Arc<Rewriter>>,
    queries: QueryEngine,
    /// Somebody who may asked the daemon to end.
    end: Notify,
    tables: Arc<OpenTables>,
}

impl App {
    /// Opens the store that `config` names and everything over it, for a server.
    ///
    /// # Errors
    ///
    /// As [`OpenTables::serve`]; exit code 3 for a time zone that does not exist.
    pub(crate) async fn open(config: Config) -> Result<Self, Failure> {
        Self::over(config, OpenTables::serve).await
    }

    /// The same for a tool.
    ///
    /// # Errors
    ///
    /// As [`App::open`].
    pub(crate) async fn open_for_tool(config: Config) -> Result<Self, Failure> {
        Self::over(config, OpenTables::open).await
    }

    async fn over(config: Config, open: fn(&Config) -> Result<OpenTables, Failure>) -> Result<Self, Failure> {
        let query_options = query_options(&config)?;
        let (tables, mut config) = spawn_blocking(move || open(&config).map(|tables| (tables, config)))
            .await
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot open the store: {cause}")))??;
        recorded::tell(tables.schema.config(), &mut config);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
        let hosts =
            if config.server.stats_canonical { std::fs::read_to_string("/etc/hosts") } else { Ok(String::new()) };
        let host = canonical(&host, &hosts.unwrap_or_default());
        let schema = &tables.schema;
        let mut ingest = Ingest::new(Arc::clone(schema), Arc::clone(schema.store()), ingest_limits(&config));
        let rewriter = rewriting::rewriter(&config, schema);
        if let Some(rewriter) = &rewriter {
            ingest = ingest.with_listener(rewriting::listener(rewriter));
            tokio::spawn(rewriting::keep_rewriting(Arc::clone(rewriter), config.rewrite.clone()));
        }
        Ok(Self {
            rewriter,
            metrics: Metrics::default(),
            started: Instant::now(),
            host,
            query_options,
            register: Arc::default(),
            end: Notify::new(),
            publisher: Publisher::start(&config.publish)?,
            seats: Arc::new(Seats::new(config.query.max_concurrent, config.query.max_waiting)),
            users: Users::default(),
            operators: Arc::new(Seats::new(OPERATORS_RUNNING, OPERATORS_WAITING)),
            askers: Arc::new(Seats::new(ASKERS_RUNNING, ASKERS_WAITING)),
            lookers: Seats::new(LOOKERS_RUNNING, LOOKERS_WAITING),
            bodies: BodyPool::of(config.http.bodies_bytes(), config.connection_bytes()),
            room: tables.store.room(),
            ingest: Arc::new(ingest),
            queries: QueryEngine::new(Arc::clone(schema), query_options, query_limits(&config)),
            tables: Arc::new(tables),
            config,
        })
    }

    /// Asks the daemon to end as by a signal.
    pub(crate) fn ask_to_end(&self, by: &str) {
        tracing::warn!(by, "shutdown requested");
        self.end.notify_one();
    }

    /// Ends when somebody asked the daemon to end.
    pub(crate) async fn asked_to_end(&self) {
        self.end.notified().await;
    }

    /// Makes everything durable and lets go of the store, beside which what waits to be published is.
    ///
    /// # Errors
    ///
    /// As [`OpenTables::close`].
    pub(crate) async fn close(&self) -> Result<(), Failure> {
        let tables = Arc::clone(&self.tables);
        let publishing = self.publisher.close(self.config.server.shutdown_timeout_ms);
        let (closing, ()) = tokio::join!(spawn_blocking(move || tables.close()), publishing);
        closing.unwrap_or_else(|cause| Err(Failure::new(Exit::Failure, format!("cannot close the store: {cause}"))))
    }

    /// Waits until everything acknowledged so far is durable.
    ///
    /// # Errors
    ///
    /// The store's own.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        let synced = self.tables.schema.store().sync().wait();
        synced.map_err(|cause| {
            Failure::new(store::exit_of_cause(cause.kind(), &cause), format!("cannot sync the store: {cause}"))
        })
    }

    /// The right to submit points whose names may have to be looked up or made, which blocks. Waits for it a while.
    ///
    /// # Errors
    ///
    /// `Throttled`: too many are at it; the points are counted as failed.
    pub(crate) async fn may_ask(&self, points: usize, door: Door) -> basalt_ingest::Result<Seat> {
        self.askers.take().await.map_err(|_| self.ingest.turn_away(points, ASKERS_RUNNING, door))
    }

    /// What answers queries; it waits, so it is asked on threads that may.
    pub(crate) fn queries(&self) -> &QueryEngine {
        &self.queries
    }

    /// Looks at names, annotations and the like on a thread that may wait for the store.
    ///
    /// # Errors
    ///
    /// [`Undone`].
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Schema) -> T + Send + 'static,
    ) -> Result<T, Undone> {
        self.look_from(self.lookers.take().await, work).await
    }

    /// The same with a query's seat and no looker's: what is looked at may be as much as a query's answer, and to wait for a second
    /// seat would keep queries out that need none.
    ///
    /// # Errors
    ///
    /// [`Undone`].
    pub(crate) async fn look_as_query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Schema) -> T + Send + 'static,
    ) -> Result<T, Undone> {
        self.look_from(self.seats.take().await, work).await
    }

    async fn look_from<T: Send + 'static>(
        &self,
        seat: Result<Seat, &'static str>,
        work: impl FnOnce(&Schema) -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let seat = seat.map_err(Undone::Full)?;
        let schema = Arc::clone(&self.tables.schema);
        let work = move || {
            // As long as the thread is taken, whoever may have left.
            let _seat = seat;
            work(&schema)
        };
        on_thread(work).await
    }

    /// Writes the series index down as it grows and lets go of series without points, for good; call it in a task of its own.
    pub(crate) fn keep_series(&self) -> impl Future<Output = ()> + use<> {
        store::series::keep_keeping(Arc::clone(&self.tables.schema), Arc::clone(&self.ingest))
    }

    /// The store below: its health, its figures.
    pub(crate) fn open_store(&self) -> &OpenStore {
        &self.tables.store
    }

    /// The tables themselves, for those who write rows and know no series.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(IndexedStore::new(Arc::clone(&self.tables.schema)))
    }

    /// The names of a kind.
    pub(crate) fn uid_table(&self, kind: UidKind) -> &UidTable {
        self.tables.schema.uids().of(kind)
    }

    /// How often meta objects, counters and places in trees could not be kept as points came.
    pub(crate) fn meta_failures_count(&self) -> u64 {
        self.tables.schema.realtime_failures()
    }

    /// How many UIDs of a kind are used and left; call it where a thread may block.
    ///
    /// # Errors
    ///
    /// The store's own.
    pub(crate) fn uid_usage(&self, kind: UidKind) -> basalt_schema::Result<UidUsage> {
        self.tables.schema.uids().of(kind).usage()
    }

    /// Forgets cached names; the next use reads them from the tables. On a thread that may take its time: there may be millions.
    ///
    /// # Errors
    ///
    /// [`Undone`].
    pub(crate) async fn drop_caches(&self) -> Result<(), Undone> {
        self.look(|schema| schema.uids().drop_caches()).await
    }

    /// How the daemon does, in OpenTSDB 2.5's words.
    pub(crate) fn status_word(&self) -> &'static str {
        if self.open_store().not_ready().is_none() { "ok" } else { "error" }
    }

    /// What became of all points so far.
    pub(crate) fn points(&self) -> IngestCounts {
        self.ingest.stats().counts()
    }

    /// Series in the index; `None` over a cluster, where the index is not kept whole and a look at names takes a call.
    pub(crate) fn series_count(&self) -> Option<u64> {
        self.open_store().cluster_figures().is_none().then(|| self.tables.schema.index().len() as u64)
    }

    /// Prometheus' page: the daemon's numbers, then the store's. Call it where a thread may block.
    pub(crate) fn metrics_page(&self) -> String {
        let mut page = self.metrics.page(&self.points());
        page.levels(self);
        let counts = &self.publisher.counts;
        for (name, about, count) in [
            ("basalt_published_total", "Points and annotations published.", &counts.published),
            ("basalt_publish_dropped_total", "Those that nobody took or that found the queue full.", &counts.dropped),
        ] {
            page.head(name, "counter", about);
            page.line(name, "", count.get());
        }
        if let Some(rewriter) = &self.rewriter {
            page.rewriting(&rewriter.counts());
        }
        if let Some(figures) = self.open_store().cluster_figures() {
            page.cluster(&figures);
        }
        match self.open_store().stats() {
            Some(stats) => page.store(&stats),
            None => page,
        }
        .text()
    }
}

/// Why work was not done on a thread of its own.
#[derive(Debug)]
pub(crate) enum Undone {
    /// There was no seat: too many are at it, or the turn did not come; in words.
    Full(&'static str),
    /// It panicked.
    Panicked(String),
}

/// Runs `work` on a thread that may take its time; whoever waits for more than a processor has a seat.
///
/// # Errors
///
/// [`Undone::Panicked`].
pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Undone> {
    spawn_blocking(work).await.map_err(|cause| Undone::Panicked(cause.to_string()))
}

/// The host's whole name as the system's own table has it: the first of the line that names the host. No name server is
/// asked, as the daemon makes no connections.
fn canonical(host: &str, hosts: &str) -> String {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let mut names = lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>());
    let line = names.find(|names| names.contains(&host)).unwrap_or_default();
    line.first().filter(|name| name.contains('.')).map_or_else(|| host.to_owned(), ToString::to_string)
}

/// How requests for queries are read.
///
/// # Errors
///
/// Exit code 3 for a time zone that does not exist.
pub(crate) fn query_options(config: &Config) -> Result<Options, Failure> {
    Ok(Options {
        compat: Compat { strict: config.compat.strict },
        default_zone: parse_zone(&config.query.timezone)
            .map_err(|cause| Failure::config(format!("setting `query.timezone`: {cause}")))?,
        skip_unresolved_tagvs: config.query.skip_unresolved_tagvs,
        salt_is_theirs: config.is_set("schema.salt_width"),
    })
}

fn ingest_limits(config: &Config) -> IngestLimits {
    IngestLimits {
        body_bytes_max: config.http.max_body_bytes,
        durability: match config.store.durability {
            Durability::Fsync => basalt_store::Durability::Fsync,
            Durability::Os => basalt_store::Durability::Os,
            Durability::Async => basalt_store::Durability::Async,
        },
        ..IngestLimits::default()
    }
}

/// What one query may take, by the configuration.
pub(crate) fn query_limits(config: &Config) -> Limits {
    Limits {
        points_max: config.query.max_points,
        bytes_max: config.query.max_bytes,
        deadline_ms: u64::try_from(config.query.timeout_ms.as_millis()).unwrap_or(u64::MAX),
        series_max: config.query.max_series,
        memory_bytes: config.query.memory_bytes,
        points_may_be_lifted: config.query.allow_override_points,
        bytes_may_be_lifted: config.query.allow_override_bytes,
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreKind;
    use crate::telnet::{PutKind, put_lines};

    impl App {
        /// For a test: over a store in memory, otherwise with the settings that `set` leaves.
        pub(crate) async fn in_memory(set: impl FnOnce(&mut Config)) -> Self {
            let mut config = Config::default();
            config.store.kind = StoreKind::Memory;
            set(&mut config);
            Self::open(config).await.unwrap()
        }
    }

    /// No thread is held by those that wait; a known series needs no seat.
    #[tokio::test(start_paused = true)]
    async fn puts_with_new_names_wait_for_one_of_some_seats_and_are_throttled() {
        let app = App::in_memory(|_| {}).await;
        let lines: [&[u8]; 2] = [b"put m 2 1 a=b", b"put n 2 1 a=b"];
        let known = basalt_ingest::parse_put_line("put m 1 1 a=b").unwrap();
        assert!(app.ingest.submit(&[known], Door::Telnet).unwrap().await.is_all_stored());
        let mut seats = Vec::new();
        for _ in 0..ASKERS_RUNNING {
            seats.push(app.may_ask(1, Door::Http).await.unwrap());
        }
        let refused = app.may_ask(3, Door::Http).await.unwrap_err();
        assert_eq!(refused.to_string(), "puts with new names under way are at the limit of 64: try again");
        assert_eq!(app.points().doors[Door::Http.index()].failed(), 3);
        assert!(put_lines(&app, Door::Telnet, PutKind::Put, &lines[..1]).await.is_empty());
        let texts = put_lines(&app, Door::Telnet, PutKind::Put, &lines[1..]).await;
        assert!(texts.len() == 1 && texts[0].contains("throttle"), "{texts:?}");
        seats.pop();
        assert!(app.may_ask(1, Door::Http).await.is_ok());
    }

    /// Threads are bounded: whoever asks while a cluster is away must not take them all.
    #[tokio::test(start_paused = true)]
    async fn look_ups_of_names_wait_for_one_of_some_seats_and_are_throttled() {
        let app = App::in_memory(|_| {}).await;
        let mut seats = Vec::new();
        for _ in 0..LOOKERS_RUNNING {
            seats.push(app.lookers.take().await.unwrap());
        }
        let look = || app.look(|_| ());
        assert!(matches!(look().await, Err(Undone::Full(_))));
        seats.pop();
        look().await.unwrap();
    }

    /// Who waits for it meanwhile keeps queries out that need no names.
    #[tokio::test(start_paused = true)]
    async fn with_a_querys_seat_nobody_waits_for_another() {
        let app = App::in_memory(|_| {}).await;
        let mut seats = Vec::new();
        for _ in 0..LOOKERS_RUNNING {
            seats.push(app.lookers.take().await.unwrap());
        }
        app.look_as_query(|_| ()).await.unwrap();
    }

    /// A query that has a seat must not wait for a thread: its time-out would run and nobody else gets the seat.
    #[test]
    fn each_that_may_run_has_a_thread() {
        let mut config = Config::default();
        config.query.max_concurrent = 16;
        assert_eq!(blocking_threads(&config), 512);
        config.query.max_concurrent = 65_536;
        assert!(
            blocking_threads(&config) > 65_536 + LARGE_WAITING + LOOKERS_RUNNING + ASKERS_RUNNING + OPERATORS_RUNNING
        );
    }

    /// `O-STATS`: `tsd.stats.canonical`.
    #[test]
    fn o_stats_a_host_is_named_with_its_domain_where_that_is_known() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.1 no.example web01\n10.0.0.1 web01.example.org web01 # web\n";
        assert_eq!(canonical("web01", hosts), "web01.example.org");
        assert_eq!(canonical("web02", hosts), "web02");
        assert_eq!(canonical("localhost", hosts), "localhost");
    }
}
