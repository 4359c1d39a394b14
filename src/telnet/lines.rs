//! Bytes into lines: ended by `\n`, with or without `\r` before it, each at most so long.

use std::io::BufRead as _;

use bytes::{Buf, Bytes, BytesMut};

/// A line is longer than allowed; what follows it cannot be trusted to begin one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Bytes of a connection that are not whole lines yet.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    line_bytes_max: usize,
}

impl Lines {
    /// For lines of at most `line_bytes_max` bytes without their end.
    pub(crate) fn new(line_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), line_bytes_max }
    }

    /// Where to read more bytes to.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next whole line, without its end.
    ///
    /// # Errors
    ///
    /// [`TooLong`] as soon as a line passes the bound, ended or not.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        let Some(end) = memchr(&self.buffer) else {
            let unfinished = self.buffer.len();
            return if unfinished > self.line_bytes_max + 1 { Err(TooLong) } else { Ok(None) };
        };
        let mut line = self.buffer.split_to(end).freeze();
        self.buffer.advance(1);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.line_bytes_max { Err(TooLong) } else { Ok(Some(line)) }
    }
}

fn memchr(mut bytes: &[u8]) -> Option<usize> {
    let before = bytes.last_chunk().is_some_and(|[last]| *last == b'\n');
    let passed = bytes.skip_until(b'\n').unwrap_or_default();
    // All of it was passed also where there is no end.
    (passed > 0 && (before || !bytes.is_empty())).then(|| passed - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bound: usize, pieces: &[&str]) -> Result<Vec<String>, TooLong> {
        let mut lines = Lines::new(bound);
        let mut found = Vec::new();
        for piece in pieces {
            lines.buffer().extend_from_slice(piece.as_bytes());
            while let Some(line) = lines.next()? {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        Ok(found)
    }

    #[test]
    fn lines_may_come_in_pieces_and_with_either_end() {
        assert_eq!(all(9, &["ab", "c\r", "\nd\n\n", "rest"]).unwrap(), ["abc", "d", ""]);
    }

    #[test]
    fn a_line_may_fill_its_bound_and_not_pass_it() {
        assert_eq!(all(3, &["abc\r\n"]).unwrap(), ["abc"]);
        assert_eq!(all(3, &["abcd\n"]), Err(TooLong));
        assert_eq!(all(3, &["abc", "de"]), Err(TooLong));
    }
}
