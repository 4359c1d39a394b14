//! One file of points, plain or gzipped, as blocks of whole lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

use crate::exit::{Exit, Failure};

/// Bytes of a block, more or less: some five thousand points. A line as long as that is an error of the file.
const BLOCK_BYTES: usize = 512 << 10;

/// Bytes by which a file is told from another: some fifty points.
const HEAD_BYTES: usize = 4 << 10;

/// What some editors put before a text in UTF-8; it is no part of the first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How a member of a gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file under way.
pub(super) struct Source {
    shown: String,
    reader: Box<dyn Read>,
    /// Read and not yet given.
    rest: Vec<u8>,
    /// Whether something was read.
    begun: bool,
    ended: bool,
    /// Lines given so far, blank ones included.
    lines: u64,
    bytes_all: u64,
    bytes_read: Arc<AtomicU64>,
}

/// Whole lines, and how many lines of the file end with them.
pub(super) type Lines = (Vec<u8>, u64);

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
        let gzipped = counted.fill_buf().map_err(fail)?.starts_with(&GZIP);
        let reader: Box<dyn Read> = if gzipped { Box::new(Members::new(counted)) } else { Box::new(counted) };
        Ok(Self { shown, reader, rest: Vec::new(), begun: false, ended: false, lines: 0, bytes_all, bytes_read })
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

    /// The first [`HEAD_BYTES`], or all that there are; to be asked before lines are taken.
    pub(super) fn head(&mut self) -> Result<&[u8], Failure> {
        assert_eq!(self.lines, 0, "BUG: lines are gone from the head");
        self.fill()?;
        Ok(self.rest.get(..HEAD_BYTES).unwrap_or(&self.rest))
    }

    /// Passes over the first `count` lines; gives how many there were.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64, Failure> {
        while self.lines < count {
            let Some((mut text, end)) = self.block()? else { break };
            if end > count {
                // The lines that were too many are given again.
                let surplus = usize::try_from(end - count - 1).unwrap_or(usize::MAX);
                let body = text.strip_suffix(b"\n").unwrap_or(&text);
                let from = ends(body).nth_back(surplus).map_or(0, |before| before + 1);
                let mut again = text.split_off(from);
                again.append(&mut self.rest);
                self.rest = again;
                self.ended = false;
                self.lines = count;
            }
        }
        Ok(self.lines)
    }

    /// Lines that were given or passed over.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    /// The next lines, some [`BLOCK_BYTES`]; none at the end.
    pub(super) fn block(&mut self) -> Result<Option<Lines>, Failure> {
        self.fill()?;
        let end = if self.ended { Some(self.rest.len()) } else { ends(&self.rest).next_back().map(|end| end + 1) };
        let end = end.ok_or_else(|| self.fail("the line has no end"))?;
        let after = self.rest.split_off(end);
        let text = std::mem::replace(&mut self.rest, after);
        let unfinished = text.last().is_some_and(|last| *last != b'\n');
        self.lines += ends(&text).count() as u64 + u64::from(unfinished);
        Ok((!text.is_empty()).then_some((text, self.lines)))
    }

    fn fill(&mut self) -> Result<(), Failure> {
        while !self.ended && self.rest.len() < BLOCK_BYTES {
            let wanted = (BLOCK_BYTES - self.rest.len()) as u64;
            let read = self.reader.by_ref().take(wanted).read_to_end(&mut self.rest);
            let read = read.map_err(|cause| self.fail(&cause.to_string()))?;
            self.ended = read == 0;
        }
        if !std::mem::replace(&mut self.begun, true) && self.rest.starts_with(BYTE_ORDER_MARK) {
            self.rest.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    fn fail(&self, why: &str) -> Failure {
        Failure::new(Exit::Failure, format!("cannot read {} at line {}: {why}", self.shown, self.lines + 1))
    }
}

/// Where lines end.
fn ends(text: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place)
}

/// The members of a gzip file. What stands behind the last and is no member, as the zeroes that fill up a tape's block, is
/// no part of the text, to `gzip` and Java's `GZIPInputStream` neither.
struct Members(Option<GzDecoder<Chain<&'static [u8], BufReader<Counted>>>>);

impl Members {
    fn new(file: BufReader<Counted>) -> Self {
        Self(Some(GzDecoder::new([].as_slice().chain(file))))
    }
}

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(member) = self.0.take() else { break };
            let (_, mut file) = member.into_inner().into_inner();
            // One by one: the two may be in two pieces of the file.
            if file.fill_buf()?.first() != GZIP.first() {
                break;
            }
            file.consume(1);
            match file.fill_buf()?.first() {
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
                next if next == GZIP.last() => self.0 = Some(GzDecoder::new(GZIP[..1].chain(file))),
                Some(_) => {}
            }
        }
        Ok(0)
    }
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

    /// What is left of a file after its first lines, and how many lines it has.
    fn rest(bytes: &[u8], skip: u64) -> (Vec<u8>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        std::fs::write(&path, bytes).unwrap();
        let mut source = Source::open(&path).unwrap();
        let (mut text, mut lines) = (Vec::new(), source.skip(skip).unwrap());
        while let Some((block, end)) = source.block().unwrap() {
            assert!(block.len() <= BLOCK_BYTES);
            text.extend(block);
            lines = end;
        }
        (text, lines)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Skipped lines are counted as they lie in the file, blank ones and comments too.
    #[test]
    fn a_file_goes_on_after_any_of_its_lines() {
        let line =
            |number: usize| if number.is_multiple_of(7) { "\n".to_owned() } else { format!("m {number} 1 h=a\r\n") };
        let many: Vec<String> = (0..60_000).map(line).collect();
        let unended = [many.clone(), vec!["the last 1 1 h=a".to_owned()]].concat();
        for lines in [&many, &unended] {
            let whole = lines.concat();
            for skip in [0, 1, 2, 6, 7, 30_000, lines.len() - 1, lines.len()] {
                for bytes in [whole.clone().into_bytes(), gzip(whole.as_bytes())] {
                    let (text, count) = rest(&bytes, skip as u64);
                    assert_eq!(count, lines.len() as u64, "{skip}");
                    assert!(text == lines[skip..].concat().as_bytes(), "{skip}: {} bytes", text.len());
                }
            }
            assert_eq!(rest(whole.as_bytes(), u64::MAX), (Vec::new(), lines.len() as u64));
        }
        assert_eq!(rest(b"", 0), (Vec::new(), 0));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = "\u{feff}a 1 1 h=a\n\u{feff}b 1 1 h=a\n";
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            assert_eq!(rest(&bytes, 0), ("a 1 1 h=a\n\u{feff}b 1 1 h=a\n".into(), 2));
        }
        assert_eq!(rest(BYTE_ORDER_MARK, 0), (Vec::new(), 0));
    }

    /// Dumps come from tapes, whose blocks are filled up, and from tools that append something.
    #[test]
    fn what_is_behind_the_last_member_of_a_gzip_file_is_none_of_its_lines() {
        let (a, b) = (gzip(b"a 1 1 h=a\n"), gzip(b"b 1 1 h=a\n"));
        for behind in [&b""[..], &[0; 10_000], b"\x1f is no member", b"text\n"] {
            let lines = rest(&[&*a, &*b, behind].concat(), 0);
            assert_eq!(lines, (b"a 1 1 h=a\nb 1 1 h=a\n".to_vec(), 2), "{behind:?}");
        }
        // In pieces of one byte, members are found as well.
        let pieces = Counted { raw: Box::new(io::Cursor::new([&*a, &*b].concat())), bytes: Arc::default() };
        let mut text = String::new();
        Members::new(BufReader::with_capacity(1, pieces)).read_to_string(&mut text).unwrap();
        assert_eq!(text, "a 1 1 h=a\nb 1 1 h=a\n");
    }

    #[test]
    fn a_member_that_is_cut_or_damaged_is_an_error_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        let (a, b) = (gzip(b"a 1 1 h=a\n"), gzip(b"b 1 1 h=a\n"));
        let fails = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut source = Source::open(&path).unwrap();
            source.block().is_err()
        };
        for kept in 1..b.len() {
            assert!(fails(&[&*a, &b[..kept]].concat()), "{kept}");
        }
        for place in [2, b.len() - 8, b.len() - 1] {
            let mut damaged = b.clone();
            damaged[place] ^= 1;
            assert!(fails(&[&*a, &*damaged].concat()), "{place}");
        }
        assert!(!fails(&[&*a, &*b].concat()));
    }

    #[test]
    fn a_line_without_an_end_is_an_error_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        std::fs::write(&path, [b"a 1 1 h=a\n".to_vec(), vec![b'x'; 3 * BLOCK_BYTES]].concat()).unwrap();
        let mut source = Source::open(&path).unwrap();
        assert_eq!(source.block().unwrap().map(|(_, lines)| lines), Some(1));
        assert!(source.block().unwrap_err().line.contains("at line 2: the line has no end"));
    }
}
