//! `basalt query`: a query's points as lines.

use std::fmt::Write as _;
use std::sync::Arc;

use basalt_query::{Cancel, Number, QueryEngine, QueryRequest, Series};
use clap::Args;

use super::folder::with_folder;
use super::words::Words;
use super::{ToolSources, java, print};
use crate::app::{query_limits, query_options};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::threads;

/// `basalt query`.
#[derive(Debug, Args)]
#[command(after_help = "\
START [END] FUNC [rate] [counter,max,reset] [downsample N FUNC] METRIC [k=v]…, and further queries
from FUNC on. Times: YYYY/MM/DD-HH:MM[:SS], seconds since 1970, 1h-ago. N is in milliseconds. A
value `*` or `a|b` groups. A line is `metric time-in-ms value {tags}`.

Examples:
  basalt query 1h-ago sum sys.cpu.user 'host=*'
  basalt query 2013/01/01 2013/01/02 avg rate counter,65535 downsample 60000 max if.bytes host=web01

Exit codes: 0 done, 1 unknown name or failure, 2 wrong command line, 4 folder in use, 5 damaged
data, 75 memory has no room, or HBase does not answer.")]
pub(super) struct QueryTool {
    /// The query
    #[arg(required = true, value_name = "WORD", allow_hyphen_values = false)]
    words: Vec<String>,
    /// OpenTSDB draws files by gnuplot here; refused
    #[arg(long, hide = true, value_name = "BASE")]
    graph: Option<String>,
    #[command(flatten)]
    sources: ToolSources,
}

impl QueryTool {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.graph.is_some() {
            let line = "--graph is not there: a server draws graphs, as of `GET /q?start=1h-ago&m=sum:sys.cpu&png`";
            return Err(Failure::new(Exit::Usage, line));
        }
        let config = self.sources.load()?;
        let words = Words::parse(&self.words, &config)?;
        threads::start_pool(config.processors())?;
        with_folder(&config, |opened| {
            let engine = QueryEngine::new(Arc::clone(&opened.schema), query_options(&config)?, query_limits(&config));
            let request = QueryRequest {
                start: Some(format!("{}ms", words.start_ms)),
                end: Some(format!("{}ms", words.end_ms)),
                queries: words.queries,
                no_annotations: true,
                ms_resolution: true,
                ..QueryRequest::default()
            };
            let answers = meanwhile("answering the query", || engine.run(&request, words.end_ms, &Cancel::new()));
            let answers = answers.map_err(|cause| {
                Failure::new(crate::store::exit_of_cause(cause.kind(), &cause), cause.to_string().replace('\n', " "))
            })?;
            answers.iter().flat_map(|answer| &answer.series).try_for_each(|series| print(&lines(series)))
        })
    }
}

fn lines(series: &Series) -> String {
    let tags: Vec<(&str, &str)> = series.tags.iter().map(|(key, value)| (&**key, &**value)).collect();
    let tags = java::map(&tags);
    let mut text = String::new();
    for point in &series.points {
        let value = match point.number {
            Number::Integer(value) => value.to_string(),
            Number::Double(value) => java::fixed(value),
        };
        writeln!(text, "{} {} {value} {tags}", series.metric, point.time_ms).unwrap_or_default();
    }
    text
}
