//! What both ends hold, read back and compared.

use basalt_store::{Scan, Timestamp};

use super::digest::{Digest, Digester};
use super::job::{End, Job, at};
use super::plan::{self, TablePair};
use super::progress::{Shown, TableState};
use crate::exit::{Exit, Failure};

/// Bytes of a batch, about.
const BATCH_BYTES: usize = 1 << 20;

/// What two ends that are the same hold of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Same {
    pub(super) rows: u64,
    /// The newest time of a cell.
    pub(super) newest: Timestamp,
}

/// Reads both ends of a table and compares them, and the source with what of it was copied before. The inner result is the
/// comparison's.
///
/// # Errors
///
/// What a store says. The inner one, exit code 1: they differ.
pub(super) fn compare(
    job: &Job,
    pair: &TablePair,
    copied: Option<&TableState>,
    shown: &mut Shown,
) -> Result<Result<Same, Failure>, Failure> {
    let lasting_from = copied.map_or_else(|| plan::lasting_from(job, pair), |copied| Ok(copied.lasting_from))?;
    let mut shared = |key: &[u8]| Some(pair.shared_of_source(key).to_vec());
    let digester = || Digester::new(pair.is_folded, job.source.schema.duplicates(), lasting_from);
    let (source, _) = digest(&job.source, &pair.from, digester(), shown, &mut shared)?;
    let expired = if lasting_from == 0 { "" } else { ", or lost cells to its TTL," };
    if let Some(copied) = copied.map(|copied| copied.digest).filter(|copied| *copied != source) {
        return Ok(Err(Failure::new(
            Exit::Failure,
            format!(
                "table {} of {} was written to{expired} while it was copied: {} rows then, {} rows now; run it again \
                 with --into-filled when nobody writes",
                pair.from, job.source.name, copied.rows, source.rows
            ),
        )));
    }
    let mut misplaced = 0_u64;
    let mut shared = |key: &[u8]| {
        let found = pair.shared_of_target(key).map(<[u8]>::to_vec);
        misplaced += u64::from(found.is_none());
        found
    };
    let (target, newest) = digest(&job.target, &pair.to, digester(), shown, &mut shared)?;
    if misplaced == 0 && target == source {
        return Ok(Ok(Same { rows: target.rows, newest }));
    }
    let what = match (misplaced, target.rows == source.rows) {
        (0, true) => "and they differ".to_owned(),
        (0, false) => String::new(),
        (count, _) => format!("{count} of them under a salt that their series do not have"),
    };
    Ok(Err(Failure::new(
        Exit::Failure,
        format!(
            "table {} is not the same: {} rows in {}, {} rows in {} {what}; was one of them written to{expired} \
             meanwhile? Run it again with --into-filled when nobody writes",
            pair.to, source.rows, job.source.name, target.rows, job.target.name
        ),
    )))
}

fn digest(
    end: &End,
    table: &basalt_store::TableName,
    mut digester: Digester,
    shown: &mut Shown,
    shared: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Result<(Digest, Timestamp), Failure> {
    let regions = end.store.regions(table).map_err(|cause| at(end, &cause))?;
    let scan = Scan { versions: u32::MAX, batch_bytes: BATCH_BYTES, cache_blocks: false, ..Scan::all() };
    let mut scanner = end.store.scan(table, scan).map_err(|cause| at(end, &cause))?;
    let (mut digest, mut newest) = (Digest::default(), Timestamp(0));
    while let Some(rows) = scanner.next_wait().transpose().map_err(|cause| at(end, &cause))? {
        let mut region = 0;
        for row in rows.rows() {
            match shared(row.key()) {
                Some(key) => digester.add(&key, &row, &mut digest),
                None => digest.rows += 1,
            }
            newest = row.cells().map(|cell| cell.timestamp).fold(newest, Timestamp::max);
            region = regions.iter().filter(|region| *region.start <= *row.key()).count();
        }
        shown.tell(&format!("reading {table} of {} back", end.name), rows.len() as u64, (region, regions.len()));
    }
    Ok((digest, newest))
}
