//! `basalt serve`: from a configuration to a running daemon and back to nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::{Sources, StoreFlag, try_print};
use crate::app::{App, blocking_threads};
use crate::config::{Config, StoreKind, Value as _};
use crate::exit::{Exit, Failure};
use crate::server::{Awaited, Server};
use crate::version::VERSION;
use crate::{descriptors, heap, log, preflight, reload, store, threads};

/// `basalt serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
HTTP and telnet share the port. The first line on standard output is `listening on
http://ADDR:PORT`. SIGTERM and SIGINT end the server after open requests; a second SIGINT ends it at
once.

Examples:
  basalt serve
  basalt serve --listen 127.0.0.1:0 --store memory      any free port, nothing kept
  basalt serve --config /etc/opentsdb/opentsdb.conf     OpenTSDB's own settings
  basalt serve --store hbase --hbase-masters m1:16000   over a cluster, with any number of daemons
  basalt serve --listen 0.0.0.0:4242 --insecure         open to the network, no password

Exit codes: 0 ended by a signal, 1 failed (port in use), 2 wrong command line, 3 wrong
configuration, 4 data folder in use, 5 damaged data, 74 nothing more can be made durable: the next
start recovers what was acknowledged, 75 try again later (disk full, HBase does not answer).")]
pub(super) struct Serve {
    #[command(flatten)]
    sources: Sources,
    /// Address and port; port 0 takes a free one [default: 127.0.0.1:4242]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    place: StoreFlag,
    /// Masters or region servers of the cluster of `--store hbase`
    #[arg(long, value_name = "HOST:PORT,...")]
    hbase_masters: Option<String>,
    /// Listen on an address that other machines reach although anybody may then read and write
    #[arg(long)]
    insecure: bool,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        run(self.config()?)
    }

    /// All layers, these flags as the last.
    ///
    /// # Errors
    ///
    /// As [`Config::load`]; exit code 2: a cluster is named that no table is in.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let mut layers = self.sources.layers();
        if let Some(listen) = &self.listen {
            layers.flags.push(("--listen", "server.listen", listen.clone()));
        }
        layers.flags.extend(self.place.layer());
        if let Some(masters) = &self.hbase_masters {
            layers.flags.push(("--hbase-masters", "hbase.masters", masters.clone()));
        }
        if self.insecure {
            layers.flags.push(("--insecure", "server.insecure", "true".to_owned()));
        }
        let config = Config::load(&layers)?;
        if self.hbase_masters.is_some() && config.store.kind != StoreKind::Hbase {
            let line = "--hbase-masters needs --store hbase: without it points stay on this machine";
            return Err(Failure::new(Exit::Usage, line));
        }
        Ok(config)
    }
}

/// Serves until it is told to end.
///
/// # Errors
///
/// What kept it from serving, with its exit code.
pub(super) fn run(config: Config) -> Result<(), Failure> {
    log::start(&config.log)?;
    log::write_apart()?;
    for warning in config.warnings().iter().chain(&config.memory_warning()).chain(&store::warnings(&config)) {
        tracing::warn!("{warning}");
    }
    for note in config.memory_note().iter().chain(config.notes()) {
        tracing::info!("{note}");
    }
    let (hbase, unless) = (&config.hbase, Config::default().hbase);
    let is_named = [
        ("hbase.zookeeper_quorum", hbase.zookeeper_quorum != unless.zookeeper_quorum),
        ("hbase.masters", hbase.masters != unless.masters),
    ];
    for (setting, _) in is_named.iter().filter(|(_, is_named)| *is_named && config.store.kind != StoreKind::Hbase) {
        tracing::info!("`{setting}` has no effect: the tables are not in HBase unless `store.kind` is `hbase`");
    }
    if config.store.kind != StoreKind::Hbase && !config.rewrite.enable {
        tracing::info!(
            "`rewrite.enable` has no effect: the embedded store folds an hour's rows when it flushes and compacts"
        );
    }
    heap::fit(config.memory_bytes());
    preflight::check(&config)?;
    threads::check(config.server.worker_threads, config.processors())?;
    descriptors::raise(config.server.max_connections);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.server.worker_threads > 0 {
        builder.worker_threads(config.server.worker_threads);
    }
    let runtime = builder
        .enable_all()
        .thread_name("basalt-net")
        .max_blocking_threads(blocking_threads(&config))
        .build()
        .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start threads: {cause}")))?;
    let served = runtime.block_on(serve(config));
    // A second interrupt or a hung query must not keep the process.
    runtime.shutdown_background();
    served
}

/// Says in the log what is started, and with which settings.
fn tell(config: &Config) {
    let (store, data_dir) = (config.store.kind.show(), config.store.data_dir.display());
    if config.store.kind == StoreKind::Embedded {
        tracing::info!(version = VERSION, store, %data_dir, "starting");
    } else {
        tracing::info!(version = VERSION, store, "starting");
    }
    for setting in config.changed() {
        tracing::info!("setting {setting}");
    }
}

async fn serve(mut config: Config) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let server = Server::bind(config.server.listen, config.server.backlog)?;
    // Not before: what does not start says so in one line.
    tell(&config);
    config.server.listen = server.local();
    let local = server.local();
    let (raise, stop) = watch::channel(false);
    let (open, ready) = watch::channel(None);
    let running = tokio::spawn(server.run(config.server.clone(), Awaited::of(&config), ready, stop));
    let app = tokio::select! {
        app = App::open(config) => Arc::new(app?),
        // Replaying the log can be broken off at any point and begun again.
        () = signals.first() => {
            tracing::info!("stopped before the store was open");
            return Ok(());
        }
    };
    for file in [reload::LIMITS, reload::ROLES] {
        let seen = file.load(&app, None)?;
        tokio::spawn(file.keep_loading(Arc::clone(&app), seen));
    }
    let keeping = tokio::spawn(app.keep_series());
    open.send_replace(Some(Arc::clone(&app)));
    tracing::info!(listen = %local, "ready");
    announce(local);

    let verdict = tokio::select! {
        () = signals.first() => Ok(()),
        () = app.asked_to_end() => Ok(()),
        failure = app.open_store().poisoned() => Err(failure),
    };
    raise.send_replace(true);
    keeping.abort();
    if verdict.is_err() {
        // Nothing may be acknowledged any more, so nothing is drained; and the store is not even
        // dropped, since its threads may hang in the very disk that failed.
        std::mem::forget(app);
        return verdict;
    }
    tracing::info!("stopping: no new connections, open requests may finish");
    let drained = async {
        // The accept loop returns by itself or by panic; both end the serving.
        running.await.unwrap_or_default();
        app.close().await
    };
    tokio::select! {
        closed = drained => {
            if closed.is_ok() {
                tracing::info!("stopped cleanly: everything acknowledged is kept as the store keeps it");
            }
            closed
        }
        () = signals.interrupt_again() => {
            tracing::warn!("second interrupt: ending at once");
            Ok(())
        }
    }
}

/// Tells the address on standard output, which nobody may read: a full disk or a pipe whose reader is gone or stands still keeps no
/// server from serving, nor from ending.
fn announce(local: SocketAddr) {
    tokio::task::spawn_blocking(move || {
        if let Err(cause) = try_print(&format!("listening on http://{local}\n")) {
            tracing::warn!("cannot write to standard output: {cause}");
        }
    });
}

/// The two signals that end the daemon, and the one that does not: a lost terminal, or whoever wants files read again.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|cause| Failure::new(Exit::Failure, format!("cannot listen for signals: {cause}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn first(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::info!("SIGHUP changes nothing: files of tokens and limits are read again when they change, other settings at a start");
                }
            }
        }
    }

    async fn interrupt_again(&mut self) {
        self.interrupt.recv().await;
    }
}
