//! A server under measurement: started on a folder, asked of by pid, stopped by SIGTERM.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::peer::{Kind, Running};

/// Clock ticks a second in /proc; 100 on every Linux that Rust's standard library supports.
const TICKS_A_SECOND: f64 = 100.0;

/// A running server; killed if it is dropped unstopped, unless others started it.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    child: Option<Child>,
    pids: Vec<u32>,
    folder: PathBuf,
}

impl Server {
    /// Starts it on an empty folder under `dir` and waits until it answers.
    pub(crate) fn start(kind: Kind, program: &Path, dir: &Path) -> Result<Self> {
        let folder = dir.join(format!("{kind:?}"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        Self::again(kind, program, dir)
    }

    /// Starts it on the folder that it left.
    pub(crate) fn again(kind: Kind, program: &Path, dir: &Path) -> Result<Self> {
        let folder = dir.join(format!("{kind:?}"));
        std::fs::create_dir_all(&folder)?;
        let log = std::fs::File::create(folder.join("log"))?;
        let child = kind
            .command(program, &folder)?
            .stdout(log.try_clone()?)
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let server = Self { kind, pids: vec![child.id()], child: Some(child), folder };
        server.wait_until_ready()?;
        if kind == Kind::InfluxDb {
            server.create_databases()?;
        }
        Ok(server)
    }

    /// One that runs already and goes on running.
    pub(crate) fn running(kind: Kind, running: &Running) -> Self {
        Self { kind, child: None, pids: running.0.clone(), folder: PathBuf::new() }
    }

    /// The folder that holds its data.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// User and system seconds so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let mut ticks = 0;
        for pid in &self.pids {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let (_, rest) = stat.rsplit_once(')').context("no command in /proc/PID/stat")?;
            ticks += rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum::<u64>();
        }
        Ok(ticks as f64 / TICKS_A_SECOND)
    }

    /// The most resident memory it ever had, file pages included.
    pub(crate) fn peak_mib(&self) -> Result<f64> {
        let mut total = 0.0;
        for pid in &self.pids {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = status.lines().find(|l| l.starts_with("VmHWM:")).context("no VmHWM")?;
            let kib: f64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
            total += kib / 1024.0;
        }
        Ok(total)
    }

    /// Asks it to end and waits until it has; one that others started goes on.
    pub(crate) fn stop(mut self) -> Result<PathBuf> {
        let Some(child) = &mut self.child else { return Ok(self.data()) };
        let told = Command::new("kill").arg(child.id().to_string()).status()?;
        ensure!(told.success(), "cannot signal {}", child.id());
        let end = Instant::now() + Duration::from_secs(120);
        while child.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("{} did not end within two minutes", self.kind);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.data())
    }

    /// Whether it takes points. Basalt listens before it does, and says so.
    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.kind.port())) else { return false };
        if !self.kind.is_basalt() {
            return true;
        }
        let mut answer = String::new();
        let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    }

    fn wait_until_ready(&self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(120);
        while !self.is_ready() {
            ensure!(Instant::now() < end, "{} does not listen; see {}", self.kind, self.folder.join("log").display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// InfluxDB takes points for databases that there are; its OpenTSDB ports make theirs some time after they listen.
    fn create_databases(&self) -> Result<()> {
        let Some((port, _)) = self.kind.door(crate::load::Door::Line) else { return Ok(()) };
        for name in ["bench", "opentsdb"] {
            let url = format!("http://127.0.0.1:{port}/query?q=CREATE+DATABASE+{name}");
            let asked = ureq::post(url).send_empty();
            ensure!(asked.is_ok(), "{} makes no database {name}: {asked:?}", self.kind);
        }
        // Its writers learn of them a moment later.
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && let Ok(None) = child.try_wait()
        {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
