//! `clock`: the wall clock jumps under the load: an hour back, a day on, to 1970, past 2038 and past 2106.
//!
//! Nothing is lost, writes go on, and of two values of one point the later written is answered, also when the clock
//! says that it is the earlier.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use basalt_engine::io::Rng as _;

use crate::campaign::{Campaign, wait};
use crate::cli::Bounds;
use crate::daemon::{Daemon, Program};
use crate::fault::Faults;
use crate::ledger::{START_S, now_ns};

const HOUR_S: i64 = 3600;

pub(crate) fn run(program: &mut Program, bounds: &Bounds, runs: u64) -> Result<String> {
    let faults = Faults::under(program)?;
    let data = program.scratch().join("data");
    let mut campaign = Campaign::new(program, &data, bounds.seed);
    let now_s = i64::try_from(now_ns() / 1_000_000_000)?;
    let jumps = [-HOUR_S, 24 * HOUR_S, 10 - now_s, (1 << 31) + 10 - now_s, (1 << 32) + 10 - now_s, 0];
    let mut value = 0;
    for run in crate::verdict::rounds("clock", runs) {
        let mut daemon = campaign.open()?;
        let draw = usize::try_from(campaign.rng.below(jumps.len() as u64))?;
        let jump = jumps.get(draw).copied().unwrap_or(0);
        campaign
            .load(&mut daemon, |daemon, _| {
                value += 1;
                overwrite(daemon, value)?;
                faults.set_clock(jump)?;
                value += 1;
                overwrite(daemon, value)?;
                wait(Duration::from_millis(150));
                daemon.kill()
            })
            .with_context(|| format!("run {run}, a jump of {jump} s"))?;
        let daemon = campaign.program.serve(&data)?;
        ensure!(newest(&daemon)? == value, "run {run}, a jump of {jump} s: a value before the jump is back");
    }
    faults.set_clock(0)?;
    let figures = campaign.close()?;
    Ok(format!("{runs} jumps, {value} values of one point, always the last answered; {figures}"))
}

/// Gives one point another value, which must be answered at once.
fn overwrite(daemon: &Daemon, value: u64) -> Result<()> {
    let body = format!(r#"{{"metric":"torture.clock","timestamp":{START_S},"value":{value},"tags":{{"a":"b"}}}}"#);
    let answer = daemon.client()?.post("/api/put", &body)?;
    ensure!(answer.status == 204, "a put is answered with {}: {:.200}", answer.status, answer.text());
    let found = newest(daemon)?;
    ensure!(found == value, "after {value} was written, {found} is answered");
    Ok(())
}

fn newest(daemon: &Daemon) -> Result<u64> {
    let path = format!("/api/query?start={}&end={}&m=sum:torture.clock", START_S - 1, START_S + 1);
    let answer = daemon.client()?.get(&path)?;
    let found: serde_json::Value = serde_json::from_slice(&answer.body)?;
    found[0]["dps"][START_S.to_string()].as_u64().with_context(|| format!("no value: {:.300}", answer.text()))
}
