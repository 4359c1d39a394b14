//! `cargo xtask peers`: fetches the peers from public package registries, and runs `benches/` with all of them in one run, in turn.
//!
//! `VictoriaMetrics` comes as Debian packs it and, newer, by the Go module proxy; `InfluxDB` 1 from Debian; `QuestDB` from Maven Central;
//! OpenTSDB on HBase is the oracle. What the machine has no tool for is left out with a line that says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{did, said};
use crate::{oracle, workspace};

const VICTORIA_METRICS: &str = "github.com/VictoriaMetrics/VictoriaMetrics";
const VICTORIA_METRICS_VERSION: &str = "v1.130.0";
const QUESTDB: &str = "org.questdb:questdb:9.2.0";

const USAGE: &str = "\
usage: cargo xtask peers [--without NAME]... [-- ARGS]

Fetches VictoriaMetrics (Debian's, and the Go module's), InfluxDB 1 (Debian's), QuestDB and OpenTSDB with its HBase into
target/peers, or BASALT_PEERS_DIR, and runs `benches/` with them, in turn, each alone while it is timed. ARGS are those of
benches/ (`cargo run --release -- --help` there); without any: puts as JSON, by telnet and as lines, 500 points a request.

names: victoria-metrics victoria-metrics-debian influxdb questdb opentsdb";

/// A peer's name, what fetches it, and the flag of `benches/` that takes it.
type Fetch = (&'static str, fn(&Path) -> Result<PathBuf>, &'static str);

const FETCHED: [Fetch; 4] = [
    ("victoria-metrics", victoria_metrics, "--victoria-metrics"),
    (
        "victoria-metrics-debian",
        |cache| debian(cache, "victoria-metrics", "victoria-metrics"),
        "--victoria-metrics-too",
    ),
    ("influxdb", |cache| debian(cache, "influxdb", "influxd"), "--influxdb"),
    ("questdb", questdb, "--questdb"),
];

/// Fetches, builds, runs.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (without, benches) = parse(args)?;
    let cache = std::env::var_os("BASALT_PEERS_DIR").map_or_else(|| workspace().join("target/peers"), PathBuf::from);
    std::fs::create_dir_all(&cache)?;
    let mut flags: Vec<std::ffi::OsString> = Vec::new();
    for (name, fetch, flag) in FETCHED.iter().filter(|(name, ..)| !without.iter().any(|left| left == name)) {
        match fetch(&cache) {
            Ok(path) => flags.extend([flag.into(), path.into()]),
            Err(why) => println!("{name} is left out: {why:#}"),
        }
    }
    let is_asked = !without.iter().any(|left| left == "opentsdb");
    if is_asked && oracle::missing_tool().is_none() {
        oracle::run(&["up".into(), "plain".into()])?;
        flags.extend(["--opentsdb".into(), oracle_pids()?.into()]);
    } else if is_asked {
        println!("opentsdb is left out: it needs java, javac and mvn");
    }
    let ran = bench(&flags, benches);
    if is_asked && oracle::missing_tool().is_none() {
        oracle::run(&["down".into()])?;
    }
    ran
}

/// Names to leave out, and the arguments for `benches/`.
fn parse(args: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let names = || FETCHED.iter().map(|(name, ..)| *name).chain(["opentsdb"]);
    let (mut without, mut args) = (Vec::new(), args.iter());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--without" => {
                let name = args.next().context(USAGE)?;
                ensure!(names().any(|known| known == name), "no peer is called {name}\n{USAGE}");
                without.push(name.clone());
            }
            "--" => break,
            _ => bail!("{USAGE}"),
        }
    }
    let rest: Vec<String> = args.cloned().collect();
    let standard = ["--door", "json,telnet,line", "--batches", "500", "--disk-points", "0"];
    Ok((without, if rest.is_empty() { standard.map(str::to_owned).to_vec() } else { rest }))
}

fn bench(flags: &[std::ffi::OsString], args: Vec<String>) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = workspace();
    did(Command::new(&cargo).args(["build", "--release", "--bin", "basalt"]).current_dir(&root))?;
    did(Command::new(&cargo).args(["run", "--release", "--"]).args(args).args(flags).current_dir(root.join("benches")))
}

/// The Go module, built into the cache once.
fn victoria_metrics(cache: &Path) -> Result<PathBuf> {
    let program = cache.join(format!("victoria-metrics-{VICTORIA_METRICS_VERSION}"));
    if !program.is_file() {
        println!("building {VICTORIA_METRICS} {VICTORIA_METRICS_VERSION}: some minutes, once");
        let module = format!("{VICTORIA_METRICS}@{VICTORIA_METRICS_VERSION}");
        let told = said(Command::new("go").args(["mod", "download", "-json", &module]).current_dir(cache))?;
        let told: serde_json::Value = serde_json::from_str(&told)?;
        let source = told["Dir"].as_str().context("go tells no folder")?;
        let build = ["build", "-trimpath", "-o"];
        did(Command::new("go").arg("-C").arg(source).args(build).arg(&program).arg("./app/victoria-metrics"))?;
    }
    Ok(program)
}

/// A program of one of Debian's packages, unpacked into the cache and not installed.
fn debian(cache: &Path, package: &str, program: &str) -> Result<PathBuf> {
    let folder = cache.join(format!("debian-{package}"));
    let path = folder.join("usr/bin").join(program);
    if !path.is_file() {
        std::fs::create_dir_all(&folder)?;
        did(Command::new("apt-get").args(["download", "-q", package]).current_dir(&folder))?;
        let packed = std::fs::read_dir(&folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "deb"))
            .context("apt-get left no package")?;
        did(Command::new("dpkg").arg("-x").arg(packed).arg(&folder))?;
    }
    ensure!(path.is_file(), "{} is not in the package", path.display());
    Ok(path)
}

/// The folder with `QuestDB`'s jar.
fn questdb(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("questdb");
    let is_there = || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    if !is_there() {
        let copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
        let to = format!("-DoutputDirectory={}", folder.display());
        did(Command::new("mvn").args(["-q", "-B", copy, &format!("-Dartifact={QUESTDB}"), &to]).current_dir(cache))?;
    }
    ensure!(is_there(), "{QUESTDB} was not fetched");
    Ok(folder)
}

/// Pids of the oracle's HBase and its `plain` daemon, comma between them.
fn oracle_pids() -> Result<String> {
    let of = |name: &str| -> Result<String> {
        let path = oracle::folder().join("state").join(format!("{name}.pid"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(text.split_whitespace().next().context("an empty pid file")?.to_owned())
    };
    Ok(format!("{},{}", of("hbase")?, of("tsd-plain")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<(Vec<String>, Vec<String>)> {
        parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn peers_are_left_out_by_name_and_the_rest_is_for_the_benches() {
        let (without, args) = parsed(&["--without", "questdb", "--without", "opentsdb", "--", "questions"]).unwrap();
        assert_eq!((without, args), (vec!["questdb".to_owned(), "opentsdb".into()], vec!["questions".to_owned()]));
        assert_eq!(parsed(&[]).unwrap().1[0], "--door");
        assert!(parsed(&["--without", "nosuch"]).unwrap_err().to_string().contains("no peer is called nosuch"));
        assert!(parsed(&["questions"]).unwrap_err().to_string().contains("usage"));
    }
}
