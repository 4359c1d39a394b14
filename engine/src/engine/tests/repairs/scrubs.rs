//! Damage of an open engine's files, told while it works.

use super::*;

fn scrub(engine: &Engine) -> (u64, Vec<String>) {
    let mut told = 0;
    let found = engine.scrub(&mut |_| told += 1).unwrap();
    assert!(
        found.files_count + found.damages.len() as u64 >= told,
        "the manifest and its copy are no files of a table"
    );
    (found.files_count, found.damages.iter().map(ToString::to_string).collect())
}

/// What nobody reads too: files of a snapshot, the manifest and its copy, each of which goes on as it was in memory.
#[test]
fn a_scrub_tells_every_damaged_file_and_the_engine_goes_on() {
    let fs = store();
    let files = audit(&fs);
    let engine = Engine::open(engine_options(&fs)).unwrap();
    let sstables: Vec<_> = files.iter().filter(|file| file.kind == FileKind::Sstable).collect();
    let is_of_snapshot = |file: &&&AuditedFile| file.owners.iter().all(|owner| owner.snapshot.is_some());
    let of_snapshot = sstables.iter().find(is_of_snapshot).unwrap();
    let of_table = sstables.iter().find(|file| !is_of_snapshot(file)).unwrap();
    assert_eq!(scrub(&engine), (2 + sstables.len() as u64, Vec::new()));
    let names = ["MANIFEST", "MANIFEST.copy", &of_snapshot.name, &of_table.name];
    for name in names {
        fs.flip_bit(&Path::new(DIR).join(name), 60, 1).unwrap();
    }
    let (proved, told) = scrub(&engine);
    assert_eq!(proved, sstables.len() as u64 - 2);
    for name in names {
        assert_eq!(
            told.iter().filter(|line| line.contains(&format!("{name} is damaged at offset"))).count(),
            1,
            "{told:?}"
        );
    }
    drop(put(&engine, "row9999", "1"));
    engine.pump().unwrap();
    engine.close().unwrap();
    assert!(matches!(engine.scrub(&mut |_| {}), Err(Error::Closed)));
}
