//! Files that refuse: every write and every read of an SSTable fails once, and the caller hears of it.

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, FileSystem, LossMode, SimFs, publish};

const ASIDE: &str = "/d/000007.tmp";
const TARGET: &str = "/d/000007.sst";

fn write_on(fs: &SimFs) -> Result<()> {
    let (aside, target) = (Path::new(ASIDE), Path::new(TARGET));
    let file = fs.create(aside).map_err(Error::io(IoOp::Create, aside))?;
    let mut writer = SstableWriter::create(Arc::clone(&file), aside, options())?;
    for cell in &mixed_cells() {
        writer.push(&cell.borrow())?;
    }
    writer.finish()?;
    publish(fs, &*file, aside, target)
}

fn folder(seed: u64) -> SimFs {
    let fs = SimFs::new(seed);
    fs.create_dir_all(Path::new("/d")).unwrap();
    fs
}

fn open_on(fs: &SimFs) -> Result<Arc<Sstable>> {
    let path = Path::new(TARGET);
    let file = fs.open(path).map_err(Error::io(IoOp::Open, path))?;
    let cache = Arc::new(BlockCache::new(0, 1 << 20));
    Sstable::open(file, path, ID, &BlockCodecs::default(), cache).map(Arc::new)
}

/// The n-th write fails: an error, and after a power loss the file is whole under its name or not there.
#[test]
fn a_failed_write_is_told_and_leaves_no_half_file() {
    let fs = folder(1);
    let before = fs.calls();
    write_on(&fs).unwrap();
    let calls = fs.calls() - before;
    assert!(calls > 15);
    for after_calls in 0..calls {
        for kind in [FaultKind::Eio, FaultKind::Enospc] {
            let fs = folder(after_calls);
            fs.set_fault(Some(Fault { after_calls, kind, span: FaultSpan::FromThenOn }));
            let failed = write_on(&fs).is_err();
            assert!(failed || matches!(kind, FaultKind::Enospc), "call {after_calls} of {calls}");
            let after = fs.power_loss(LossMode::Hostile);
            match open_on(&after) {
                Ok(table) => assert_eq!(read_all(&table, Direction::Forward).unwrap(), mixed_cells()),
                Err(Error::Io { op: IoOp::Open, .. }) => assert!(failed),
                Err(error) => panic!("call {after_calls} of {calls}: {error}"),
            }
        }
    }
}

/// A published file survives every loss; a bit that flips on the disk beneath it is noticed when its block is read.
#[test]
fn a_published_file_survives_and_its_rot_is_noticed() {
    for seed in 0..20 {
        let fs = folder(seed);
        write_on(&fs).unwrap();
        let after = fs.power_loss(LossMode::Hostile);
        let table = open_on(&after).unwrap();
        assert_eq!(read_all(&table, Direction::Forward).unwrap(), mixed_cells());
        let place = 24 + seed * 131 % (table.footer.index_offset - 24);
        after.flip_bit(Path::new(TARGET), place, 3).unwrap();
        let damage = read_all(&table, Direction::Forward).unwrap_err();
        assert!(matches!(damage, Error::Corrupt { .. }), "{damage}");
        assert!(matches!(table.verify().unwrap_err(), Error::Corrupt { .. }));
    }
}
