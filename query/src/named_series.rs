//! A series as requests name it: `metric` or `metric{key=value,…}`.

use std::str::FromStr;

use basalt_schema::tags_text;

use crate::error::{FilterFault, GrammarFault};
use crate::filter::fault;
use crate::{Error, Result};

/// Tags that a series may be named by: far more than it may have.
const TAGS_MAX: usize = 100;

/// The metric and the tags of a series, as a request names them.
///
/// ```
/// use basalt_query::NamedSeries;
/// let series: NamedSeries = "sys.cpu{host=a,dc=b}".parse()?;
/// assert_eq!((&*series.metric, series.tags.len()), ("sys.cpu", 2));
/// # Ok::<(), basalt_query::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSeries {
    /// Name of the metric.
    pub metric: String,
    /// Keys and values in their order, each key once.
    pub tags: Vec<(String, String)>,
}

impl FromStr for NamedSeries {
    type Err = Error;

    /// # Errors
    /// `Invalid`: no brace at the end, a tag that is no pair, a key with two values, more than a hundred tags.
    fn from_str(text: &str) -> Result<Self> {
        let (metric, inner) = match text.split_once('{') {
            None => (text, ""),
            Some((metric, braces)) => {
                let missing = || Error::Grammar { text: text.into(), fault: GrammarFault::MissingBrace };
                (metric, braces.strip_suffix('}').ok_or_else(missing)?)
            }
        };
        let words: Vec<&str> = inner.split(',').filter(|_| !inner.is_empty()).take(TAGS_MAX + 1).collect();
        if words.len() > TAGS_MAX {
            return Err(Error::TooMany { what: "tags", limit: TAGS_MAX });
        }
        let mut tags: Vec<(String, String)> = Vec::with_capacity(words.len());
        for word in words {
            let (key, value) = pair(word).ok_or_else(|| in_tag(word, FilterFault::Pair))?;
            match tags.iter().find(|(known, _)| known == key) {
                Some((_, same)) if same == value => {}
                Some(_) => {
                    let before = tags_text(tags.iter().map(|(key, value)| (&**key, Some(&**value))));
                    return Err(in_tag(word, FilterFault::Duplicate(before.into())));
                }
                None => tags.push((key.to_owned(), value.to_owned())),
            }
        }
        Ok(Self { metric: metric.to_owned(), tags })
    }
}

/// `key=value`, neither of which is empty.
fn pair(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty() && !value.contains('='))
}

fn in_tag(word: &str, what: FilterFault) -> Error {
    Error::InTag { what: "tag", text: word.into(), source: Box::new(fault(word, what)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `M-TSMETA`, `L-LAST`: the texts are OpenTSDB's.
    #[test]
    fn a_series_is_read_whole_or_refused() {
        let check = |text: &str, expected: &str| {
            let found = text.parse().map(|NamedSeries { metric, tags }| {
                let tags = tags.iter().map(|(key, value)| format!(" {key}={value}"));
                metric + &tags.collect::<String>()
            });
            assert_eq!(found.unwrap_or_else(|fault| fault.to_string()), expected, "{text}");
        };
        check("m", "m");
        check("m{}", "m");
        check("m{a=b,c=*,a=b}", "m a=b c=*");
        check("m{a=b,a=c}", "When parsing tag 'a=c': duplicate tag: a=c, tags={a=b}");
        check("m{a=b,c=d,a=e}", "When parsing tag 'a=e': duplicate tag: a=e, tags={a=b, c=d}");
        check("m{a", "Missing '}' at the end of: m{a");
        check("m{a=}", "When parsing tag 'a=': invalid tag: a=");
        check("m{a=b,}", "When parsing tag '': invalid tag: ");
        check("m{a=b=c}", "When parsing tag 'a=b=c': invalid tag: a=b=c");
        let tags = |count: usize| (0..count).map(|tag| format!("k{tag}=v")).collect::<Vec<_>>().join(",");
        assert_eq!(format!("m{{{}}}", tags(100)).parse::<NamedSeries>().unwrap().tags.len(), 100);
        check(&format!("m{{{}}}", tags(101)), "A request may have at most 100 tags; split it");
    }
}
