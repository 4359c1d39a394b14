//! The two servers: the real OpenTSDB of one profile, and a Basalt of its own for each data set.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::both::daemon::{REWRITES, pause, rewrites, wait_rewritten};
use crate::golden::answer::Answer;
use crate::golden::client::{Client, Request};
use crate::golden::play::Player;
use crate::golden::profile;
use crate::golden::record::{self, Oracle};
use crate::golden::scenario::Step;
use crate::oracle;

/// The store that is OpenTSDB's own tables.
pub(crate) const SHARED: &str = "hbase";
/// What a daemon whose tables are shared is told: to compact each row at once, as it does in time.
const COMPACTS: &str = "tsd.storage.enable_compaction = true
tsd.storage.compaction.flush_interval = 1
tsd.storage.compaction.min_flush_threshold = 1
tsd.storage.compaction.flush_speed = 3600";
/// By when it has, twice over.
const COMPACTED: Duration = Duration::from_secs(3);

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// OpenTSDB.
    Real,
    /// Basalt.
    Ours,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "OpenTSDB",
            Self::Ours => "Basalt",
        })
    }
}

/// What a data set is put into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind<'a> {
    /// The oracle's profile.
    pub(crate) profile: &'a str,
    /// Basalt's store.
    pub(crate) store: &'a str,
    /// Who alone writes, where both have the same tables.
    pub(crate) writer: Option<Side>,
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.profile, self.store)?;
        match self.writer {
            None => Ok(()),
            Some(writer) => write!(f, ", written by {writer}"),
        }
    }
}

/// Who can start both from empty tables, as often as needed.
#[derive(Debug)]
pub(crate) struct Pair {
    oracle: Oracle,
    program: PathBuf,
    folder: tempfile::TempDir,
    starts_count: u64,
}

impl Pair {
    /// Starts (or finds running) the real daemons of these profiles. `program` is the binary of Basalt.
    pub(crate) fn new(profiles: &[String], program: PathBuf, is_shared: bool) -> Result<Self> {
        let names = profiles.iter().map(String::as_str);
        let oracle = if is_shared { Oracle::start_with(names, COMPACTS)? } else { Oracle::start(names)? };
        Ok(Self { oracle, program, folder: tempfile::tempdir()?, starts_count: 0 })
    }

    /// Both servers with nothing in them.
    pub(crate) fn fresh(&mut self, kind: Kind<'_>) -> Result<Servers> {
        self.starts_count += 1;
        let folder = self.folder.path().join(self.starts_count.to_string());
        std::fs::create_dir(&folder)?;
        let real = self.oracle.fresh(kind.profile)?;
        let config = if kind.writer.is_some() {
            // The very file that OpenTSDB's daemon reads.
            oracle::folder().join(format!("conf/tsd-{}.conf", kind.profile))
        } else {
            let config = folder.join("basalt.toml");
            std::fs::write(&config, profile::settings(kind.profile))?;
            config
        };
        let ours = Basalt::start(&self.program, &folder, kind.store, &config)?;
        Ok(Servers { real, ours, writer: kind.writer, rewrites: rewrites(kind.profile) })
    }
}

impl Pair {
    /// The forms in which the points of a profile's tables lie now, and how many cells have each.
    pub(crate) fn forms(&mut self, profile: &str) -> Result<BTreeMap<&'static str, u64>> {
        let table = if profile == "plain" { "tsdb".to_owned() } else { format!("{profile}-tsdb") };
        let mut forms = BTreeMap::new();
        for cell in self.oracle.tables(&format!("dump {table}"))? {
            let qualifier = cell.split(' ').nth(2).unwrap_or_default();
            *forms.entry(form(qualifier)).or_default() += 1;
        }
        for (end, form) in ROLLUPS.iter().filter(|_| profile == "rollup") {
            let cells = self.oracle.tables(&format!("dump {table}{end}"))?.len() as u64;
            *forms.entry(form).or_default() += cells;
        }
        Ok(forms)
    }
}

/// Ends of the names of tables that hold rollups, and of pre-aggregates; what their cells are.
const ROLLUPS: &[(&str, &str)] = &[
    ("-10m", "rolled up"),
    ("-1h", "rolled up"),
    ("-1d", "rolled up"),
    ("-preagg", "aggregated"),
    ("-10m-preagg", "aggregated"),
    ("-1h-preagg", "aggregated"),
    ("-1d-preagg", "aggregated"),
];

/// What a cell of a data table is, by its qualifier in hexadecimal: one of seconds has 2 bytes, one of milliseconds 4 that
/// begin with `f`, all of 3 or 5 are annotations, histograms and appended cells, which their first byte tells.
fn form(qualifier: &str) -> &'static str {
    match (qualifier.len(), qualifier.get(..2)) {
        (4, _) => "single",
        (8, _) if qualifier.starts_with('f') => "single",
        (6 | 10, Some("01")) => "annotation",
        (6 | 10, Some("05")) => "appended",
        (6 | 10, Some("06")) => "histogram",
        (length, _) if length % 4 == 0 => "compacted",
        _ => "other",
    }
}

/// A running pair; Basalt ends with it.
#[derive(Debug)]
pub(crate) struct Servers {
    real: SocketAddr,
    ours: Basalt,
    writer: Option<Side>,
    rewrites: bool,
}

impl Servers {
    /// Puts the points into both, or has the one that writes put them.
    pub(crate) fn seed(&self, lines: &[String]) -> Result<()> {
        let put = |address| Player::new(address, &|| {}).seed(lines);
        match self.writer {
            Some(Side::Real) => put(self.real).context("OpenTSDB")?,
            Some(Side::Ours) => put(self.ours.address).context("Basalt")?,
            None => std::thread::scope(|scope| {
                let real = scope.spawn(|| put(self.real));
                put(self.ours.address).context("Basalt")?;
                let real = real.join().unwrap_or_else(|_| anyhow::bail!("the thread that puts panicked"));
                real.context("OpenTSDB")
            })?,
        }
        self.settle()
    }

    /// Where one writes alone: waits until it has compacted what it wrote, and has the other one forget names, of which
    /// some may have been renamed; it would know them until it is told, as any two daemons of OpenTSDB's do.
    pub(crate) fn settle(&self) -> Result<()> {
        match self.writer {
            None => Ok(()),
            Some(Side::Real) => {
                pause(COMPACTED);
                record::forget_names(self.ours.address)
            }
            Some(Side::Ours) => {
                if self.rewrites {
                    wait_rewritten(self.ours.address)?;
                }
                record::forget_names(self.real)?;
                know_names(self.real)
            }
        }
    }

    /// TSUIDs of all series, as Basalt knows them without a meta table.
    pub(crate) fn tsuids(&self) -> Result<Vec<String>> {
        let step = Step { http: Some("GET /api/search/lookup?m=*&limit=10000".to_owned()), ..Step::default() };
        let answer = Player::new(self.ours.address, &|| {}).exchange(&step, "")?;
        let results = answer.json.as_ref().and_then(|json| json.get("results")?.as_array());
        let tsuids = results.into_iter().flatten().filter_map(|series| series.get("tsuid").and_then(Value::as_str));
        Ok(tsuids.map(str::to_owned).collect())
    }

    /// One who asks both, over a connection each.
    pub(crate) fn asker(&self) -> Asker {
        let (real, ours) = (Player::new(self.real, &record::settle), Player::new(self.ours.address, &|| {}));
        Asker { real, ours, writer: self.writer }
    }
}

/// Has OpenTSDB look up all names: it loses rows of salted tables that it reads while a filter makes it look up names.
fn know_names(real: SocketAddr) -> Result<()> {
    let mut client = Client::new(real);
    for kind in ["metrics", "tagk", "tagv"] {
        let target = format!("/api/suggest?type={kind}&max=10000");
        let answer = client.send(&Request { method: "GET", target: &target, ..Request::default() })?;
        ensure!(answer.status == 200, "{target}: {}", answer.status);
    }
    Ok(())
}

/// Asks both the same.
pub(crate) struct Asker {
    real: Player<'static>,
    ours: Player<'static>,
    writer: Option<Side>,
}

impl Asker {
    /// What the real one answers, and what Basalt does. No answer at all is an answer of that text.
    pub(crate) fn ask(&mut self, step: &Step) -> (Answer, Answer) {
        let answers = (answer(&mut self.real, step), answer(&mut self.ours, step));
        settle(step);
        answers
    }

    /// The same for a step that changes something. Where one alone writes, it is asked alone, and there is nothing to compare.
    pub(crate) fn change(&mut self, step: &Step) -> Option<(Answer, Answer)> {
        match self.writer {
            None => return Some(self.ask(step)),
            Some(Side::Real) => answer(&mut self.real, step),
            Some(Side::Ours) => answer(&mut self.ours, step),
        };
        settle(step);
        None
    }
}

fn answer(player: &mut Player<'_>, step: &Step) -> Answer {
    let answer = player.exchange(step, "");
    answer.unwrap_or_else(|error| Answer::telnet(step.describe(""), format!("no answer: {error:#}")))
}

/// OpenTSDB deletes later than it answers.
fn settle(step: &Step) {
    if step.http.as_deref().is_some_and(|line| line.starts_with("DELETE /api/query")) {
        record::settle();
    }
}

/// A `basalt serve` on a free port.
#[derive(Debug)]
struct Basalt {
    child: Child,
    address: SocketAddr,
}

impl Basalt {
    fn start(program: &Path, folder: &Path, store: &str, config: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--data-dir"]).arg(folder.join("data"));
        command
            .arg("--config")
            .arg(config)
            .env("BASALT_COMPAT__STRICT", "true")
            .envs(REWRITES.iter().copied())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log"))?);
        let mut child = command.spawn().with_context(|| format!("{}", program.display()))?;
        let output = child.stdout.take().context("no output of Basalt")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        let mut basalt = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) };
        let port = port.with_context(|| format!("Basalt did not start: {line:?}, see {}", folder.display()))?;
        basalt.address.set_port(port);
        Ok(basalt)
    }
}

impl Drop for Basalt {
    fn drop(&mut self) {
        // Nothing is left to tell at this point if it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::form;

    #[test]
    fn a_cells_form_is_told_by_its_qualifier() {
        for (qualifier, told) in [
            ("0320", "single"),
            ("f0000001", "single"),
            ("03200330", "compacted"),
            ("0320f0000001", "compacted"),
            ("050000", "appended"),
            ("0100000020", "annotation"),
            ("060000", "histogram"),
        ] {
            assert_eq!(form(qualifier), told, "{qualifier}");
        }
    }
}
