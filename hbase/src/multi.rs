//! Many rows at once: grouped by region and server, sent side by side, and what was refused for now tried again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use basalt_store::{Error as StoreError, ErrorKind, Result as StoreResult, TableName};
use bytes::Bytes;
use tokio::task::JoinSet;

use crate::cells::{Cell, Cells};
use crate::cluster::Cluster;
use crate::connection::{Address, Service};
use crate::error::{CallError, Error, Result};
use crate::exception::{Exception, Remedy};
use crate::locations::{Map, Region};
use crate::patience::Patience;
use crate::pb::client::{CellResult, MultiRequest, MultiResponse};
use crate::region_call::{Repeat, given_up, may_be_done, nowhere, remedy, told};

/// Bytes that one call holds, but for a single row that is larger.
const CALL_BYTES: usize = 2 << 20;
/// Rows that one call holds: servers warn of more (`hbase.rpc.rows.warning.threshold`).
const CALL_ROWS: usize = 4096;

/// A region's part of a call: entries by their numbers.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) region: Arc<Region>,
    pub(crate) entries: Vec<usize>,
}

/// A call as it is sent.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) ask: MultiRequest,
    pub(crate) cells: Bytes,
    /// The entry of each action, by region action and the action's index. One entry with several actions is one that
    /// is done whole or not at all.
    pub(crate) entries: Vec<Vec<usize>>,
}

/// What is asked of many rows.
pub(crate) trait Work {
    /// An entry's row key.
    fn key(&self, entry: usize) -> &[u8];

    /// Whether an entry of unknown outcome may be asked again.
    fn repeat(&self, _entry: usize) -> Repeat {
        Repeat::Always
    }

    /// Whether an attempt that nobody answered may have changed something.
    fn is_change(&self) -> bool;

    /// About how many bytes an entry takes on the wire.
    fn bytes(&self, entry: usize) -> usize;

    /// The message for some regions of one server.
    fn encode(&self, shares: &[Share]) -> StoreResult<Encoded>;

    /// Takes an entry's answer, or why it was refused for good; an error ends the whole.
    fn settle(&mut self, entry: usize, told: std::result::Result<Vec<Cell>, Exception>) -> StoreResult<()>;
}

type Told = std::result::Result<Vec<Cell>, Exception>;

/// What a region told of its share of a call, or of one entry of several actions.
type RegionTold = Vec<(usize, Told)>;

/// What one round leaves.
#[derive(Debug, Default)]
struct Round {
    again: Vec<usize>,
    is_stale: bool,
    is_busy: bool,
    needs_pause: bool,
    last: Option<CallError>,
}

impl Round {
    fn add(&mut self, entries: impl IntoIterator<Item = usize>, remedy: Remedy) {
        self.again.extend(entries);
        self.is_stale |= remedy == Remedy::Relocate;
        self.is_busy |= remedy == Remedy::BackOff;
        self.needs_pause |= remedy != Remedy::Again;
    }
}

/// Which entries of a region are asked together: all of them, until it refuses them all alike.
#[derive(Debug, Default)]
struct Parts {
    of: HashMap<usize, usize>,
    last: usize,
}

impl Parts {
    fn of(&self, entry: usize) -> usize {
        self.of.get(&entry).copied().unwrap_or(0)
    }

    fn halve(&mut self, entries: &[usize]) {
        for half in entries.chunks(entries.len().div_ceil(2).max(1)) {
            self.last += 1;
            self.of.extend(half.iter().map(|&entry| (entry, self.last)));
        }
    }
}

/// Entries that may be done or not, and what was told last of any.
#[derive(Debug, Default)]
struct Doubt {
    entries: HashSet<usize>,
    last: Option<CallError>,
}

impl Doubt {
    /// The error where nothing more is tried.
    fn told(&mut self, table: &TableName, last: StoreError) -> StoreError {
        let mut unknown = self.last.take().filter(|_| !self.entries.is_empty());
        told(table, last, &mut unknown)
    }
}

impl Cluster {
    /// Does the work for all of these entries. Those that are refused until the time is over, and certainly not done, are
    /// refused for good: what became of the others is known.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Unavailable`: not all was done in time, and what of it is not known. The work's own.
    pub(crate) async fn multi(
        self: &Arc<Self>,
        table: &TableName,
        mut entries: Vec<usize>,
        work: &mut (impl Work + Send + Sync),
        patience: &mut Patience,
    ) -> StoreResult<()> {
        // Also where nothing is asked: an unknown table is refused.
        let mut map = self.map(table, patience).await?;
        let (mut doubt, mut parts) = (Doubt::default(), Parts::default());
        while !entries.is_empty() {
            let (asked, halved) = (entries.len(), parts.last);
            let round = self.round(table, &map, entries, (&*patience, &mut *work, &mut doubt, &mut parts)).await;
            let round = round.map_err(|error| doubt.told(table, error))?;
            entries = round.again;
            if entries.is_empty() {
                return Ok(());
            }
            self.tally.retries.add();
            if round.is_stale {
                self.tally.relocations.add();
                self.locations.forget(table, &map);
            }
            let is_stuck = round.needs_pause || (entries.len() == asked && parts.last == halved);
            if is_stuck && !patience.pause(round.is_busy).await {
                let last = round.last.unwrap_or_else(|| nowhere(table));
                return match last {
                    CallError::Refused(exception) if doubt.entries.is_empty() => {
                        entries.into_iter().try_for_each(|entry| work.settle(entry, Err(exception.clone())))
                    }
                    last => Err(doubt.told(table, given_up(table, last))),
                };
            }
            map = self.map(table, patience).await.map_err(|error| doubt.told(table, error))?;
        }
        Ok(())
    }

    /// Asks each entry once.
    async fn round(
        self: &Arc<Self>,
        table: &TableName,
        map: &Map,
        entries: Vec<usize>,
        (patience, work, doubt, parts): (&Patience, &mut (impl Work + Send + Sync), &mut Doubt, &mut Parts),
    ) -> StoreResult<Round> {
        let mut round = Round::default();
        let mut calls = JoinSet::new();
        let (planned, lost) = plan(map, &entries, (work, &*parts));
        if !lost.is_empty() {
            round.last = Some(nowhere(table));
            round.add(lost, Remedy::Relocate);
        }
        for (server, shares) in planned {
            let Encoded { ask, cells, entries } = work.encode(&shares)?;
            let (cluster, deadline) = (Arc::clone(self), patience.call_deadline(self.options.call_timeout));
            calls.spawn(async move {
                let told = cluster.call((&server, Service::Client), "Multi", &ask, cells, deadline).await;
                (entries, told)
            });
        }
        while let Some(ended) = calls.join_next().await {
            let (entries, told) = ended.map_err(|_| StoreError::from(Error::Ended))?;
            let told = told.and_then(|(answer, block): (MultiResponse, _)| {
                actions(answer, block, &entries).map_err(CallError::Unknown)
            });
            let told = match told {
                Ok(told) => told,
                Err(error) => failed(table, error, entries, (&mut round, &*work, &mut *doubt))?,
            };
            let told = told.into_iter().flat_map(|told| halve(told, (&mut round, &*work, &mut *parts)));
            for (entry, told) in told.collect::<RegionTold>() {
                match settle(entry, told, (&mut round, &*work, &mut *doubt)) {
                    // What was not done now may have been done before: the batch is of unknown outcome.
                    Some(Err(exception)) if doubt.entries.contains(&entry) => {
                        return Err(given_up(table, CallError::Refused(exception)));
                    }
                    Some(told) => {
                        doubt.entries.remove(&entry);
                        work.settle(entry, told)?;
                    }
                    None => {}
                }
            }
        }
        Ok(round)
    }
}

/// A call failed: its entries are asked again, or each is refused, as where the server says so of each.
fn failed(
    table: &TableName,
    error: CallError,
    entries: Vec<Vec<usize>>,
    (round, work, doubt): (&mut Round, &impl Work, &mut Doubt),
) -> StoreResult<Vec<RegionTold>> {
    let is_once = entries.iter().flatten().any(|&entry| work.repeat(entry) == Repeat::IfNotBegun);
    let remedy = remedy(&error, if is_once { Repeat::IfNotBegun } else { Repeat::Always });
    match error {
        CallError::Refused(exception) if remedy == Remedy::None => {
            Ok(distinct(entries).map(|entry| vec![(entry, Err(exception.clone()))]).collect())
        }
        error if remedy == Remedy::None => Err(given_up(table, error)),
        error => {
            put_off(distinct(entries).collect(), (remedy, error), (round, work, doubt));
            Ok(Vec::new())
        }
    }
}

/// What a region told, unless it refused all of its share alike: then each half of it is asked for by itself, in the end each entry.
///
/// HBase does so where one cell is too large (`hbase.server.keyvalue.maxsize`): `RSRpcServices.doNonAtomicBatchOp` tells all actions
/// of a batch the one exception that ended it. What must not be done twice is not asked for again, as a part may have been done.
fn halve(told: RegionTold, (round, work, parts): (&mut Round, &impl Work, &mut Parts)) -> RegionTold {
    let is_too_much = match &told[..] {
        [(_, Err(first)), _, ..] => &*first.class == "DoNotRetryIOException" && first.kind() == ErrorKind::Invalid,
        _ => false,
    };
    if !is_too_much || !is_alike(&told) || !work.is_change() {
        return told;
    }
    let (again, told): (RegionTold, RegionTold) =
        told.into_iter().partition(|&(entry, _)| work.repeat(entry) == Repeat::Always);
    let again: Vec<usize> = again.into_iter().map(|(entry, _)| entry).collect();
    parts.halve(&again);
    round.add(again, Remedy::Again);
    told
}

/// What an entry was told, unless it is asked again.
fn settle(entry: usize, told: Told, (round, work, doubt): (&mut Round, &impl Work, &mut Doubt)) -> Option<Told> {
    match told {
        // Done twice it is the same, and whoever is refused it for now may ask again: what of the batch is done is nothing to it.
        Err(mut exception) if exception.is_of_batch && work.repeat(entry) == Repeat::Always => {
            exception.is_of_batch = false;
            settle(entry, Err(exception), (round, work, doubt))
        }
        Err(exception)
            if exception.remedy() != Remedy::None
                && (exception.is_before_work() || work.repeat(entry) == Repeat::Always) =>
        {
            let remedy = exception.remedy();
            put_off(vec![entry], (remedy, CallError::Refused(exception)), (round, work, doubt));
            None
        }
        told => Some(told),
    }
}

/// Has entries asked again, in doubt where the attempt that failed may have done them.
fn put_off(
    entries: Vec<usize>,
    (remedy, error): (Remedy, CallError),
    (round, work, doubt): (&mut Round, &impl Work, &mut Doubt),
) {
    if work.is_change() && may_be_done(&error) {
        doubt.entries.extend(&entries);
        doubt.last = Some(error);
    } else {
        round.last = Some(error);
    }
    round.add(entries, remedy);
}

/// Each entry of a call once: those of several actions are side by side.
fn distinct(entries: Vec<Vec<usize>>) -> impl Iterator<Item = usize> {
    entries.into_iter().flat_map(|mut entries| {
        entries.dedup();
        entries
    })
}

type Planned = Vec<(Address, Vec<Share>)>;

/// Parts entries by region and server, in calls of bounded size; beside them those whose region is nowhere now.
fn plan(map: &Map, entries: &[usize], (work, parts): (&impl Work, &Parts)) -> (Planned, Vec<usize>) {
    let mut lost = Vec::new();
    // Ordered by region, so that a region's entries are one action list, or one a part, and keep their order.
    let mut servers: HashMap<&Address, BTreeMap<(&[u8], usize), Share>> = HashMap::new();
    for &entry in entries {
        let region = map.holding(work.key(entry));
        let Some((region, server)) = region.and_then(|region| Some((region, region.server.as_ref()?))) else {
            lost.push(entry);
            continue;
        };
        let shares = servers.entry(server).or_default();
        let new = || Share { region: Arc::clone(region), entries: Vec::new() };
        shares.entry((&region.start, parts.of(entry))).or_insert_with(new).entries.push(entry);
    }
    let mut planned = Vec::new();
    for (server, shares) in servers {
        let (mut call, mut bytes, mut rows) = (Vec::new(), 0, 0);
        for Share { region, entries } in shares.into_values() {
            let mut share = Share { region, entries: Vec::new() };
            for entry in entries {
                let more = work.bytes(entry);
                if rows > 0 && (bytes + more > CALL_BYTES || rows >= CALL_ROWS) {
                    let part = Share { region: Arc::clone(&share.region), entries: std::mem::take(&mut share.entries) };
                    call.push(part);
                    planned.push((server.clone(), std::mem::take(&mut call)));
                    (bytes, rows) = (0, 0);
                }
                share.entries.push(entry);
                (bytes, rows) = (bytes + more, rows + 1);
            }
            call.push(share);
        }
        planned.push((server.clone(), call));
    }
    for (_, call) in &mut planned {
        call.retain(|share| !share.entries.is_empty());
    }
    (planned, lost)
}

/// Each entry's answer, by region action.
fn actions(answer: MultiResponse, block: Bytes, entries: &[Vec<usize>]) -> Result<Vec<RegionTold>> {
    if answer.region_action_result.len() != entries.len() {
        return Err(Error::malformed("a list of answers", "it is not as long as what was asked"));
    }
    let mut cells = Cells(block);
    let mut told = Vec::new();
    for (result, entries) in answer.region_action_result.into_iter().zip(entries) {
        if let Some(exception) = &result.exception {
            let exception = Exception::of_action(exception);
            told.push(distinct(vec![entries.clone()]).map(|entry| (entry, Err(exception.clone()))).collect());
            continue;
        }
        if is_atomic(entries) {
            let refused = result.result_or_exception.iter().find_map(|one| one.exception.as_ref());
            let told_one = refused.map_or_else(|| Ok(Vec::new()), |exception| Err(Exception::of_action(exception)));
            told.push(entries.first().map(|&entry| (entry, told_one)).into_iter().collect());
            continue;
        }
        if result.result_or_exception.len() != entries.len() {
            return Err(Error::malformed("a region's answers", "they are not as many as what was asked"));
        }
        // As many as were asked and none twice: so each is there.
        let mut is_told = vec![false; entries.len()];
        let mut told_each = Vec::with_capacity(entries.len());
        for one in result.result_or_exception {
            let index = one.index.map_or(usize::MAX, |index| index as usize);
            let (Some(&entry), Some(is_told)) = (entries.get(index), is_told.get_mut(index)) else {
                return Err(Error::malformed("an action's answer", "its index is none of ours"));
            };
            if std::mem::replace(is_told, true) {
                return Err(Error::malformed("an action's answer", "its index came before"));
            }
            told_each.push((
                entry,
                match one.exception {
                    Some(exception) => Err(Exception::of_action(&exception)),
                    None => Ok(of_result(one.result, &mut cells)?),
                },
            ));
        }
        // A region does a batch in parts, as it gets the locks of rows, and looks before each whether it may go on
        // (`HRegion.batchMutate`); where it may not, all are told so, those that are done too.
        if told_each.len() > 1 && is_alike(&told_each) {
            let exceptions = told_each.iter_mut().filter_map(|(_, told)| told.as_mut().err());
            exceptions.for_each(|exception| exception.is_of_batch = true);
        }
        told.push(told_each);
    }
    Ok(told)
}

/// Whether all were told one exception.
fn is_alike(told: &RegionTold) -> bool {
    let first = told.first().and_then(|(_, told)| told.as_ref().err());
    first.is_some_and(|first| told.iter().all(|(_, told)| told.as_ref().is_err_and(|other| other == first)))
}

/// Whether several actions are one entry's.
fn is_atomic(entries: &[usize]) -> bool {
    matches!(entries, [first, second, ..] if first == second)
}

/// The cells of a result: in its message, and beside it.
///
/// # Errors
/// `Malformed`
pub(crate) fn of_result(result: Option<CellResult>, block: &mut Cells) -> Result<Vec<Cell>> {
    let result = result.unwrap_or_default();
    let mut cells = result.cell.into_iter().map(Cell::of_message).collect::<Result<Vec<_>>>()?;
    let beside = usize::try_from(result.associated_cell_count.unwrap_or(0)).unwrap_or(0);
    cells.extend(block.take(beside)?);
    Ok(cells)
}
