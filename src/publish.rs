//! Points and annotations, as soon as they are stored, to a socket or file of this machine (`P-RT`).
//!
//! A line is the JSON of a point as `/api/put` takes it, or of an annotation as `/api/annotation` gives it. A thread of its
//! own writes them, so an acknowledgement never waits: what finds the queue full, or nobody listening, is dropped and
//! counted; the log says why nobody takes lines. The end of a server waits for what is in the queue. *Source*: OpenTSDB 2.4
//! `RTPublisher`.

use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use basalt_ingest::{DatapointEcho, PointError, RawPoint};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::config;
use crate::exit::{Exit, Failure};
use crate::metrics::Count;

/// Batches in the queue, whatever their size.
const BATCHES_MAX: usize = 4_096;
/// How long a listener may take to read some of what is written before its connection is given up.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are written at once, unless a line has more.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// Lines of one request.
struct Batch {
    text: Vec<u8>,
    lines: u64,
}

/// What became of the lines. Orderings are relaxed: the bytes bound a queue roughly, all else is shown.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) published: Count,
    pub(crate) dropped: Count,
    queued_bytes: AtomicU64,
    queued_lines: AtomicU64,
    /// The end no longer waits: what is not begun is dropped.
    is_given_up: AtomicBool,
}

impl Counts {
    fn enters(&self, lines: u64, bytes: u64) {
        self.queued_lines.fetch_add(lines, Ordering::Relaxed);
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn leaves(&self, lines: u64, bytes: u64) {
        self.queued_lines.fetch_sub(lines, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The thread that writes, as others see it.
#[derive(Debug)]
struct Writer {
    queue: SyncSender<Batch>,
    /// Its other end goes with the thread.
    ended: oneshot::Receiver<()>,
}

/// The queue's end for those who store.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    is_on: bool,
    /// None behind the end. Guards the queue against being closed while a batch is put into it, which waits for nothing; the last in rank.
    writer: Mutex<Option<Writer>>,
    queue_bytes: u64,
    pub(crate) counts: Arc<Counts>,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Socket(PathBuf),
    File(PathBuf),
}

impl Target {
    fn parse(text: &str) -> Option<Self> {
        let (kind, path) = text.split_once(':').filter(|(_, path)| !path.is_empty())?;
        match kind {
            "unix" => Some(Self::Socket(path.into())),
            "file" => Some(Self::File(path.into())),
            _ => None,
        }
    }

    fn open(&self) -> io::Result<Open> {
        match self {
            Self::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_PATIENCE))?;
                Ok(Open::Socket(stream))
            }
            Self::File(path) => {
                let mut file = OpenOptions::new().append(true).create(true).open(path)?;
                // The rest of what a full disk or a kill cut off. Cutting it off too would confuse who follows the file.
                if ends_within_a_line(path) {
                    file.write_all(b"\n")?;
                }
                Ok(Open::File(file, path.clone()))
            }
        }
    }

    /// Writes lines to what is `open`, which is opened if it is not; it is closed by an error. Answers how many were given up.
    fn write(&self, open: &mut Option<Open>, text: &[u8], is_given_up: &AtomicBool) -> io::Result<u64> {
        let mut opened = open.take().map_or_else(|| self.open(), Ok)?;
        let mut rest = text;
        while !rest.is_empty() && !is_given_up.load(Ordering::Relaxed) {
            let (some, behind) = rest.split_at(some_lines(rest));
            opened.write(some)?;
            rest = behind;
        }
        *open = Some(opened);
        Ok(rest.split_inclusive(|byte| *byte == b'\n').count() as u64)
    }
}

/// As `publish.to` names it.
impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

/// The bytes of a text's first lines, of as many as are written at once.
fn some_lines(text: &[u8]) -> usize {
    let is_end = |byte: &u8| *byte == b'\n';
    let last = text.get(..WRITTEN_AT_ONCE).unwrap_or(text).iter().rposition(is_end);
    last.or_else(|| text.iter().position(is_end)).map_or(text.len(), |end| end + 1)
}

/// Whether a file's last line has no end; of pipes, and what cannot be read, nobody knows.
fn ends_within_a_line(path: &Path) -> bool {
    let last = || {
        let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        let mut last = [0];
        File::open(path).ok()?.read_exact_at(&mut last, bytes.checked_sub(1)?).ok()?;
        Some(last)
    };
    last().is_some_and(|last| last != *b"\n")
}

/// An open target.
enum Open {
    Socket(UnixStream),
    File(File, PathBuf),
}

impl Open {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Socket(stream) => stream.write_all(text),
            // Whoever rotates the file moves it away; the next batch begins a new one.
            Self::File(_, path) if !Path::new(path).exists() => Err(io::ErrorKind::NotFound.into()),
            Self::File(file, _) => file.write_all(text),
        }
    }
}

/// The target of these settings.
fn target(config: &config::Publish) -> Result<Target, Failure> {
    Target::parse(&config.to)
        .ok_or_else(|| Failure::config(format!("setting `publish.to`: `{}` is not unix:PATH or file:PATH", config.to)))
}

impl Publisher {
    /// Checks the target, if the configuration names one.
    ///
    /// # Errors
    ///
    /// Exit code 3 for a target that is none.
    pub(crate) fn check(config: &config::Publish) -> Result<(), Failure> {
        if config.enable { target(config).map(drop) } else { Ok(()) }
    }

    /// Starts the thread that writes, if the configuration names a target.
    ///
    /// # Errors
    ///
    /// Exit code 3 for a target that is none.
    pub(crate) fn start(config: &config::Publish) -> Result<Self, Failure> {
        if !config.enable {
            return Ok(Self::default());
        }
        let target = target(config)?;
        let (queue, batches) = sync_channel(BATCHES_MAX);
        let counts = Arc::new(Counts::default());
        let of_the_thread = Arc::clone(&counts);
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("basalt-publish".to_owned())
            .spawn(move || {
                write_all(&target, &batches, &of_the_thread);
                drop::<oneshot::Sender<()>>(end);
            })
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start a thread: {cause}")))?;
        let writer = Mutex::new(Some(Writer { queue, ended }));
        Ok(Self { is_on: true, writer, queue_bytes: config.queue_bytes, counts })
    }

    /// Waits until all that is in the queue is written, for `patience` at most, and then for the end of the line that is being written.
    /// The rest is dropped, as is all that comes later.
    pub(crate) async fn close(&self, patience: Duration) {
        let Some(Writer { queue, mut ended }) = self.writer().take() else { return };
        drop(queue);
        if timeout(patience, &mut ended).await.is_ok() {
            return;
        }
        let before = self.counts.dropped.get();
        self.counts.is_given_up.store(true, Ordering::Relaxed);
        // Of a reader that reads nothing there is nothing to wait for.
        let is_cut = timeout(WRITE_PATIENCE, ended).await.is_err();
        if is_cut {
            self.counts.dropped.add(self.counts.queued_lines.load(Ordering::Relaxed));
        }
        let (lines, cut) =
            (self.counts.dropped.get() - before, if is_cut { ", and its last line may be cut" } else { "" });
        tracing::warn!(lines, "what waited to be published was dropped{cut}: the reader of `publish.to` is too slow");
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the points of a batch that are stored: all but those that a report names.
    pub(crate) fn points(&self, points: &[RawPoint<'_>], errors: &[PointError]) {
        if !self.is_on {
            return;
        }
        let mut failed = vec![false; points.len()];
        for error in errors {
            if let Some(place) = failed.get_mut(error.index) {
                *place = true;
            }
        }
        let stored = points.iter().zip(failed).filter(|(_, failed)| !failed);
        self.offer(stored.map(|(point, _)| DatapointEcho(point)));
    }

    /// Publishes a thing that is stored.
    pub(crate) fn one(&self, thing: &impl Serialize) {
        if self.is_on {
            self.offer(std::iter::once(thing));
        }
    }

    fn offer(&self, things: impl Iterator<Item = impl Serialize>) {
        let mut batch = Batch { text: Vec::new(), lines: 0 };
        for thing in things {
            // Into a Vec, and without maps of odd keys, this cannot fail.
            serde_json::to_writer(&mut batch.text, &thing).unwrap_or_default();
            batch.text.push(b'\n');
            batch.lines += 1;
        }
        let (lines, bytes) = (batch.lines, batch.text.len() as u64);
        if lines == 0 {
            return;
        }
        self.counts.enters(lines, bytes);
        let is_full = self.counts.queued_bytes.load(Ordering::Relaxed) > self.queue_bytes;
        if is_full || self.writer().as_ref().is_none_or(|writer| writer.queue.try_send(batch).is_err()) {
            self.counts.leaves(lines, bytes);
            self.counts.dropped.add(lines);
        }
    }
}

/// Writes batches until the last sender is gone. Once lines begin to be dropped, and once they flow again, the log tells.
fn write_all(target: &Target, batches: &Receiver<Batch>, counts: &Counts) {
    let (mut open, mut is_dropping) = (None, false);
    while let Ok(Batch { text, lines }) = batches.recv() {
        if counts.is_given_up.load(Ordering::Relaxed) {
            counts.dropped.add(lines);
            counts.leaves(lines, text.len() as u64);
            continue;
        }
        // A file that was moved away is opened anew at once, a listener that is gone may be back.
        let mut write = || target.write(&mut open, &text, &counts.is_given_up);
        let written = write().or_else(|_| write());
        match &written {
            Err(cause) if !is_dropping => {
                tracing::warn!("cannot publish to {target}, so lines are dropped until it takes them: {cause}");
            }
            Ok(_) if is_dropping => tracing::info!("{target} takes lines again: they are published"),
            _ => {}
        }
        is_dropping = written.is_err();
        let dropped = written.unwrap_or(lines);
        counts.published.add(lines - dropped);
        counts.dropped.add(dropped);
        counts.leaves(lines, text.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn publisher(to: String, queue_bytes: u64) -> Publisher {
        Publisher::start(&config::Publish { enable: true, to, queue_bytes }).unwrap()
    }

    fn until(is: impl Fn() -> bool) {
        let end = std::time::Instant::now() + Duration::from_mins(1);
        while !is() {
            assert!(std::time::Instant::now() < end, "it did not come");
            std::thread::yield_now();
        }
    }

    /// `P-RT`: lines to a listener, which may come and go; without one they are counted as dropped.
    #[test]
    fn p_rt_lines_reach_a_listener_and_nobody_waits_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.sock");
        let publisher = publisher(format!("unix:{}", path.display()), 1_000);
        publisher.one(&"lost");
        until(|| publisher.counts.dropped.get() == 1);
        let listener = UnixListener::bind(&path).unwrap();
        publisher.one(&"a");
        publisher.one(&"b");
        let mut lines = BufReader::new(listener.accept().unwrap().0).lines();
        assert_eq!((lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()), ("\"a\"".into(), "\"b\"".into()));
        publisher.one(&"x".repeat(2_000));
        assert_eq!(publisher.counts.dropped.get(), 2, "what does not fit into the queue is dropped at once");
        until(|| publisher.counts.published.get() == 2);
    }

    /// Lines of which no socket holds one, to a listener that reads nothing yet: how many, and its end of the connection.
    fn filled(listener: &UnixListener, publisher: &Publisher) -> (u64, UnixStream) {
        const LINES: u64 = 10;
        for _ in 0..LINES {
            publisher.one(&"x".repeat(1_000_000));
        }
        (LINES, listener.accept().unwrap().0)
    }

    fn listener(folder: &Path) -> (UnixListener, Publisher) {
        let path = folder.join("points.sock");
        (UnixListener::bind(&path).unwrap(), publisher(format!("unix:{}", path.display()), 16 << 20))
    }

    /// `P-RT`: an end waits for a listener that is slow.
    #[tokio::test]
    async fn p_rt_what_waits_in_the_queue_is_published_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (listener, publisher) = listener(folder.path());
        let (lines, stream) = filled(&listener, &publisher);
        let mut closing = std::pin::pin!(publisher.close(Duration::from_mins(1)));
        assert!(timeout(Duration::ZERO, closing.as_mut()).await.is_err(), "nobody reads");
        let reading =
            std::thread::spawn(|| BufReader::new(stream).split(b'\n').map(|line| line.unwrap().len()).collect());
        closing.await;
        assert_eq!((publisher.counts.published.get(), publisher.counts.dropped.get()), (lines, 0));
        let read: Vec<usize> = reading.join().unwrap();
        assert_eq!(read, vec![1_000_002; usize::try_from(lines).unwrap()]);
        publisher.one(&1);
        assert_eq!(publisher.counts.dropped.get(), 1, "what comes too late");
    }

    /// `P-RT`: of a listener that is too slow the last line is whole.
    #[tokio::test]
    async fn p_rt_a_queue_that_is_given_up_ends_with_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let (listener, publisher) = listener(folder.path());
        let (lines, stream) = filled(&listener, &publisher);
        publisher.counts.is_given_up.store(true, Ordering::Relaxed);
        let reading = std::thread::spawn(move || {
            let mut text = Vec::new();
            io::Read::read_to_end(&mut &stream, &mut text).unwrap();
            text
        });
        publisher.close(Duration::from_mins(1)).await;
        let read = reading.join().unwrap();
        let whole = read.split_inclusive(|byte| *byte == b'\n').count() as u64;
        assert!(read.is_empty() || read.ends_with(b"\n"), "{} bytes", read.len());
        assert!(whole < lines, "{whole}");
        assert_eq!((publisher.counts.published.get(), publisher.counts.dropped.get()), (whole, lines - whole));
    }

    #[test]
    fn lines_are_written_whole_and_not_all_at_once() {
        let long = "x".repeat(WRITTEN_AT_ONCE);
        for (text, expected) in [
            ("a\nb\n", "a\nb\n"),
            (&format!("a\n{long}\n"), "a\n"),
            (&format!("{long}\nb\n"), &format!("{long}\n")),
            ("a", "a"),
        ] {
            assert_eq!(some_lines(text.as_bytes()), expected.len());
        }
    }

    /// `P-RT`: and no longer than it may.
    #[tokio::test(start_paused = true)]
    async fn p_rt_what_nobody_reads_at_the_end_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (listener, publisher) = listener(folder.path());
        let (lines, _reads_nothing) = filled(&listener, &publisher);
        publisher.close(Duration::from_millis(1)).await;
        assert_eq!((publisher.counts.published.get(), publisher.counts.dropped.get()), (0, lines));
    }

    /// `P-RT`: what a full disk cut off is a line of its own, and not the beginning of the next one.
    #[test]
    fn p_rt_no_line_is_joined_to_half_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        for (before, after) in [("", "1\n"), ("0\n", "0\n1\n"), ("0\n{\"me", "0\n{\"me\n1\n")] {
            std::fs::write(&path, before).unwrap();
            let publisher = publisher(format!("file:{}", path.display()), 1_000);
            publisher.one(&1);
            until(|| publisher.counts.published.get() == 1);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
    }

    /// `P-RT`: a file that is moved away is begun anew.
    #[test]
    fn p_rt_a_file_may_be_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        let publisher = publisher(format!("file:{}", path.display()), 1_000);
        publisher.one(&1);
        until(|| publisher.counts.published.get() == 1);
        let moved = folder.path().join("points.1");
        std::fs::hard_link(&path, &moved).unwrap();
        std::fs::remove_file(&path).unwrap();
        publisher.one(&2);
        until(|| publisher.counts.published.get() == 2);
        assert_eq!(
            (std::fs::read_to_string(moved).unwrap(), std::fs::read_to_string(path).unwrap()),
            ("1\n".into(), "2\n".into())
        );
        for bad in ["", "unix:", "tcp:x", "/path"] {
            let config = config::Publish { enable: true, to: bad.to_owned(), queue_bytes: 1 };
            assert!(Publisher::start(&config).is_err(), "{bad}");
        }
    }
}
