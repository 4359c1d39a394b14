//! Bytes into lines: ended by `\n`, with or without `\r` before it.
//!
//! A line whose end has come is served, however long: as in OpenTSDB, so many bytes may wait for their end and no more
//! (rule `T-LIMIT`). What is read at once bounds it.

use bytes::{Bytes, BytesMut};
use memchr::{memchr_iter, memrchr};

/// More bytes wait for the end of their line than may; what follows it cannot be trusted to begin one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Bytes of a connection that are not whole lines yet.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    waiting_bytes_max: usize,
}

impl Lines {
    /// For lines of which at most `waiting_bytes_max` bytes wait for their end.
    pub(crate) fn new(waiting_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), waiting_bytes_max }
    }

    /// Where to read so many bytes to, or some more. What grew for far more of them is let go.
    pub(crate) fn buffer(&mut self, bytes: usize) -> &mut BytesMut {
        if self.buffer.is_empty() && self.buffer.capacity() > 2 * bytes {
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(bytes);
        &mut self.buffer
    }

    /// Takes all whole lines that have come.
    pub(crate) fn take(&mut self) -> Block {
        let end = memrchr(b'\n', &self.buffer).map_or(0, |last| last + 1);
        let bytes = self.buffer.split_to(end).freeze();
        let is_rest_too_long = self.buffer.len() > self.waiting_bytes_max + 1;
        Block { bytes, is_rest_too_long }
    }
}

/// Whole lines, and what is known of the one after them.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Bytes,
    is_rest_too_long: bool,
}

impl Block {
    /// The lines with their ends; `None` where one follows that passes the bound already.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        (!self.is_rest_too_long).then_some(&self.bytes)
    }

    /// The lines without their ends; [`TooLong`] behind them where the one after them passes the bound.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Result<&[u8], TooLong>> {
        let mut from = 0;
        let whole = memchr_iter(b'\n', &self.bytes).map(move |end| {
            let line = self.bytes.get(from..end).unwrap_or_default();
            from = end + 1;
            Ok(line.strip_suffix(b"\r").unwrap_or(line))
        });
        whole.chain(self.is_rest_too_long.then_some(Err(TooLong)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bound: usize, pieces: &[&str]) -> Result<Vec<String>, TooLong> {
        let mut lines = Lines::new(bound);
        let mut found = Vec::new();
        for piece in pieces {
            lines.buffer(piece.len()).extend_from_slice(piece.as_bytes());
            for line in lines.take().lines() {
                found.push(String::from_utf8(line?.to_vec()).unwrap());
            }
        }
        Ok(found)
    }

    #[test]
    fn lines_may_come_in_pieces_and_with_either_end() {
        assert_eq!(all(9, &["ab", "c\r", "\nd\n\n", "rest"]).unwrap(), ["abc", "d", ""]);
        assert_eq!(all(9, &["a\r\r\n\r\n", "\n"]).unwrap(), ["a\r", "", ""]);
    }

    #[test]
    fn a_block_is_one_text_unless_too_long_a_line_follows() {
        let mut lines = Lines::new(3);
        lines.buffer(9).extend_from_slice(b"abc\nd\nrest");
        assert_eq!(lines.take().text(), Some(&b"abc\nd\n"[..]));
        assert_eq!(lines.take().text(), Some(&b""[..]));
        lines.buffer(9).extend_from_slice(b"x");
        assert_eq!(lines.take().text(), None);
    }

    #[test]
    fn a_buffer_that_grew_is_let_go() {
        let mut lines = Lines::new(9);
        lines.buffer(100_000).extend_from_slice(b"a\nb");
        assert_eq!(lines.take().lines().count(), 1);
        // What is left of a line stays where it is.
        assert_eq!(lines.buffer(10), &b"b"[..]);
        assert!(lines.buffer(10).capacity() > 1_000);
        lines.buffer(10).extend_from_slice(b"\n");
        assert_eq!(lines.take().lines().count(), 1);
        assert!((10..1_000).contains(&lines.buffer(10).capacity()));
    }

    #[test]
    fn t_limit_a_line_is_served_at_any_length_once_its_end_is_there() {
        assert_eq!(all(3, &["abc\r\n"]).unwrap(), ["abc"]);
        assert_eq!(all(3, &["abcdef\n"]).unwrap(), ["abcdef"]);
        assert_eq!(all(3, &["abc", "def\ng"]).unwrap(), ["abcdef"]);
        assert_eq!(all(3, &["abc", "de"]), Err(TooLong));
        assert_eq!(all(3, &["abc\nabcde"]), Err(TooLong));
        assert_eq!(all(3, &["abc", "\r"]).unwrap(), [""; 0]);
    }
}
