//! A data folder without a server: the same ingest, in this process.
//!
//! Blocks are written to the log without waiting for the disk, and the log is synced when progress is remembered: that is
//! all that an import must keep, since it can be run again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use basalt_ingest::{Door, PointError, Problem, ProblemClass, RawPoint, Submission};
use tokio::runtime::Runtime;

use super::block::{self, Block, Lines};
use super::turns::Turns;
use super::{Stored, Target, is_for_later};
use crate::app::App;
use crate::config::{Config, Durability, StoreKind};
use crate::exit::{Exit, Failure};
use crate::threads;

/// How long points that find no room are offered again.
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

    fn store(&self, block: &Block) -> Result<Stored, Failure> {
        let text = block.text();
        let Lines { mut points, mut before, problems } = block::read(&text);
        for (_, problem) in &problems {
            self.app.ingest.reject_line(Door::Import, problem);
        }
        let lines = points.len() + problems.len();
        let mut refused: Vec<_> =
            problems.iter().map(|(before, problem)| block.refused(Some(*before), problem)).collect();
        let turn = self.turns.take(block.ticket).ok_or_else(super::stopped)?;
        let mut offered = self.offer(&points);
        // Only what finds no room keeps the others waiting.
        let mut turn = Some(turn);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(turn) = turn.take_if(|_| offered.is_in_order()) {
                turn.pass();
            }
            let mut again = (Vec::new(), Vec::new());
            for PointError { index, problem } in offered.errors() {
                match (problem.class(), points.get(index), before.get(index)) {
                    (ProblemClass::Throttled, Some(point), Some(before)) if Instant::now() < until => {
                        again.0.push(*point);
                        again.1.push(*before);
                    }
                    _ if is_for_later(&problem) => {
                        let line = format!("the folder cannot be stored to now: {}", problem.telnet_text("put"));
                        return Err(Failure::new(Exit::TryLater, line));
                    }
                    (_, _, before) => refused.push(block.refused(before.copied(), &problem)),
                }
            }
            if again.0.is_empty() {
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

    fn finish(&mut self) -> Result<(), Failure> {
        self.runtime.block_on(self.app.close())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use basalt_ingest::{Ingest, IngestLimits};
    use basalt_schema::{AutoCreate, Schema, SchemaConfig};
    use basalt_store::{ManualClock, MemoryStore, MutationBatch, RowChange, Scan, Store, Trigger};

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

    #[test]
    fn the_later_line_wins_where_the_earlier_one_found_no_room_at_first() {
        let store = MemoryStore::new(Arc::new(ManualClock::default())).with_triggers(vec![Arc::new(Full::default())]);
        let store: Arc<dyn Store> = Arc::new(store);
        let auto_create = AutoCreate { metric: true, ..AutoCreate::default() };
        let schema = SchemaConfig { auto_create, ..SchemaConfig::default() };
        let schema = Arc::new(Schema::open(Arc::clone(&store), schema).unwrap());
        let table = schema.tables().data.clone();
        let mut guarded = store.describe_table(&table).unwrap();
        guarded.attributes.insert("TRIGGERS".into(), "full".into());
        store.alter_table(guarded).unwrap();
        let mut config = Config::default();
        config.store.kind = StoreKind::Memory;
        let runtime = Runtime::new().unwrap();
        let mut app = runtime.block_on(App::open(config)).unwrap();
        app.ingest = Ingest::new(schema, Arc::clone(&store), IngestLimits::default());
        let folder = Folder { runtime, app: Arc::new(app), turns: Turns::new() };
        let block = |ticket| {
            let text = format!("m 1356998400 {ticket} h=a\n").into_bytes();
            Block { ticket, text, lines_before: 0, lines_end: 1, bytes_end: 1 }
        };
        std::thread::scope(|scope| {
            for ticket in 0..2 {
                let (folder, block) = (&folder, block(ticket));
                scope.spawn(move || assert_eq!(folder.store(&block).unwrap().points, 1));
            }
        });
        let rows = store.scan(&table, Scan::all()).unwrap().next_wait().unwrap().unwrap();
        let values: Vec<_> = rows.rows().flat_map(|row| row.cells()).map(|cell| cell.value.to_vec()).collect();
        assert_eq!(values, [[1]]);
    }
}
