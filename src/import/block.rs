//! A piece of a file that ends where a line ends, and the points in it.

use std::borrow::Cow;

use basalt_ingest::{Problem, RawPoint, RawText, decode_text, parse_import_line};

/// A line that is no point, or whose point is not taken.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Which line of the file, from 1; none where the point alone is known.
    pub(crate) line: Option<u64>,
    /// Why.
    pub(crate) text: String,
}

/// Whole lines of a file.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its place among all blocks of an import.
    pub(crate) ticket: u64,
    /// How often blocks were sent again before it went out.
    pub(crate) round: u64,
    pub(super) text: Vec<u8>,
    /// Lines of the file before it.
    pub(super) lines_before: u64,
    /// Lines of the file up to its end that have an end.
    pub(super) lines_end: u64,
    /// Bytes of the file as it lies there that were read when the block was made.
    pub(super) bytes_end: u64,
}

impl Block {
    /// The text of all lines.
    pub(super) fn text(&self) -> Cow<'_, str> {
        decode_text(&self.text)
    }

    /// What is wrong with the line that has `before` lines of the block before it.
    pub(super) fn refused(&self, before: Option<u64>, problem: &Problem) -> Refused {
        Refused { line: before.map(|before| self.lines_before + before + 1), text: problem.telnet_text("put") }
    }
}

/// A block's text, line by line.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    pub(super) points: Vec<RawPoint<'a>>,
    /// How many lines are before that of each point.
    pub(super) before: Vec<u64>,
    /// How many lines are before one that is no point, and what is wrong with it.
    pub(super) problems: Vec<(u64, Problem)>,
}

/// The points of a block's text, and what is wrong with the lines that are none.
pub(super) fn read(text: &str) -> Lines<'_> {
    let mut lines = Lines { points: Vec::with_capacity(text.len() / 64), ..Lines::default() };
    for (before, line) in (0..).zip(text.split('\n')) {
        let line = line.trim_matches(|letter: char| letter.is_ascii_whitespace());
        if line.is_empty() {
            continue;
        }
        match parse(line) {
            Ok(point) => {
                lines.points.push(point);
                lines.before.push(before);
            }
            // A comment. Names may begin so too, where the configuration allows it.
            Err(_) if line.starts_with('#') => {}
            Err(problem) => lines.problems.push((before, problem)),
        }
    }
    lines
}

/// The point of a line. A word `put` before it is none of its words, unless there is no point without it: it is a metric's
/// name then.
fn parse(line: &str) -> Result<RawPoint<'_>, Problem> {
    let Some(behind) = line.strip_prefix("put ") else { return parse_import_line(line) };
    // With a metric `put`, what stands for the value may be the first tag, as values are not looked at here.
    let is_tag = |value: RawText<'_>| value.raw().contains('=');
    match parse_import_line(behind) {
        Ok(point) if !point.value.is_some_and(is_tag) => Ok(point),
        behind => parse_import_line(line).or(behind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_points_with_or_without_a_put_before_them() {
        let Lines { points, problems, .. } = read("a 1 2 x=y\r\n\n# note\nput b 1 2 x=y\n  c 1 2 x=y  \nd 1\n");
        let names: Vec<_> = points.iter().filter_map(|point| point.metric).map(RawText::raw).collect();
        assert_eq!((names, problems.len()), (vec!["a", "b", "c"], 1));
    }

    #[test]
    fn a_metric_may_be_called_put() {
        let text = "put 1356998400 1 x=y\nput put 1356998400 2 x=y\nput 1356998400 1 x=y z=a\nput 5 1356998400 3 x=y\n";
        let Lines { points, problems, .. } = read(text);
        let raw = |text: Option<RawText<'_>>| text.unwrap().raw().to_owned();
        let found: Vec<_> = points.iter().map(|point| (raw(point.metric), point.timestamp, raw(point.value))).collect();
        let of = |metric: &str, value: &str| (metric.to_owned(), 1_356_998_400, value.to_owned());
        assert_eq!(found, [of("put", "1"), of("put", "2"), of("put", "1"), of("5", "3")]);
        assert!(problems.is_empty());
        // What is wrong either way is told of the line without the word.
        let Lines { problems, .. } = read("put m 1356998400 1\n");
        assert_eq!(problems, read("m 1356998400 1\n").problems);
        assert_eq!(problems.len(), 1);
    }

    /// Lines are counted from 1 over the whole file, blank ones and comments included, also the last that has no end.
    #[test]
    fn a_refused_line_is_known_by_its_number() {
        let lines_of = |text: &str, lines_before| {
            let block =
                Block { ticket: 0, round: 0, text: text.as_bytes().to_vec(), lines_before, lines_end: 0, bytes_end: 0 };
            let Lines { before, problems, .. } = read(text);
            let number = |before: u64| block.refused(Some(before), &Problem::EmptyMetric).line.unwrap();
            let problems = problems.into_iter().map(|(before, _)| number(before));
            (before.into_iter().map(number).collect::<Vec<_>>(), problems.collect::<Vec<_>>())
        };
        assert_eq!(lines_of("a 1 2 x=y\n\n# note\nb\nc 1 2 x=y\n", 0), (vec![1, 5], vec![4]));
        assert_eq!(lines_of("a\nb 1 2 x=y\nc", 100), (vec![102], vec![101, 103]));
    }

    /// `#` may be a letter of names (`tsd.core.tag.allow_specialchars`).
    #[test]
    fn a_comment_is_what_is_no_point() {
        let Lines { points, problems, .. } = read("#m 1356998400 1 h=a\n# m 1356998400 1 h=a\n#\n#m 1356998400\n");
        let names: Vec<_> = points.iter().filter_map(|point| point.metric).map(RawText::raw).collect();
        assert_eq!((names, problems.len()), (vec!["#m"], 0));
    }

    /// Whatever a file holds, each of its lines that is neither blank nor a comment is a point or a problem with words.
    #[test]
    fn any_text_is_as_many_points_and_problems_as_lines() {
        let words = [
            "put",
            "m",
            " ",
            "  ",
            "\t",
            "1356998400",
            "1356998400.5",
            "-1",
            "0",
            "99999999999999999999",
            "1e400",
            "nan",
            "NaN",
            "0x1p3",
            "-",
            "+5",
            "h=a",
            "h=",
            "=a",
            "=",
            "h=a=b",
            "#",
            "\"",
            "\u{0}",
            "é",
            "\u{1f600}",
            "\r",
        ];
        let mut state = 7_u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % bound
        };
        let mut stored = 0;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..below(30) {
                match below(8) {
                    0 => text.push('\n'),
                    1 => text += "m 1356998400 1 h=a\n",
                    2 | 3 => text.push(' '),
                    _ => text += words[below(words.len())],
                }
            }
            let lines = text.split('\n').map(|line| line.trim_matches(|letter: char| letter.is_ascii_whitespace()));
            let is_comment = |line: &str| line.starts_with('#') && parse_import_line(line).is_err();
            let lines = lines.filter(|line| !line.is_empty() && !is_comment(line)).count();
            let Lines { points, problems, .. } = read(&text);
            assert_eq!(points.len() + problems.len(), lines, "{text:?}");
            assert!(problems.iter().all(|(_, problem)| !problem.telnet_text("put").is_empty()), "{text:?}");
            stored += points.len();
        }
        assert!(stored > 1_000, "{stored}");
    }
}
