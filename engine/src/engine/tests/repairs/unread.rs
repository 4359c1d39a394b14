//! What a disk does not give: told and mended as what does not fit, and nothing ends at it.

use super::*;

fn cells(rows: &[Row]) -> u64 {
    rows.iter().map(|(_, cells)| cells.len() as u64).sum()
}

#[test]
fn a_block_that_the_disk_does_not_give_costs_its_cells_and_no_more() {
    let fs = store();
    let file = file_of(&fs, FileKind::Sstable);
    let path = Path::new(DIR).join(&file.name);
    let block = open_table(&fs, &file).block_figures().unwrap()[2].clone();
    fs.make_unreadable(&path, block.offset + 100..block.offset + 612).unwrap();
    assert_eq!(damage(&fs), [format!("cannot read {}", path.display())]);
    let dry = repair(&fs, false);
    let told = |done: &Repair| {
        let lost = done.losses.iter();
        lost.map(|loss| (loss.file.clone(), loss.offset, loss.bytes, loss.cells_count)).collect::<Vec<_>>()
    };
    assert_eq!(told(&dry), [(path, block.offset, block.bytes, Some(block.cells_count))]);
    assert!(matches!(dry.losses[0].damage, Error::Io { .. }));
    let fixed = repair(&fs, true);
    assert_eq!((told(&fixed), fixed.kept_aside.len()), (told(&dry), 1));
    assert!(damage(&fs).is_empty());
    assert_eq!(cells(&rows(&fs)), 2 * 410 - block.cells_count);
}

/// Behind the blocks there is nothing that they do not tell.
#[test]
fn an_end_that_the_disk_does_not_give_costs_no_cell() {
    let fs = store();
    let file = file_of(&fs, FileKind::Sstable);
    let end = open_table(&fs, &file).block_figures().unwrap().last().map(|block| block.offset + block.bytes).unwrap();
    // A leaf of the index, behind its blocks.
    let mut head = [0; 16];
    fs.open(&Path::new(DIR).join(&file.name)).unwrap().read_exact_at(end, &mut head).unwrap();
    assert_eq!(head[4], 5);
    let end = end + 16 + u64::from(u32::from_le_bytes(head[8..12].try_into().unwrap()));
    // Root and more, with and without what the file tells of itself.
    for (unread, lost) in [(end + 8..file.bytes - 48, (0, Some(0))), (end..file.bytes, (file.bytes - 48 - end, None))] {
        let fs = fs.snapshot();
        fs.make_unreadable(&Path::new(DIR).join(&file.name), unread).unwrap();
        assert!(Engine::open(engine_options(&fs)).is_err());
        let fixed = repair(&fs, true);
        assert_eq!((fixed.losses[0].bytes, fixed.losses[0].cells_count), lost, "{fixed:?}");
        assert_eq!(fixed.losses.len(), 1);
        assert!(damage(&fs).is_empty());
        assert_eq!(rows(&fs), all());
    }
}

/// The blocks of a leaf that does not read are found by themselves.
#[test]
fn a_leaf_of_the_index_costs_no_cell() {
    let fs = store();
    let file = file_of(&fs, FileKind::Sstable);
    let path = Path::new(DIR).join(&file.name);
    let blocks = open_table(&fs, &file).block_figures().unwrap();
    let gap = blocks.array_windows().find(|[a, b]| a.offset + a.bytes < b.offset).map(|[a, _]| a.offset + a.bytes);
    fs.flip_bit(&path, gap.unwrap() + 20, 3).unwrap();
    assert_eq!(damage(&fs).len(), 1);
    let looked = folder(&fs).audit(false, &mut |_| {}).unwrap();
    assert_eq!(looked.iter().filter(|file| file.damage.is_some()).count(), 1);
    let fixed = repair(&fs, true);
    let lost: Vec<_> = fixed.losses.iter().map(|loss| (loss.bytes, loss.cells_count)).collect();
    assert_eq!(lost, [(0, Some(0))]);
    assert!(damage(&fs).is_empty());
    assert_eq!(rows(&fs), all());
}

/// Beside a damaged leaf, a damaged block is told as if that were not.
#[test]
fn a_leaf_of_the_index_and_a_block_cost_the_block() {
    let fs = store();
    let file = file_of(&fs, FileKind::Sstable);
    let path = Path::new(DIR).join(&file.name);
    let blocks = open_table(&fs, &file).block_figures().unwrap();
    let borders: Vec<_> =
        (1..blocks.len()).filter(|n| blocks[n - 1].offset + blocks[n - 1].bytes < blocks[*n].offset).collect();
    let leaf = blocks[borders[0] - 1].offset + blocks[borders[0] - 1].bytes;
    // In another leaf, and in the same one.
    for block in [&blocks[borders[0]], &blocks[1]] {
        let fs = fs.snapshot();
        fs.flip_bit(&path, leaf + 20, 3).unwrap();
        fs.flip_bit(&path, block.offset + 40, 3).unwrap();
        let fixed = repair(&fs, true);
        let lost: Vec<_> = fixed.losses.iter().map(|loss| (loss.offset, loss.bytes, loss.cells_count)).collect();
        assert_eq!(lost, [(block.offset, block.bytes, Some(block.cells_count))]);
        assert!(damage(&fs).is_empty());
        assert_eq!(cells(&rows(&fs)), cells(&all()) - block.cells_count);
    }
}

#[test]
fn a_place_of_the_log_that_the_disk_does_not_give_costs_its_records() {
    let fs = store();
    let (path, _, at) = logged(&fs);
    let at = at as u64;
    fs.make_unreadable(&path, at..at + 1).unwrap();
    assert_eq!(damage(&fs), [format!("cannot read {}", path.display())]);
    let dry = repair(&fs, false);
    let covers = |loss: &crate::Loss| loss.offset <= at && at < loss.offset + loss.bytes;
    let lost: Vec<_> = dry.losses.iter().filter(|loss| covers(loss)).collect();
    assert!(lost.len() == 1 && matches!(lost[0].damage, Error::Io { .. }), "{dry:?}");
    assert_eq!(repair(&fs, true).losses.len(), dry.losses.len());
    assert!(damage(&fs).is_empty());
    let found = rows(&fs);
    assert!((400..410).contains(&found.len()) && found.iter().all(|row| all().contains(row)), "{}", found.len());
}

/// Why is not known, so it stays where it is; what comes behind it is mended.
#[test]
fn a_file_that_cannot_be_opened_is_told_and_kept() {
    let fs = store();
    let files: Vec<_> = audit(&fs).into_iter().filter(|file| file.kind == FileKind::Sstable).collect();
    let (second, last) = (&files[1], &files[files.len() - 1]);
    flip_in_block(&fs, last, 0);
    let mut done = Repair::default();
    let mut is_first = true;
    let fault = Fault { after_calls: 0, kind: FaultKind::Emfile, span: FaultSpan::Once };
    let ended = folder(&fs).repair(true, &mut done, &mut |_| {
        if std::mem::take(&mut is_first) {
            fs.set_fault(Some(fault));
        }
    });
    ended.unwrap();
    let told: Vec<_> = done.unopened.iter().map(|file| (file.file.clone(), file.bytes)).collect();
    assert_eq!(told, [(Path::new(DIR).join(&second.name), second.bytes)]);
    assert_eq!((done.losses.len(), &done.losses[0].file), (1, &Path::new(DIR).join(&last.name)));
    assert!(damage(&fs).is_empty());
    assert!(audit(&fs).iter().any(|file| file.name == second.name && file.kind == FileKind::Sstable));
}

/// As by whoever unpacks a copy into the wrong place. Neither is changed, nor is anything else told as lost.
#[test]
fn a_folder_in_the_place_of_a_file_is_one_that_cannot_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(OsFs);
    let open = || options(Arc::clone(&files) as Arc<dyn FileSystem>, dir.path(), Workers::Manual);
    let engine = Engine::open(open()).unwrap();
    engine.create_table(table(), &[]).unwrap();
    drop(put(&engine, "row1", "v"));
    engine.pump().unwrap();
    engine.compact(&name(), Compaction::Major).unwrap();
    engine.close().unwrap();
    drop(engine);
    let names = || files.list(dir.path()).unwrap();
    let take_place = |is_taken: fn(&str) -> bool| {
        let taken = names().into_iter().find(|name| is_taken(name)).unwrap();
        let path = dir.path().join(&taken);
        files.remove(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        path
    };
    let taken = take_place(|name| FileId::of_name(name).is_some());
    let before = names();
    for fix in [false, true, true] {
        let done = repair_of(&Folder::open(open()).unwrap(), fix).unwrap();
        assert!(done.losses.is_empty() && done.unopened.len() == 1, "{done:?}");
        assert_eq!((&done.unopened[0].file, names()), (&taken, before.clone()));
    }
    let taken = take_place(|name| SegmentId::of_name(name).is_some());
    let before = names();
    for fix in [false, true, true] {
        let error = repair_of(&Folder::open(open()).unwrap(), fix).unwrap_err();
        assert_eq!((error.file(), names()), (Some(&*taken), before.clone()), "{error}");
    }
}

/// What the one that it was at would lose too; and nothing that was written of it fills the disk.
#[test]
fn what_was_done_before_an_error_is_told() {
    let fs = store();
    let files: Vec<_> = audit(&fs).into_iter().filter(|file| file.kind == FileKind::Sstable).collect();
    let (first, last) = (&files[0], &files[files.len() - 1]);
    for file in [first, last] {
        flip_in_block(&fs, file, 0);
    }
    let mut done = Repair::default();
    let mut is_first = true;
    let fault = Fault { after_calls: 0, kind: FaultKind::Enospc, span: FaultSpan::FromThenOn };
    let ended = folder(&fs).repair(true, &mut done, &mut |_| {
        if std::mem::take(&mut is_first) {
            fs.set_fault(Some(fault));
        }
    });
    assert!(ended.is_err_and(|error| error.is_disk_full()));
    let told =
        [&done.losses, &done.undone].map(|losses| losses.iter().map(|loss| loss.file.clone()).collect::<Vec<_>>());
    assert_eq!(told, [first, last].map(|file| vec![Path::new(DIR).join(&file.name)]));
    assert_eq!(done.kept_aside.len(), 1, "{done:?}");
    assert!(!fs.list(Path::new(DIR)).unwrap().iter().any(|name| name.contains(".tmp")));
    fs.set_fault(None);
    assert_eq!(repair(&fs, true).losses.len(), 1, "the other one");
    assert!(damage(&fs).is_empty());
}
