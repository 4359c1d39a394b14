//! The command line of OpenTSDB's queries: `START [END] FUNC [rate] [counter,max,reset] [downsample N FUNC] METRIC
//! [k=v]…`, the last six again and again. `query`, `scan` and `fsck` share it.
//!
//! Words that set up a plot (`+option=value`, or with a blank in them) are taken and mean nothing.

use basalt_query::{Compat, RateOptions, SubQuery, TagFilter, TimeContext, parse_time};

use crate::clock;
use crate::config::Config;
use crate::exit::{Exit, Failure};

/// A whole command line.
#[derive(Debug)]
pub(super) struct Words {
    /// First instant, ms.
    pub(super) start_ms: i64,
    /// Last instant, ms.
    pub(super) end_ms: i64,
    /// At least one.
    pub(super) queries: Vec<SubQuery>,
    /// How filters are understood.
    pub(super) compat: Compat,
}

impl Words {
    /// Reads the words; times as `config` says.
    ///
    /// # Errors
    ///
    /// Exit code 2: too few words, or one that is none of the expected.
    pub(super) fn parse(words: &[String], config: &Config) -> Result<Self, Failure> {
        let zone = basalt_query::parse_zone(&config.query.timezone).map_err(|cause| wrong(&cause.to_string()))?;
        let now = clock::signed_now_ms();
        let context = TimeContext { now_ms: now, zone, compat: Compat { strict: config.compat.strict } };
        // Whole seconds, as OpenTSDB reads them.
        let time = |text: &str| match parse_time(text, &context) {
            Ok(ms) if ms < 0 => Err(wrong(&format!("Invalid timestamp: {ms}"))),
            Ok(ms) => Ok(ms / 1000 * 1000),
            Err(cause) => Err(wrong(&cause.to_string())),
        };
        let mut rest = Rest(words);
        let start_ms = time(rest.next("START")?)?;
        let end_ms = if words.len() > 3 && rest.peek().is_some_and(is_time) { time(rest.next("END")?)? } else { now };
        while rest.peek().is_some_and(|word| word.starts_with('+')) {
            rest.next("an option of the plot")?;
        }
        let mut queries = Vec::new();
        while rest.peek().is_some() {
            queries.push(query(&mut rest)?);
        }
        if queries.is_empty() {
            return Err(wrong("at least one query is needed: FUNC METRIC [k=v]…"));
        }
        Ok(Self { start_ms, end_ms, queries, compat: context.compat })
    }
}

/// Whether the word after the start is the end and not a function.
fn is_time(word: &str) -> bool {
    !word.starts_with('+') && (word.contains([':', '/', '-']) || word.parse::<i64>().is_ok_and(|number| number > 0))
}

/// The words not read yet.
struct Rest<'a>(&'a [String]);

impl<'a> Rest<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.0.first().map(String::as_str)
    }

    fn next(&mut self, what: &str) -> Result<&'a str, Failure> {
        let (word, rest) =
            self.0.split_first().ok_or_else(|| wrong(&format!("not enough arguments: {what} is missing")))?;
        self.0 = rest;
        Ok(word)
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(word);
        if there {
            self.0 = self.0.get(1..).unwrap_or_default();
        }
        there
    }
}

fn query(rest: &mut Rest<'_>) -> Result<SubQuery, Failure> {
    let mut query = SubQuery { aggregator: Some(rest.next("FUNC")?.to_owned()), ..SubQuery::default() };
    if rest.take("rate") {
        query.rate = true;
        if let Some(word) = rest.peek().filter(|word| word.starts_with("counter")) {
            query.rate_options = Some(counter(word)?);
            rest.next("counter")?;
        }
    }
    if rest.take("downsample") {
        let interval = number(rest.next("N of downsample, in ms")?)?;
        query.downsample = Some(format!("{interval}ms-{}", rest.next("FUNC of downsample")?));
    }
    query.metric = Some(rest.next("METRIC")?.to_owned());
    while let Some(word) = rest.peek().filter(|word| !word.contains(' ')) {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else { break };
        let mut filter = TagFilter::from_value(key, value).map_err(|cause| wrong(&format!("tag `{word}`: {cause}")))?;
        filter.group_by = true;
        query.filters.push(filter);
        rest.next("a tag")?;
    }
    if rest.peek().is_some_and(|word| word.contains(' ')) {
        rest.next("an option of the plot")?;
    }
    Ok(query)
}

/// `counter,max,reset`.
fn counter(word: &str) -> Result<RateOptions, Failure> {
    let mut options = RateOptions { counter: true, ..RateOptions::default() };
    let mut parts = word.split(',').skip(1);
    if let Some(max) = parts.next().filter(|part| !part.is_empty()) {
        options.counter_max = number(max)?;
    }
    if let Some(reset) = parts.next().filter(|part| !part.is_empty()) {
        options.reset_value = number(reset)?;
    }
    Ok(options)
}

fn number(word: &str) -> Result<i64, Failure> {
    word.parse().map_err(|_| wrong(&format!("`{word}` is no integer")))
}

fn wrong(line: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{line}; see --help").replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Words, Failure> {
        let words: Vec<String> = line.split('~').map(str::to_owned).collect();
        Words::parse(&words, &Config::default())
    }

    /// Rule `C-QUERY`: the whole grammar.
    #[test]
    fn every_word_has_its_place() {
        let line = "1356998400~1356998460~+key=out~sum~rate~counter,100,5~downsample~60000~avg~m~host=*~dc=a|b~\
                    title 'x'~max~n";
        let words = parse(line).unwrap();
        assert_eq!((words.start_ms, words.end_ms), (1_356_998_400_000, 1_356_998_460_000));
        let [first, second] = &words.queries[..] else { panic!("{words:?}") };
        assert_eq!(first.rate_options.map(|rate| (rate.counter_max, rate.reset_value)), Some((100, 5)));
        assert_eq!(first.downsample.as_deref(), Some("60000ms-avg"));
        assert_eq!(first.filters.len(), 2);
        assert!(first.filters.iter().all(|filter| filter.group_by));
        assert_eq!((second.metric.as_deref(), second.rate), (Some("n"), false));
    }

    #[test]
    fn the_end_may_be_left_out() {
        assert_eq!(parse("1356998400~sum~m").unwrap().queries[0].metric.as_deref(), Some("m"));
        assert_eq!(parse("1h-ago~sum~m~host=a").unwrap().queries[0].filters.len(), 1);
        assert_eq!(parse("2013/01/01-00:00:00~2013/01/02~sum~m").unwrap().end_ms, 1_357_084_800_000);
    }

    #[test]
    fn too_few_words_and_wrong_times_are_told() {
        for line in [
            "1356998400",
            "1356998400~1356998500",
            "1356998400~sum",
            "1356998400~sum~rate",
            "x~sum~m",
            "1960/01/01~sum~m",
        ] {
            assert_eq!(parse(line).unwrap_err().exit, Exit::Usage, "{line}");
        }
    }
}
