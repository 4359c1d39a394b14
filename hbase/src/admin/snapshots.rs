//! Snapshots taken, listed, restored and forgotten.

use basalt_store::{Error as StoreError, Result, SnapshotInfo, TableName, Timestamp, check_snapshot_name};

use super::{POLLED_FIRST, POLLED_LAST, Undone, refused};
use crate::cluster::Cluster;
use crate::error::{CallError, Error};
use crate::patience::Patience;
use crate::pb::cluster::ENABLED;
use crate::pb::master::{
    GetCompletedSnapshotsResponse, IsSnapshotDoneResponse, OneSnapshotRequest, SnapshotDescription, SnapshotRequest,
    SnapshotResponse,
};
use crate::pb::rpc::Empty;

impl Cluster {
    /// # Errors
    /// As [`basalt_store::Store::snapshot`]'s.
    pub(crate) async fn snapshot(&self, table: &TableName, name: &str) -> Result<()> {
        check_snapshot_name(name)?;
        let ask = self.snapshot_request(name, table);
        let mut patience = Patience::of_admin(&self.options);
        // Masters before 2.6 do not know it again: what they say then, that it is there or under way, is of whichever attempt.
        let begun: std::result::Result<SnapshotResponse, Undone> =
            self.change_by_master("Snapshot", &ask, &mut patience).await;
        let begun = begun.map_err(|undone| about_snapshot(name, table, undone.told(Some(table))))?;
        if let Some(proc_id) = begun.proc_id.and_then(|id| u64::try_from(id).ok()) {
            let is_done = async { Ok(self.list_snapshots().await?.iter().any(|snapshot| &*snapshot.name == name)) };
            let done = self.wait_for(("Snapshot", proc_id), Some(table), &mut patience, is_done).await;
            return done.map_err(|error| about_snapshot(name, table, error));
        }
        // Masters before 2.6 have no procedure for it.
        let (ask, mut pause) = (OneSnapshotRequest { snapshot: ask.snapshot }, POLLED_FIRST);
        while patience.is_left() {
            let told: std::result::Result<IsSnapshotDoneResponse, CallError> =
                self.ask_master("IsSnapshotDone", &ask, &mut patience).await;
            if told.map_err(|error| refused(Some(table), error))?.done == Some(true) {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause = (pause + pause / 2).min(POLLED_LAST);
        }
        Err(Error::TimedOut { server: "the master".into(), call: "Snapshot" }.into())
    }

    fn snapshot_request(&self, name: &str, table: &TableName) -> SnapshotRequest {
        let table = Some(table.to_string());
        SnapshotRequest {
            snapshot: SnapshotDescription { name: name.to_owned(), table, creation_time: None },
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        }
    }

    /// Every snapshot by name. HBase's clients are told of no regions and files: those figures are 0.
    ///
    /// # Errors
    /// As [`basalt_store::Store::list_snapshots`]'s.
    pub(crate) async fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<GetCompletedSnapshotsResponse, CallError> =
            self.ask_master("GetCompletedSnapshots", &Empty {}, &mut patience).await;
        let told = told.map_err(|error| refused(None, error))?;
        let info = |told: SnapshotDescription| {
            Ok(SnapshotInfo {
                name: told.name.into(),
                table: told.table.unwrap_or_default().parse()?,
                created: Timestamp(u64::try_from(told.creation_time.unwrap_or(0)).unwrap_or(0)),
                regions_count: 0,
                files_count: 0,
                file_bytes: 0,
            })
        };
        let mut snapshots = told.snapshots.into_iter().map(info).collect::<Result<Vec<_>>>()?;
        snapshots.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(snapshots)
    }

    async fn table_of_snapshot(&self, name: &str) -> Result<TableName> {
        let found = self.list_snapshots().await?.into_iter().find(|snapshot| &*snapshot.name == name);
        found.map(|snapshot| snapshot.table).ok_or_else(|| StoreError::UnknownSnapshot { snapshot: name.into() })
    }

    /// # Errors
    /// As [`basalt_store::Store::restore_snapshot`]'s.
    pub(crate) async fn restore_snapshot(&self, name: &str) -> Result<()> {
        let table = self.table_of_snapshot(name).await?;
        match self.is_table_enabled(&table).await {
            Ok(true) => return Err(StoreError::TableEnabled { table: table.to_string().into() }),
            Ok(false) | Err(StoreError::UnknownTable { .. }) => {}
            Err(error) => return Err(error),
        }
        // What is in a table, or was, nobody tells.
        self.bring_back(name, &table, async { Ok(false) }).await
    }

    /// # Errors
    /// As [`basalt_store::Store::clone_snapshot`]'s.
    pub(crate) async fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        self.table_of_snapshot(name).await?;
        match self.is_table_enabled(table).await {
            Ok(_) => return Err(StoreError::TableExists { table: table.to_string().into() }),
            Err(StoreError::UnknownTable { .. }) => {}
            Err(error) => return Err(error),
        }
        self.describe_namespace(table.namespace()).await?;
        self.bring_back(name, table, self.is_in_state(table, Some(ENABLED))).await
    }

    async fn bring_back(
        &self,
        name: &str,
        table: &TableName,
        is_done: impl Future<Output = Result<bool>>,
    ) -> Result<()> {
        let ask = self.snapshot_request(name, table);
        let done = self.run_procedure(Some(table), "RestoreSnapshot", &ask, is_done).await;
        self.locations.forget_table(table);
        done.map_err(|error| about_snapshot(name, table, error))
    }

    /// # Errors
    /// As [`basalt_store::Store::delete_snapshot`]'s.
    pub(crate) async fn delete_snapshot(&self, name: &str) -> Result<()> {
        let snapshot = SnapshotDescription { name: name.to_owned(), table: None, creation_time: None };
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<Empty, Undone> =
            self.change_by_master("DeleteSnapshot", &OneSnapshotRequest { snapshot }, &mut patience).await;
        match told {
            Ok(Empty {}) => Ok(()),
            Err(Undone { last: CallError::Refused(exception), unknown })
                if &*exception.class == "SnapshotDoesNotExistException" =>
            {
                // It carries no nonce: an attempt that nobody answered has deleted it.
                unknown.map(drop).ok_or_else(|| StoreError::UnknownSnapshot { snapshot: name.into() })
            }
            Err(undone) => Err(undone.told(None)),
        }
    }
}

/// The contract's own error, where it has one.
fn about_snapshot(name: &str, table: &TableName, error: StoreError) -> StoreError {
    let words = error.to_string();
    match words.split(':').next() {
        Some("SnapshotExistsException") => StoreError::SnapshotExists { snapshot: name.into() },
        Some("SnapshotDoesNotExistException") => StoreError::UnknownSnapshot { snapshot: name.into() },
        Some("SnapshotCreationException") if words.contains("doesn't exist") => {
            StoreError::UnknownTable { table: table.to_string().into() }
        }
        _ => error,
    }
}
