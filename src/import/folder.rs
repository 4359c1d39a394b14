//! A data folder without a server: the same ingest, in this process.
//!
//! Blocks are written to the log without waiting for the disk, and the log is synced when progress is remembered: that is
//! all that an import must keep, since it can be run again. Over HBase, which takes what is asked of it side by side, a block
//! waits until the one before it is stored, and is only read meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use basalt_ingest::{Door, PointError, Problem, ProblemClass, RawPoint, Submission};
use basalt_store::ErrorKind;
use tokio::runtime::Runtime;

use super::block::{self, Block, Lines};
use super::target::{Stored, Target, Unstored, is_for_later, stopped};
use super::turns::{Turn, Turns};
use crate::app::App;
use crate::config::{Config, Durability, StoreKind};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::threads;

/// How long points that find no room, or no server of a cluster, are offered again.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two offers.
const PAUSE: Duration = Duration::from_millis(20);

/// An opened folder.
pub(crate) struct Folder {
    runtime: Runtime,
    app: Arc<App>,
    turns: Turns,
}

impl Folder {
    /// Opens the folder that `config` names.
    ///
    /// # Errors
    ///
    /// Exit code 4 when a server holds it; the store's own.
    pub(crate) fn open(mut config: Config) -> Result<Self, Failure> {
        config.store.durability = Durability::Async;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start threads: {cause}")))?;
        let app = Arc::new(runtime.block_on(App::open_for_tool(config))?);
        Ok(Self { runtime, app, turns: Turns::new() })
    }

    fn is_shared(&self) -> bool {
        self.app.config.store.kind == StoreKind::Hbase
    }

    /// Whether a point may be stored within the minute: one that found no room, or over HBase one that met a server which is gone or a
    /// table that is disabled. Points are the same however often they are sent.
    fn is_soon_over(&self, problem: &Problem) -> bool {
        let is_away = || matches!(problem, Problem::Storage { kind: ErrorKind::Unavailable, .. });
        problem.class() == ProblemClass::Throttled || self.is_shared() && is_away()
    }

    /// Hands points in; all of them are refused where there is no room for any.
    fn offer(&self, points: &[RawPoint<'_>]) -> Offered {
        match self.app.ingest.submit(points, Door::Import) {
            // What the store refuses to take, it refuses at once.
            Ok(mut submission) => match Pin::new(&mut submission).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(report) => Offered::Answered(report.errors),
                Poll::Pending => Offered::Under(submission),
            },
            Err(cause) => {
                let problem = Problem::Throttled { text: cause.to_string().into() };
                let of = |index| PointError { index, problem: problem.clone() };
                Offered::Answered((0..points.len()).map(of).collect())
            }
        }
    }
}

enum Offered {
    Under(Submission),
    Answered(Vec<PointError>),
}

impl Offered {
    /// Whether the store has the points before all that is offered from now on.
    fn is_in_order(&self) -> bool {
        match self {
            Self::Under(_) => true,
            Self::Answered(errors) => !errors.iter().any(|error| is_for_later(&error.problem)),
        }
    }

    /// Waits for what is wrong with the points.
    fn errors(self) -> Vec<PointError> {
        match self {
            Self::Under(submission) => submission.wait().errors,
            Self::Answered(errors) => errors,
        }
    }
}

impl Target for Folder {
    fn name(&self) -> String {
        let Config { store, hbase, schema, .. } = &self.app.config;
        let place = match store.kind {
            // In the same words, by whatever links it is named.
            StoreKind::Embedded => {
                store.data_dir.canonicalize().unwrap_or_else(|_| store.data_dir.clone()).display().to_string()
            }
            StoreKind::Memory => "memory".to_owned(),
            StoreKind::Hbase if hbase.masters.is_empty() => {
                format!("zookeeper://{}{}", hbase.zookeeper_quorum, hbase.zookeeper_root)
            }
            StoreKind::Hbase => format!("hbase://{}", hbase.masters),
        };
        format!("{place}, tables {} and {}", schema.data_table, schema.uid_table)
    }

    fn store(&self, block: &Block) -> Result<Stored, Unstored> {
        let text = block.text();
        let Lines { mut points, mut before, problems } = block::read(&text);
        for (_, problem) in &problems {
            self.app.ingest.reject_line(Door::Import, problem);
        }
        let lines = points.len() + problems.len();
        let mut refused: Vec<_> =
            problems.iter().map(|(before, problem)| block.refused(Some(*before), problem)).collect();
        let turn = self.turns.take(block.ticket).ok_or_else(stopped)?;
        let mut offered = self.offer(&points);
        // In the embedded store only what finds no room keeps the others waiting.
        let keeps_order = !self.is_shared();
        let place = if self.is_shared() { "the cluster" } else { "the folder" };
        let mut turn = Some(turn);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(turn) = turn.take_if(|_| keeps_order && offered.is_in_order()) {
                turn.pass();
            }
            let mut again = (Vec::new(), Vec::new());
            for PointError { index, problem } in offered.errors() {
                match (points.get(index), before.get(index)) {
                    (Some(point), Some(before)) if self.is_soon_over(&problem) && Instant::now() < until => {
                        again.0.push(*point);
                        again.1.push(*before);
                    }
                    _ if is_for_later(&problem) => {
                        let line = format!("{place} cannot be stored to now: {}", problem.telnet_text("put"));
                        return Err(Failure::new(Exit::TryLater, line).into());
                    }
                    (_, before) => refused.push(block.refused(before.copied(), &problem)),
                }
            }
            if again.0.is_empty() {
                turn.into_iter().for_each(Turn::pass);
                return Ok(Stored { points: (lines - refused.len()) as u64, refused });
            }
            (points, before) = again;
            threads::pause(PAUSE);
            offered = self.offer(&points);
        }
    }

    fn sync(&self) -> Result<(), Failure> {
        self.app.sync()
    }

    fn finish(&self) -> Result<(), Failure> {
        meanwhile("closing the store, which writes what is in memory into files", || {
            self.runtime.block_on(self.app.close())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use basalt_ingest::{Ingest, IngestLimits};
    use basalt_schema::{AutoCreate, Schema, SchemaConfig};
    use basalt_store::{
        Applied, Completer, ManualClock, MemoryStore, MutationBatch, Pending, RowChange, Scan, Store, TableName,
        Trigger,
    };

    use super::*;

    /// Has no room for the first row.
    #[derive(Debug, Default)]
    struct Full(AtomicBool);

    impl Trigger for Full {
        fn name(&self) -> &'static str {
            "full"
        }

        fn before(&self, _change: &RowChange<'_>, _more: &mut MutationBatch) -> basalt_store::Result<()> {
            let is_first = !self.0.swap(true, Ordering::Relaxed);
            if is_first { Err(basalt_store::Error::Throttled { what: "memtable" }) } else { Ok(()) }
        }
    }

    /// As HBase may: the first change of points is there last.
    #[derive(Debug)]
    struct Late {
        store: MemoryStore,
        is_first: AtomicBool,
        held: Mutex<Option<(TableName, MutationBatch, Completer<Applied>)>>,
    }

    impl Late {
        /// Does what is late; false if there is nothing.
        fn catch_up(&self) -> bool {
            let Some((table, batch, completer)) = self.held.lock().unwrap().take() else { return false };
            completer.complete(self.store.apply(&table, batch).wait());
            true
        }
    }

    impl basalt_store::Forward for Late {
        fn inner(&self) -> &dyn Store {
            &self.store
        }

        fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
            if table.qualifier() == "tsdb" && self.is_first.swap(false, Ordering::Relaxed) {
                let (completer, pending) = Pending::channel();
                *self.held.lock().unwrap() = Some((table.clone(), batch, completer));
                return pending;
            }
            let applied = self.store.apply(table, batch);
            self.catch_up();
            applied
        }
    }

    /// As HBase may: does not take the first change of points.
    #[derive(Debug)]
    struct Away {
        store: MemoryStore,
        is_away: AtomicBool,
    }

    impl basalt_store::Forward for Away {
        fn inner(&self) -> &dyn Store {
            &self.store
        }

        fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
            if table.qualifier() == "tsdb" && self.is_away.swap(false, Ordering::Relaxed) {
                return Pending::ready(Err(basalt_store::Error::TableDisabled { table: "tsdb".into() }));
            }
            self.store.apply(table, batch)
        }
    }

    fn folder(store: &Arc<dyn Store>, kind: StoreKind) -> Folder {
        let auto_create = AutoCreate { metric: true, ..AutoCreate::default() };
        let schema = SchemaConfig { auto_create, ..SchemaConfig::default() };
        let schema = Arc::new(Schema::open(Arc::clone(store), schema).unwrap());
        let runtime = Runtime::new().unwrap();
        let mut app = runtime.block_on(App::in_memory(|_| {}));
        app.ingest = Arc::new(Ingest::new(schema, Arc::clone(store), IngestLimits::default()));
        app.config.store.kind = kind;
        Folder { runtime, app: Arc::new(app), turns: Turns::new() }
    }

    /// Two blocks of one point, whose values are their tickets.
    fn blocks() -> [Block; 2] {
        [0, 1].map(|ticket| {
            let text = format!("m 1356998400 {ticket} h=a\n").into_bytes();
            Block { ticket, round: 0, text, lines_before: 0, lines_end: 1, bytes_end: 1 }
        })
    }

    /// The values in the table of points.
    fn values(store: &dyn Store) -> Vec<Vec<u8>> {
        let rows = store.scan(&"tsdb".parse().unwrap(), Scan::all()).unwrap().next_wait();
        let rows = rows.unwrap().unwrap();
        rows.rows().flat_map(|row| row.cells()).map(|cell| cell.value.to_vec()).collect()
    }

    #[test]
    fn the_later_line_wins_where_the_earlier_one_found_no_room_at_first() {
        let store = MemoryStore::new(Arc::new(ManualClock::default())).with_triggers(vec![Arc::new(Full::default())]);
        let store: Arc<dyn Store> = Arc::new(store);
        let folder = folder(&store, StoreKind::Memory);
        let mut guarded = store.describe_table(&"tsdb".parse().unwrap()).unwrap();
        guarded.attributes.insert("TRIGGERS".into(), "full".into());
        store.alter_table(guarded).unwrap();
        std::thread::scope(|scope| {
            for block in blocks() {
                let folder = &folder;
                scope.spawn(move || assert_eq!(folder.store(&block).unwrap().points, 1));
            }
        });
        assert_eq!(values(&*store), [[1]]);
    }

    #[test]
    fn the_later_line_wins_over_hbase_where_the_earlier_one_takes_longer() {
        let store = MemoryStore::new(Arc::new(ManualClock::default()));
        let late = Arc::new(Late { store, is_first: AtomicBool::new(true), held: Mutex::default() });
        let store: Arc<dyn Store> = Arc::<Late>::clone(&late);
        let folder = folder(&store, StoreKind::Hbase);
        std::thread::scope(|scope| {
            for block in blocks() {
                let folder = &folder;
                scope.spawn(move || assert_eq!(folder.store(&block).unwrap().points, 1));
            }
            // The second block has its chance to come too early.
            while late.held.lock().unwrap().is_none() && late.is_first.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            for _ in 0..10_000 {
                std::thread::yield_now();
            }
            late.catch_up();
        });
        assert_eq!(values(&*store), [[1]]);
    }

    /// An import of hours does not end where a region server does.
    #[test]
    fn over_hbase_what_cannot_be_stored_now_is_offered_again() {
        for (kind, told) in [(StoreKind::Hbase, Ok(1)), (StoreKind::Memory, Err("the folder cannot be stored to now"))]
        {
            let store = MemoryStore::new(Arc::new(ManualClock::default()));
            let store: Arc<dyn Store> = Arc::new(Away { store, is_away: AtomicBool::new(true) });
            let folder = folder(&store, kind);
            let [block, _] = blocks();
            match (folder.store(&block), told) {
                (Ok(stored), Ok(points)) => assert_eq!(stored.points, points),
                (Err(Unstored::Over(failure)), Err(line)) => {
                    assert!(failure.line.starts_with(line), "{}", failure.line);
                }
                (stored, _) => panic!("{kind:?}: {stored:?}"),
            }
        }
    }
}
