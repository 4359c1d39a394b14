//! A piece of a file that ends where a line ends, and the points in it.

use std::borrow::Cow;

use basalt_ingest::{Problem, RawPoint, decode_text, parse_import_line};

/// Whole lines of a file.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its place among all blocks of an import.
    pub(crate) ticket: u64,
    pub(super) text: Vec<u8>,
    /// Lines of the file up to its end.
    pub(super) lines_end: u64,
    /// Bytes of the file as it lies there that were read when the block was made.
    pub(super) bytes_end: u64,
}

impl Block {
    /// The text of all lines.
    pub(super) fn text(&self) -> Cow<'_, str> {
        decode_text(&self.text)
    }
}

/// The points of a block's text, and what is wrong with the lines that are none.
pub(super) fn read(text: &str) -> (Vec<RawPoint<'_>>, Vec<Problem>) {
    let (mut points, mut problems) = (Vec::with_capacity(text.len() / 64), Vec::new());
    for line in text.split('\n') {
        let line = line.trim_matches(|letter: char| letter.is_ascii_whitespace());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_import_line(line.strip_prefix("put ").unwrap_or(line)) {
            Ok(point) => points.push(point),
            Err(problem) => problems.push(problem),
        }
    }
    (points, problems)
}

#[cfg(test)]
mod tests {
    use basalt_ingest::RawText;

    use super::*;

    #[test]
    fn lines_are_points_with_or_without_a_put_before_them() {
        let (points, problems) = read("a 1 2 x=y\r\n\n# note\nput b 1 2 x=y\n  c 1 2 x=y  \nd 1\n");
        let names: Vec<_> = points.iter().filter_map(|point| point.metric).map(RawText::raw).collect();
        assert_eq!((names, problems.len()), (vec!["a", "b", "c"], 1));
    }
}
