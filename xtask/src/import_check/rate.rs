//! The rate of import beside that of `/api/put`: the same points, the same machine, in turns.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::basalt::{self, Server};
use super::world::World;
use super::{Options, Tally, load};

/// Connections that put.
const CONNECTIONS: usize = 4;

/// Points a second by the clock on the wall, the median of all turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// `/api/put` of 50 points a request.
    pub(super) put_50: f64,
    /// `/api/put` of 500 points a request.
    pub(super) put_500: f64,
}

/// Times the turns. An import's time is that of its whole process, from start to end.
pub(super) fn run(options: &Options, program: &Path, folder: &Path, tally: &mut Tally) -> Result<Rates> {
    let world = World { points: options.round_points };
    let (file, config) = (folder.join("part"), folder.join("basalt.toml"));
    world.write_dump(&file)?;
    std::fs::write(&config, "")?;
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for turn in 1..=options.rounds {
        for (name, batch) in [("put 50", Some(50)), ("put 500", Some(500)), ("folder", None), ("url", None)] {
            let data = folder.join("turn");
            if data.exists() {
                std::fs::remove_dir_all(&data)?;
            }
            let took = match (batch, name) {
                (Some(batch), _) => put(program, &data, &config, &world.requests(CONNECTIONS, batch)?)?,
                (None, "url") => by_url(program, &data, &config, &file, world.points)?,
                (None, _) => {
                    let to = ["--data-dir", basalt::word(&data)?, "--config", basalt::word(&config)?];
                    import(program, &file, &to, world.points)?
                }
            };
            let rate = rate(world.points, took);
            println!("     turn {turn}: {name:8} {rate:9.0} points/s");
            all.entry(name).or_default().push(rate);
        }
        std::fs::remove_dir_all(folder.join("turn"))?;
    }
    std::fs::remove_file(&file)?;
    let median = |name: &str| all.get(name).map_or(0.0, |rates| middle(rates));
    let rates = Rates { put_50: median("put 50"), put_500: median("put 500") };
    for (name, put) in [("50", rates.put_50), ("500", rates.put_500)] {
        for kind in ["folder", "url"] {
            let told = format!("import ({kind}) at {:.2} of /api/put of {name} points a request", median(kind) / put);
            if kind == "folder" {
                tally.check(median(kind) >= put, &told);
            } else {
                println!("     {told}");
            }
        }
    }
    Ok(rates)
}

/// Points a second.
#[expect(clippy::cast_precision_loss, reason = "a figure for people, of three digits")]
pub(super) fn rate(points: u64, took: Duration) -> f64 {
    points as f64 / took.as_secs_f64()
}

fn middle(rates: &[f64]) -> f64 {
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

fn put(program: &Path, data: &Path, config: &Path, requests: &[Vec<Vec<u8>>]) -> Result<Duration> {
    let server = Server::start(program, data, config)?;
    let took = load::send(server.address, requests)?;
    server.stop()?;
    Ok(took)
}

fn by_url(program: &Path, data: &Path, config: &Path, file: &Path, points: u64) -> Result<Duration> {
    let server = Server::start(program, data, config)?;
    let took = import(program, file, &["--url", &format!("http://{}", server.address)], points)?;
    server.stop()?;
    Ok(took)
}

fn import(program: &Path, file: &Path, to: &[&str], points: u64) -> Result<Duration> {
    let ran = basalt::tool(program, &[&["import", basalt::word(file)?], to].concat())?;
    let is_whole = ran.code == Some(0) && ran.out.starts_with(&format!("{points} points stored, 0 refused"));
    ensure!(is_whole, "import: {:?} {} {}", ran.code, ran.out, ran.err);
    Ok(ran.took)
}
