//! A dump of many points, its import killed half-way and gone on with, and every point counted.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Tally;
use super::basalt::{self, Server};
use super::rate::{self, Rates};
use super::world::{METRICS, START_S, World};

/// Queries over everything need longer than others may take.
const CONFIG: &str = "[query]\ntimeout_ms = 900000\n";

/// Imports `points` points in two goes and verifies them.
pub(super) fn run(points: u64, rates: Rates, program: &Path, folder: &Path, tally: &mut Tally) -> Result<()> {
    let world = World { points };
    let (file, state, data) = (folder.join("dump"), folder.join("state"), folder.join("data"));
    let config = folder.join("basalt.toml");
    std::fs::write(&config, CONFIG)?;
    world.write_dump(&file)?;
    println!("     a dump of {points} points, {} MB", std::fs::metadata(&file)?.len() / 1_000_000);
    let words = ["import", basalt::word(&file)?, "--resume", basalt::word(&state)?, "--data-dir"];
    let words = [&words[..], &[basalt::word(&data)?, "--config", basalt::word(&config)?]].concat();

    let log = folder.join("import.log");
    let (first, done) = killed(program, &words, &state, &log, points / 2)?;
    let shown = std::fs::read_to_string(&log)?;
    tally.check(shown.contains(" %"), &format!("progress is shown: {}", shown.lines().last().unwrap_or_default()));
    let told = format!("killed by SIGKILL after {:.1} s, when {done} lines were remembered", first.as_secs_f64());
    tally.check((points / 2..points).contains(&done), &told);

    let second = basalt::tool(program, &words)?;
    print!("     {}", second.out);
    let left = format!("{} points stored, 0 refused, {done} lines done before", points - done);
    tally.check(second.code == Some(0) && second.out.starts_with(&left), "it goes on where it was, and ends well");
    let whole = rate::rate(points, first + second.took);
    for (name, put) in [("50", rates.put_50), ("500", rates.put_500)] {
        let told = format!("{whole:.0} points/s over both goes, {:.2} of /api/put of {name} points", whole / put);
        tally.check(whole >= put, &told);
    }
    std::fs::remove_file(&file)?;
    counted(world, program, &data, &config, tally)
}

/// Kills an import once it has remembered `lines` lines; how long it ran, and how many it remembered in the end.
fn killed(program: &Path, words: &[&str], state: &Path, log: &Path, lines: u64) -> Result<(Duration, u64)> {
    let began = Instant::now();
    let mut child: Child = Command::new(program)
        .args(words)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(log)?)
        .spawn()
        .with_context(|| program.display().to_string())?;
    while remembered(state) < lines {
        ensure!(child.try_wait()?.is_none(), "the import ended before it could be killed");
        basalt::pause();
    }
    child.kill()?;
    child.wait()?;
    Ok((began.elapsed(), remembered(state)))
}

/// Lines that an import has remembered.
fn remembered(state: &Path) -> u64 {
    let text = std::fs::read(state).unwrap_or_default();
    let state: Value = serde_json::from_slice(&text).unwrap_or_default();
    state.as_object().and_then(|files| files.values().next()?.as_u64()).unwrap_or_default()
}

/// Every point is there, once, with its value: told by queries, and by fsck for each point alone.
fn counted(world: World, program: &Path, data: &Path, config: &Path, tally: &mut Tally) -> Result<()> {
    let server = Server::start(program, data, config)?;
    for (number, metric) in (0..).zip(METRICS) {
        let (count, sum) = world.of_metric(number);
        let (start, end) = (START_S, world.end_s());
        let all = |function: &str| -> Result<Option<f64>> {
            let asked = format!("/api/query?start={start}&end={end}&m=sum:0all-{function}:cpu.usage_{metric}");
            let answer = server.get(&asked)?;
            let points = answer.pointer("/0/dps").and_then(Value::as_object);
            Ok(points.filter(|points| points.len() == 1).and_then(|points| points.values().next()?.as_f64()))
        };
        let found = (all("count")?, all("sum")?);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let expected = (Some(count as f64), Some(sum as f64));
        tally.check(found == expected, &format!("cpu.usage_{metric} has {count} points of sum {sum}: {found:?}"));
    }
    server.stop()?;
    let words = ["fsck", "--full-scan", "--data-dir", basalt::word(data)?, "--config", basalt::word(config)?];
    let ran = basalt::tool(program, &words)?;
    let told = |name: &str| ran.out.lines().find(|line| line.contains(name)).unwrap_or("nothing").to_owned();
    let (valid, twice) = (told("Valid Datapoints: "), told("Duplicate Datapoints: "));
    let right = valid.ends_with(&format!(": {}", world.points)) && twice.ends_with(": 0");
    tally.check(ran.code == Some(0) && right, &format!("fsck: {valid}; {twice} ({:.0} s)", ran.took.as_secs_f64()));
    Ok(())
}
