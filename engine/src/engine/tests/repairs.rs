//! Damage of a closed folder: found by file and offset, mended with exactly the loss that was told, whatever crashes.

mod filters;
mod later;
mod scrubs;
mod unread;

use std::path::{Path, PathBuf};

use super::*;
use crate::id::FileId;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, SimFs};
use crate::record::{self, Step};
use crate::sstable::Sstable;
use crate::sstable::tests::{rest_of_key, rewrite_block, rewrite_metadata};
use crate::wal::{SEGMENT_HEADER_BYTES, SegmentId};
use crate::{AuditedFile, FileKind, Folder, Repair};

const DIR: &str = "/d";

fn engine_options(fs: &SimFs) -> EngineOptions {
    options(Arc::new(fs.clone()), Path::new(DIR), Workers::Manual)
}

fn folder(fs: &SimFs) -> Folder {
    Folder::open(engine_options(fs)).unwrap()
}

fn audit(fs: &SimFs) -> Vec<AuditedFile> {
    folder(fs).audit(true, &mut |_| {}).unwrap()
}

fn damage(fs: &SimFs) -> Vec<String> {
    audit(fs).iter().filter_map(|file| file.damage.as_ref().map(ToString::to_string)).collect()
}

fn repair(fs: &SimFs, fix: bool) -> Repair {
    repair_of(&folder(fs), fix).unwrap()
}

fn repair_of(folder: &Folder, fix: bool) -> Result<Repair> {
    let mut done = Repair::default();
    folder.repair(fix, &mut done, &mut |_| {}).map(|()| done)
}

/// Ended without a flush, so that the log holds what was written last.
fn end(engine: Arc<Engine>) {
    drop(Arc::try_unwrap(engine).map(std::mem::forget));
}

fn has_side_log(fs: &SimFs) -> bool {
    fs.list(Path::new(DIR)).unwrap().iter().any(|name| name.starts_with("side-"))
}

/// 400 rows in files of many blocks, with a snapshot of them, and 10 more in the log, a record each; and a side log.
fn store() -> SimFs {
    let fs = SimFs::new(1);
    let engine = Engine::open(engine_options(&fs)).unwrap();
    let mut small = table();
    for family in &mut small.families {
        family.block_bytes = 4096;
        family.compression = basalt_store::Compression::None;
    }
    engine.create_table(small, &["row0100".into()]).unwrap();
    let write = |range: std::ops::Range<u32>| {
        for row in range {
            drop(put(&engine, &format!("row{row:04}"), &value(row)));
            engine.pump().unwrap();
        }
    };
    write(0..400);
    engine.snapshot(&name(), "s").unwrap();
    engine.compact(&name(), Compaction::Major).unwrap();
    write(400..410);
    let log = engine.side_log("series").unwrap();
    assert!(log.replace(log.epoch(), log.synced(), &mut std::iter::once(vec![1])).unwrap());
    end(engine);
    fs.process_kill()
}

fn value(row: u32) -> String {
    format!("v{row}{}", "x".repeat(200))
}

fn rows(fs: &SimFs) -> Vec<Row> {
    let engine = Engine::open(engine_options(fs)).unwrap();
    let rows = scan(&engine, Scan::all());
    engine.verify().unwrap();
    end(engine);
    rows
}

fn all() -> Vec<Row> {
    expected(0..410).into_iter().zip(0..).map(|((key, _), row)| (key, vec![value(row), value(row)])).collect()
}

fn segments(fs: &SimFs) -> Vec<PathBuf> {
    let names = fs.list(Path::new(DIR)).unwrap();
    names.iter().filter_map(|name| SegmentId::of_name(name)).map(|id| id.path(Path::new(DIR))).collect()
}

fn read(fs: &SimFs, path: &Path) -> Vec<u8> {
    let file = fs.open(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// Where row 405 lies in the log, which is in no file yet and has later ones behind it; and its segment's bytes.
fn logged(fs: &SimFs) -> (PathBuf, Vec<u8>, usize) {
    let find = |path: PathBuf| {
        let bytes = read(fs, &path);
        let at = bytes.windows(7).position(|window| window == b"row0405")?;
        Some((path, bytes, at))
    };
    segments(fs).into_iter().find_map(find).expect("row 405 is in the log")
}

/// Flips a bit in the record of row 405.
fn flip_in_log(fs: &SimFs) {
    let (path, _, at) = logged(fs);
    fs.flip_bit(&path, at as u64, 1).unwrap();
}

/// Gives the record of row 405 a kind that nobody knows, with checksums that fit; answers its place and its bytes.
fn make_unreadable(fs: &SimFs) -> (u64, u64) {
    let (path, bytes, at) = logged(fs);
    let number = u64::from(SegmentId::of_name(path.file_name().unwrap().to_str().unwrap()).unwrap().0);
    let mut offset = usize::try_from(SEGMENT_HEADER_BYTES).unwrap();
    while let Step::Record(found) = record::read(&bytes, number, offset) {
        if found.end > at {
            let mut foreign = Vec::new();
            record::begin(&mut foreign, 99);
            foreign.extend_from_slice(found.payload);
            record::close(&mut foreign);
            record::stamp(&mut foreign, number, offset as u64, found.sequence, found.synced);
            fs.open_rw(&path).unwrap().write_at(offset as u64, &foreign).unwrap();
            return (offset as u64, (found.end - offset) as u64);
        }
        offset = found.end;
    }
    panic!("row 405 is in no record");
}

fn file_of(fs: &SimFs, kind: FileKind) -> AuditedFile {
    let named = |file: &AuditedFile| file.kind == kind && file.owners.iter().all(|owner| owner.snapshot.is_none());
    audit(fs).into_iter().filter(named).max_by_key(|file| file.bytes).unwrap()
}

/// Files that the snapshot alone has, since the table's were compacted.
fn files_of_snapshot(fs: &SimFs) -> Vec<AuditedFile> {
    let kept = |file: &AuditedFile| !file.owners.is_empty() && file.owners.iter().all(|owner| owner.snapshot.is_some());
    audit(fs).into_iter().filter(kept).collect()
}

/// Flips a bit in a block of a file; answers the block.
fn flip_in_block(fs: &SimFs, file: &AuditedFile, index: usize) -> crate::BlockFigures {
    let path = Path::new(DIR).join(&file.name);
    let block =
        crate::SstableFile::open(fs, &path, &crate::BlockCodecs::default()).unwrap().blocks().unwrap()[index].clone();
    fs.flip_bit(&path, block.offset + 40, 2).unwrap();
    block
}

fn open_table(fs: &SimFs, file: &AuditedFile) -> Sstable {
    let path = Path::new(DIR).join(&file.name);
    let (codecs, cache) = (crate::BlockCodecs::default(), Arc::new(BlockCache::new(0, 1 << 20)));
    Sstable::open(fs.open(&path).unwrap(), &path, FileId::of_name(&file.name).unwrap(), &codecs, cache).unwrap()
}

#[test]
fn a_whole_folder_is_told_file_by_file_and_not_changed() {
    let fs = store();
    let before = fs.list(Path::new(DIR)).unwrap();
    let calls = fs.calls();
    let files = audit(&fs);
    assert!(damage(&fs).is_empty() && repair(&fs, false).losses.is_empty());
    assert!(fs.list(Path::new(DIR)).unwrap() == before && has_side_log(&fs));
    assert!(fs.calls() - calls <= 6, "a lock and its folder a time, nothing else");
    let of = |kind| files.iter().filter(move |file| file.kind == kind);
    assert_eq!(of(FileKind::Manifest).count(), 2, "it and its copy");
    let logged = of(FileKind::Log).next().unwrap();
    assert!(logged.rows_count >= 10 && logged.cells_count == 2 * logged.rows_count, "{logged:?}");
    let cells: u64 = of(FileKind::Sstable).filter(|file| file.owners.len() == 1).map(|file| file.cells_count).sum();
    assert_eq!(cells, 2 * 800, "of the table's files, and of those that only the snapshot has");
    assert_eq!(rows(&fs), all());
}

/// `verify` names file and offset, `repair` tells the loss, `--fix` loses exactly that and keeps the original.
#[test]
fn a_damaged_block_costs_its_cells_and_no_more() {
    let fs = store();
    let damaged = file_of(&fs, FileKind::Sstable);
    let block = flip_in_block(&fs, &damaged, 2);
    let told = damage(&fs);
    assert!(told.len() == 1 && told[0].contains(&damaged.name), "{told:?}");
    assert!(told[0].contains(&block.offset.to_string()), "{told:?}");
    let dry = repair(&fs, false);
    assert_eq!(dry.losses.len(), 1);
    let loss = &dry.losses[0];
    assert_eq!((loss.offset, loss.bytes, loss.cells_count), (block.offset, block.bytes, Some(block.cells_count)));
    assert_eq!(loss.rows, (block.first_row.clone(), block.last_row.clone()));
    assert!(dry.kept_aside.is_empty() && damage(&fs) == told, "nothing is done unless it is told");
    let fixed = repair(&fs, true);
    assert_eq!((fixed.losses.len(), fixed.kept_aside.len()), (1, 1));
    assert!(fs.open(&fixed.kept_aside[0]).is_ok());
    assert!(damage(&fs).is_empty());
    let cells: usize = rows(&fs).iter().map(|(_, cells)| cells.len()).sum();
    assert_eq!(cells as u64, 2 * 410 - block.cells_count);
    assert!(fs.open(&fixed.kept_aside[0]).is_ok(), "a start does not delete it");
}

/// Under a checksum that fits: a bug of a writer, or of memory. What is not of that block is kept.
#[test]
fn cells_out_of_order_cost_their_block_and_no_more() {
    let fs = store();
    let damaged = file_of(&fs, FileKind::Sstable);
    let table = open_table(&fs, &damaged);
    let block = table.block_figures().unwrap()[2].clone();
    let first: u32 = std::str::from_utf8(&block.first_row[3..]).unwrap().parse().unwrap();
    rewrite_block(&table, 2, |image| {
        let at = rest_of_key(image, &block.first_row, format!("row{:04}", first + 1).as_bytes());
        image[at] = b' ';
    });
    let told = damage(&fs);
    assert!(told.len() == 1 && told[0].contains("cell order"), "{told:?}");
    let fixed = repair(&fs, true);
    assert_eq!((fixed.losses.len(), fixed.kept_aside.len()), (1, 1));
    assert_eq!((fixed.losses[0].offset, fixed.losses[0].cells_count), (block.offset, Some(block.cells_count)));
    assert!(damage(&fs).is_empty());
    let cells: usize = rows(&fs).iter().map(|(_, cells)| cells.len()).sum();
    assert_eq!(cells as u64, 2 * 410 - block.cells_count);
}

/// The manifest knows better, and a writer takes cells of its own family alone.
#[test]
fn a_damaged_file_that_names_another_family_is_mended() {
    let fs = store();
    let damaged = file_of(&fs, FileKind::Sstable);
    rewrite_metadata(&open_table(&fs, &damaged), |image| image[78] = b'?');
    let block = flip_in_block(&fs, &damaged, 2);
    assert_eq!(repair(&fs, true).losses.len(), 1);
    assert!(damage(&fs).is_empty());
    let cells: usize = rows(&fs).iter().map(|(_, cells)| cells.len()).sum();
    assert_eq!(cells as u64, 2 * 410 - block.cells_count);
}

/// What takes the place of a snapshot's file has a later number than any that was given.
#[test]
fn a_damaged_file_of_a_snapshot_alone_is_mended() {
    let fs = store();
    let cells = || files_of_snapshot(&fs).iter().map(|file| file.cells_count).sum::<u64>();
    let before = cells();
    let block = flip_in_block(&fs, &files_of_snapshot(&fs)[0], 1);
    let fixed = repair(&fs, true);
    assert_eq!((fixed.losses.len(), fixed.kept_aside.len()), (1, 1));
    assert_eq!(fixed.losses[0].cells_count, Some(block.cells_count));
    assert!(damage(&fs).is_empty());
    assert_eq!(cells(), before - block.cells_count);
    assert_eq!(rows(&fs), all(), "the table has files of its own");
}

/// Not a cell of them is lost, and nothing is changed.
#[test]
fn files_that_have_each_others_names_are_told_and_left_alone() {
    let whole = store();
    let files = audit(&whole).into_iter().filter(|file| file.kind == FileKind::Sstable).map(|file| file.name);
    let sstables: Vec<PathBuf> = files.take(2).map(|name| Path::new(DIR).join(name)).collect();
    let swap = |fs: SimFs, paths: &[PathBuf]| {
        let aside = Path::new(DIR).join("aside");
        for (from, to) in [(&paths[0], &aside), (&paths[1], &paths[0]), (&aside, &paths[1])] {
            fs.rename(from, to).unwrap();
        }
        fs
    };
    let told = |paths: &[PathBuf]| {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        format!("{} is {} by its own header: give it that name", paths[0].display(), name(&paths[1]))
    };
    let fs = swap(whole.snapshot(), &sstables);
    for fix in [false, true] {
        let done = repair(&fs, fix);
        assert!(done.losses.is_empty() && done.unopened.len() == 2, "{done:?}");
        assert_eq!(done.unopened[0].damage.to_string(), told(&sstables));
    }
    let logs = segments(&whole).split_off(segments(&whole).len() - 2);
    let fs = swap(swap(fs, &sstables), &logs);
    for fix in [false, true] {
        assert_eq!(repair_of(&folder(&fs), fix).unwrap_err().to_string(), told(&logs));
    }
    assert_eq!(rows(&swap(fs, &logs)), all());
}

#[test]
fn a_file_that_is_gone_is_told_whole() {
    let fs = store();
    let damaged = file_of(&fs, FileKind::Sstable);
    fs.remove(&Path::new(DIR).join(&damaged.name)).unwrap();
    let told = Engine::open(engine_options(&fs)).unwrap_err().to_string();
    let missing = format!("/d/{} is missing: it had {} bytes", damaged.name, damaged.bytes);
    assert!(told == missing && damage(&fs) == [missing], "{told}");
    told_whole(&fs, &damaged);
}

/// Nothing tells then how its blocks are laid out.
#[test]
fn a_file_without_header_and_footer_is_told_whole() {
    let fs = store();
    let damaged = file_of(&fs, FileKind::Sstable);
    for at in [5, damaged.bytes - 10] {
        fs.flip_bit(&Path::new(DIR).join(&damaged.name), at, 1).unwrap();
    }
    assert!(Engine::open(engine_options(&fs)).is_err());
    told_whole(&fs, &damaged);
}

fn told_whole(fs: &SimFs, damaged: &AuditedFile) {
    let fixed = repair(fs, true);
    assert_eq!((fixed.losses.len(), fixed.losses[0].bytes), (1, damaged.bytes));
    assert_eq!(fixed.losses[0].file, Path::new(DIR).join(&damaged.name));
    assert!(damage(fs).is_empty());
    let cells: usize = rows(fs).iter().map(|(_, cells)| cells.len()).sum();
    assert_eq!(cells as u64, 2 * 410 - damaged.cells_count);
}

/// Each block proves by itself. A version that is none is damage, where the file's end says another one.
#[test]
fn a_file_whose_ends_are_damaged_loses_no_block_that_is_whole() {
    let fs = store();
    let file = file_of(&fs, FileKind::Sstable);
    for at in [0, 8, 22, file.bytes - 1, file.bytes - 30, file.bytes - 60] {
        let fs = fs.snapshot();
        fs.flip_bit(&Path::new(DIR).join(&file.name), at, 1).unwrap();
        assert!(Engine::open(engine_options(&fs)).is_err(), "byte {at}");
        let fixed = repair(&fs, true);
        let lost: Vec<_> = fixed.losses.iter().map(|loss| (loss.bytes, loss.cells_count)).collect();
        assert_eq!((lost, fixed.kept_aside.len()), (vec![(0, Some(0))], 1), "byte {at}");
        assert!(damage(&fs).is_empty());
        assert_eq!(rows(&fs), all(), "byte {at}");
    }
    let block = flip_in_block(&fs, &file, 2);
    fs.flip_bit(&Path::new(DIR).join(&file.name), file.bytes - 1, 1).unwrap();
    let fixed = repair(&fs, true);
    assert_eq!((fixed.losses.len(), fixed.losses[0].offset, fixed.losses[0].bytes), (1, block.offset, block.bytes));
    assert_eq!(fixed.losses[0].cells_count, Some(block.cells_count), "the metadata is whole");
    let cells: usize = rows(&fs).iter().map(|(_, cells)| cells.len()).sum();
    assert_eq!(cells as u64, 2 * 410 - block.cells_count);
}

/// A bit in the middle of the log: it is refused at the start; one record is lost, those behind it are not.
#[test]
fn a_damaged_record_costs_itself_and_no_more() {
    let fs = store();
    flip_in_log(&fs);
    assert!(matches!(Engine::open(engine_options(&fs)), Err(Error::Corrupt { .. })));
    assert_eq!(damage(&fs).len(), 1);
    let dry = repair(&fs, false);
    assert_eq!(dry.losses.len(), 1, "{dry:?}");
    let fixed = repair(&fs, true);
    assert_eq!((fixed.losses.len(), fixed.kept_aside.is_empty()), (1, false));
    assert!(damage(&fs).is_empty());
    let found = rows(&fs);
    assert_eq!(found.len(), 409);
    assert!(found.iter().all(|row| all().contains(row)));
}

/// What a start refuses is damage, whatever its checksums say.
#[test]
fn a_record_that_proves_whole_and_does_not_read_is_lost() {
    let fs = store();
    let (offset, bytes) = make_unreadable(&fs);
    assert!(matches!(Engine::open(engine_options(&fs)), Err(Error::Corrupt { .. })));
    assert_eq!(damage(&fs).len(), 1);
    let dry = repair(&fs, false);
    assert_eq!(dry.losses.len(), 1, "{dry:?}");
    assert_eq!((dry.losses[0].offset, dry.losses[0].bytes), (offset, bytes));
    repair(&fs, true);
    assert!(damage(&fs).is_empty());
    assert_eq!(rows(&fs).len(), 409);
}

/// Nothing tells how much it held; what is in files is had.
#[test]
fn a_log_that_is_gone_is_begun_anew() {
    let fs = store();
    for path in segments(&fs) {
        fs.remove(&path).unwrap();
    }
    assert!(matches!(Engine::open(engine_options(&fs)), Err(Error::Corrupt { .. })));
    assert_eq!(damage(&fs).len(), 1);
    let dry = repair(&fs, false);
    assert_eq!(dry.losses.len(), 1, "{dry:?}");
    assert_eq!((dry.losses[0].bytes, dry.losses[0].cells_count), (0, None));
    assert!(segments(&fs).is_empty(), "nothing is done unless it is told");
    assert_eq!(repair(&fs, true).losses.len(), 1);
    assert!(damage(&fs).is_empty());
    let found = rows(&fs);
    assert!((400..410).contains(&found.len()) && found.iter().all(|row| all().contains(row)));
}

/// Files by their names, but of numbers behind which none comes.
#[test]
fn files_of_the_last_numbers_are_not_ours() {
    let fs = store();
    let names = ["sst-18446744073709551615.sst", "wal-4294967295.log"];
    for name in names {
        drop(fs.create(&Path::new(DIR).join(name)).unwrap());
    }
    assert!(damage(&fs).is_empty());
    flip_in_block(&fs, &file_of(&fs, FileKind::Sstable), 1);
    assert_eq!(repair(&fs, true).losses.len(), 1);
    assert!(damage(&fs).is_empty());
    assert!(rows(&fs).len() > 400);
    assert!(names.iter().all(|name| fs.list(Path::new(DIR)).unwrap().iter().any(|there| there == name)));
}

/// Of the manifest and its copy, that which is damaged or gone is written anew from the other.
#[test]
fn a_damaged_manifest_is_mended_by_its_copy() {
    let [manifest, copy] = ["MANIFEST", "MANIFEST.copy"].map(|name| Path::new(DIR).join(name));
    let whole = rows(&store());
    let flip = |fs: &SimFs, path: &Path| fs.flip_bit(path, 60, 1).unwrap();
    for expected in ["MANIFEST is damaged", "lost its file MANIFEST", "MANIFEST.copy is damaged"] {
        let fs = store();
        match expected {
            "lost its file MANIFEST" => fs.remove(&manifest).unwrap(),
            "MANIFEST.copy is damaged" => flip(&fs, &copy),
            _ => flip(&fs, &manifest),
        }
        let told = damage(&fs);
        assert!(told.len() == 1 && told[0].contains(expected), "{told:?}");
        for fix in [false, true] {
            let done = repair(&fs, fix);
            assert!(done.unmended.is_empty() && done.losses.is_empty(), "{done:?}");
            assert!(done.mended.len() == 1 && done.mended[0].to_string().contains(expected), "{done:?}");
            assert_eq!(done.kept_aside.len(), usize::from(fix && !expected.contains("lost")));
        }
        assert!(damage(&fs).is_empty() && repair(&fs, true).mended.is_empty());
        assert_eq!(rows(&fs), whole, "{expected}");
    }
    let torn = store();
    flip(&torn, &manifest);
    mended_after_every_crash(&torn, |fs| {
        repair(fs, true);
        assert!(damage(fs).is_empty() && rows(fs) == whole);
    });
    let fs = store();
    flip(&fs, &manifest);
    flip(&fs, &copy);
    let fixed = repair(&fs, true);
    assert!(fixed.losses.is_empty() && fixed.kept_aside.is_empty());
    assert_eq!(fixed.unmended.len(), 1);
}

/// A crash at each step of a repair: a second one ends it, and what the first told is all that is lost. What was damaged is kept under a
/// name that no other file took. A side log is gone before
/// anything changes: by the numbers of a shorter log nobody sees that it is from before.
#[test]
fn a_repair_is_ended_by_another_after_every_crash() {
    let whole = store();
    let file = file_of(&whole, FileKind::Sstable);
    let block = flip_in_block(&whole, &file, 1);
    let (log, _, at) = logged(&whole);
    flip_in_log(&whole);
    let (file, log) = (read(&whole, &Path::new(DIR).join(file.name)), read(&whole, &log));
    let (before, lost) = (damage(&whole), 2 + block.cells_count);
    mended_after_every_crash(&whole, |fs| {
        assert!(damage(fs) == before || !has_side_log(fs));
        repair(fs, true);
        assert!(damage(fs).is_empty());
        let cells: usize = rows(fs).iter().map(|(_, cells)| cells.len()).sum();
        assert_eq!(cells as u64, 2 * 410 - lost);
        let names = fs.list(Path::new(DIR)).unwrap();
        let kept = names.iter().filter(|name| name.contains(".damaged"));
        let kept: Vec<_> = kept.map(|name| read(fs, &Path::new(DIR).join(name))).collect();
        let of_log = |kept: &Vec<u8>| kept.get(at..at + 200) == log.get(at..at + 200);
        assert!(kept.contains(&file) && kept.iter().any(of_log), "an original is lost: {names:?}");
    });
}

/// Gives `check` what a repair leaves that crashed, at each of its steps.
fn mended_after_every_crash(whole: &SimFs, check: impl Fn(&SimFs)) {
    for after_calls in 0.. {
        let fs = whole.snapshot();
        fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
        let opened = Folder::open(engine_options(&fs));
        let done = opened.and_then(|folder| repair_of(&folder, true)).is_ok();
        println!("step {after_calls}");
        check(&fs.power_loss(LossMode::Hostile));
        if done {
            break;
        }
    }
}

/// 40 rows in a log of many segments.
fn long_log() -> SimFs {
    let whole = SimFs::new(1);
    let mut options = engine_options(&whole);
    options.limits.wal_segment_bytes = 2 << 10;
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    options.limits.wal_bytes_max = 1 << 20;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    for row in 400..440 {
        drop(put(&engine, &format!("row{row:04}"), &value(row)));
        engine.pump().unwrap();
    }
    end(engine);
    whole.process_kill()
}

/// Its segments are no longer than they were: of a log of gigabytes they could not be one.
#[test]
fn a_long_log_is_mended_segment_by_segment() {
    let whole = long_log();
    let segments_count = segments(&whole).len();
    assert!(segments_count > 8, "{segments_count}");
    flip_in_log(&whole);
    mended_after_every_crash(&whole, |fs| {
        repair(fs, true);
        assert!(damage(fs).is_empty());
        let lens: Vec<u64> = segments(fs).iter().map(|path| fs.open(path).unwrap().len().unwrap()).collect();
        assert!(lens.len() <= segments_count && lens.iter().all(|len| *len <= 2 << 10), "{lens:?}");
        assert_eq!(rows(fs).len(), 39);
    });
}

/// A disk without room for the new log is as it was, with the old one, however much of the new one fits.
#[test]
fn a_log_that_there_is_no_room_to_mend_stays_as_it_is() {
    let damaged = long_log();
    flip_in_log(&damaged);
    let before = damaged.list(Path::new(DIR)).unwrap();
    let used = damaged.used_bytes();
    for room in (0..).step_by(1_000) {
        let fs = damaged.snapshot();
        fs.set_capacity(used + room);
        let mut done = Repair::default();
        let ended = folder(&fs).repair(true, &mut done, &mut |_| {});
        let Err(error) = ended else {
            assert!(room > 8_000, "{room}");
            break;
        };
        let told = (error.is_disk_full(), done.losses.len(), done.undone.len(), done.kept_aside.len());
        assert_eq!(told, (true, 0, 1, 0), "{error}");
        assert_eq!((fs.list(Path::new(DIR)).unwrap(), fs.used_bytes()), (before.clone(), used));
        fs.set_capacity(u64::MAX);
        assert_eq!(repair(&fs, true).losses.len(), 1);
        assert_eq!(rows(&fs).len(), 39);
    }
}

/// A place in a segment has four bytes.
#[test]
fn longer_segments_than_can_be_read_again_are_refused() {
    let mut options = engine_options(&SimFs::new(1));
    options.limits.wal_segment_bytes = u64::MAX;
    let refused = Engine::open(options);
    assert!(matches!(refused, Err(Error::Store(basalt_store::Error::TooLarge { .. }))), "{refused:?}");
}

/// As what is on a failing disk should be.
#[test]
fn a_folder_that_is_mounted_to_be_read_only_is_told_of_and_not_mended() {
    let fs = store();
    let damaged = file_of(&fs, FileKind::Sstable);
    fs.flip_bit(&Path::new(DIR).join(damaged.name), 40, 2).unwrap();
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Erofs, span: FaultSpan::FromThenOn }));
    assert_eq!(damage(&fs).len(), 1);
    assert_eq!(repair(&fs, false).losses.len(), 1);
    let refused = repair_of(&folder(&fs), true);
    assert!(matches!(&refused, Err(Error::Io { source, .. }) if source.raw_os_error() == Some(30)), "{refused:?}");
}

/// Its index says what its files are, to the byte: nothing is mended in it, but in a copy that is no backup any more.
#[test]
fn a_backup_is_told_of_and_not_mended() {
    let fs = store();
    let engine = Engine::open(engine_options(&fs)).unwrap();
    let backup = Path::new("/b");
    engine.backup(backup, &mut |_| {}).unwrap();
    end(engine);
    let fs = fs.process_kill();
    let damaged = file_of(&fs, FileKind::Sstable);
    fs.flip_bit(&backup.join(damaged.name), 40, 2).unwrap();
    let opened = Folder::open(EngineOptions { dir: backup.into(), ..engine_options(&fs) }).unwrap();
    assert_eq!(repair_of(&opened, false).unwrap().losses.len(), 1);
    let before = fs.list(backup).unwrap();
    assert!(matches!(repair_of(&opened, true), Err(Error::IsBackup { .. })));
    assert_eq!(fs.list(backup).unwrap(), before);
    fs.remove(&backup.join("BACKUP")).unwrap();
    assert_eq!(repair_of(&opened, true).unwrap().losses.len(), 1);
    assert!(opened.audit(true, &mut |_| {}).unwrap().iter().all(|file| file.damage.is_none()));
}
