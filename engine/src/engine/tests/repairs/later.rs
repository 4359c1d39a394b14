//! What a later program wrote, in a folder that is to be mended.

use super::*;
use crate::header::Header;

/// What a later program wrote is not damaged, whatever is beside it: nobody here can tell what of it would be lost.
#[test]
fn what_a_later_program_wrote_is_not_mended() {
    let later = |fs: &SimFs, path: &Path, magic, small, large| {
        let header = Header { magic, version_min: 1, version: 9, names: [""; 3] }.encode(small, large);
        fs.open_rw(path).unwrap().write_at(0, &header).unwrap();
    };
    let manifest = Path::new(DIR).join("MANIFEST");
    let of_manifest = store();
    later(&of_manifest, &manifest, b"BasltMAN", 0, 1);
    let of_log = long_log();
    let last = segments(&of_log).pop().unwrap();
    let id = last.file_name().and_then(|name| SegmentId::of_name(name.to_str()?)).unwrap();
    flip_in_log(&of_log);
    later(&of_log, &last, b"BasltWAL", id.0, 0);
    for (fs, path) in [(of_manifest, &manifest), (of_log, &last)] {
        let before = fs.list(Path::new(DIR)).unwrap();
        let told = repair_of(&folder(&fs), true).unwrap_err();
        assert!(told.is_of_later_program(), "{told}");
        assert!(matches!(&told, Error::Version { file, found: 9, .. } if file == path), "{told}");
        assert_eq!(fs.list(Path::new(DIR)).unwrap(), before);
    }
}
