//! One file of points, plain or gzipped, as blocks of `put` lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::exit::{Exit, Failure};

/// The longest line read into memory; a longer one is an error of the file.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A file under way.
pub(super) struct Source {
    shown: String,
    reader: Box<dyn BufRead>,
    /// Lines taken so far, blank ones included.
    lines: u64,
    bytes_all: u64,
    bytes_read: Arc<AtomicU64>,
}

impl Source {
    /// Opens `path`, or standard input for `-`. Gzip is told by its first two bytes.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let fail = |cause: io::Error| Failure::new(Exit::Failure, format!("cannot read {shown}: {cause}"));
        let (raw, bytes_all): (Box<dyn Read>, u64) = if path.as_os_str() == "-" {
            (Box::new(io::stdin()), 0)
        } else {
            let file = File::open(path).map_err(fail)?;
            let length = file.metadata().map_err(fail)?.len();
            (Box::new(file), length)
        };
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut counted = BufReader::new(Counted { raw, bytes: Arc::clone(&bytes_read) });
        let gzipped = counted.fill_buf().map_err(fail)?.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn BufRead> =
            if gzipped { Box::new(BufReader::new(MultiGzDecoder::new(counted))) } else { Box::new(counted) };
        Ok(Self { shown, reader, lines: 0, bytes_all, bytes_read })
    }

    /// Bytes of the file as it lies there; 0 when not known.
    pub(super) fn bytes_all(&self) -> u64 {
        self.bytes_all
    }

    /// Bytes of it read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        // Relaxed: shown to people, ordered with nothing.
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Lines taken so far.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Passes over the first `count` lines; gives how many there were.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64, Failure> {
        while self.lines < count && self.line()?.is_some() {}
        Ok(self.lines)
    }

    /// The next lines, at most `max`, blank ones and comments left out; empty at the end.
    pub(super) fn block(&mut self, max: usize) -> Result<Vec<Vec<u8>>, Failure> {
        let mut block = Vec::with_capacity(max);
        while block.len() < max {
            let Some(line) = self.line()? else { break };
            let text = line.trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                block.push(as_put(text));
            }
        }
        Ok(block)
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        let place = self.lines + 1;
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|cause| self.fail(place, &cause.to_string()))?;
        if read as u64 == LINE_BYTES_MAX {
            return Err(self.fail(place, "the line has no end"));
        }
        self.lines += u64::from(read > 0);
        Ok((read > 0).then_some(line))
    }

    fn fail(&self, line: u64, why: &str) -> Failure {
        Failure::new(Exit::Failure, format!("cannot read {} at line {line}: {why}", self.shown))
    }
}

/// A line as telnet takes it: `put` before, one line end after.
fn as_put(text: &[u8]) -> Vec<u8> {
    let head: &[u8] = if text.starts_with(b"put ") { b"" } else { b"put " };
    [head, text, b"\n"].concat()
}

/// Counts bytes as they pass.
struct Counted {
    raw: Box<dyn Read>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn blocks(bytes: &[u8], skip: u64) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        std::fs::write(&path, bytes).unwrap();
        let mut source = Source::open(&path).unwrap();
        source.skip(skip).unwrap();
        let mut found = Vec::new();
        loop {
            let block = source.block(2).unwrap();
            if block.is_empty() {
                return found;
            }
            found.push(String::from_utf8(block.concat()).unwrap());
        }
    }

    const TEXT: &[u8] = b"a 1 2 x=y\r\n\n# note\nput b 1 2 x=y\nc 1 2 x=y";

    #[test]
    fn lines_become_puts_whatever_their_ends() {
        let expected = ["put a 1 2 x=y\nput b 1 2 x=y\n", "put c 1 2 x=y\n"];
        assert_eq!(blocks(TEXT, 0), expected);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(TEXT).unwrap();
        assert_eq!(blocks(&encoder.finish().unwrap(), 0), expected);
    }

    #[test]
    fn skipped_lines_are_counted_as_they_lie_in_the_file() {
        assert_eq!(blocks(TEXT, 3), ["put b 1 2 x=y\nput c 1 2 x=y\n"]);
        assert_eq!(blocks(TEXT, 99), Vec::<String>::new());
    }
}
