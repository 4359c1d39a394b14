//! A put line of telnet, and a line of an import file, which has the same grammar without the `put`.
//!
//! ```text
//! put <metric> <time> <value> <key>=<value> …      words separated by one blank; empty words between tags are skipped
//! ```
//!
//! *Source*: OpenTSDB 2.4 `PutDataPointRpc.importDataPoint`, `Tags.splitString`, `Tags.parse`.

use basalt_schema::tags_text;

use crate::Problem;
use crate::number::parse_integer;
use crate::raw_point::{Form, RawPoint, RawTags};
use crate::raw_text::RawText;
use crate::series_cache::{HashedTags, KnownGuard};

/// Words that a line must have besides the command.
const WORDS_MIN: usize = 4;

/// Parses a telnet line that begins with `put`; its end, `\n` or `\r\n`, may be on it.
///
/// *Cost*: no allocation, unless the line has more than a few tags or is refused.
///
/// # Errors
/// What is wrong, in the order in which OpenTSDB looks: number of words, metric, time, value, tags.
///
/// ```
/// use basalt_ingest::parse_put_line;
/// // collectd writes two blanks before the tags.
/// let point = parse_put_line("put load.shortterm 1700000000 0.5 fqdn=a  status=up\r\n").unwrap();
/// assert_eq!(point.tags.decode().len(), 2);
/// let problem = parse_put_line("put a 1 2").unwrap_err();
/// assert_eq!(problem.telnet_text("put"), "put: illegal argument: not enough arguments (need least 4, got 3)");
/// ```
pub fn parse_put_line(line: &str) -> Result<RawPoint<'_>, Problem> {
    let line = without_end(line);
    // The caller has read the command's name already.
    let (_, words) = first_word(line).ok_or(Problem::NotEnoughWords { found: 0, least: WORDS_MIN })?;
    words_of(words, None)
}

/// Parses telnet lines as [`parse_put_line`] does; the tags of known spellings were checked when these were new.
///
/// The lines are first read as if every spelling were known. Then all spellings are looked up together, which costs a fraction
/// of looking each up by itself. A line whose spelling is not known is read again.
pub(crate) fn parse_known_lines<'a>(
    lines: impl Iterator<Item = &'a str> + Clone,
    known: &KnownGuard<'_>,
) -> Vec<Result<RawPoint<'a>, Problem>> {
    let mut before = None;
    let guess = |line| {
        let (_, words) = first_word(without_end(line)).ok_or(Problem::NotEnoughWords { found: 0, least: WORDS_MIN })?;
        words_of(words, Some((known, &mut before)))
    };
    let mut all: Vec<Result<RawPoint<'_>, Problem>> = lines.clone().map(guess).collect();
    for (line, read) in lines.zip(&mut all) {
        let guessed = read.as_mut().ok().and_then(|point| point.spelled.as_mut());
        if guessed.is_some_and(|spelled| !known.find_guessed(spelled)) {
            *read = parse_put_line(line);
        }
    }
    all
}

/// Parses a line of an import file; its end may be on it.
///
/// # Errors
/// As [`parse_put_line`].
pub fn parse_import_line(line: &str) -> Result<RawPoint<'_>, Problem> {
    words_of(without_end(line), None)
}

pub(crate) fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Reads the words of a line. With `guess`, which holds the tags of the line before, the tags are read as a known spelling,
/// without a check.
fn words_of<'a>(
    words: &'a str,
    guess: Option<(&KnownGuard<'_>, &mut Option<HashedTags<'a>>)>,
) -> Result<RawPoint<'a>, Problem> {
    let split = first_word(words).and_then(|(metric, rest)| {
        let (time, rest) = first_word(rest)?;
        let (value, tags) = first_word(rest)?;
        Some((metric, time, value, tags))
    });
    let Some((metric, time, value, tags)) = split else {
        return Err(Problem::NotEnoughWords { found: words.split(' ').count(), least: WORDS_MIN });
    };
    if metric.is_empty() {
        return Err(Problem::EmptyMetric);
    }
    let timestamp = parse_time(time)?;
    if timestamp <= 0 {
        return Err(Problem::InvalidTimestamp { timestamp });
    }
    if value.is_empty() {
        return Err(Problem::EmptyValue);
    }
    let spelled = guess.map(|(known, before)| {
        // Fast path: the tags are those of the line before.
        let again = before.filter(|before| before.text == tags);
        known.guess_with(metric, again.unwrap_or_else(|| *before.insert(known.hashed(Form::Line, tags))))
    });
    if spelled.is_none() {
        check_tags(tags)?;
    }
    Ok(RawPoint {
        form: Form::Line,
        metric: Some(RawText::plain(metric)),
        timestamp,
        value: Some(RawText::plain(value)),
        tags: RawTags::Words(tags),
        spelled,
    })
}

/// The word up to the next blank, and the text after that; `None` without a blank.
fn first_word(words: &str) -> Option<(&str, &str)> {
    // By hand: a search made for long texts costs several times as much for words this short.
    let end = words.bytes().position(|byte| byte == b' ')?;
    Some((words.get(..end)?, words.get(end + 1..)?))
}

/// Seconds, milliseconds, or seconds with a fraction whose point is dropped: `1700000000.123` is milliseconds.
pub(crate) fn parse_time(word: &str) -> Result<i64, Problem> {
    parse_integer(word)
        .or_else(|problem| if word.contains('.') { parse_integer(&word.replace('.', "")) } else { Err(problem) })
        .map_err(Problem::NotATime)
}

/// Checks that tags are words of `key=value`, and that no key has two values.
///
/// *Cost*: one pass over the bytes, and a comparison of each key with those before it; an allocation from the seventeenth tag on.
pub(crate) fn check_tags(words: &str) -> Result<(), Problem> {
    /// Each tag is compared with the tags before it, up to this many. A line with more keys is refused later for their number. In a
    /// line that repeats few keys so often, the last value would win.
    const COMPARED_MAX: usize = 64;
    /// This many tags are kept without an allocation.
    const FEW: usize = 16;
    let (mut few, mut more) = ([("", ""); FEW], Vec::new());
    let (mut count, mut rest) = (0, words);
    while let Some((word, equals, after)) = next_word(rest) {
        rest = after;
        if word.is_empty() {
            continue;
        }
        let (key, value) = split_tag(word, equals)?;
        let before = few.iter().take(count).chain(&more);
        if before.clone().any(|(other, differs)| *other == key && *differs != value) {
            return Err(duplicate_tag(word, before.copied()));
        }
        match few.get_mut(count) {
            Some(free) => *free = (key, value),
            None if count < COMPARED_MAX => more.push((key, value)),
            None => {}
        }
        count += 1;
    }
    Ok(())
}

/// The word up to the next blank, the place of its `=` if it has exactly one, and the text after the word; `None` at the end.
fn next_word(words: &str) -> Option<(&str, Option<usize>, &str)> {
    if words.is_empty() {
        return None;
    }
    // By hand, for both letters in one pass: a search for each letter costs several times as much for words this short.
    let (mut equals, mut equals_count, mut end) = (0, 0, words.len());
    for (place, byte) in words.bytes().enumerate() {
        if byte == b' ' {
            end = place;
            break;
        }
        if byte == b'=' {
            equals = place;
            equals_count += 1;
        }
    }
    let after = words.get(end + 1..).unwrap_or_default();
    Some((words.get(..end)?, (equals_count == 1).then_some(equals), after))
}

/// `key=value` with exactly one `=` and nothing empty.
fn split_tag(word: &str, equals: Option<usize>) -> Result<(&str, &str), Problem> {
    match equals.and_then(|place| Some((word.get(..place)?, word.get(place + 1..)?))) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key, value)),
        _ => Err(Problem::InvalidTag { word: word.into() }),
    }
}

fn duplicate_tag<'a>(word: &str, before: impl Iterator<Item = (&'a str, &'a str)>) -> Problem {
    let mut tags: Vec<(&str, Option<&str>)> = Vec::new();
    for (key, value) in before {
        if tags.iter().all(|(known, _)| *known != key) {
            tags.push((key, Some(value)));
        }
    }
    Problem::DuplicateTag { word: word.into(), tags: tags_text(tags.into_iter()).into() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(line: &str, answer: &str) {
        let told = parse_put_line(line).map_err(|problem| problem.telnet_text("put"));
        assert_eq!(told.expect_err(line), answer, "{line:?}");
    }

    fn tags(line: &str) -> Vec<(String, String)> {
        let point = parse_put_line(line).unwrap_or_else(|problem| panic!("{line:?}: {problem:?}"));
        let tags = point.tags.decode();
        tags.into_iter().map(|(key, value)| (key.into(), value.unwrap().into())).collect()
    }

    #[test]
    fn t_put_what_clients_send_is_read() {
        let point = parse_put_line("put sys.cpu 1700000000.123 -5 host=a").unwrap();
        assert_eq!(point.metric.unwrap().raw(), "sys.cpu");
        assert_eq!((point.timestamp, point.value.unwrap().raw()), (1_700_000_000_123, "-5"));
        assert_eq!(parse_import_line("sys.cpu 1700000000 1 host=a\n").unwrap().timestamp, 1_700_000_000);
        // collectd: two blanks before the host's tags, and a CR at the end.
        let expected = [("fqdn".to_owned(), "hosta".to_owned()), ("status".to_owned(), "up".to_owned())];
        assert_eq!(tags("put load.load.shortterm 1700000000 0.2 fqdn=hosta  status=up\r\n"), expected);
        assert_eq!(tags("put m 1700000000 1 host=a  dc=x   ").len(), 2);
        assert_eq!(tags("put m 1700000000 1 host=a host=a").len(), 1);
        assert_eq!(tags("put m 1.7.0.0 1 host=a").len(), 1);
        // No tag at all is found when the point's names are checked.
        assert_eq!(tags("put m 1700000000 2 ").len(), 0);
    }

    #[test]
    fn t_put_err_texts_as_the_real_one_wrote_them() {
        check("put", "put: illegal argument: not enough arguments (need least 4, got 0)");
        check("put a", "put: illegal argument: not enough arguments (need least 4, got 1)");
        check("put a 1\r\n", "put: illegal argument: not enough arguments (need least 4, got 2)");
        check("put a 1 2", "put: illegal argument: not enough arguments (need least 4, got 3)");
        check("put  a 1700000000 2 host=a", "put: illegal argument: empty metric name");
        check("put a  1700000000 2 host=a", "put: invalid value: Empty string");
        check("put m x 2 host=a", "put: invalid value: Invalid character 'x' in x");
        check("put m . 2 host=a", "put: invalid value: Empty string");
        check("put m + 2 host=a", "put: invalid value: Just a sign, no value: +");
        check("put m 99999999999999999999 1 h=a", "put: invalid value: Value too long: 99999999999999999999");
        check("put m 0 2 host=a", "put: illegal argument: invalid timestamp: 0");
        check("put m -5 2 host=a", "put: illegal argument: invalid timestamp: -5");
        check("put m 1700000000  host=a", "put: illegal argument: empty value");
        check("put m 1700000000 1 host", "put: illegal argument: invalid tag: host");
        check("put m 1700000000 1 host=", "put: illegal argument: invalid tag: host=");
        check("put m 1700000000 1 =a", "put: illegal argument: invalid tag: =a");
        check("put m 1700000000 1 a=b=c", "put: illegal argument: invalid tag: a=b=c");
        check(
            "put m 1700000000 1 host=a dc=x host=b host",
            "put: illegal argument: duplicate tag: host=b, tags={host=a, dc=x}",
        );
    }

    #[test]
    fn t_limit_a_long_line_takes_no_square_of_time() {
        let words: Vec<String> = (0..100_000).map(|n| format!("k{n}=v")).collect();
        assert!(parse_import_line(&format!("m 1 1 {}", words.join(" "))).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_line_is_read_or_refused(line in "[a-c=. 0-9\\r\\nx]{0,40}", raw in proptest::collection::vec(any::<u8>(), 0..40)) {
            for text in [line, crate::decode_text(&raw).into_owned()] {
                for read in [parse_put_line(&text), parse_put_line(&format!("put m 1 {text}")), parse_import_line(&text)] {
                    match read {
                        Ok(point) => prop_assert!(point.timestamp > 0 && !point.metric.unwrap().is_empty()),
                        Err(problem) => prop_assert!(!problem.telnet_text("put").is_empty()),
                    }
                }
            }
        }
    }
}
