//! A table copied: scanned in key order, put with its cells' times, remembered once it is durable.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use basalt_schema::{RowFold, UidKind, hex_lower};
use basalt_store::{
    Applied, CellView, Durability, ErrorKind, Get, MutationBatch, Pending, RowBatch, RowFailure, RowView, Scan,
};
use bytes::Bytes;

use super::digest::{Digester, Joiner};
use super::job::{Job, at};
use super::plan::{self, TablePair};
use super::progress::{Memory, Shown, TableState};
use crate::exit::{Exit, Failure};
use crate::threads;

/// Bytes of a batch, about, and how many are under way.
const BATCH_BYTES: usize = 1 << 20;
const UNDER_WAY_MAX: usize = 4;
/// The pause before rows that found no room are sent again.
const PAUSE: Duration = Duration::from_millis(20);
/// How often progress is made durable and remembered.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(2);

/// Copies what is left of a table.
///
/// # Errors
///
/// What a store says; a row that the target refuses; a name that the target knows by another UID.
pub(super) fn copy(job: &Job, pair: &TablePair, memory: &mut Memory, shown: &mut Shown) -> Result<(), Failure> {
    let name = pair.to.to_string();
    let mut state = memory.of(&name);
    if state.is_done {
        return Ok(());
    }
    if state.at.is_empty() {
        state.lasting_from = plan::lasting_from(job, pair)?;
    }
    let regions = job.source.store.regions(&pair.from).map_err(|cause| at(&job.source, &cause))?;
    let mut digester = Digester::new(pair.is_folded, job.source.schema.duplicates(), state.lasting_from);
    let scan = Scan {
        start_inclusive: state.at.is_empty(),
        versions: u32::MAX,
        batch_bytes: BATCH_BYTES,
        cache_blocks: false,
        ..Scan::range(state.at.clone(), Bytes::new())
    };
    let mut scanner = job.source.store.scan(&pair.from, scan).map_err(|cause| at(&job.source, &cause))?;
    let (mut under_way, mut remembered) = (VecDeque::new(), Instant::now());
    while let Some(rows) = scanner.next_wait().transpose().map_err(|cause| at(&job.source, &cause))? {
        if pair.is_names && memory.is_into_filled() {
            refuse_other_names(job, pair, &rows)?;
        }
        if state.at.is_empty() {
            // Before the first row: whoever is killed now goes on, and is not refused for the rows that are there.
            memory.advance(&name, &state)?;
        }
        under_way.push_back((job.target.store.apply(&pair.to, batch(job, pair, &rows, rows.rows())?), rows.clone()));
        while under_way.len() > UNDER_WAY_MAX {
            settle(job, pair, under_way.pop_front())?;
        }
        for row in rows.rows() {
            digester.add(pair.shared_of_source(row.key()), &row, &mut state.digest);
            row.key().clone_into(&mut state.at);
        }
        state.cells += rows.cells_count() as u64;
        if remembered.elapsed() >= CHECKPOINT_EVERY {
            checkpoint(job, pair, &mut under_way, (memory, &state))?;
            remembered = Instant::now();
        }
        let region = regions.iter().filter(|region| *region.start <= *state.at).count();
        shown.tell(&format!("copying {name}"), rows.len() as u64, (region, regions.len()));
    }
    state.is_done = true;
    checkpoint(job, pair, &mut under_way, (memory, &state))
}

type UnderWay = (Pending<Applied>, RowBatch);

/// Waits until all is durable, and remembers it.
fn checkpoint(
    job: &Job,
    pair: &TablePair,
    under_way: &mut VecDeque<UnderWay>,
    (memory, state): (&mut Memory, &TableState),
) -> Result<(), Failure> {
    while !under_way.is_empty() {
        settle(job, pair, under_way.pop_front())?;
    }
    job.target.store.sync().wait().map_err(|cause| at(&job.target, &cause))?;
    memory.advance(&pair.to.to_string(), state)
}

/// Waits for a batch. Rows that find no room, as memory is full until it is written out, are sent again; they bring their
/// times with them, so those of them that are there are the same afterwards.
fn settle(job: &Job, pair: &TablePair, under_way: Option<UnderWay>) -> Result<(), Failure> {
    let Some((mut pending, rows)) = under_way else { return Ok(()) };
    let mut sent: Vec<RowView<'_>> = rows.rows().collect();
    let until = Instant::now() + job.patience;
    loop {
        let has_time = Instant::now() < until;
        let is_full = |cause: &basalt_store::Error| has_time && cause.kind() == ErrorKind::Throttled;
        match pending.wait() {
            Ok(Applied { failed }) => {
                let row = |failed: &RowFailure| sent.get(failed.row).copied();
                if let Some(refused) = failed.iter().find(|failed| !is_full(&failed.error)) {
                    let key = row(refused).map(|row| legible(row.key())).unwrap_or_default();
                    let failure = at(&job.target, &refused.error);
                    return Err(Failure::new(failure.exit, format!("row {key} of {}: {failure}", pair.from)));
                }
                sent = failed.iter().filter_map(row).collect();
            }
            // None of them is there.
            Err(cause) if is_full(&cause) => {}
            Err(cause) => return Err(at(&job.target, &cause)),
        }
        if sent.is_empty() {
            return Ok(());
        }
        threads::pause(PAUSE);
        pending = job.target.store.apply(&pair.to, batch(job, pair, &rows, sent.iter().copied())?);
    }
}

/// Some of the rows as changes of the target; every row is one entry, in the same order. Where several points of a row have one
/// instant, it goes as one cell of those that readers take.
fn batch<'a>(
    job: &Job,
    pair: &TablePair,
    rows: &RowBatch,
    sent: impl Iterator<Item = RowView<'a>>,
) -> Result<MutationBatch, Failure> {
    let cells = rows.cells_count();
    let mut batch = MutationBatch::with_capacity(Durability::Os, rows.len(), cells, rows.data_bytes());
    let mut joiner = Joiner::new(pair.is_folded, job.source.schema.duplicates());
    for row in sent {
        let key = pair.key(row.key()).ok_or_else(|| {
            let key = legible(row.key());
            Failure::config(format!(
                "row {key} of {} is none of the source's settings: it cannot be salted anew",
                pair.from
            ))
        })?;
        let full = |cause: basalt_store::Error| Failure::new(Exit::Failure, cause.to_string());
        let mut into = batch.row(&key).map_err(full)?;
        let cells = joiner.copied(row.cells().collect());
        let joined = joiner.join_duplicates(&cells);
        for cell in cells.iter().filter(|cell| joined.is_none() || !RowFold::joins(cell.qualifier)) {
            into.put(cell.family, cell.qualifier, Some(cell.timestamp), cell.value).map_err(full)?;
        }
        if let (Some(joined), Some(first)) = (joined, cells.first()) {
            into.put(first.family, joined.qualifier, Some(joined.timestamp), joined.value).map_err(full)?;
        }
    }
    Ok(batch)
}

/// A name that the target knows by another UID, or a UID by another name, would mix up series.
fn refuse_other_names(job: &Job, pair: &TablePair, rows: &RowBatch) -> Result<(), Failure> {
    let is_map = |qualifier: &[u8]| UidKind::ALL.iter().any(|kind| kind.qualifier().as_bytes() == qualifier);
    let keys = rows.rows().map(|row| Bytes::copy_from_slice(row.key())).collect();
    let found = job.target.store.get(&pair.to, Get::rows(keys)).wait().map_err(|cause| at(&job.target, &cause))?;
    let mut told = rows.rows();
    for there in found.rows() {
        let Some(row) = told.find(|row| row.key() == there.key()) else { break };
        for cell in there.cells().filter(|cell| is_map(cell.qualifier)) {
            let same = |other: &CellView<'_>| {
                (other.family, other.qualifier) == (cell.family, cell.qualifier) && other.value != cell.value
            };
            // The counters of UIDs may only grow.
            let is_counter = row.key() == [0] && cell.value.len() == 8;
            let Some(other) = row.cells().find(same).filter(|other| !is_counter || other.value < cell.value) else {
                continue;
            };
            return Err(Failure::new(
                Exit::Failure,
                format!(
                    "row {} of {} means {} in {} and {} in {}: two servers' names cannot become one's",
                    legible(row.key()),
                    pair.to,
                    legible(other.value),
                    job.source.name,
                    legible(cell.value),
                    job.target.name
                ),
            ));
        }
    }
    Ok(())
}

/// Bytes as a person reads them: text where it is, else hexadecimal digits.
fn legible(bytes: &[u8]) -> String {
    if !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    hex_lower(bytes)
}
