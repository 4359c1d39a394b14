//! The process that holds HBase, and the pipe to it: many threads ask, one reads the answers.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use basalt_store::{Error, ErrorKind};

use super::wire::Ask;
use crate::oracle;

/// Longest answer taken; the histories' whole tables are some hundred kilobytes.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Longest that an answer is waited for. HBase has scans that never end; on a busy machine a table is made in seconds.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// Longest that HBase may take to start, and to stop in good order.
const START_MAX: Duration = Duration::from_mins(3);
const STOP_MAX: Duration = Duration::from_mins(1);
/// The number that the greeting answers.
const GREETING: u64 = 0;

/// The kind of error of what HBase let go unanswered; no answer of its has this one.
pub(super) const NO_ANSWER: ErrorKind = ErrorKind::Throttled;

/// What came back: 0, or 1 where it failed, and bytes.
type Answer = (u8, Vec<u8>);
type Waiting = Arc<Mutex<HashMap<u64, Sender<Answer>>>>;

/// A running HBase. Dropped, it stops, in good order where it still answers; its data stay.
#[derive(Debug)]
pub(super) struct Driver {
    child: Child,
    /// Guards the pipe, so that frames do not mix.
    pipe: Mutex<Option<ChildStdin>>,
    /// Guards who waits for which answer.
    waiting: Waiting,
    // Relaxed: numbers only have to differ.
    last_id: AtomicU64,
    /// Once it let a question go unanswered it is asked no more. Relaxed: whoever misses it waits once more.
    is_stuck: AtomicBool,
    /// Told when the process has closed its output, which is when it ends.
    ended: Mutex<Receiver<()>>,
    /// HBase's own version, as it says.
    pub(super) version: String,
    /// Where its master listens.
    pub(super) master_port: u16,
}

impl Driver {
    /// Starts HBase on the data in `folder`, or on none. Takes some twenty seconds.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let args = ["truth".to_owned(), folder.display().to_string()];
        let mut child = oracle::script(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start tests/oracle/oracle.sh")?;
        let pipe = child.stdin.take().context("the driver has no input")?;
        let mut out = BufReader::new(child.stdout.take().context("the driver has no output")?);
        let (greeting, greeted) = channel();
        let waiting = Waiting::default();
        lock(&waiting).insert(GREETING, greeting);
        let readers = Arc::clone(&waiting);
        let (end, ended) = channel();
        std::thread::spawn(move || {
            while let Ok((id, kind, told)) = read_answer(&mut out) {
                if let Some(sender) = lock(&readers).remove(&id) {
                    drop(sender.send((kind, told)));
                }
            }
            // Whoever still waits finds the other end gone.
            lock(&readers).clear();
            drop(end);
        });
        let mut driver = Self {
            child,
            pipe: Mutex::new(Some(pipe)),
            waiting,
            last_id: AtomicU64::new(GREETING),
            is_stuck: AtomicBool::new(true),
            ended: Mutex::new(ended),
            version: String::new(),
            master_port: 0,
        };
        let (_, greeting) =
            greeted.recv_timeout(START_MAX).context("HBase did not start; see log/truth-*.log in ORACLE_DIR")?;
        let greeting = String::from_utf8_lossy(&greeting);
        let (version, port) = greeting.split_once(' ').context("the greeting names no port")?;
        (driver.version, driver.master_port) = (version.to_owned(), port.parse()?);
        driver.is_stuck = AtomicBool::new(false);
        Ok(driver)
    }

    /// Whether it let a question go unanswered, or ended.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// Asks, and waits for the answer; [`NO_ANSWER`] where none comes.
    pub(super) fn call(&self, call: u8, ask: &Ask) -> basalt_store::Result<Vec<u8>> {
        let unanswered = |why: &str| {
            self.is_stuck.store(true, Ordering::Relaxed);
            Error::backend(NO_ANSWER, std::io::Error::other(format!("HBase did not answer: {why}")))
        };
        if self.is_stuck() {
            return Err(unanswered("it did not before"));
        }
        let answer = self.send(call, ask).map_err(|error| unanswered(&format!("{error:#}")))?;
        let (kind, told) = answer.recv_timeout(ANSWER_MAX).map_err(|error| match error {
            RecvTimeoutError::Timeout => unanswered("it took too long"),
            RecvTimeoutError::Disconnected => unanswered("it ended"),
        })?;
        if kind == 0 {
            return Ok(told);
        }
        Err(Error::backend(ErrorKind::Invalid, std::io::Error::other(String::from_utf8_lossy(&told).into_owned())))
    }

    fn send(&self, call: u8, ask: &Ask) -> Result<Receiver<Answer>> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = channel();
        lock(&self.waiting).insert(id, sender);
        let mut frame = Vec::with_capacity(ask.0.len() + 13);
        frame.extend(u32::try_from(ask.0.len() + 9)?.to_be_bytes());
        frame.extend(id.to_be_bytes());
        frame.push(call);
        frame.extend(&ask.0);
        let mut pipe = lock(&self.pipe);
        let pipe = pipe.as_mut().context("it is stopped")?;
        pipe.write_all(&frame)?;
        pipe.flush()?;
        Ok(receiver)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The end of its input is the word to stop.
        drop(lock(&self.pipe).take());
        let ended = lock(&self.ended);
        if self.is_stuck() || matches!(ended.recv_timeout(STOP_MAX), Err(RecvTimeoutError::Timeout)) {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

fn read_answer(out: &mut impl Read) -> Result<(u64, u8, Vec<u8>)> {
    let mut head = [0; 4];
    out.read_exact(&mut head)?;
    let length = u32::from_be_bytes(head) as usize;
    ensure!((9..=ANSWER_BYTES_MAX).contains(&length), "an answer of {length} bytes");
    let mut frame = vec![0; length];
    out.read_exact(&mut frame)?;
    let (id, rest) = frame.split_first_chunk::<8>().context("no number")?;
    let (kind, told) = rest.split_first().context("no kind")?;
    Ok((u64::from_be_bytes(*id), *kind, told.to_vec()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new folder for HBase's data beside the oracle's own; what an earlier run left there goes.
pub(super) fn fresh_folder(name: &str) -> Result<PathBuf> {
    let folder = oracle::folder().join("truth").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
