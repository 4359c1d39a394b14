use super::*;
use crate::io::publish;

const DIR: &str = "/d";

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn bytes_of(fs: &SimFs, name: &str) -> Option<Vec<u8>> {
    let file = fs.open(&path(name)).ok()?;
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    Some(bytes)
}

#[test]
fn published_and_synced_bytes_survive_every_loss() {
    for seed in 0..200 {
        let fs = SimFs::new(seed);
        let file = fs.create(&path("a.tmp")).unwrap();
        file.write_at(0, &[7; 2000]).unwrap();
        publish(&fs, &*file, &path("a.tmp"), &path("a")).unwrap();
        file.write_at(2000, &[8; 2000]).unwrap();
        let mode = if seed % 2 == 0 { LossMode::Ordered } else { LossMode::Hostile };
        let after = fs.power_loss(mode);
        assert_eq!(bytes_of(&after, "a").unwrap()[..2000], [7; 2000]);
        assert!(bytes_of(&after, "a.tmp").is_none());
    }
}

#[test]
fn unsynced_state_is_seen_kept_dropped_torn_and_grown() {
    let (mut kept, mut dropped, mut torn, mut zeros, mut junk) = (0, 0, 0, 0, 0);
    for seed in 0..400 {
        let fs = SimFs::new(seed);
        let file = fs.create(&path("a")).unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        file.write_at(0, &[7; 1024]).unwrap();
        let found = bytes_of(&fs.power_loss(LossMode::Hostile), "a").unwrap();
        match found {
            bytes if bytes == [7; 1024] => kept += 1,
            bytes if bytes.is_empty() => dropped += 1,
            bytes if bytes == [0; 1024] => zeros += 1,
            bytes if bytes.chunks(512).all(|half| half == [7; 512] || half == [0; 512]) => torn += 1,
            _ => junk += 1,
        }
    }
    for (what, count) in [("kept", kept), ("dropped", dropped), ("torn", torn), ("zeros", zeros), ("junk", junk)] {
        assert!(count > 10, "{what}: {count}");
    }
}

#[test]
fn names_without_folder_sync_may_be_undone() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..100 {
        let fs = SimFs::new(seed);
        fs.create(&path("old")).unwrap();
        fs.sync_dir(Path::new(DIR)).unwrap();
        fs.rename(&path("old"), &path("new")).unwrap();
        let names = fs.power_loss(LossMode::Hostile).list(Path::new(DIR)).unwrap();
        match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["old"] => old += 1,
            ["new"] => new += 1,
            _ => panic!("a rename is whole or undone: {names:?}"),
        }
    }
    assert!(old > 10 && new > 10);
}

#[test]
fn the_disk_before_a_loss_is_dead() {
    let fs = SimFs::new(1);
    let file = fs.create(&path("a")).unwrap();
    let _lock = fs.lock(&path("LOCK")).unwrap();
    let after = fs.power_loss(LossMode::Ordered);
    assert!(file.write_at(0, b"x").is_err() && fs.list(Path::new(DIR)).is_err());
    after.lock(&path("LOCK")).unwrap();
}

#[test]
fn one_seed_is_one_history() {
    let history = |seed| {
        let fs = SimFs::new(seed);
        for at in 0..20_u8 {
            let file = fs.create(&path(&format!("f{at}"))).unwrap();
            file.write_at(0, &[at; 3000]).unwrap();
        }
        let after = fs.power_loss(LossMode::Hostile);
        let names = after.list(Path::new(DIR)).unwrap();
        names.into_iter().map(|name| (bytes_of(&after, &name), name)).collect::<Vec<_>>()
    };
    assert_eq!(history(9), history(9));
    assert_ne!(history(9), history(10));
}

#[test]
fn faults_come_at_their_call_once_or_for_good() {
    for (span, second_fails) in [(FaultSpan::Once, false), (FaultSpan::FromThenOn, true)] {
        let fs = SimFs::new(1);
        let file = fs.create(&path("a")).unwrap();
        fs.set_fault(Some(Fault { after_calls: 1, kind: FaultKind::Enospc, span }));
        file.write_at(0, b"x").unwrap();
        assert_eq!(file.write_at(1, b"y").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.write_at(1, b"y").is_err(), second_fails);
    }
}

#[test]
fn a_failed_sync_loses_what_a_second_one_pretends_to_keep() {
    let fs = SimFs::new(1);
    let file = fs.create(&path("a")).unwrap();
    fs.sync_dir(Path::new(DIR)).unwrap();
    file.write_at(0, b"x").unwrap();
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Eio, span: FaultSpan::Once }));
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(bytes_of(&fs.power_loss(LossMode::Ordered), "a").unwrap(), b"");
}

#[test]
fn a_full_disk_takes_what_fits_and_recovers() {
    let fs = SimFs::new(1);
    let file = fs.create(&path("a")).unwrap();
    fs.set_capacity(10);
    file.write_at(0, &[1; 8]).unwrap();
    assert_eq!(file.write_at(8, &[1; 8]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.write_at(0, &[2; 10]).unwrap();
    fs.set_capacity(100);
    file.write_at(8, &[1; 8]).unwrap();
    assert_eq!(fs.used_bytes(), 16);
}

/// As on a real disk: what is written under one name is read under the other, and no name is taken twice.
#[test]
fn a_file_of_two_names_is_one_file() {
    let fs = SimFs::new(1);
    fs.create(&path("a")).unwrap().write_at(0, b"old").unwrap();
    fs.link(&path("a"), &path("b")).unwrap();
    assert_eq!(fs.link(&path("a"), &path("b")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs.create_new(&path("b")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs.used_bytes(), 3);
    fs.create(&path("b")).unwrap().write_at(0, b"n").unwrap();
    assert_eq!(bytes_of(&fs, "a").unwrap(), b"n");
    fs.remove(&path("a")).unwrap();
    assert_eq!((bytes_of(&fs, "a"), bytes_of(&fs, "b")), (None, Some(b"n".to_vec())));
}
