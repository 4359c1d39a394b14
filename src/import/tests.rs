//! Whole imports into a target that refuses and fails as it is told.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::block::Refused;
use super::*;
use crate::exit::Exit;

/// Refuses every line that has an `x`, and knows in which order blocks came.
#[derive(Default)]
struct Picky {
    name: &'static str,
    stored: Mutex<Vec<String>>,
    turns: Option<turns::Turns>,
    /// How often there is no room yet for lines of an `l`.
    later: AtomicU32,
    /// How long it takes to find none.
    failing: Duration,
    now: Mutex<Option<Instant>>,
    /// Makes durable what is stored by its end alone, or not even so.
    is_unsynced: bool,
    is_unfinished: bool,
}

fn full(is_so: bool) -> Result<(), Failure> {
    if is_so { Err(Failure::new(Exit::TryLater, "full")) } else { Ok(()) }
}

impl Target for Picky {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn store(&self, block: &Block) -> Result<Stored, Unstored> {
        let turn = self.turns.as_ref().map(|turns| turns.take(block.ticket).ok_or_else(stopped)).transpose()?;
        let text = block.text();
        let is_later = text.contains('l')
            && self.later.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if is_later {
            let passed = self.now() + self.failing;
            *self.now.lock().unwrap() = Some(passed);
            turn.into_iter().for_each(turns::Turn::pass);
            return Err(Unstored::later("no room"));
        }
        let (bad, good): (Vec<_>, Vec<_>) = text.lines().map(str::to_owned).partition(|line| line.contains('x'));
        let points = good.len() as u64;
        self.stored.lock().unwrap().extend(good);
        turn.into_iter().for_each(turns::Turn::pass);
        let refused = bad.into_iter().map(|text| Refused { line: None, text }).collect();
        Ok(Stored { points, refused })
    }

    fn patience(&self) -> (Duration, Duration) {
        (Duration::from_mins(1), Duration::ZERO)
    }

    fn now(&self) -> Instant {
        *self.now.lock().unwrap().get_or_insert_with(Instant::now)
    }

    fn sync(&self) -> Result<(), Failure> {
        full(self.is_unsynced)
    }

    fn finish(&self) -> Result<(), Failure> {
        full(self.is_unfinished)
    }
}

/// As on a full disk, where the log has no room and the files of the reserve's have.
#[test]
fn what_only_the_end_makes_durable_is_remembered_and_nothing_else() {
    for is_unfinished in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        let job = Job {
            paths: vec![path.clone()],
            resume: Some(state),
            rate: None,
            skip_errors: false,
            ends: Arc::default(),
        };
        std::fs::write(&path, "a 1 1 h=a\nb 1 2 h=a\n").unwrap();
        let failure = run(&job, &Picky { is_unsynced: true, is_unfinished, ..Picky::default() }).unwrap_err();
        let told = "full; 2 points of the lines before are stored: run the same again, it goes on in";
        assert!(failure.exit == Exit::TryLater && failure.line.starts_with(told) != is_unfinished, "{failure}");
        let sum = run(&job, &Picky::default()).unwrap();
        assert_eq!(sum.skipped, if is_unfinished { 0 } else { 2 });
    }
}

/// "Mend them" must be possible: what was refused is sent again.
#[test]
fn a_block_with_a_refused_line_is_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("points"), folder.path().join("state"));
    let mut job =
        Job { paths: vec![path.clone()], resume: Some(state), rate: None, skip_errors: false, ends: Arc::default() };
    let target = Picky::default();
    std::fs::write(&path, "a 1 1 h=a\nb 1 x h=a\n").unwrap();
    assert!(run(&job, &target).is_err());
    std::fs::write(&path, "a 1 1 h=a\nb 1 2 h=a\nc 1 x h=a\n").unwrap();
    job.skip_errors = true;
    let sum = run(&job, &target).unwrap();
    assert_eq!((sum.stored, sum.refused, sum.skipped), (2, 1, 0));
    assert!(target.stored.lock().unwrap().contains(&"b 1 2 h=a".to_owned()));
    assert_eq!(run(&job, &target).unwrap().skipped, 3, "what may be skipped is done");
}

/// Another file of the name, or another standard input, is not taken for what the state file tells of.
#[test]
fn of_another_file_nothing_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("points"), folder.path().join("state"));
    let job = Job {
        paths: vec![path.clone()],
        resume: Some(state.clone()),
        rate: None,
        skip_errors: false,
        ends: Arc::default(),
    };
    let target = Picky::default();
    let again = |text: &str| {
        std::fs::write(&path, text).unwrap();
        run(&job, &target).map(|sum| (sum.stored, sum.skipped)).map_err(|failure| failure.line)
    };
    assert_eq!(again("a 1 1 h=a\nb 1 1 h=a\n"), Ok((2, 0)));
    assert_eq!(again("a 1 1 h=a\nb 1 1 h=a\nc 1 1 h=a\n"), Ok((1, 2)), "a file may grow");
    for other in ["d 1 1 h=a\ne 1 1 h=a\nf 1 1 h=a\ng 1 1 h=a\n", "a 1 1 h=a\n", ""] {
        assert!(again(other).unwrap_err().contains("does not begin as it did"), "{other}");
    }
    // As older versions wrote it: lines alone.
    std::fs::write(&state, serde_json::json!({ path.display().to_string(): 2 }).to_string()).unwrap();
    assert_eq!(again("h 1 1 h=a\ni 1 1 h=a\nj 1 1 h=a\n"), Ok((1, 2)));
    assert!(again("k 1 1 h=a\nl 1 1 h=a\nm 1 1 h=a\n").is_err());
}

/// What one target has is not skipped for another, which would then lack it and nobody be told.
#[test]
fn of_another_target_nothing_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("points"), folder.path().join("state"));
    std::fs::write(&path, "a 1 1 h=a\nb 1 1 h=a\n").unwrap();
    let job = Job {
        paths: vec![path.clone()],
        resume: Some(state.clone()),
        rate: None,
        skip_errors: false,
        ends: Arc::default(),
    };
    let skipped = |name| {
        let target = Picky { name, ..Picky::default() };
        run(&job, &target).map(|sum| sum.skipped).map_err(|failure| failure.line)
    };
    assert_eq!(skipped("one:4242"), Ok(0));
    let line = skipped("two:4242").unwrap_err();
    assert!(line.contains("of an import into one:4242") && line.contains("another file for --resume"), "{line}");
    assert_eq!(skipped("one:4242"), Ok(2));
    // Older versions wrote no target; from now on it has one.
    std::fs::write(&state, serde_json::json!({ path.display().to_string(): 1 }).to_string()).unwrap();
    assert_eq!(skipped("two:4242"), Ok(1));
    assert!(skipped("one:4242").is_err());
}

/// A file may be imported while it is written: its last line may be half of one, which is as good as another point.
#[test]
fn a_last_line_without_an_end_is_read_again_when_the_file_has_grown() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("points"), folder.path().join("state"));
    let job =
        Job { paths: vec![path.clone()], resume: Some(state), rate: None, skip_errors: false, ends: Arc::default() };
    let target = Picky::default();
    let again = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let sum = run(&job, &target).unwrap();
        (sum.stored, sum.skipped, std::mem::take(&mut *target.stored.lock().unwrap()).join("|"))
    };
    assert_eq!(again("a 1 1 h=a"), (1, 0, "a 1 1 h=a".into()));
    assert_eq!(again("a 1 1 h=ab\nb 1 1"), (2, 0, "a 1 1 h=ab|b 1 1".into()));
    assert_eq!(again("a 1 1 h=ab\nb 1 123 h=a\n"), (1, 1, "b 1 123 h=a".into()));
    assert_eq!(again("a 1 1 h=ab\nb 1 123 h=a\n"), (0, 2, String::new()));
}

/// Of two points at one instant the later line wins, so the order is part of what is imported.
#[test]
fn lines_of_all_files_reach_the_target_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..200_000).map(|n| format!("m {n} 1 h=a")).collect();
    let paths: Vec<PathBuf> = (0..2).map(|n| folder.path().join(n.to_string())).collect();
    for (path, half) in paths.iter().zip(lines.chunks(100_000)) {
        std::fs::write(path, half.join("\n")).unwrap();
    }
    let target = Picky { turns: Some(turns::Turns::new()), ..Picky::default() };
    let sum = run(&Job { paths, resume: None, rate: None, skip_errors: false, ends: Arc::default() }, &target).unwrap();
    assert_eq!(sum.stored, 200_000);
    assert!(*target.stored.lock().unwrap() == lines);
}

/// What is behind it may be stored by then, and would be older than what it wins over.
#[test]
fn a_block_that_cannot_be_stored_now_is_sent_again_with_all_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (folder.path().join("points"), folder.path().join("state"));
    let line = |n: usize| if n == 90_000 { "late 1 1 h=a".to_owned() } else { format!("m {n} 1 h=a") };
    let lines: Vec<String> = (0..200_000).map(line).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let job = Job { paths: vec![path], resume: Some(state), rate: None, skip_errors: false, ends: Arc::default() };
    let target = |later| Picky {
        turns: Some(turns::Turns::new()),
        later: AtomicU32::new(later),
        failing: Duration::from_secs(20),
        ..Picky::default()
    };
    let busy = target(3);
    assert_eq!(run(&job, &busy).unwrap().stored, 200_000, "each line counts once");
    let stored = busy.stored.into_inner().unwrap();
    let late = stored.iter().position(|line| line.starts_with("late")).unwrap();
    let first = lines.iter().position(|line| line == stored.last().unwrap()).unwrap();
    assert_eq!(first, 199_999);
    let behind = &stored[late..];
    assert!(*behind == lines[90_000..], "{} lines from the one that was late", behind.len());

    // It ends in the end, says how far it came, and goes on there.
    std::fs::remove_file(job.resume.as_ref().unwrap()).unwrap();
    let failure = run(&job, &target(4)).unwrap_err();
    assert_eq!(failure.exit, Exit::TryLater);
    let (stored, _) = failure.line.strip_prefix("no room; ").unwrap().split_once(" points").unwrap();
    assert!(failure.line.contains("run the same again, it goes on in"), "{}", failure.line);
    let stored: u64 = stored.parse().unwrap();
    assert!((1..=90_000).contains(&stored));
    let sum = run(&job, &target(0)).unwrap();
    assert_eq!((sum.skipped, sum.stored), (stored, 200_000 - stored));
}

/// A server whose machine is away makes each try wait for a connection.
#[test]
fn a_block_is_sent_again_for_a_time_however_many_tries_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points");
    std::fs::write(&path, "late 1 1 h=a\n").unwrap();
    let job = Job { paths: vec![path], resume: None, rate: None, skip_errors: false, ends: Arc::default() };
    for (failing_secs, failures, is_stored) in [
        (0, 1_000, true),
        (1, 60, true),
        (1, 61, false),
        (20, 3, true),
        (20, 4, false),
        (100, 1, true),
        (100, 2, false),
    ] {
        let (later, failing) = (AtomicU32::new(failures), Duration::from_secs(failing_secs));
        let done = run(&job, &Picky { later, failing, ..Picky::default() });
        assert_eq!(done.map_err(|failure| failure.exit).is_ok(), is_stored, "{failures} of {failing:?}");
    }
}
