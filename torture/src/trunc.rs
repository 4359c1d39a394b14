//! `trunc`: a log cut at any byte opens with all records before the cut and none after.
//!
//! Two logs. One has a single segment of some thousand records and is cut at every byte. The other has many segments:
//! a cut in the last one is a torn tail, a cut in any other below its end is damage that is told with the file's name.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use basalt_engine::io::FileSystem as _;

use crate::folder::{Folder, LogRecord, copy};

/// Records of the single segment: more than 64 KiB of log.
const RECORDS: u64 = 1000;
const SEGMENT_BYTES_ONE: u64 = 160 << 10;
const SEGMENT_BYTES_MANY: u64 = 4 << 10;
const HEADER_BYTES: usize = 32;

/// Cuts at every `every`-th byte.
pub(crate) fn run(every: usize) -> Result<String> {
    let one = one_segment(every)?;
    let many = many_segments()?;
    Ok(format!("{one} cuts of one segment, {many} at edges of many: all before the cut, none after"))
}

fn one_segment(every: usize) -> Result<usize> {
    let folder = Folder::logged(RECORDS, SEGMENT_BYTES_ONE)?;
    let (name, bytes) = folder.segments().next().context("no log")?;
    let records = folder.records(name);
    ensure!(records.len() as u64 == RECORDS, "{} records in one segment", records.len());
    let end = records.last().map_or(0, |last| last.end);
    let mut cuts = 0;
    for cut in (0..=end).step_by(every) {
        let whole = records.iter().filter(|record| record.payload_end <= cut).count();
        let found = match open_cut(&folder, name, bytes, cut) {
            // A segment never is shorter than its header, and an empty one lies behind: that is told.
            Err(error) if cut < HEADER_BYTES => {
                ensure!(format!("{error:#}").contains(name), "{name} cut at {cut}: {error:#}");
                continue;
            }
            found => found.with_context(|| format!("{name} cut at {cut}"))?,
        };
        ensure!(found == whole, "{name} cut at {cut}: {found} of the {whole} records before it");
        cuts += 1;
    }
    Ok(cuts)
}

fn many_segments() -> Result<usize> {
    let folder = Folder::logged(RECORDS / 5, SEGMENT_BYTES_MANY)?;
    let all: BTreeMap<&str, Vec<LogRecord>> = folder.segments().map(|(name, _)| (name, folder.records(name))).collect();
    let last = all.iter().rev().find(|(_, records)| !records.is_empty()).map(|(name, _)| *name).context("no log")?;
    let (mut cuts, mut before) = (0, 0);
    for (name, bytes) in folder.segments() {
        let Some(records) = all.get(name).filter(|records| !records.is_empty()) else { continue };
        let edges = records.iter().flat_map(|record| [record.end - 1, record.end, record.end + 1]);
        for cut in [0, HEADER_BYTES - 1, HEADER_BYTES].into_iter().chain(edges) {
            let whole = records.iter().filter(|record| record.payload_end <= cut).count();
            let found = open_cut(&folder, name, bytes, cut);
            match found {
                Ok(found) if name == last => {
                    ensure!(found == before + whole, "{name} cut at {cut}: {found}, not {}", before + whole);
                }
                // Behind its end a full segment holds nothing.
                Ok(_) if whole == records.len() => {}
                Ok(found) => bail!("{name} cut at {cut}, {found} records, and it is not noticed"),
                Err(error) if name != last || cut < HEADER_BYTES => {
                    ensure!(format!("{error:#}").contains(name), "{name} cut at {cut}: {error:#}");
                }
                Err(error) => return Err(error.context(format!("{name} cut at {cut}"))),
            }
            cuts += 1;
        }
        before += records.len();
    }
    Ok(cuts)
}

/// Opens the folder with one file cut; answers how many records are there, if those are the first ones.
fn open_cut(folder: &Folder, name: &str, bytes: &[u8], cut: usize) -> Result<usize> {
    let fs = copy(&folder.files)?;
    let path = Path::new(Folder::DIR).join(name);
    fs.create(&path)?.write_at(0, bytes.get(..cut).unwrap_or(bytes))?;
    let found = folder.read(&fs)?;
    let state = folder.prefix_of(&found).with_context(|| "what is there is no beginning of what was written")?;
    Ok(state)
}
