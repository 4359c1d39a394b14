use basalt_store::{
    BloomFilter, Compression, FamilyDescriptor, KeepDeletedCells, NamespaceDescriptor, TableDescriptor, Timestamp,
};

use super::*;
use crate::id::FileId;
use crate::id::{FamilyId, RegionId, TableId};
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, SimFs};
use crate::wal::SegmentId;

const DIR: &str = "/d";

fn family(name: &'static str) -> FamilyDescriptor {
    FamilyDescriptor {
        min_versions: 1,
        keep_deleted: KeepDeletedCells::Ttl,
        bloom: BloomFilter::RowColumn,
        compression: Compression::None,
        block_encoding: "TSB1".into(),
        in_memory: true,
        fold: Some("opentsdb".into()),
        ..FamilyDescriptor::new(name).with_versions(3).with_ttl(u64::MAX - 1)
    }
}

fn file(id: u64) -> FileEntry {
    FileEntry { id: FileId(id), family: FamilyId(1), bytes: id * 100 }
}

fn files(removed: &[u64], added: &[u64]) -> Edit {
    let removed = removed.iter().map(|id| FileId(*id)).collect();
    Edit::Files { region: RegionId(2), flushed: 7, removed, added: added.iter().map(|id| file(*id)).collect() }
}

/// Edits of every kind, each on top of those before it.
fn edits() -> Vec<Edit> {
    let half = |id, start: &'static str, end: &'static str, files: &[u64]| FilledRegion {
        region: NewRegion { id: RegionId(id), start: start.into(), end: end.into() },
        flushed: 7,
        files: files.iter().map(|id| file(*id)).collect(),
    };
    let filled = Edit::Files { region: RegionId(1), flushed: 7, removed: Vec::new(), added: vec![file(10), file(11)] };
    let (table, removed) = (TableId(1), vec![RegionId(1)]);
    let added = vec![half(4, "", "f", &[10, 11]), half(5, "f", "m", &[11])];
    let split = Edit::Regions(RegionsEdit { table, removed, added });
    let descriptor = TableDescriptor::new("later".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
    let region = NewRegion { id: RegionId(6), start: "".into(), end: "".into() };
    let families = vec![FamilyId(6)];
    let later = Edit::CreateTable {
        id: TableId(3),
        descriptor: descriptor.clone(),
        families: families.clone(),
        regions: vec![region],
    };
    let kept = |name: &str| {
        let regions = [("", "k", vec![file(11), file(39)]), ("k", "", vec![file(39)])];
        let regions = regions.map(|(start, end, files)| SnapshotRegion { start: start.into(), end: end.into(), files });
        let (descriptor, families) = (descriptor.clone(), families.clone());
        let (name, created) = (name.into(), Timestamp(98));
        Edit::Snapshot(SnapshotEntry { name, created, descriptor, families, regions: regions.into() })
    };
    let again = RegionsEdit {
        table: TableId(1),
        removed: vec![RegionId(4), RegionId(5)],
        added: vec![half(7, "", "m", &[10, 11])],
    };
    let more = [filled, split, later, kept("s"), kept("gone"), Edit::DropSnapshot { name: "gone".into() }];
    edits_of_version_2().into_iter().chain(more).chain([Edit::Regions(again)]).collect()
}

/// What version 2 could tell.
fn edits_of_version_2() -> Vec<Edit> {
    let namespace = |name: &str| Edit::SetNamespace(NamespaceDescriptor::new(name).with_property("p", "1"));
    let before = [namespace("ns"), namespace("gone"), Edit::DropNamespace { name: "gone".into() }, namespace("hbase")];
    let after = [Edit::SetTableState { id: TableId(1), disabled: true }];
    before.into_iter().chain(edits_of_version_1()).chain(after).collect()
}

/// What version 1 could tell.
fn edits_of_version_1() -> Vec<Edit> {
    let table = TableDescriptor::new("ns:t".parse().unwrap(), vec![family("f"), FamilyDescriptor::new("g")])
        .with_attribute("salt", "16");
    let altered = TableDescriptor::new("ns:t".parse().unwrap(), vec![family("f"), family("h")]);
    let region = |id, start: &'static str, end: &'static str| NewRegion {
        id: RegionId(id),
        start: start.into(),
        end: end.into(),
    };
    let marks = Marks {
        log_start: SegmentId(4),
        clock: Timestamp(99),
        sequence: 12,
        next_file: 40,
        next_table: 0,
        next_region: 0,
        next_family: 0,
    };
    vec![
        Edit::CreateTable {
            id: TableId(1),
            descriptor: table.clone(),
            families: vec![FamilyId(1), FamilyId(2)],
            regions: vec![region(1, "", "m"), region(2, "m", "")],
        },
        files(&[], &[1, 2, 3]),
        files(&[1, 2], &[4]),
        Edit::AlterTable { id: TableId(1), descriptor: altered, families: vec![FamilyId(1), FamilyId(3)] },
        Edit::Marks(marks),
        Edit::CreateTable {
            id: TableId(2),
            descriptor: TableDescriptor { name: "u".parse().unwrap(), ..table },
            families: vec![FamilyId(4), FamilyId(5)],
            regions: vec![region(3, "", "")],
        },
        Edit::DropTable { id: TableId(2) },
    ]
}

fn open(fs: &SimFs) -> Result<Manifest> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    Ok(Manifest::open(&fs, Path::new(DIR))?.unwrap())
}

fn create(fs: &SimFs) -> Manifest {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    Manifest::create(&fs, Path::new(DIR)).unwrap()
}

#[test]
fn edits_come_back_and_make_the_same_state() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    for edit in edits() {
        manifest.append(&[edit]).unwrap();
        assert_eq!(open(&fs.snapshot()).unwrap().catalog(), manifest.catalog());
    }
    let ids: Vec<_> = manifest.catalog().regions[&RegionId(2)].files.iter().map(|file| file.id.0).collect();
    assert_eq!(ids, [4, 3], "a merged file takes its elders' place");
    let mut anew = Catalog::new();
    for edit in manifest.catalog().as_edits() {
        anew.apply(&edit).unwrap();
    }
    assert_eq!(&anew, manifest.catalog(), "numbers that were given and dropped stay given");
}

/// The checksum may fit: nothing comes behind the last number.
#[test]
fn the_last_numbers_are_refused() {
    let mut whole = Catalog::new();
    for edit in edits_of_version_2() {
        whole.apply(&edit).unwrap();
    }
    let table = TableDescriptor::new("last".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
    let region = |id| NewRegion { id: RegionId(id), start: "".into(), end: "".into() };
    let create = |id, family, of| Edit::CreateTable {
        id: TableId(id),
        descriptor: table.clone(),
        families: vec![FamilyId(family)],
        regions: vec![region(of)],
    };
    let alter =
        |family| Edit::AlterTable { id: TableId(1), descriptor: table.clone(), families: vec![FamilyId(family)] };
    let files = |id| {
        let added = vec![FileEntry { id: FileId(id), family: FamilyId(1), bytes: 1 }];
        Edit::Files { region: RegionId(2), flushed: 7, removed: Vec::new(), added }
    };
    let split = |id| {
        let removed = vec![RegionId(1), RegionId(2)];
        let added = vec![FilledRegion { region: region(id), flushed: 7, files: Vec::new() }];
        Edit::Regions(RegionsEdit { table: TableId(1), removed, added })
    };
    let begin = |id| Edit::Marks(Marks { log_start: SegmentId(id), ..whole.marks });
    let logged = |sequence| Edit::Marks(Marks { sequence, ..whole.marks });
    let named = |next_file| Edit::Marks(Marks { next_file, ..whole.marks });
    let (removed, added) = (Vec::new(), Vec::new());
    let flushed =
        |flushed| Edit::Files { region: RegionId(2), flushed, removed: removed.clone(), added: added.clone() };
    let split_at = |flushed| {
        let added = vec![FilledRegion { region: region(92), flushed, files: Vec::new() }];
        Edit::Regions(RegionsEdit { table: TableId(1), removed: vec![RegionId(1), RegionId(2)], added })
    };
    let check = |edit: Edit, fits: bool| assert_eq!(whole.clone().apply(&edit).is_ok(), fits, "{edit:?}");
    for (fits, id) in [(true, 90), (false, u32::MAX)] {
        check(create(id, 91, 92), fits);
        check(create(90, id, 92), fits);
        check(create(90, 91, if fits { 92 } else { u64::MAX }), fits);
        check(alter(id), fits);
        check(files(if fits { 92 } else { u64::MAX }), fits);
        check(split(if fits { 92 } else { u64::MAX }), fits);
        check(begin(id), fits);
        let number = if fits { u64::MAX >> 1 } else { 1 << 63 };
        check(logged(number), fits);
        check(flushed(number), fits);
        check(split_at(number), fits);
        check(named(if fits { 1 << 63 } else { u64::MAX }), fits);
    }
}

#[test]
fn a_large_manifest_is_written_anew() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    manifest.append(&edits()).unwrap();
    let mut last = 4;
    while manifest.generation < 3 {
        manifest.append(&[files(&[last], &[last + 1])]).unwrap();
        last += 1;
    }
    let found = open(&fs.power_loss(LossMode::Hostile)).unwrap();
    assert_eq!((found.catalog(), found.generation), (manifest.catalog(), 3));
}

/// A record may be whole but for its padding when the disk is full; after the refusal it must not come back.
#[test]
fn an_edit_that_a_full_disk_refused_does_not_come_back() {
    for free in 0..64 {
        let fs = SimFs::new(free);
        let mut manifest = create(&fs);
        manifest.append(&edits()).unwrap();
        fs.set_capacity(fs.used_bytes() + free);
        if manifest.append(&[files(&[3], &[5])]).is_err() {
            let found = open(&fs.power_loss(LossMode::Hostile)).unwrap();
            assert_eq!(found.catalog(), manifest.catalog(), "{free} bytes were free");
        }
    }
}

#[test]
fn edits_that_do_not_fit_are_refused_and_change_nothing() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    for edit in [files(&[], &[1]), Edit::DropTable { id: TableId(1) }] {
        assert!(manifest.append(&[edit]).is_err());
    }
    manifest.append(&edits()).unwrap();
    let full = Edit::DropNamespace { name: "ns".into() };
    for edit in [files(&[77], &[]), edits_of_version_1().swap_remove(0), full] {
        assert!(manifest.append(&[edit]).is_err());
    }
    assert_eq!(open(&fs).unwrap().catalog(), manifest.catalog());
}

/// Else a table whose creation was the last edit, and whose rows the log alone has, would be gone without a word.
#[test]
fn every_flipped_bit_is_noticed_also_in_the_last_edit() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    manifest.append(&edits()).unwrap();
    manifest.append(&[files(&[3], &[5])]).unwrap();
    let guarded = manifest.offset();
    let path = Path::new(DIR).join(NAME);
    for (offset, takes_mark) in (0..guarded).flat_map(|offset| [(offset, false), (offset, true)]) {
        let fs = fs.snapshot();
        fs.flip_bit(&path, offset, u8::try_from(offset % 8).unwrap()).unwrap();
        if takes_mark {
            fs.flip_bit(&path, guarded, 0).unwrap();
        }
        match open(&fs) {
            Err(Error::Corrupt { file, offset: told, .. }) => assert!(file == path && told <= offset.max(28)),
            Err(other) => panic!("{offset}: {other}"),
            Ok(_) => panic!("a flip at {offset} was not noticed"),
        }
    }
}

#[test]
fn a_full_disk_leaves_the_manifest_as_it_was() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    manifest.append(&edits()).unwrap();
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Enospc, span: FaultSpan::Once }));
    assert!(manifest.append(&[files(&[3], &[5])]).unwrap_err().is_disk_full());
    manifest.append(&[files(&[3], &[6])]).unwrap();
    assert_eq!(open(&fs).unwrap().catalog(), manifest.catalog());
}

/// It had grown so large that it is to be written anew, and no file can be made.
#[test]
fn a_manifest_that_cannot_be_written_anew_takes_edits_all_the_same() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    let large = |name: &str| Edit::SetNamespace(NamespaceDescriptor::new(name).with_property("p", "x".repeat(1 << 20)));
    manifest.append(&[large("a"), large("b")]).unwrap();
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Emfile, span: FaultSpan::FromThenOn }));
    manifest.append(&[large("c")]).unwrap();
    fs.set_fault(None);
    // Nor is there room for it on the disk; the edit alone finds some.
    fs.set_capacity(fs.used_bytes() + (2 << 20));
    manifest.append(&[large("d")]).unwrap();
    assert_eq!(open(&fs.snapshot()).unwrap().catalog(), manifest.catalog());
    assert_eq!((manifest.generation, fs.list(Path::new(DIR)).unwrap().len()), (1, 2), "what was begun is gone");
    fs.set_capacity(u64::MAX);
    manifest.append(&[large("e")]).unwrap();
    assert_eq!(open(&fs).unwrap().catalog(), manifest.catalog());
    assert_eq!(manifest.generation, 2);
}

#[test]
fn a_later_version_is_refused_with_its_number() {
    let fs = SimFs::new(1);
    create(&fs);
    let mut bytes = header(1);
    bytes[8] = 6;
    let crc = crc32c::crc32c(&bytes[..28]).to_le_bytes();
    bytes[28..].copy_from_slice(&crc);
    fs.open_rw(&Path::new(DIR).join(NAME)).unwrap().write_at(0, &bytes).unwrap();
    assert!(matches!(open(&fs), Err(Error::Version { found: 6, supported: 5, .. })));
}

/// The next one would be 0, or that of the log's records.
#[test]
fn a_generation_that_none_comes_behind_is_refused() {
    for generation in [record::SEQUENCE_MAX, u64::MAX] {
        let fs = SimFs::new(1);
        create(&fs);
        fs.open_rw(&Path::new(DIR).join(NAME)).unwrap().write_at(0, &header(generation)).unwrap();
        assert!(matches!(open(&fs), Err(Error::Corrupt { offset: 16, what: "manifest generation", .. })));
    }
}

/// A manifest of an older version is read, and written anew as one of the newest before it is acted on.
fn check_old(bytes: &[u8], edits: Vec<Edit>) {
    let fs = SimFs::new(1);
    create(&fs);
    let file = fs.open_rw(&Path::new(DIR).join(NAME)).unwrap();
    file.set_len(0).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync_data().unwrap();
    let mut expected = Catalog::new();
    for edit in edits.into_iter().chain([files(&[3], &[5])]) {
        expected.apply(&edit).unwrap();
    }
    let read = open(&fs).unwrap();
    assert_eq!((read.catalog(), read.generation), (&expected, 2));
    let again = open(&fs.power_loss(LossMode::Hostile)).unwrap();
    assert_eq!((again.catalog(), again.generation), (&expected, 2), "it is of the newest version now");
}

/// `tests/compat/v1/MANIFEST` was written by the program of version 1 with these edits and the files after them.
#[test]
fn a_manifest_of_version_1_is_read_and_written_anew() {
    let namespace = Edit::SetNamespace(NamespaceDescriptor::new("ns"));
    let edits = [namespace].into_iter().chain(edits_of_version_1()).collect();
    check_old(include_bytes!("../../../tests/compat/v1/MANIFEST"), edits);
}

/// `tests/compat/v2/MANIFEST`, likewise.
#[test]
fn a_manifest_of_version_2_is_read_and_written_anew() {
    check_old(include_bytes!("../../../tests/compat/v2/MANIFEST"), edits_of_version_2());
}

/// `tests/compat/v3/MANIFEST`, likewise: it has no mark behind its last edit.
#[test]
fn a_manifest_of_version_3_is_read_and_written_anew() {
    check_old(include_bytes!("../../../tests/compat/v3/MANIFEST"), edits());
}

/// `tests/compat/v4/MANIFEST`, likewise, edit by edit: it has no copy beside it.
#[test]
fn a_manifest_of_version_4_is_read_and_written_anew() {
    check_old(include_bytes!("../../../tests/compat/v4/MANIFEST"), edits());
}

/// The mark is not synced: a power loss may take it, in whole or in part, and that is no damage.
#[test]
fn a_mark_that_a_power_loss_took_or_tore_is_no_damage() {
    for seed in 0..50 {
        let fs = SimFs::new(seed);
        let mut manifest = create(&fs);
        for edit in edits() {
            manifest.append(&[edit]).unwrap();
        }
        let mode = if seed % 2 == 0 { LossMode::Hostile } else { LossMode::Ordered };
        let fs = fs.power_loss(mode);
        let mut found = open(&fs).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(found.catalog(), manifest.catalog(), "seed {seed}");
        found.append(&[files(&[3], &[5])]).unwrap();
        assert_eq!(open(&fs.power_loss(mode)).unwrap().catalog(), found.catalog(), "seed {seed}");
    }
}

/// A power loss may leave any part of the last edit, which is in no copy yet. Whole but for the zeros behind it, it holds.
#[test]
fn a_last_edit_that_is_cut_anywhere_holds_or_not() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    let mut whole_count = 0;
    for edit in edits() {
        let (before, offset, disk) = (manifest.catalog().clone(), manifest.offset(), fs.snapshot());
        manifest.append(&[edit]).unwrap();
        for cut in offset..=manifest.offset() {
            let disk = disk.snapshot();
            let file = disk.open_rw(&Path::new(DIR).join(NAME)).unwrap();
            let [begin, end] = [offset, cut].map(|at| usize::try_from(at).unwrap());
            file.write_at(offset, &manifest.bytes[begin..end]).unwrap();
            file.set_len(cut).unwrap();
            let mut found = open(&disk).unwrap();
            let is_whole = found.catalog() == manifest.catalog();
            assert!(is_whole || found.catalog() == &before, "cut at {cut}");
            whole_count += u32::from(is_whole && cut < manifest.offset());
            found.append(&[Edit::SetNamespace(NamespaceDescriptor::new("next"))]).unwrap();
            let again = open(&disk.power_loss(LossMode::Hostile)).unwrap();
            assert_eq!(again.catalog(), found.catalog(), "cut at {cut}");
        }
    }
    assert!(whole_count > 0, "no edit has zeros behind it");
}

fn copied(fs: &SimFs) -> Result<Option<Catalog>> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    Manifest::copied(&fs, Path::new(DIR))
}

/// Wherever a power loss comes, the copy by itself is the state before or behind the edit that was under way, and behind only if the
/// manifest has it on disk.
#[test]
fn the_copy_is_a_state_of_the_manifest_after_every_crash() {
    let (mut seen, mut calls) = ([0_u32; 2], 0);
    for seed in 0.. {
        let fs = SimFs::new(seed);
        let mut manifest = create(&fs);
        manifest.append(&edits()).unwrap();
        // Each second time it is written anew.
        manifest.fresh_bytes = 0;
        let large = NamespaceDescriptor::new("large").with_property("p", "x".repeat(1 << 20));
        manifest.append(&[if seed % 2 == 0 { files(&[3], &[5]) } else { Edit::SetNamespace(large) }]).unwrap();
        let (before, generation) = (manifest.catalog().clone(), manifest.generation);
        fs.set_fault(Some(Fault { after_calls: seed / 2, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
        let done = manifest.append(&[files(&[if seed % 2 == 0 { 5 } else { 3 }], &[6])]);
        let lost = fs.power_loss(if seed % 4 < 2 { LossMode::Hostile } else { LossMode::Ordered });
        let copy = copied(&lost).unwrap().expect("it is there from the first edit on");
        let read = open(&lost).unwrap();
        assert!(copy == before || &copy == read.catalog(), "seed {seed}");
        if done.is_ok() {
            assert_eq!((&copy, read.generation), (manifest.catalog(), generation + seed % 2), "seed {seed}");
            calls += 1;
            if calls == 4 {
                break;
            }
        }
        seen[usize::from(copy != before)] += 1;
    }
    assert!(seen[0] > 4 && seen[1] > 0, "{seen:?}");
}

/// A full disk takes the copy, never leaves an old one, and the next edit that finds room brings it back.
#[test]
fn a_copy_without_room_is_none() {
    for free in 0..128 {
        let fs = SimFs::new(free);
        let mut manifest = create(&fs);
        manifest.append(&edits()).unwrap();
        fs.set_capacity(fs.used_bytes() + free);
        let next = if manifest.append(&[files(&[3], &[5])]).is_ok() { 5 } else { 3 };
        let copy = copied(&fs.snapshot().power_loss(LossMode::Hostile)).unwrap();
        assert!(copy.is_none_or(|copy| &copy == manifest.catalog()), "{free} bytes were free");
        fs.set_capacity(u64::MAX);
        manifest.append(&[files(&[next], &[7])]).unwrap();
        let copy = copied(&fs.snapshot().power_loss(LossMode::Hostile)).unwrap();
        assert_eq!(copy.as_ref(), Some(manifest.catalog()), "{free} bytes were free");
    }
    // Nor is an old one left where the start finds no room for another.
    let fs = SimFs::new(1);
    create(&fs).append(&edits()).unwrap();
    let old = Path::new(DIR).join(COPY);
    fs.open_rw(&old).unwrap().set_len(0).unwrap();
    fs.set_capacity(fs.used_bytes());
    open(&fs).unwrap();
    assert!(fs.open(&old).is_err());
}

/// An edit that was on disk and acted on, of a manifest that reads as if its last one were torn.
#[test]
fn a_manifest_behind_its_copy_is_damaged() {
    let fs = SimFs::new(1);
    let mut manifest = create(&fs);
    manifest.append(&edits()).unwrap();
    let cut = manifest.offset();
    manifest.append(&[files(&[3], &[5])]).unwrap();
    fs.open_rw(&Path::new(DIR).join(NAME)).unwrap().set_len(cut).unwrap();
    assert!(matches!(open(&fs), Err(Error::Corrupt { what: "last edit", offset, .. }) if offset == cut));
    let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
    assert_eq!(Manifest::put_back(&shared, Path::new(DIR)).unwrap().catalog(), manifest.catalog());
    assert_eq!(open(&fs.snapshot().power_loss(LossMode::Hostile)).unwrap().catalog(), manifest.catalog());
    // A copy that is behind, or damaged, is written anew.
    for len in [cut, 40] {
        fs.open_rw(&Path::new(DIR).join(COPY)).unwrap().set_len(len).unwrap();
        open(&fs).unwrap();
        assert_eq!(copied(&fs).unwrap().as_ref(), Some(manifest.catalog()));
    }
}

#[test]
fn foreign_bytes_are_no_edits() {
    let mut bytes = Vec::new();
    edit::encode_into(&edits(), &mut bytes);
    assert_eq!(edit::decode(&bytes).unwrap(), edits());
    for cut in 0..bytes.len() {
        assert!(edit::decode(&bytes[..cut]).is_none());
    }
}

/// An edit that would lose or invent rows or files is none.
#[test]
fn regions_that_do_not_tile_what_they_replace_are_refused() {
    let mut catalog = Catalog::new();
    for edit in edits_of_version_2() {
        catalog.apply(&edit).unwrap();
    }
    let check = |removed: &[u64], added: &[(u64, &'static str, &'static str, u64)]| {
        let removed = removed.iter().map(|id| RegionId(*id)).collect();
        let filled = |&(id, start, end, of): &(u64, &'static str, &'static str, u64)| FilledRegion {
            region: NewRegion { id: RegionId(id), start: start.into(), end: end.into() },
            flushed: 7,
            files: vec![file(of)],
        };
        let edit = RegionsEdit { table: TableId(1), removed, added: added.iter().map(filled).collect() };
        catalog.clone().apply(&Edit::Regions(edit)).is_ok()
    };
    assert!(check(&[2], &[(4, "m", "t", 3), (5, "t", "", 4)]));
    assert!(!check(&[2], &[(4, "m", "t", 3), (5, "u", "", 4)]), "a gap");
    assert!(!check(&[2], &[(4, "m", "t", 3)]), "an end too early");
    assert!(!check(&[2], &[(4, "a", "", 3)]), "a beginning too early");
    assert!(!check(&[2], &[(4, "m", "", 3), (5, "t", "", 4)]), "one behind the last");
    assert!(!check(&[2], &[(4, "m", "t", 3), (5, "t", "", 9)]), "a file of nowhere");
    assert!(!check(&[2], &[(1, "m", "t", 3), (5, "t", "", 4)]), "an id given before");
    assert!(!check(&[], &[]) && !check(&[7], &[(4, "m", "", 3)]), "a region of nowhere");
}
