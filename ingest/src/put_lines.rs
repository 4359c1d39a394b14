//! A block of `put` lines as a busy sender fills it: every line is a point of a known series.
//!
//! ```text
//! put sys.cpu 1700000000 42 host=a dc=x\n
//! └┬┘ metric  time       └─ value, tags: those of the line before, or up to the end
//! ```
//!
//! This module reads only lines of this form. A block with any other line is read line by line, by the caller.

use crate::lead::{Lead, RepeatedTime};
use crate::number::{few_digits, leading_digits};
use crate::raw_point::{Form, RawPoint, RawTags};
use crate::raw_text::RawText;
use crate::series_cache::{HashedTags, KnownGuard};
use crate::spelling::SmallValue;

/// Roughly the bytes of a line. A block of shorter ones costs one more allocation.
const LINE_BYTES: usize = 64;

/// Parses `block`, whole lines, as [`parse_put_line`] parses each; `None` unless each is a put of a known series in plain words.
///
/// *Cost*: one pass over the bytes, one allocation a block, a look-up a point.
///
/// [`parse_put_line`]: crate::parse_put_line
pub(crate) fn parse_known_block<'a>(block: &'a [u8], known: &KnownGuard<'_>) -> Option<Vec<RawPoint<'a>>> {
    let mut rest = simdutf8::basic::from_utf8(block).ok()?;
    let (mut points, mut before) = (Vec::with_capacity(block.len() / LINE_BYTES), Before::default());
    let command = Lead::of("put ");
    while !rest.is_empty() {
        let (point, behind) = line(command.strip(rest)?, (known, &mut before))?;
        points.push(point);
        rest = behind;
    }
    // Looked up all at once, so that the look-ups wait for memory at the same time.
    known.find_all(points.iter_mut().filter_map(|point| point.spelled.as_mut())).then_some(points)
}

/// The parts of the last line that the next line is likely to repeat.
#[derive(Debug, Default)]
struct Before<'a> {
    time: RepeatedTime<'a>,
    tags: Option<HashedTags<'a>>,
}

/// The point of the line at the start of `text`, whose tags are read as a known spelling, and the text behind that line.
#[inline]
fn line<'a>(text: &'a str, (known, before): (&KnownGuard<'_>, &mut Before<'a>)) -> Option<(RawPoint<'a>, &'a str)> {
    let (metric, rest) = word(text)?;
    let (timestamp, digits) = before.time.read(rest, || leading_digits(rest.as_bytes()))?;
    let rest = rest.get(digits..)?.strip_prefix(' ').filter(|_| timestamp > 0)?;
    // Fast path: a value of a few digits.
    let small = few_digits(rest.as_bytes()).filter(|(_, count)| rest.as_bytes().get(*count) == Some(&b' '));
    let (value, rest) = match small {
        Some((_, count)) => (rest.get(..count)?, rest.get(count + 1..)?),
        None => word(rest)?,
    };
    let small = small.and_then(|(number, _)| SmallValue::new(number));
    // Fast path: the tags are those of the line before.
    let again = before.tags.and_then(|before| Some((before, after_end(rest.strip_prefix(before.text)?)?)));
    let (tags, behind) = if let Some(again) = again {
        again
    } else {
        let (line, behind) = rest.split_at_checked(memchr::memchr(b'\n', rest.as_bytes())?)?;
        let tags = known.hashed(Form::Line, line.strip_suffix('\r').unwrap_or(line));
        (*before.tags.insert(tags), behind.strip_prefix('\n')?)
    };
    let point = RawPoint {
        form: Form::Line,
        metric: Some(RawText::plain(metric)),
        timestamp,
        value: Some(RawText::plain(value)),
        tags: RawTags::Words(tags.text),
        spelled: Some(known.guess_with(metric, tags).with_value(small)),
    };
    Some((point, behind))
}

/// A word that is not empty, and the text behind the blank after it.
#[inline]
fn word(text: &str) -> Option<(&str, &str)> {
    let end = word_bytes(text.as_bytes())?;
    let is_word = end > 0 && text.as_bytes().get(end) == Some(&b' ');
    if is_word { Some((text.get(..end)?, text.get(end + 1..)?)) } else { None }
}

/// The number of bytes before the first blank or control character.
#[inline]
fn word_bytes(bytes: &[u8]) -> Option<usize> {
    let (chunks, rest) = bytes.as_chunks();
    // Eight bytes at a time: a search made for long texts costs several times as much for words this short.
    for (place, chunk) in chunks.iter().enumerate() {
        let blanks = blank_or_below(u64::from_le_bytes(*chunk));
        if blanks != 0 {
            return Some(place * 8 + (blanks.trailing_zeros() / 8) as usize);
        }
    }
    rest.iter().position(|byte| *byte <= b' ').map(|place| chunks.len() * 8 + place)
}

/// Sets the top bit of the first byte that is a blank or a control character; bits above it mean nothing.
const fn blank_or_below(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80)
}

/// The text behind the end of a line, if `text` begins with one.
#[inline]
fn after_end(text: &str) -> Option<&str> {
    text.strip_prefix('\n').or_else(|| text.strip_prefix("\r\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::foreign::{LAWS, cache};
    use crate::parse_put_line;

    /// Whether all of `block` is read at once where the series of its lines are known.
    fn is_read(block: &str) -> bool {
        let points: Vec<_> = block.lines().filter_map(|line| parse_put_line(line).ok()).collect();
        parse_known_block(block.as_bytes(), &cache(&points).read(1))
            .inspect(|read| assert_eq!(read.len(), block.lines().count(), "{block}"))
            .is_some()
    }

    #[test]
    fn plain_lines_of_known_series_are_read_at_once() {
        let block = "put sys.cpu 1700000000 42 host=a dc=x\nput é 1700000000 -0.5 host=a dc=x\r\nput b 17 1e5 h=a\n";
        assert!(is_read(block));
        assert!(is_read("") && is_read("put m 1 1 a=b\r\n"));
        assert!(is_read("put m 17 1 a=b\nput m 170 1 a=b\n"));
        assert!(is_read("put m 1 1 a=b\nput m 1 1 a=bc\nput m 1 1 a=b\n"));
    }

    #[test]
    fn anything_else_is_for_line_by_line() {
        for line in [
            "put m 1 1 a=b",
            "PUT m 1 1 a=b\n",
            "version\n",
            "\n",
            "put m 1\n",
            "put  1 1 a=b\n",
            "put m 0 1 a=b\n",
            "put m -5 1 a=b\n",
            "put m 1.5 1 a=b\n",
            "put m 1  a=b\n",
            "put m 12345678901234567 1 a=b\n",
            "put m 1 1 a=b\r\r\n",
            "put m 1 1 a\n",
        ] {
            assert!(!is_read(line), "{line:?}");
            assert!(!is_read(&format!("put m 1 1 a=b\n{line}put m 1 1 a=b\n")), "{line:?}");
        }
        assert!(parse_known_block(b"put m 1 1 a=b\n", &cache(&[]).read(1)).is_none(), "a series that is new");
        let points = [parse_put_line("put m 1 1 a=b").unwrap()];
        assert!(parse_known_block(b"put m 1 1\xff a=b\n", &cache(&points).read(1)).is_none(), "no text");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// With a byte changed or without.
        #[test]
        fn blocks_say_what_their_lines_say(
            lines in proptest::collection::vec("put [ab]{1,9} 17[0-9]? -?[0-9]{1,3}(\\.5)? (h=[ab]|h=a d=bb?)\r?\n", 0..9),
            change in proptest::option::of((any::<proptest::sample::Index>(), "[ \n\r0-9a=p\t-]")),
        ) {
            let law = LAWS.iter().find(|(name, _)| *name == "put_block").unwrap().1;
            let mut block = lines.concat().into_bytes();
            prop_assert!(is_read(&lines.concat()));
            if let Some((at, byte)) = change.filter(|_| !block.is_empty()) {
                let at = at.index(block.len());
                block[at] = byte.as_bytes()[0];
            }
            law(&block);
        }
    }
}
