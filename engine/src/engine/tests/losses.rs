//! Folders of which a file is lost: the start is refused, and costs nothing more.

use std::path::Path;

use super::*;
use crate::io::SimFs;

#[test]
fn a_damaged_manifest_does_not_cost_the_files_it_forgot() {
    let fs = SimFs::new(1);
    let open = || Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Threads));
    let engine = open().unwrap();
    engine.create_table(table(), &[]).unwrap();
    put(&engine, "a", "1").wait().unwrap();
    engine.flush(&name()).unwrap();
    put(&engine, "b", "1").wait().unwrap();
    engine.compact(&name(), Compaction::Major).unwrap();
    engine.close().unwrap();
    drop(engine);
    let manifest = Path::new("/d/MANIFEST");
    let marked = fs.open(manifest).unwrap().len().unwrap();
    let len = marked - 32 - 4096;
    fs.flip_bit(manifest, len - 9, 1).unwrap();
    let files = || {
        let names = fs.list(Path::new("/d")).unwrap();
        names.into_iter().filter(|name| name.starts_with("sst-")).collect::<Vec<_>>()
    };
    let before = files();
    assert!(matches!(open().err(), Some(Error::Corrupt { file, .. }) if file == manifest));
    // Without the marks behind it, the last edit reads as torn: its copy knows better.
    fs.open_rw(manifest).unwrap().set_len(len).unwrap();
    assert!(matches!(open().err(), Some(Error::Corrupt { what: "last edit", .. })));
    fs.remove(Path::new("/d/MANIFEST.copy")).unwrap();
    assert!(matches!(open().err(), Some(Error::Missing { .. })));
    assert_eq!((before.len(), files()), (2, before));
}

/// A folder without its manifest is no new one, whatever else is gone: what it has is kept, and `repair` says what is missing.
#[test]
fn a_manifest_that_is_gone_does_not_cost_the_files() {
    for (has_log, has_files) in [(true, true), (false, true), (true, false)] {
        let fs = SimFs::new(1);
        let open = || Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual));
        let engine = open().unwrap();
        engine.create_table(table(), &[]).unwrap();
        let acknowledged = put(&engine, "a", "1");
        engine.pump().unwrap();
        acknowledged.wait().unwrap();
        engine.flush(&name()).unwrap();
        engine.close().unwrap();
        drop(engine);
        let names = || fs.list(Path::new("/d")).unwrap();
        let is_gone = |name: &String| {
            name == "MANIFEST" || (!has_log && name.starts_with("wal-")) || (!has_files && name.starts_with("sst-"))
        };
        for name in names().iter().filter(|name| is_gone(name)) {
            fs.remove(&Path::new("/d").join(name)).unwrap();
        }
        let before = names();
        let refused = open().unwrap_err();
        assert_eq!(
            (refused.to_string().as_str(), refused.kind()),
            ("/d lost its file MANIFEST, without which nobody can tell what its other files hold", ErrorKind::Corrupt)
        );
        assert_eq!(names(), before);
    }
}

#[test]
fn a_log_that_is_gone_is_damage() {
    let fs = SimFs::new(1);
    let open = || Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual));
    let engine = open().unwrap();
    engine.create_table(table(), &[]).unwrap();
    engine.close().unwrap();
    drop(engine);
    open().unwrap().close().unwrap();
    for name in fs.list(Path::new("/d")).unwrap().iter().filter(|name| name.starts_with("wal-")) {
        fs.remove(&Path::new("/d").join(name)).unwrap();
    }
    assert!(matches!(open().unwrap_err(), Error::Corrupt { what: "log segments", .. }));
}
