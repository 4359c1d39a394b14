//! Tables made, changed, switched and listed.

use basalt_store::{Error as StoreError, Result, TableDescriptor, TableName, TruncatedRegions};
use bytes::Bytes;

use super::refused;
use crate::cluster::Cluster;
use crate::descriptor::{altered, name, schema, told_name, told_table};
use crate::error::CallError;
use crate::patience::Patience;
use crate::pb::cluster::{DISABLED, ENABLED, ENABLING, TableSchema};
use crate::pb::master::{
    CreateTableRequest, GetTableDescriptorsRequest, GetTableDescriptorsResponse, GetTableNamesRequest,
    GetTableNamesResponse, GetTableStateRequest, GetTableStateResponse, ModifyTableRequest, TableRequest,
    TruncateTableRequest,
};

impl Cluster {
    /// # Errors
    /// As [`basalt_store::Store::create_table`]'s.
    pub(crate) async fn create_table(&self, table: &TableDescriptor, splits: &[Bytes]) -> Result<()> {
        table.validate_change(None)?;
        let ask = CreateTableRequest {
            table_schema: schema(table, &self.options.compression),
            split_keys: splits.to_vec(),
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        };
        self.locations.forget_table(&table.name);
        let is_done = self.is_in_state(&table.name, Some(ENABLED));
        self.run_procedure(Some(&table.name), "CreateTable", &ask, is_done).await.map_err(|error| {
            let words = error.to_string();
            let namespace = table.name.namespace();
            if words.starts_with("NamespaceNotFoundException") {
                StoreError::UnknownNamespace { namespace: namespace.into() }
            } else {
                error
            }
        })
    }

    /// # Errors
    /// As [`basalt_store::Store::alter_table`]'s.
    pub(crate) async fn alter_table(&self, table: &TableDescriptor) -> Result<()> {
        let before = self.table_schema(&table.name).await?;
        table.validate_change(Some(&told_table(&before)?))?;
        let ask = ModifyTableRequest {
            table_name: name(&table.name),
            table_schema: altered(table, &self.options.compression, &before)?,
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        };
        let is_done = async {
            let mut after = self.table_schema(&table.name).await?;
            let mut wanted = altered(table, &self.options.compression, &after)?;
            for schema in [&mut after, &mut wanted] {
                schema.column_families.sort_by(|one, other| one.name.cmp(&other.name));
            }
            // Nothing is left to alter.
            Ok(after == wanted)
        };
        self.run_procedure(Some(&table.name), "ModifyTable", &ask, is_done).await
    }

    /// # Errors
    /// As [`basalt_store::Store::truncate_table`]'s.
    pub(crate) async fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()> {
        if self.is_table_enabled(table).await? {
            self.switch_table(table, false).await?;
        }
        let ask = TruncateTableRequest {
            table_name: name(table),
            preserve_splits: Some(regions == TruncatedRegions::Kept),
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        };
        // It serves again once it is empty.
        let is_done = self.is_in_state(table, Some(ENABLED));
        let done = self.run_procedure(Some(table), "truncateTable", &ask, is_done).await;
        self.locations.forget_table(table);
        done
    }

    /// # Errors
    /// As [`basalt_store::Store::enable_table`]'s and [`basalt_store::Store::disable_table`]'s.
    pub(crate) async fn switch_table(&self, table: &TableName, enable: bool) -> Result<()> {
        let (method, wanted) = if enable { ("EnableTable", ENABLED) } else { ("DisableTable", DISABLED) };
        let is_done = self.is_in_state(table, Some(wanted));
        let done = self.run_procedure(Some(table), method, &self.table_request(table), is_done).await;
        self.locations.forget_table(table);
        done
    }

    fn table_request(&self, table: &TableName) -> TableRequest {
        TableRequest { table_name: name(table), nonce_group: Some(self.nonce_group), nonce: Some(Self::nonce()) }
    }

    /// # Errors
    /// As [`basalt_store::Store::is_table_enabled`]'s.
    pub(crate) async fn is_table_enabled(&self, table: &TableName) -> Result<bool> {
        Ok([ENABLED, ENABLING].contains(&self.table_state(table).await?))
    }

    /// Whether a table is in this state, or, for `None`, not there.
    pub(super) async fn is_in_state(&self, table: &TableName, wanted: Option<i32>) -> Result<bool> {
        match self.table_state(table).await {
            Ok(state) => Ok(Some(state) == wanted),
            Err(StoreError::UnknownTable { .. }) => Ok(wanted.is_none()),
            Err(error) => Err(error),
        }
    }

    async fn table_state(&self, table: &TableName) -> Result<i32> {
        let ask = GetTableStateRequest { table_name: name(table) };
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<GetTableStateResponse, CallError> =
            self.ask_master("GetTableState", &ask, &mut patience).await;
        Ok(told.map_err(|error| refused(Some(table), error))?.table_state.state)
    }

    /// # Errors
    /// As [`basalt_store::Store::drop_table`]'s.
    pub(crate) async fn drop_table(&self, table: &TableName) -> Result<()> {
        if self.is_table_enabled(table).await? {
            self.switch_table(table, false).await?;
        }
        let is_done = self.is_in_state(table, None);
        let done = self.run_procedure(Some(table), "DeleteTable", &self.table_request(table), is_done).await;
        self.locations.forget_table(table);
        done
    }

    /// # Errors
    /// As [`basalt_store::Store::describe_table`]'s.
    pub(crate) async fn describe_table(&self, table: &TableName) -> Result<TableDescriptor> {
        told_table(&self.table_schema(table).await?)
    }

    async fn table_schema(&self, table: &TableName) -> Result<TableSchema> {
        let ask = GetTableDescriptorsRequest { table_names: vec![name(table)] };
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<GetTableDescriptorsResponse, CallError> =
            self.ask_master("GetTableDescriptors", &ask, &mut patience).await;
        let told = told.map_err(|error| refused(Some(table), error))?;
        let unknown = || StoreError::UnknownTable { table: table.to_string().into() };
        told.table_schema.into_iter().next().ok_or_else(unknown)
    }

    /// # Errors
    /// As [`basalt_store::Store::list_tables`]'s.
    pub(crate) async fn list_tables(&self) -> Result<Vec<TableName>> {
        let ask = GetTableNamesRequest { include_sys_tables: Some(false) };
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<GetTableNamesResponse, CallError> =
            self.ask_master("GetTableNames", &ask, &mut patience).await;
        let told = told.map_err(|error| refused(None, error))?;
        let mut names = told.table_names.iter().map(told_name).collect::<Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }
}
