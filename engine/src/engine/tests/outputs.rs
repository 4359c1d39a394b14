//! What flushes and compactions leave in the folder when a file that they wrote is of no use.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::BlockCodec;
use crate::io::{Fault, FaultKind, FaultSpan, SimFs};

/// Has another name once it was handed a block: a file that names it does not open, and later ones are written without it.
#[derive(Debug, Default)]
struct Renamed(AtomicBool);

impl BlockCodec for Renamed {
    fn name(&self) -> &str {
        if self.0.load(Ordering::Relaxed) { "OTHER" } else { "TSB1" }
    }

    fn encode_into(&self, _image: &[u8], _out: &mut Vec<u8>) -> bool {
        self.0.store(true, Ordering::Relaxed);
        false
    }

    fn decode_into(&self, _stored: &[u8], _image: &mut [u8]) -> bool {
        false
    }
}

/// Each try of a flush would leave one more.
#[test]
fn a_file_that_does_not_open_goes() {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    options.codecs.register(Arc::new(Renamed::default()));
    let engine = Engine::open(options).unwrap();
    let mut encoded = table();
    encoded.families[0].block_encoding = "TSB1".into();
    engine.create_table(encoded, &[]).unwrap();
    drop(put(&engine, "row0000", "v0"));
    engine.pump().unwrap();
    let files_count = || fs.list(Path::new("/d")).unwrap().iter().filter(|name| name.starts_with("sst-")).count();
    assert!(engine.flush(&name()).unwrap_err().to_string().contains("TSB1"));
    assert_eq!((files_count(), engine.health()), (0, Health::Ok));
    engine.flush(&name()).unwrap();
    assert_eq!(files_count(), 2, "one a family");
    assert_eq!(scan(&engine, Scan::all()), expected(0..1));
    engine.verify().unwrap();
}

/// A start takes away what a store wrote aside, by its names and where a manifest says that there is one: a home folder is not swept.
#[test]
fn a_start_deletes_no_files_of_others() {
    let (fs, dir) = (SimFs::new(1), Path::new("/d"));
    let asides = ["sst-0000000000000007.tmp", "wal-0000000003.tmp", "side-series.tmp"];
    let others =
        ["draft.tmp", "sst-draft.tmp", "wal-0000000000.tmp", "wal-old.tmp", "sst-0000000000000007.tmp.tmp", ".tmp"];
    let make = |names: &[&str]| names.iter().for_each(|name| drop(fs.create(&dir.join(name)).unwrap()));
    let there = || fs.list(dir).unwrap();
    make(&asides);
    make(&others);
    let open = || Engine::open(options(Arc::new(fs.clone()), dir, Workers::Manual));
    open().unwrap().close().unwrap();
    assert!(
        asides.iter().chain(&others).all(|name| there().contains(&(*name).to_owned())),
        "no store yet: {:?}",
        there()
    );
    make(&["MANIFEST.tmp"]);
    open().unwrap().close().unwrap();
    let (gone, left) = (["MANIFEST.tmp"].iter().chain(&asides), there());
    assert!(gone.clone().all(|name| !left.contains(&(*name).to_owned())), "{left:?}");
    assert!(others.iter().all(|name| left.contains(&(*name).to_owned())), "{left:?}");
}

/// Wherever room lacks in it: what a flush that failed wrote would lie there until the next start, and again with each try.
#[test]
fn a_flush_that_finds_no_room_leaves_nothing_behind() {
    let is_a = |name: &str, kind: &str| Path::new(name).extension().is_some_and(|extension| extension == kind);
    for after_calls in 0..40 {
        let fs = SimFs::new(1);
        let engine = Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
        engine.create_table(table(), &[]).unwrap();
        drop(put(&engine, "row0000", "v0"));
        engine.pump().unwrap();
        fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Enospc, span: FaultSpan::Once }));
        drop(engine.flush(&name()));
        fs.set_fault(None);
        if matches!(engine.health(), Health::Poisoned { .. }) {
            continue;
        }
        let names = fs.list(Path::new("/d")).unwrap();
        assert!(!names.iter().any(|name| is_a(name, "tmp")), "{after_calls}: {names:?}");
        let files_count = names.iter().filter(|name| is_a(name, "sst")).count() as u64;
        assert_eq!(files_count, engine.stats().files_count, "{after_calls}: {names:?}");
    }
}
