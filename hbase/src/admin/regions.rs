//! Regions listed, split, flushed and compacted.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use basalt_store::{Compaction, RegionInfo, Result, SplitAt, TableName, no_split};
use bytes::Bytes;
use prost::Message;

use crate::cluster::Cluster;
use crate::connection::{Address, Service};
use crate::descriptor::name;
use crate::error::{CallError, Error};
use crate::exception::Remedy;
use crate::locations::Region;
use crate::patience::Patience;
use crate::pb::cluster::{
    CompactRegionRequest, FlushRegionRequest, FlushRegionResponse, GetRegionInfoRequest, GetRegionInfoResponse,
    GetRegionLoadRequest, GetRegionLoadResponse, RegionLoad, RegionSpecifier,
};
use crate::pb::master::SplitTableRegionRequest;
use crate::pb::rpc::Empty;
use crate::region_call::{Repeat, given_up, nowhere, remedy};

/// Servers tell sizes in MiB, a part of one as one.
const LOAD_BYTES: u64 = 1 << 20;
/// A compaction's pauses between being asked for.
const COMPACTION_POLLED: Duration = Duration::from_millis(100);
/// HBase's number of "is not compacted".
const NO_COMPACTION: i32 = 0;

impl Cluster {
    /// # Errors
    /// As [`basalt_store::Store::regions`]'s.
    pub(crate) async fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        let mut patience = Patience::of_operation(&self.options);
        loop {
            let regions = self.regions_of(table, &mut patience).await?;
            let error = match self.loads(table, &regions, &patience).await {
                Ok(loads) => return Ok(regions.iter().map(|region| info(region, loads.get(&region.name))).collect()),
                Err(error) => error,
            };
            // A server that is gone leaves its regions to others: where they are is read anew.
            if remedy(&error, Repeat::Always) == Remedy::None || !patience.pause(false).await {
                return Err(given_up(table, error));
            }
            self.tally.retries.add();
        }
    }

    /// What each server of these regions says of their load, by the regions' names.
    async fn loads(
        &self,
        table: &TableName,
        regions: &[Region],
        patience: &Patience,
    ) -> std::result::Result<HashMap<Bytes, RegionLoad>, CallError> {
        let mut loads: HashMap<Bytes, RegionLoad> = HashMap::new();
        let mut asked: Vec<&Address> = Vec::new();
        for server in regions.iter().filter_map(|region| region.server.as_ref()) {
            if asked.contains(&server) {
                continue;
            }
            asked.push(server);
            let ask = GetRegionLoadRequest { table_name: Some(name(table)) };
            let deadline = patience.call_deadline(self.options.call_timeout);
            let told = self.call((server, Service::Admin), "GetRegionLoad", &ask, Bytes::new(), deadline).await;
            let (told, _): (GetRegionLoadResponse, _) = told?;
            loads.extend(told.region_loads.into_iter().map(|load| (load.region_specifier.value.clone(), load)));
        }
        Ok(loads)
    }

    /// # Errors
    /// As [`basalt_store::Store::split_region`]'s.
    pub(crate) async fn split_region(&self, table: &TableName, at: &SplitAt) -> Result<Bytes> {
        let mut patience = Patience::of_admin(&self.options);
        let (SplitAt::Key(row) | SplitAt::MiddleOf(row)) = at;
        let regions = self.regions_of(table, &mut patience).await?;
        let region = regions.iter().find(|region| region.holds(row));
        let region = region.ok_or_else(|| no_split("no region holds that key"))?;
        let key = match at {
            SplitAt::Key(key) => key.clone(),
            SplitAt::MiddleOf(_) => self.middle(table, region).await?,
        };
        if key == region.start {
            return Err(no_split("a region begins at that key already"));
        }
        let ask = SplitTableRegionRequest {
            region_info: region.info.clone(),
            split_row: Some(key.clone()),
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        };
        let is_done = async {
            let regions = self.regions_of(table, &mut Patience::of_admin(&self.options)).await?;
            Ok(regions.iter().any(|region| region.start == key))
        };
        let done = self.run_procedure(Some(table), "SplitRegion", &ask, is_done).await;
        self.locations.forget_table(table);
        done.map(|()| key)
    }

    /// The key that HBase would split a region at, by its files.
    async fn middle(&self, table: &TableName, region: &Region) -> Result<Bytes> {
        self.flush_all(table, vec![region.clone()], &mut Patience::of_admin(&self.options)).await?;
        let ask = |region: RegionSpecifier| GetRegionInfoRequest {
            region,
            compaction_state: None,
            best_split_row: Some(true),
        };
        let told: GetRegionInfoResponse = self.ask_server(table, region, "GetRegionInfo", ask).await?;
        let key = told.best_split_row.filter(|key| !key.is_empty());
        key.ok_or_else(|| no_split("HBase finds no row to split at"))
    }

    /// # Errors
    /// As [`basalt_store::Store::flush`]'s.
    pub(crate) async fn flush(&self, table: &TableName) -> Result<()> {
        let mut patience = Patience::of_admin(&self.options);
        let regions = self.regions_of(table, &mut patience).await?;
        self.flush_all(table, regions, &mut patience).await
    }

    /// Flushes regions until what they held in memory at first is in files.
    async fn flush_all(&self, table: &TableName, mut left: Vec<Region>, patience: &mut Patience) -> Result<()> {
        loop {
            let mut unflushed = Vec::new();
            for region in left {
                let ask = |region: RegionSpecifier| FlushRegionRequest { region };
                let told: FlushRegionResponse = self.ask_server(table, &region, "FlushRegion", ask).await?;
                // Either nothing was in memory, or the region closes or is flushed already: that flush may have begun before
                // the last changes came. A server does not say which.
                if told.flushed == Some(false) {
                    unflushed.push(region);
                }
            }
            left = unflushed;
            if !left.is_empty() {
                // One that has closed was flushed by that.
                let there = self.regions(table).await?;
                let in_memory = |region: &RegionInfo| (region.memtable_bytes > 0).then(|| region.start.clone());
                let in_memory: HashSet<Bytes> = there.iter().filter_map(in_memory).collect();
                left.retain(|region| in_memory.contains(&region.start));
            }
            if left.is_empty() {
                return Ok(());
            }
            if !patience.pause(false).await {
                return Err(Error::Unflushed { regions: left.len() }.into());
            }
        }
    }

    /// # Errors
    /// As [`basalt_store::Store::compact`]'s.
    pub(crate) async fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()> {
        let mut patience = Patience::of_admin(&self.options);
        let regions = self.regions_of(table, &mut patience).await?;
        for region in &regions {
            // Files that are being compacted are not taken for another compaction: it would be none, or no major one.
            self.wait_for_compaction(table, region, &patience).await?;
            let major = Some(compaction == Compaction::Major);
            let ask = |region: RegionSpecifier| CompactRegionRequest { region, major };
            self.ask_server::<Empty, _>(table, region, "CompactRegion", ask).await?;
        }
        for region in &regions {
            self.wait_for_compaction(table, region, &patience).await?;
        }
        Ok(())
    }

    /// Waits until a region is not compacted; one that is asked for counts from then on, also while it waits its turn.
    async fn wait_for_compaction(&self, table: &TableName, region: &Region, patience: &Patience) -> Result<()> {
        while self.is_compacting(table, region).await? {
            if !patience.is_left() {
                return Err(Error::TimedOut { server: "a region server".into(), call: "CompactRegion" }.into());
            }
            tokio::time::sleep(COMPACTION_POLLED).await;
        }
        Ok(())
    }

    async fn is_compacting(&self, table: &TableName, region: &Region) -> Result<bool> {
        let ask = |region: RegionSpecifier| GetRegionInfoRequest {
            region,
            compaction_state: Some(true),
            best_split_row: None,
        };
        let told: GetRegionInfoResponse = self.ask_server(table, region, "GetRegionInfo", ask).await?;
        Ok(told.compaction_state.unwrap_or(NO_COMPACTION) != NO_COMPACTION)
    }

    /// Asks whichever server has a region, as long as that helps.
    async fn ask_server<A: Message + Default, Q: Message>(
        &self,
        table: &TableName,
        region: &Region,
        method: &'static str,
        ask: impl Fn(RegionSpecifier) -> Q,
    ) -> Result<A> {
        let mut patience = Patience::of_operation(&self.options);
        loop {
            let map = self.map(table, &mut patience).await?;
            let found = map.holding(&region.start).and_then(|region| Some((region, region.server.as_ref()?)));
            let error = match found {
                None => nowhere(table),
                Some((region, server)) => {
                    let deadline = patience.call_deadline(self.options.admin_timeout);
                    let (to, ask) = ((server, Service::Admin), ask(region.specifier()));
                    match self.call(to, method, &ask, Bytes::new(), deadline).await {
                        Ok((told, _)) => return Ok(told),
                        Err(error) => error,
                    }
                }
            };
            let remedy = remedy(&error, Repeat::Always);
            let is_forbidden = matches!(&error, CallError::Refused(_)) && remedy == Remedy::None;
            if is_forbidden || !self.heal(remedy, (table, &map), &mut patience).await {
                return Err(given_up(table, error));
            }
        }
    }
}

fn info(region: &Region, load: Option<&RegionLoad>) -> RegionInfo {
    let of = |figure: Option<u32>| u64::from(figure.unwrap_or(0));
    RegionInfo {
        id: region.id(),
        start: region.start.clone(),
        end: region.end.clone(),
        file_bytes: load.map_or(0, |load| of(load.storefile_size_mb) * LOAD_BYTES),
        memtable_bytes: load.map_or(0, |load| of(load.mem_store_size_mb) * LOAD_BYTES),
        files_count: load.map_or(0, |load| of(load.storefiles)),
        reads_count: load.and_then(|load| load.read_requests_count).unwrap_or(0),
        writes_count: load.and_then(|load| load.write_requests_count).unwrap_or(0),
    }
}
