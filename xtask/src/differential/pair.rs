//! The two servers: the real OpenTSDB of one profile, and a Basalt of its own for each data set.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::golden::answer::Answer;
use crate::golden::play::Player;
use crate::golden::profile;
use crate::golden::record::{self, Oracle};
use crate::golden::scenario::Step;
use crate::oracle;

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
    pub(crate) fn new(profiles: &[String], program: PathBuf) -> Result<Self> {
        let oracle = Oracle::start(profiles.iter().map(String::as_str))?;
        Ok(Self { oracle, program, folder: tempfile::tempdir()?, starts_count: 0 })
    }

    /// Both servers with nothing in them.
    pub(crate) fn fresh(&mut self, profile: &str, store: &str) -> Result<Servers> {
        self.starts_count += 1;
        let folder = self.folder.path().join(self.starts_count.to_string());
        std::fs::create_dir(&folder)?;
        let config = folder.join("basalt.toml");
        std::fs::write(&config, profile::settings(profile))?;
        let ours = Basalt::start(&self.program, &folder, store, &config)?;
        let real = self.oracle.fresh(profile)?;
        Ok(Servers { real, ours })
    }
}

/// A running pair; Basalt ends with it.
#[derive(Debug)]
pub(crate) struct Servers {
    real: SocketAddr,
    ours: Basalt,
}

impl Servers {
    /// Puts the points into both.
    pub(crate) fn seed(&self, lines: &[String]) -> Result<()> {
        let put = |address| Player::new(address, &|| {}).seed(lines);
        std::thread::scope(|scope| {
            let real = scope.spawn(|| put(self.real));
            put(self.ours.address).context("Basalt")?;
            let real = real.join().unwrap_or_else(|_| anyhow::bail!("the thread that puts panicked"));
            real.context("OpenTSDB")
        })
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
        Asker { real: Player::new(self.real, &record::settle), ours: Player::new(self.ours.address, &|| {}) }
    }
}

/// Asks both the same.
pub(crate) struct Asker {
    real: Player<'static>,
    ours: Player<'static>,
}

impl Asker {
    /// What the real one answers, and what Basalt does. No answer at all is an answer of that text.
    pub(crate) fn ask(&mut self, step: &Step) -> (Answer, Answer) {
        let answer = |player: &mut Player<'_>| {
            let answer = player.exchange(step, "");
            answer.unwrap_or_else(|error| Answer::telnet(step.describe(""), format!("no answer: {error:#}")))
        };
        let answers = (answer(&mut self.real), answer(&mut self.ours));
        // OpenTSDB deletes later than it answers.
        if step.http.as_deref().is_some_and(|line| line.starts_with("DELETE /api/query")) {
            record::settle();
        }
        answers
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
        command.arg("--config").arg(config).stdout(Stdio::piped()).stderr(std::fs::File::create(folder.join("log"))?);
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

/// Builds Basalt and says where its binary is.
pub(crate) fn build() -> Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let root = oracle::workspace();
    let status = Command::new(cargo).args(["build", "--bin", "basalt"]).current_dir(&root).status()?;
    ensure!(status.success(), "cargo build: {status}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("debug/basalt"))
}
