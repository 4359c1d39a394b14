//! `basalt advise`: judges a table's design before there is data.

use std::fmt::Write as _;
use std::io::{BufRead as _, Read, Write as _};
use std::path::{Path, PathBuf};

use basalt_store::advise::{Advice, QUESTIONS, advise, create_line, spec};
use clap::Args;
use serde_json::json;

use super::print;
use crate::advise::{EXAMPLE, SCRIPT_MARK, read};
use crate::exit::{Exit, Failure};

/// Longest design in bytes.
const DESIGN_BYTES_MAX: u64 = 16 << 20;

/// `basalt advise`.
#[derive(Debug, Args)]
#[command(after_help = "\
A design is a TOML file: [[key]] for each field of the row key in order, [[family]] for each
column family, [[access]] for each way of reading. For each access it is told what it takes: a get,
a short scan, a fan-out or a full scan. Findings have a level, the rule's code of
docs/data-model.md, and what to do. No store is asked.

  [[key]]     name; kind: text, digits, hex, number, time, sequence, id, hash, bucket or random;
              bytes; of, buckets (of a hash or bucket); step (of a time); values, top_percent;
              delimiter, pad; hex, newest_first, reversed
  [[family]]  name, versions, min_versions, ttl_seconds, block_bytes, explicit_times, columns,
              qualifiers, qualifier_bytes, value_bytes = [BYTES, …], rows
  [[access]]  name, equals = [FIELD, …], range = FIELD, newest_first, families = [NAME, …], weight
  above them  table, splits = [KEY, …], rows = [[VALUE, …], …], writes_per_second, regions

--new asks the seven questions of a new table and writes a script that makes it, with the design in
its comments.

Examples:
  basalt advise --example > tsdb.toml       the design of OpenTSDB's data table: no error
  basalt advise tsdb.toml
  basalt advise --new events.hbase
  basalt advise events.hbase && basalt shell --data-dir /var/lib/basalt events.hbase

Exit codes: 0 no error-level finding; 1 an error-level finding, or a file that cannot be read or
written; 2 wrong command line.")]
pub(super) struct Advise {
    /// Design to judge: TOML, or a script that --new wrote; standard input unless told
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Ask the seven questions on standard input, and write this script for `basalt shell`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "json"])]
    new: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Print the design of OpenTSDB's data table
    #[arg(long, conflicts_with_all = ["file", "new", "json"])]
    example: bool,
}

impl Advise {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.example {
            return print(EXAMPLE);
        }
        if let Some(path) = &self.new {
            return ask(path);
        }
        let (name, text) = match &self.file {
            Some(path) => (path.display().to_string(), std::fs::File::open(path).and_then(bounded)),
            None => ("standard input".to_owned(), bounded(std::io::stdin())),
        };
        let text = text.map_err(|cause| Failure::new(Exit::Failure, format!("cannot read {name}: {cause}")))?;
        let design = read(&text).map_err(|cause| Failure::new(Exit::Failure, format!("{name}: {cause}")))?;
        tell(&advise(&design), self.json)
    }
}

fn bounded(file: impl Read) -> std::io::Result<String> {
    let text = std::io::read_to_string(file.take(DESIGN_BYTES_MAX + 1))?;
    if text.len() as u64 > DESIGN_BYTES_MAX {
        return Err(std::io::Error::other(format!("a design has at most {DESIGN_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Asks the questions, writes the script, and judges the design.
fn ask(path: &Path) -> Result<(), Failure> {
    let failed = |what: &str, cause: &dyn std::fmt::Display| Failure::new(Exit::Failure, format!("{what}: {cause}"));
    if path.exists() {
        return Err(failed("cannot make a design", &format!("{} is there already", path.display())));
    }
    let table = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut lines = std::io::stdin().lock().lines();
    let mut answers: [String; 7] = Default::default();
    for (question, answer) in QUESTIONS.iter().zip(&mut answers) {
        print(&format!("{question}\n> "))?;
        let line = lines.next().transpose().map_err(|cause| failed("cannot read the answer", &cause))?;
        *answer = line.ok_or_else(|| failed("there is no answer to", question))?;
    }
    let spec = spec(table, &answers).map_err(|cause| failed("no design", &cause))?;
    let design = read(&spec).map_err(|cause| failed("no design", &cause))?;
    let create = create_line(&design).map_err(|cause| failed("no design", &cause))?;
    let comments = spec.lines().fold(String::new(), |text, line| text + SCRIPT_MARK + " " + line + "\n");
    let script = format!(
        "# Made by `basalt advise --new`; the lines of {SCRIPT_MARK} are what `basalt advise` reads.\n{comments}{create}\n"
    );
    let mut file =
        std::fs::File::create_new(path).map_err(|cause| failed(&format!("cannot make {}", path.display()), &cause))?;
    if let Err(cause) = file.write_all(script.as_bytes()) {
        // The half of a script is none, and would be in the way.
        drop(std::fs::remove_file(path));
        return Err(failed(&format!("cannot write {}", path.display()), &cause));
    }
    print(&format!("wrote {}: `basalt shell {}` makes the table\n", path.display(), path.display()))?;
    tell(&advise(&design), false)
}

/// Prints what a design is told; a failure if a finding is an error.
fn tell(advice: &Advice, as_json: bool) -> Result<(), Failure> {
    print(&if as_json { objects(advice) } else { lines(advice) })?;
    if !advice.has_errors() {
        return Ok(());
    }
    let line = "the design has errors: change it before there is data, as a row key cannot be changed later";
    Err(Failure::new(Exit::Failure, line))
}

fn lines(advice: &Advice) -> String {
    let mut text = String::new();
    for answer in &advice.answers {
        let calls = if answer.calls == 1 { "call" } else { "calls" };
        writeln!(text, "access   {}: {}, {} {calls}", answer.name, answer.path, answer.calls).unwrap_or_default();
    }
    if let Some(bytes) = &advice.key_bytes {
        let (shortest, longest) = (bytes.shortest, bytes.longest);
        let (hashed, numbered) = (bytes.hashed, bytes.numbered);
        writeln!(text, "key      {shortest} to {longest} bytes, median {}; with hashes for names {hashed}, with numbers {numbered}", bytes.median).unwrap_or_default();
    }
    for finding in &advice.findings {
        let level = finding.level.to_string();
        writeln!(text, "{level:<8} {}: {}\n         {}", finding.code, finding.says, finding.advice)
            .unwrap_or_default();
    }
    if advice.findings.is_empty() {
        text.push_str("nothing found\n");
    }
    text
}

fn objects(advice: &Advice) -> String {
    let answers = advice
        .answers
        .iter()
        .map(|answer| json!({"access": answer.name, "path": answer.path.to_string(), "calls": answer.calls}));
    let bytes = advice.key_bytes.iter().map(|bytes| {
        json!({"key_bytes": {"shortest": bytes.shortest, "median": bytes.median, "longest": bytes.longest,
            "hashed": bytes.hashed, "numbered": bytes.numbered}})
    });
    let findings = advice.findings.iter().map(|finding| {
        json!({"level": finding.level.to_string(), "code": finding.code, "says": finding.says, "advice": finding.advice})
    });
    answers.chain(bytes).chain(findings).fold(String::new(), |text, object| text + &object.to_string() + "\n")
}
