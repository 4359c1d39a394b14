//! `basalt search lookup`: series by metric and tags.

use std::fmt::Write as _;

use basalt_schema::{FoundSeries, Lookup};
use clap::Args;

use super::folder::with_folder;
use super::{ToolSources, java, print};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::store::failed;

/// Series whose names are read and printed at a time.
const PAGE_SERIES: usize = 10_000;

/// `basalt search`.
#[derive(Debug, Args)]
#[command(after_help = "\
lookup [METRIC] [k=v] [k=] [=v] …      an absent or `*` part is any
A line is `TSUID metric k=v …`.

Examples:
  basalt search lookup sys.cpu.user host=web01
  basalt search lookup =web01

Exit codes: 0 done, 1 unknown name, 2 wrong command line, 4 folder in use, 5 damaged data.")]
pub(super) struct Search {
    /// Sub-command and its words
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Taken and not needed: the series index answers
    #[arg(long, hide = true)]
    use_data_table: bool,
    #[command(flatten)]
    sources: ToolSources,
}

impl Search {
    pub(super) fn run(self) -> Result<(), Failure> {
        let lookup = lookup(&self.words)?;
        with_folder(&self.sources.load()?, |opened| {
            let failing = |cause: basalt_schema::Error| failed("cannot look up", &cause);
            let found = meanwhile("looking for series", || opened.schema.lookup_tsuids(&lookup));
            let (tsuids, _) = found.map_err(failing)?;
            for some in tsuids.chunks(PAGE_SERIES) {
                let text: String = opened.schema.named(some).map_err(failing)?.iter().map(line).collect();
                print(&text)?;
            }
            Ok(())
        })
    }
}

fn line(series: &FoundSeries) -> String {
    let tags: Vec<(&str, &str)> = series.names.tags.iter().map(|(key, value)| (&**key, &**value)).collect();
    let mut line = format!("{} {}", series.tsuid, series.names.metric);
    for (key, value) in java::hash_order(&tags) {
        write!(line, " {key}={value}").unwrap_or_default();
    }
    line.push('\n');
    line
}

fn lookup(words: &[String]) -> Result<Lookup, Failure> {
    let usage = |line: String| Failure::new(Exit::Usage, format!("search: {line}; see `basalt search --help`"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["lookup", ref words @ ..] = *words.as_slice() else {
        return Err(usage("the only sub-command is `lookup`".to_owned()));
    };
    let part = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty() && text != "*");
    let mut lookup = Lookup { limit: usize::MAX, ..Lookup::default() };
    let tags = match words.split_first() {
        None => return Err(usage("not enough arguments".to_owned())),
        Some((metric, rest)) if !metric.contains('=') => {
            lookup.metric = part(metric);
            rest
        }
        Some(_) => words,
    };
    for tag in tags {
        let (key, value) = tag.split_once('=').ok_or_else(|| usage(format!("invalid tag: {tag}")))?;
        lookup.tags.push((part(key), part(value)));
    }
    Ok(lookup)
}
