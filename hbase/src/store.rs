//! The contract over a cluster: each call is a task of the client's own runtime, answered by a channel.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use basalt_store::{
    Append, Applied, CheckAndMutate, Compaction, Get, Increment, MutationBatch, NamespaceDescriptor, Pending,
    RegionInfo, Result, RowBatch, Scan, Scanner, SnapshotInfo, SplitAt, Store, TableDescriptor, TableName,
    TruncatedRegions,
};
use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::error::{CallError, Error, Result as OwnResult};
use crate::exception::Remedy;
use crate::options::HBaseOptions;
use crate::patience::Patience;
use crate::scan::{WOKEN_EVERY, Walk};
use crate::tally::Figures;

/// How often the cluster is asked whether it answers, for [`HBaseStore::unreachable`], and for how long it is waited for, in all.
const WATCHED_EVERY: Duration = Duration::from_secs(5);
const WATCHED_FOR: Duration = Duration::from_secs(5);

/// Batches of a scan that are asked for ahead of its reader.
const BATCHES_AHEAD: usize = 2;

/// A cluster as a store. Stateless but for what it remembers of places: any number may serve one cluster.
///
/// *Threads*: its own; methods that wait block the caller's, as the contract has it, and must not be called from them.
/// *Bounds*: calls and bytes under way a connection, batches ahead of a scan's reader. Dropped, calls under way are given
/// up.
///
/// ```no_run
/// # use basalt_hbase::{HBaseOptions, HBaseStore};
/// # use basalt_store::Store;
/// let store = HBaseStore::open(HBaseOptions::of_masters(["127.0.0.1:16000".to_owned()]))?;
/// for table in store.list_tables()? {
///     println!("{table}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HBaseStore {
    cluster: Arc<Cluster>,
    /// Why the cluster did not answer when it was asked last.
    unreachable: watch::Receiver<Option<String>>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for HBaseStore {
    fn drop(&mut self) {
        // Waiting for its threads could be asked of one that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl HBaseStore {
    /// Asks the cluster where its parts are.
    ///
    /// # Errors
    /// `Invalid`: settings that cannot be. `Unavailable`: no master answers within a call's time.
    pub fn open(options: HBaseOptions) -> OwnResult<Self> {
        let threads = options.threads.max(1);
        let cluster = Arc::new(Cluster::new(options)?);
        let runtime = Builder::new_multi_thread().worker_threads(threads).thread_name("hbase").enable_all().build();
        let runtime = runtime.map_err(|cause| Error::Setting { what: "threads", reason: cause.to_string().into() })?;
        let (tell, unreachable) = watch::channel(None);
        let watched = Arc::clone(&cluster);
        let store = Self { cluster, unreachable, runtime: Some(runtime) };
        store.check()?;
        store.spawn(async move {
            while !tell.is_closed() {
                tokio::time::sleep(WATCHED_EVERY).await;
                look(&watched, &tell, WATCHED_FOR).await;
            }
        });
        Ok(store)
    }

    /// Why the cluster does not answer, as it was some seconds ago; `None` where it does. Costs nothing.
    pub fn unreachable(&self) -> Option<String> {
        self.unreachable.borrow().clone()
    }

    /// What was asked of the cluster so far, and what is under way. Costs a look at each server's numbers.
    pub fn figures(&self) -> Figures {
        self.cluster.tally.told(self.cluster.locations.regions_kept())
    }

    /// Whether the cluster answers now: that a server says where the catalogue is. Waits as long as two calls may take.
    ///
    /// # Errors
    /// `Unavailable`
    pub fn check(&self) -> OwnResult<()> {
        let cluster = Arc::clone(&self.cluster);
        self.wait(async move { ask_once(&cluster, cluster.options.call_timeout).await })?
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(task));
        }
    }

    /// Runs a task, and waits for it on this thread.
    fn wait<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> OwnResult<T> {
        self.start(task).recv().map_err(|_| Error::Ended)
    }

    /// Runs a task; gives where its answer will be.
    fn start<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Receiver<T> {
        let (done, answer) = sync_channel(1);
        self.spawn(async move {
            // There is room for it, and whoever waited may be gone.
            drop(done.send(task.await));
        });
        answer
    }

    fn ask<T, F>(&self, ask: impl FnOnce(Arc<Cluster>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.wait(ask(Arc::clone(&self.cluster)))?
    }

    fn pending<T, F>(&self, ask: impl FnOnce(Arc<Cluster>) -> F) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (completer, pending) = Pending::channel();
        let task = ask(Arc::clone(&self.cluster));
        self.spawn(async move { completer.complete(task.await) });
        pending
    }
}

/// Asks whether the cluster answers, and tells it; the log where it is not as it was before.
pub(crate) async fn look(cluster: &Cluster, tell: &watch::Sender<Option<String>>, within: Duration) {
    let now = why_not(cluster, within).await;
    match (tell.borrow().as_deref(), &now) {
        (None, Some(reason)) => {
            tracing::warn!(reason, "HBase does not answer: points and queries wait, and fail until it does");
        }
        (Some(_), None) => tracing::info!("HBase answers again"),
        _ => {}
    }
    tell.send_replace(now);
}

/// Why the cluster does not answer within this time.
pub(crate) async fn why_not(cluster: &Cluster, within: Duration) -> Option<String> {
    ask_once(cluster, within / 2).await.err().map(|error| match error {
        Error::TimedOut { server, .. } => format!("{server} did not answer within {:?}", within / 2),
        error => error.to_string(),
    })
}

/// Asks where the catalogue is, and that server whether it serves it; twice, so long each: the second time again and again while
/// servers say that it is elsewhere, as while it moves.
async fn ask_once(cluster: &Cluster, within: Duration) -> OwnResult<()> {
    if cluster.check_catalogue(&Patience::new(&cluster.options, within)).await.is_ok() {
        return Ok(());
    }
    let mut patience = Patience::new(&cluster.options, within);
    loop {
        // It may be elsewhere by now, or on its way.
        cluster.forget_servers();
        match cluster.check_catalogue(&patience).await {
            Err(CallError::Refused(told)) if told.remedy() == Remedy::Relocate && patience.pause(false).await => {}
            told => return told.map_err(CallError::into_error),
        }
    }
}

impl Store for HBaseStore {
    fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        self.ask(|cluster| async move { cluster.create_namespace(&namespace).await })
    }

    fn alter_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        self.ask(|cluster| async move { cluster.alter_namespace(&namespace).await })
    }

    fn drop_namespace(&self, namespace: &str) -> Result<()> {
        let namespace = namespace.to_owned();
        self.ask(|cluster| async move { cluster.drop_namespace(&namespace).await })
    }

    fn describe_namespace(&self, namespace: &str) -> Result<NamespaceDescriptor> {
        let namespace = namespace.to_owned();
        self.ask(|cluster| async move { cluster.describe_namespace(&namespace).await })
    }

    fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>> {
        self.ask(|cluster| async move { cluster.list_namespaces().await })
    }

    fn create_table(&self, table: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        let splits = splits.to_vec();
        self.ask(|cluster| async move { cluster.create_table(&table, &splits).await })
    }

    fn alter_table(&self, table: TableDescriptor) -> Result<()> {
        self.ask(|cluster| async move { cluster.alter_table(&table).await })
    }

    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.truncate_table(&table, regions).await })
    }

    fn enable_table(&self, table: &TableName) -> Result<()> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.switch_table(&table, true).await })
    }

    fn disable_table(&self, table: &TableName) -> Result<()> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.switch_table(&table, false).await })
    }

    fn is_table_enabled(&self, table: &TableName) -> Result<bool> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.is_table_enabled(&table).await })
    }

    fn drop_table(&self, table: &TableName) -> Result<()> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.drop_table(&table).await })
    }

    fn describe_table(&self, table: &TableName) -> Result<TableDescriptor> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.describe_table(&table).await })
    }

    fn list_tables(&self) -> Result<Vec<TableName>> {
        self.ask(|cluster| async move { cluster.list_tables().await })
    }

    fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.regions(&table).await })
    }

    fn split_region(&self, table: &TableName, at: &SplitAt) -> Result<Bytes> {
        let (table, at) = (table.clone(), at.clone());
        self.ask(|cluster| async move { cluster.split_region(&table, &at).await })
    }

    fn snapshot(&self, table: &TableName, name: &str) -> Result<()> {
        let (table, name) = (table.clone(), name.to_owned());
        self.ask(|cluster| async move { cluster.snapshot(&table, &name).await })
    }

    fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.ask(|cluster| async move { cluster.list_snapshots().await })
    }

    fn restore_snapshot(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.ask(|cluster| async move { cluster.restore_snapshot(&name).await })
    }

    fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        let (table, name) = (table.clone(), name.to_owned());
        self.ask(|cluster| async move { cluster.clone_snapshot(&name, &table).await })
    }

    fn delete_snapshot(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.ask(|cluster| async move { cluster.delete_snapshot(&name).await })
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        let table = table.clone();
        self.pending(|cluster| async move { cluster.apply(&table, batch).await })
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        let table = table.clone();
        self.pending(|cluster| async move { cluster.get(&table, &get).await })
    }

    /// Waits for the table's regions where they are not known yet, if the cluster tells them soon: a reader can give up, and this
    /// cannot.
    fn scan(&self, table: &TableName, scan: Scan) -> Result<Scanner> {
        let walk = Walk::new(Arc::clone(&self.cluster), table.clone(), scan)?;
        if !self.cluster.has_map(table) {
            let (cluster, table) = (Arc::clone(&self.cluster), table.clone());
            let told = self.start(async move {
                cluster.map(&table, &mut Patience::of_operation(&cluster.options)).await.map(drop)
            });
            match told.recv_timeout(WOKEN_EVERY) {
                // The scan goes on waiting.
                Err(RecvTimeoutError::Timeout) => {}
                told => told.map_err(|_| Error::Ended)??,
            }
        }
        let (sender, scanner) = Scanner::channel(BATCHES_AHEAD);
        self.spawn(walk.run(sender));
        Ok(scanner)
    }

    fn increment(&self, table: &TableName, increment: Increment) -> Pending<i64> {
        let table = table.clone();
        self.pending(|cluster| async move { cluster.increment(&table, &increment).await })
    }

    fn append(&self, table: &TableName, append: Append) -> Pending<Bytes> {
        let table = table.clone();
        self.pending(|cluster| async move { cluster.append(&table, &append).await })
    }

    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool> {
        let table = table.clone();
        self.pending(|cluster| async move { cluster.check_and_mutate(&table, &check).await })
    }

    /// Nothing to do: what was answered is in the servers' logs, but for changes that asked not to be.
    fn sync(&self) -> Pending<()> {
        Pending::ready(Ok(()))
    }

    fn flush(&self, table: &TableName) -> Result<()> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.flush(&table).await })
    }

    /// Waits until no region of the table is compacted any more.
    fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()> {
        let table = table.clone();
        self.ask(|cluster| async move { cluster.compact(&table, compaction).await })
    }
}
