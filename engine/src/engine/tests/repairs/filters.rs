//! A damaged bloom filter costs reads of blocks, and nothing else.

use std::time::Duration;

use super::super::counts::heard;
use super::*;

/// Where the bloom filter of a file begins, as its footer tells.
fn filter_at(fs: &SimFs, path: &Path) -> u64 {
    let bytes = read(fs, path);
    let footer = &bytes[bytes.len() - 48..];
    u64::from_le_bytes(footer[8..16].try_into().unwrap())
}

/// The store with the filter of its largest file damaged; and where.
fn damaged() -> (SimFs, AuditedFile, u64) {
    let fs = store();
    let file = file_of(&fs, FileKind::Sstable);
    let path = Path::new(DIR).join(&file.name);
    let at = filter_at(&fs, &path);
    fs.flip_bit(&path, at + 40, 2).unwrap();
    (fs, file, at)
}

/// It is logged once, with its place, and told by every look at the file.
#[test]
fn a_start_goes_on_without_it_and_says_so() {
    let work = || {
        let (fs, file, at) = damaged();
        let lines = heard(|| {
            let engine = Engine::open(engine_options(&fs)).unwrap();
            assert_eq!(scan(&engine, Scan::all()), all());
            let keys = (0..500).map(|row| format!("row{row:04}").into());
            let got = engine.get(&name(), Get::rows(keys.collect())).wait().unwrap();
            assert_eq!(tests::rows(&got), all());
            assert!(engine.verify().unwrap_err().to_string().contains(&file.name));
            engine.core.scrub_slowly(Duration::ZERO, Duration::ZERO, &|_| Ok(())).unwrap();
            assert_eq!(engine.stats().scrub_damages, 2);
            end(engine);
        });
        let told = lines.into_iter().filter(|line| line.contains("bloom filter")).collect::<Vec<_>>();
        let fs = fs.process_kill();
        let looked = folder(&fs).audit(false, &mut |_| {}).unwrap();
        assert_eq!(looked.iter().filter(|file| file.damage.is_some()).count(), 1, "{looked:?}");
        (told, format!("{} is damaged at offset {at}: section checksum", file.name))
    };
    // Once before, so that no other test is about to be the first to come to a line.
    work();
    let (told, place) = work();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("ERROR") && told[0].contains(&place), "{told:?}, {place}");
}

#[test]
fn a_repair_and_a_compaction_write_it_anew_and_lose_nothing() {
    let repaired = |fs: SimFs, at| {
        let told = damage(&fs);
        assert!(told.len() == 1 && told[0].contains(&format!("offset {at}: section checksum")), "{told:?}");
        let fixed = repair(&fs, true);
        let loss = &fixed.losses[0];
        assert_eq!((fixed.losses.len(), fixed.kept_aside.len()), (1, 1));
        assert_eq!((loss.offset, loss.bytes, loss.cells_count), (at, 0, Some(0)));
        fs
    };
    let compacted = |fs: SimFs, _| {
        let engine = Engine::open(engine_options(&fs)).unwrap();
        engine.compact(&name(), Compaction::Major).unwrap();
        end(engine);
        fs.process_kill()
    };
    for mend in [&repaired as &dyn Fn(SimFs, u64) -> SimFs, &compacted] {
        let (fs, _, at) = damaged();
        let fs = mend(fs, at);
        assert!(damage(&fs).is_empty());
        let file = file_of(&fs, FileKind::Sstable);
        assert!(!open_table(&fs, &file).may_contain_row(b"row0200x"), "there is a filter");
        assert_eq!(rows(&fs), all());
    }
}
