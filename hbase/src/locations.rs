//! Where each region of a table is, as `hbase:meta` tells it, kept until a server says otherwise.
//!
//! A table is read whole: its regions are few beside its rows, a scan needs most of them, and no row key is too long to
//! be looked up (HBase's own client asks for one region by a key that holds the row's, which has the same bound).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use basalt_store::{Error as StoreError, Result as StoreResult, TableName};
use bytes::Bytes;
use prost::Message as _;

use crate::cells::{Cell, Cells};
use crate::cluster::Cluster;
use crate::connection::{Address, Service};
use crate::error::{CallError, Error, Result};
use crate::patience::Patience;
use crate::pb::client::{CellResult, Column, Scan, ScanRequest, ScanResponse};
use crate::pb::cluster::{ENABLED, ENABLING, REGION_NAME, RegionInfo, RegionSpecifier, TableState};

/// The one region of the catalogue.
const CATALOGUE_REGION: &[u8] = b"hbase:meta,,1";
/// What protobuf messages of the catalogue begin with.
const MAGIC: &[u8] = b"PBUF";
/// Rows of the catalogue asked for at once.
const CATALOGUE_ROWS: u32 = 1000;
/// A table of more is refused: what is kept of it would know no bound.
const REGIONS_MAX: usize = 200_000;
/// Hexadecimal digits of a region's short name, which end its whole name before a dot.
const ENCODED_CHARS: usize = 32;

/// A region and where it is.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    /// Its whole name, by which servers know it.
    pub(crate) name: Bytes,
    pub(crate) start: Bytes,
    pub(crate) end: Bytes,
    /// Where it is, or was last; none while it opens for the first time.
    pub(crate) server: Option<Address>,
    /// When that server's process began: another at the same address is another server. 0 where it is not told.
    pub(crate) server_began: u64,
    pub(crate) info: RegionInfo,
}

impl Region {
    pub(crate) fn specifier(&self) -> RegionSpecifier {
        specifier(&self.name)
    }

    pub(crate) fn holds(&self, row: &[u8]) -> bool {
        self.start <= row && (self.end.is_empty() || row < self.end)
    }

    /// Takes what the catalogue says of it.
    fn put(&mut self, qualifier: &[u8], value: &[u8]) {
        match qualifier {
            b"server" => self.server = Address::parse(&String::from_utf8_lossy(value)).ok(),
            b"serverstartcode" => self.server_began = value.try_into().map_or(0, u64::from_be_bytes),
            _ => {}
        }
    }

    /// A number for it: half of the hash that is its short name.
    pub(crate) fn id(&self) -> u64 {
        let digits = self.name.strip_suffix(b".").unwrap_or(&self.name);
        let from = digits.len().saturating_sub(ENCODED_CHARS);
        let half = digits.get(from..from + ENCODED_CHARS / 2).unwrap_or_default();
        std::str::from_utf8(half).ok().and_then(|half| u64::from_str_radix(half, 16).ok()).unwrap_or(0)
    }
}

pub(crate) fn specifier(name: &Bytes) -> RegionSpecifier {
    RegionSpecifier { r#type: REGION_NAME, value: name.clone() }
}

/// A table's regions in key order, as they were when they were read.
#[derive(Debug)]
pub(crate) struct Map {
    /// Never used twice.
    generation: u64,
    pub(crate) regions: Vec<Arc<Region>>,
}

impl Map {
    /// The region that holds a row; none where the catalogue has a gap for now.
    pub(crate) fn holding(&self, row: &[u8]) -> Option<&Arc<Region>> {
        let after = self.regions.partition_point(|region| region.start <= row);
        self.regions.get(after.checked_sub(1)?).filter(|region| region.holds(row))
    }

    /// The region that holds the rows right below this one; below none, the last region.
    pub(crate) fn below(&self, row: &[u8]) -> Option<&Arc<Region>> {
        if row.is_empty() {
            return self.regions.last().filter(|region| region.end.is_empty());
        }
        let from = self.regions.partition_point(|region| region.start < row);
        self.regions.get(from.checked_sub(1)?).filter(|region| region.end.is_empty() || row <= region.end)
    }
}

/// The maps that are kept.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    /// Guards the maps, of tables that are there; held for a look-up only.
    maps: Mutex<HashMap<TableName, Arc<Map>>>,
    /// Held while a map is read, so that a moved region is looked up once for all who miss it.
    reading: tokio::sync::Mutex<()>,
    // Relaxed: numbers only have to differ.
    last_generation: AtomicU64,
}

impl Locations {
    fn maps(&self) -> std::sync::MutexGuard<'_, HashMap<TableName, Arc<Map>>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a map that a server called stale; one that was read since stays.
    pub(crate) fn forget(&self, table: &TableName, stale: &Map) {
        let mut maps = self.maps();
        if maps.get(table).is_some_and(|map| map.generation == stale.generation) {
            maps.remove(table);
        }
    }

    /// How many regions' places are kept.
    pub(crate) fn regions_kept(&self) -> u64 {
        self.maps().values().map(|map| map.regions.len() as u64).sum()
    }

    /// Forgets whatever is kept of a table.
    pub(crate) fn forget_table(&self, table: &TableName) {
        self.maps().remove(table);
    }
}

/// Whether a table serves, as the catalogue says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Serving,
    Disabled,
}

impl Cluster {
    /// Whether a table's regions are kept.
    pub(crate) fn has_map(&self, table: &TableName) -> bool {
        self.locations.maps().contains_key(table)
    }

    /// A table's regions: as they are kept, or read anew.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Unavailable`: it is disabled, or the catalogue cannot be read.
    pub(crate) async fn map(&self, table: &TableName, patience: &mut Patience) -> StoreResult<Arc<Map>> {
        let kept = self.locations.maps().get(table).cloned();
        if let Some(map) = kept {
            return Ok(map);
        }
        let _reading = self.locations.reading.lock().await;
        let read = self.locations.maps().get(table).cloned();
        if let Some(map) = read {
            return Ok(map);
        }
        loop {
            let error = match self.read_map(table, patience).await {
                Ok(Ok(map)) => {
                    self.locations.maps().insert(table.clone(), Arc::clone(&map));
                    return Ok(map);
                }
                Ok(Err(refused)) => return Err(refused),
                Err(error) => error,
            };
            tracing::debug!("reading hbase:meta: {}", error_words(&error));
            self.forget_servers();
            if error.is_final() || !patience.pause(false).await {
                return Err(error.into_error().into());
            }
        }
    }

    /// Every region of a table, in the map or not: also those of a disabled one, which are at no server.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`
    pub(crate) async fn regions_of(&self, table: &TableName, patience: &mut Patience) -> StoreResult<Vec<Region>> {
        loop {
            let read = async {
                let state = self.read_state(table, patience).await?;
                Ok::<_, CallError>((state, self.read_regions(table, patience).await?))
            };
            let error = match read.await {
                Ok((State::Absent, _)) => return Err(unknown(table)),
                Ok((State::Serving, regions)) => return Ok(regions),
                // The catalogue has where they were, and that server may be gone for good.
                Ok((State::Disabled, regions)) => {
                    return Ok(regions.into_iter().map(|region| Region { server: None, ..region }).collect());
                }
                Err(error) => error,
            };
            self.forget_servers();
            if error.is_final() || !patience.pause(false).await {
                return Err(error.into_error().into());
            }
        }
    }

    /// Reads a row of the catalogue that is not there, to see whether it is served.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn check_catalogue(&self, patience: &Patience) -> std::result::Result<(), CallError> {
        let (start, stop) = (Bytes::from_static(b" "), Bytes::from_static(b" \0"));
        self.read_catalogue(start, stop, ("table", &["state"]), patience, |_| Ok(())).await
    }

    async fn read_map(
        &self,
        table: &TableName,
        patience: &Patience,
    ) -> std::result::Result<StoreResult<Arc<Map>>, CallError> {
        self.tally.lookups.add();
        match self.read_state(table, patience).await? {
            State::Absent => return Ok(Err(unknown(table))),
            State::Disabled => return Ok(Err(StoreError::TableDisabled { table: table.to_string().into() })),
            State::Serving => {}
        }
        let regions = self.read_regions(table, patience).await?.into_iter().map(Arc::new).collect();
        let generation = self.locations.last_generation.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Ok(Arc::new(Map { generation, regions })))
    }

    async fn read_state(&self, table: &TableName, patience: &Patience) -> std::result::Result<State, CallError> {
        if table.namespace() == "hbase" && table.qualifier() == "meta" {
            return Ok(State::Serving);
        }
        let row = Bytes::from(table.to_string());
        let stop = Bytes::from([&row[..], &[0]].concat());
        let mut state = State::Absent;
        self.read_catalogue(row, stop, ("table", &["state"]), patience, |cell| {
            let message = TableState::decode(cell.value).map_err(|cause| wrong(&cause.to_string()))?;
            state = if [ENABLED, ENABLING].contains(&message.state) { State::Serving } else { State::Disabled };
            Ok(())
        })
        .await?;
        Ok(state)
    }

    async fn read_regions(
        &self,
        table: &TableName,
        patience: &Patience,
    ) -> std::result::Result<Vec<Region>, CallError> {
        // The catalogue orders by table, start key and id, each by itself: both bounds need their two commas.
        let (start, stop) = (Bytes::from(format!("{table},,")), Bytes::from(format!("{table} ,,")));
        let mut regions: Vec<Region> = Vec::new();
        self.read_catalogue(start, stop, ("info", &["regioninfo", "server", "serverstartcode"]), patience, |cell| {
            if regions.len() >= REGIONS_MAX {
                return Err(wrong(&format!("the table has over {REGIONS_MAX} regions")));
            }
            match &cell.qualifier[..] {
                b"regioninfo" => regions.push(region(&cell)?),
                qualifier => {
                    // It follows its region's; an empty one is a region that is nowhere.
                    if let Some(last) = regions.last_mut().filter(|last| last.name == cell.row) {
                        last.put(qualifier, &cell.value);
                    }
                }
            }
            Ok(())
        })
        .await?;
        regions.retain(|region| {
            let RegionInfo { split, offline, replica_id, .. } = &region.info;
            // What was split stays in the catalogue until its halves need its files no more.
            split != &Some(true) && offline != &Some(true) && replica_id.unwrap_or(0) == 0
        });
        regions.sort_by(|one, other| one.start.cmp(&other.start));
        Ok(regions)
    }

    /// Hands over the cells of a part of the catalogue.
    async fn read_catalogue(
        &self,
        start: Bytes,
        stop: Bytes,
        (family, qualifiers): (&'static str, &[&'static str]),
        patience: &Patience,
        mut take: impl FnMut(Cell) -> Result<()>,
    ) -> std::result::Result<(), CallError> {
        let deadline = patience.call_deadline(self.options.call_timeout);
        let server = self.catalogue(deadline).await.map_err(CallError::Unsent)?;
        let qualifier = qualifiers.iter().map(|name| Bytes::from_static(name.as_bytes())).collect();
        let scan = Scan {
            column: vec![Column { family: Bytes::from_static(family.as_bytes()), qualifier }],
            start_row: Some(start),
            stop_row: Some(stop),
            caching: Some(CATALOGUE_ROWS),
            ..Scan::default()
        };
        let mut ask = ScanRequest {
            region: Some(specifier(&Bytes::from_static(CATALOGUE_REGION))),
            scan: Some(scan),
            number_of_rows: Some(CATALOGUE_ROWS),
            ..ScanRequest::default()
        };
        loop {
            let deadline = patience.call_deadline(self.options.call_timeout);
            let to = (&server, Service::Client);
            let (told, block): (ScanResponse, _) = self.call(to, "Scan", &ask, Bytes::new(), deadline).await?;
            let read = answered(told.results, block).and_then(|cells| cells.into_iter().try_for_each(&mut take));
            if told.more_results == Some(false) || told.more_results_in_region != Some(true) {
                return read.map_err(CallError::Unknown);
            }
            if let Err(error) = read {
                if let Some(id) = told.scanner_id {
                    self.close_scanner(&server, id, deadline).await;
                }
                return Err(CallError::Unknown(error));
            }
            let number_of_rows = Some(CATALOGUE_ROWS);
            ask = ScanRequest { scanner_id: told.scanner_id, number_of_rows, ..ScanRequest::default() };
        }
    }
}

/// The cells of an answer, in its message or beside it.
fn answered(results: Vec<CellResult>, block: Bytes) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for cell in results.into_iter().flat_map(|result| result.cell) {
        cells.push(Cell::of_message(cell)?);
    }
    let mut block = Cells(block);
    while let Some(cell) = block.next()? {
        cells.push(cell);
    }
    Ok(cells)
}

fn region(cell: &Cell) -> Result<Region> {
    let message = cell.value.strip_prefix(MAGIC).ok_or_else(|| wrong("a region is not in protobuf"))?;
    let info = RegionInfo::decode(message).map_err(|cause| wrong(&cause.to_string()))?;
    let (start, end) = (info.start_key.clone().unwrap_or_default(), info.end_key.clone().unwrap_or_default());
    Ok(Region { name: cell.row.clone(), start, end, server: None, server_began: 0, info })
}

fn unknown(table: &TableName) -> StoreError {
    StoreError::UnknownTable { table: table.to_string().into() }
}

fn wrong(reason: &str) -> Error {
    Error::malformed("hbase:meta", reason)
}

fn error_words(error: &CallError) -> String {
    match error {
        CallError::Unsent(error) | CallError::Unknown(error) => error.to_string(),
        CallError::Refused(exception) => format!("{}: {}", exception.class, exception.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bounds: &[&'static str]) -> Map {
        let regions = bounds.windows(2).map(|pair| {
            let (start, end) = (Bytes::from(pair[0]), Bytes::from(pair[1]));
            let info = RegionInfo::default();
            Arc::new(Region { name: start.clone(), start, end, server: None, server_began: 0, info })
        });
        Map { generation: 1, regions: regions.collect() }
    }

    fn start(found: Option<&Arc<Region>>) -> Option<&str> {
        found.map(|region| std::str::from_utf8(&region.start).unwrap())
    }

    #[test]
    fn a_row_is_in_the_region_that_begins_at_or_before_it() {
        let map = map(&["", "b", "d", ""]);
        for (row, region) in [("", ""), ("a", ""), ("b", "b"), ("c", "b"), ("d", "d"), ("z", "d")] {
            assert_eq!(start(map.holding(row.as_bytes())), Some(region), "{row}");
        }
    }

    #[test]
    fn below_a_regions_first_row_is_the_region_before_it() {
        let map = map(&["", "b", "d", ""]);
        for (row, region) in [("", "d"), ("a", ""), ("b", ""), ("c", "b"), ("d", "b"), ("z", "d")] {
            assert_eq!(start(map.below(row.as_bytes())), Some(region), "{row}");
        }
    }

    /// While a region splits, the catalogue may have neither the whole nor the halves.
    #[test]
    fn a_gap_of_the_catalogue_is_no_region() {
        let mut map = map(&["", "b", "d", ""]);
        map.regions.remove(1);
        assert_eq!(start(map.holding(b"c")), None);
        assert_eq!(start(map.below(b"c")), None);
        assert_eq!(start(map.holding(b"a")), Some(""));
    }

    #[test]
    fn a_regions_number_is_half_of_its_short_name() {
        let name = Bytes::from_static(b"t,,1700000000000.00000000000000ff1234567890abcdef.");
        let (start, end, info) = (Bytes::new(), Bytes::new(), RegionInfo::default());
        let region = Region { name, start, end, server: None, server_began: 0, info };
        assert_eq!(region.id(), 0xff);
    }

    #[test]
    fn a_map_read_since_outlives_the_word_that_it_is_stale() {
        let (locations, table) = (Locations::default(), "t".parse().unwrap());
        let (old, new) = (map(&["", ""]), Map { generation: 2, ..map(&["", ""]) });
        locations.maps().insert(TableName::clone(&table), Arc::new(new));
        locations.forget(&table, &old);
        assert_eq!(locations.maps().len(), 1);
        locations.forget_table(&table);
        assert_eq!(locations.maps().len(), 0);
    }
}
