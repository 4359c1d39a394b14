//! A server under measurement: started on an empty folder, asked of by pid, stopped by SIGTERM.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::load::Door;

/// Clock ticks a second in /proc; 100 on every Linux that Rust's standard library supports.
const TICKS_A_SECOND: f64 = 100.0;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Basalt,
    /// An older Basalt.
    Before,
    VictoriaMetrics,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Basalt => "Basalt",
            Self::Before => "Basalt before",
            Self::VictoriaMetrics => "VictoriaMetrics",
        })
    }
}

/// A running server; killed if it is dropped unstopped.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts it on an empty folder under `dir` and waits until it listens.
    pub(crate) fn start(kind: Kind, program: &Path, dir: &Path) -> Result<Self> {
        let folder = dir.join(format!("{kind:?}"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let data = folder.join("data").display().to_string();
        let args = match kind {
            Kind::Basalt | Kind::Before => {
                vec!["serve".into(), "--listen".into(), "127.0.0.1:14300".into(), "--data-dir".into(), data]
            }
            Kind::VictoriaMetrics => vec![
                format!("-storageDataPath={data}"),
                "-httpListenAddr=127.0.0.1:14301".into(),
                "-opentsdbHTTPListenAddr=127.0.0.1:14302".into(),
                "-opentsdbListenAddr=127.0.0.1:14303".into(),
                "-retentionPeriod=100y".into(),
            ],
        };
        let log = std::fs::File::create(folder.join("log"))?;
        let child = Command::new(program)
            .args(args)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let server = Self { kind, child, folder };
        server.wait_for_port()?;
        Ok(server)
    }

    /// Where it takes points.
    pub(crate) fn port(&self, door: Door) -> u16 {
        match (self.kind, door) {
            (Kind::Basalt | Kind::Before, _) => 14300,
            (Kind::VictoriaMetrics, Door::Json) => 14302,
            (Kind::VictoriaMetrics, Door::Telnet) => 14303,
        }
    }

    /// The folder that holds its data.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// User and system seconds so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, rest) = stat.rsplit_once(')').context("no command in /proc/PID/stat")?;
        let ticks: u64 = rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
        Ok(ticks as f64 / TICKS_A_SECOND)
    }

    /// The most resident memory it ever had, file pages included.
    pub(crate) fn peak_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|l| l.starts_with("VmHWM:")).context("no VmHWM")?;
        let kib: f64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
        Ok(kib / 1024.0)
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn stop(mut self) -> Result<PathBuf> {
        let told = Command::new("kill").arg(self.child.id().to_string()).status()?;
        ensure!(told.success(), "cannot signal {}", self.child.id());
        let end = Instant::now() + Duration::from_secs(120);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("{} did not end within two minutes", self.kind);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.data())
    }

    /// Whether it takes points. Basalt listens before it does, and says so.
    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port(Door::Json))) else { return false };
        if self.kind == Kind::VictoriaMetrics {
            return true;
        }
        let mut answer = String::new();
        let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    }

    fn wait_for_port(&self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.is_ready() {
            ensure!(Instant::now() < end, "{} does not listen; see {}", self.kind, self.folder.join("log").display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
