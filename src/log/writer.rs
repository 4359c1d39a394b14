//! Lines on their way to standard error, by a thread of their own in a server: whoever reads there may be slow or gone, and no
//! request and no end of the process waits for that.
//!
//! What finds the queue full is lost and counted, as is what cannot be written, as into a file on a full disk; when lines flow
//! again, one of them says how many. Without the thread, in tools, a line is written where it is said.
//!
//! `tracing-appender` bounds its queue by lines and not by bytes, and can be waited for at its end alone, not in a panic.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};
use crate::progress::beside;

/// Bytes of lines that wait: some five thousand lines. Beyond, lines are lost.
const WAITING_BYTES_MAX: usize = 1 << 20;

static QUEUE: Queue = Queue::new(WAITING_BYTES_MAX);
/// Whether the thread runs. Relaxed: whoever sees it late writes by itself.
static IS_APART: AtomicBool = AtomicBool::new(false);

/// Writes lines by a thread of their own from here on.
///
/// # Errors
///
/// Exit code 1: no thread can be started.
pub(crate) fn write_apart() -> Result<(), Failure> {
    thread::Builder::new()
        .name("log".to_owned())
        .spawn(|| QUEUE.write_all_to(&mut io::stderr(), &tell_lost))
        .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start the thread of the log: {cause}")))?;
    IS_APART.store(true, Ordering::Relaxed);
    Ok(())
}

/// Waits until all lines are written, at most `patience`.
pub(crate) fn flush(patience: Duration) {
    QUEUE.flush(patience);
}

/// Lines lost so far because nobody read those before them, or because they could not be written.
pub(crate) fn lost() -> u64 {
    // Relaxed: a counter that is only shown; nothing is ordered by it.
    QUEUE.lost.load(Ordering::Relaxed)
}

fn tell_lost(lines: u64) {
    tracing::warn!(
        lines,
        "lines of the log were lost: nobody read standard error, or too slowly, or it could not be written"
    );
}

/// Where a line goes: the thread's queue, or standard error itself. Each write is a line as a whole.
#[derive(Debug)]
pub(crate) struct Line;

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_all(line).map(|()| line.len())
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        if !IS_APART.load(Ordering::Relaxed) {
            return beside(|| io::stderr().write_all(line));
        }
        QUEUE.add(line);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines between those who say them and the thread that writes them.
struct Queue {
    bytes_max: usize,
    /// Held for one addition or one look, never over I/O; nothing else is locked under it.
    waiting: Mutex<Waiting>,
    /// Told of each line that comes.
    more: Condvar,
    /// Told whenever all lines are written.
    empty: Condvar,
    lost: AtomicU64,
}

struct Waiting {
    lines: VecDeque<Arc<[u8]>>,
    /// Those of `lines`, which has the line that is being written too.
    bytes: usize,
    /// Lines lost of which no line told yet.
    lost: u64,
}

impl Queue {
    const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            waiting: Mutex::new(Waiting { lines: VecDeque::new(), bytes: 0, lost: 0 }),
            more: Condvar::new(),
            empty: Condvar::new(),
            lost: AtomicU64::new(0),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.bytes + line.len() > self.bytes_max {
            waiting.lost += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line.into());
        self.more.notify_one();
    }

    fn flush(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut waiting = self.waiting();
        while !waiting.lines.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            waiting = self.empty.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The thread's work, for good. `tell_lost` hears how many lines were lost once there is room again.
    fn write_all_to(&self, out: &mut dyn Write, tell_lost: &dyn Fn(u64)) {
        let mut is_cut = false;
        loop {
            let line = self.first();
            let mut left: &[u8] = &line;
            // Behind the half of a line a line of its own begins.
            if is_cut && out.write_all(b"\n").is_ok() {
                is_cut = false;
            }
            let is_written = !is_cut && write_from(out, &mut left).is_ok();
            is_cut |= !is_written && left.len() < line.len();
            // Told by a line that was written: nobody can be told that standard error is gone.
            let lost = self.written(line.len(), is_written);
            if lost > 0 {
                tell_lost(lost);
            }
        }
    }

    /// The oldest line, which stays in the queue until it is [`Queue::written`].
    fn first(&self) -> Arc<[u8]> {
        let mut waiting = self.waiting();
        loop {
            if let Some(line) = waiting.lines.front() {
                return Arc::clone(line);
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the oldest line off. Gives the lines lost that are to be told now: when it was written, and half of the queue is free.
    fn written(&self, bytes: usize, is_written: bool) -> u64 {
        let mut waiting = self.waiting();
        waiting.lines.pop_front();
        waiting.bytes -= bytes;
        if waiting.lines.is_empty() {
            self.empty.notify_all();
        }
        if !is_written {
            waiting.lost += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
            return 0;
        }
        if waiting.bytes > self.bytes_max / 2 { 0 } else { std::mem::take(&mut waiting.lost) }
    }
}

/// Writes bytes, of which those stay that could not be written.
#[expect(clippy::disallowed_methods, reason = "what a short write leaves is seen, and written next")]
fn write_from(out: &mut dyn Write, left: &mut &[u8]) -> io::Result<()> {
    while !left.is_empty() {
        match out.write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *left = left.get(count..).unwrap_or_default(),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// A reader that takes a line when the test asks for one.
    struct Slow(SyncSender<String>);

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(line).into_owned()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A queue of `bytes_max`, its thread, and the end where lines come out.
    fn queue(bytes_max: usize) -> (&'static Queue, Receiver<String>) {
        let queue: &'static Queue = Box::leak(Box::new(Queue::new(bytes_max)));
        let (said, heard) = sync_channel(0);
        thread::spawn(move || {
            queue.write_all_to(&mut Slow(said), &|lost| queue.add(format!("{lost} lost").as_bytes()));
        });
        (queue, heard)
    }

    /// Nobody waits for a reader, and the lines that this costs are counted and told once.
    #[test]
    fn what_finds_the_queue_full_is_lost_and_told_when_lines_flow_again() {
        let (queue, heard) = queue(40);
        for number in 0..9 {
            queue.add(format!("number {number}, ").as_bytes());
        }
        queue.flush(Duration::from_millis(1));
        assert_eq!(queue.lost.load(Ordering::Relaxed), 5);
        let told: Vec<String> = (0..5).map(|_| heard.recv().unwrap()).collect();
        assert_eq!(told, ["number 0, ", "number 1, ", "number 2, ", "number 3, ", "5 lost"]);
        queue.add(b"more");
        assert_eq!(heard.recv().unwrap(), "more", "what was lost is told once");
        queue.flush(Duration::from_mins(1));
        assert_eq!(queue.waiting().bytes, 0);
    }

    /// A file on a disk that has room for so many bytes, until the test makes more.
    struct Disk(Arc<Mutex<(usize, String)>>);

    impl Write for Disk {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let (room, text) = &mut *self.0.lock().unwrap();
            let fitting = line.len().min(*room);
            *room -= fitting;
            text.push_str(std::str::from_utf8(&line[..fitting]).unwrap());
            if fitting == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fitting) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_lost_and_told_when_there_is_room_again() {
        let queue: &'static Queue = Box::leak(Box::new(Queue::new(1_000)));
        let disk = Arc::new(Mutex::new((8, String::new())));
        let mut out = Disk(Arc::clone(&disk));
        thread::spawn(move || {
            queue.write_all_to(&mut out, &|lost| queue.add(format!("{lost} lost\n").as_bytes()));
        });
        let say = |text: &str| {
            queue.add(text.as_bytes());
            queue.flush(Duration::from_mins(1));
        };
        for text in ["one\n", "two, cut\n", "three\n"] {
            say(text);
        }
        assert_eq!(queue.lost.load(Ordering::Relaxed), 2);
        disk.lock().unwrap().0 = 1_000;
        say("four\n");
        // It may be added only after the queue was empty.
        while !disk.lock().unwrap().1.contains("lost") {
            thread::yield_now();
        }
        say("five\n");
        assert_eq!(disk.lock().unwrap().1, "one\ntwo,\nfour\n2 lost\nfive\n");
        assert_eq!(queue.lost.load(Ordering::Relaxed), 2);
    }
}
