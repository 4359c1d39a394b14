//! The oracle as the recorder uses it: started by profile, emptied before each scenario.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::answer::Answer;
use super::client::{Client, Request};
use super::play;
use super::scenario::Scenario;
use crate::oracle::hand::Hand;
use crate::oracle::script;

/// A put without `sync` is readable this long after its answer: the daemons flush each 50 ms.
const SETTLE: Duration = Duration::from_millis(400);

/// What the daemons are told beside their profile. Its own compaction of old rows now and then loses a point that is
/// overwritten at once, and then the recording is of that race.
const DAEMON_EXTRA: &str = "tsd.storage.enable_compaction = false";

/// Running daemons, and a hand on their tables.
#[derive(Debug)]
pub(crate) struct Oracle {
    hand: Hand,
}

impl Oracle {
    /// Starts (or finds running) the daemons of these profiles.
    pub(crate) fn start<'a>(profiles: impl Iterator<Item = &'a str>) -> anyhow::Result<Self> {
        Self::start_with(profiles, DAEMON_EXTRA)
    }

    /// As [`Self::start`], with this one line more for daemons that do not run yet.
    pub(crate) fn start_with<'a>(profiles: impl Iterator<Item = &'a str>, line: &str) -> anyhow::Result<Self> {
        let profiles: BTreeSet<&str> = profiles.collect();
        let mut args = vec!["up".to_owned()];
        args.extend(profiles.into_iter().map(str::to_owned));
        let extra = std::env::var("ORACLE_TSD_EXTRA").unwrap_or_default();
        let status = script(&args).env("ORACLE_TSD_EXTRA", format!("{extra}\n{line}")).status()?;
        ensure!(status.success(), "the oracle did not start");
        Ok(Self { hand: Hand::start()? })
    }

    /// Empties the profile's tables and plays the scenario on its daemon.
    pub(crate) fn play(&mut self, scenario: &Scenario) -> anyhow::Result<Vec<Answer>> {
        let address = self.fresh(&scenario.profile)?;
        play::play(scenario, address, &settle)
    }

    /// Empties the profile's tables, and says where its daemon listens.
    pub(crate) fn fresh(&mut self, profile: &str) -> anyhow::Result<SocketAddr> {
        let prefix = match profile {
            "plain" => "tsdb".to_owned(),
            profile => format!("{profile}-tsdb"),
        };
        self.tables(&format!("wipe {prefix}"))?;
        let address = address(profile)?;
        forget_names(address)?;
        Ok(address)
    }

    /// Gives the tables' tool one of its commands (`Hb.java` lists them), and gives the lines that it prints.
    pub(crate) fn tables(&mut self, command: &str) -> anyhow::Result<Vec<String>> {
        self.hand.ask(command)
    }

    /// Name, version and profile of who answers, for the recorded file.
    pub(crate) fn describe(profile: &str) -> anyhow::Result<String> {
        let request = Request { method: "GET", target: "/api/version", ..Request::default() };
        let response = Client::new(address(profile)?).send(&request)?;
        let version: Value = serde_json::from_slice(&response.body)?;
        let revision = version.get("short_revision").and_then(Value::as_str).unwrap_or_default();
        // The released jar calls its own version "BuildData"; the two poms of tests/oracle/ name the releases.
        Ok(format!("OpenTSDB 2.4.1 ({revision}) on HBase 2.6.4, profile {profile}, {DAEMON_EXTRA}"))
    }
}

/// Waits until the daemons have written what they acknowledged.
pub(crate) fn settle() {
    #[expect(clippy::disallowed_methods, reason = "OpenTSDB tells nobody when a put without sync has arrived")]
    std::thread::sleep(SETTLE);
}

/// Makes a daemon forget what it keeps of names.
pub(crate) fn forget_names(address: SocketAddr) -> anyhow::Result<()> {
    let request = Request { method: "GET", target: "/api/dropcaches", ..Request::default() };
    let dropped = Client::new(address).send(&request)?;
    ensure!(dropped.status == 200, "dropcaches: {}", dropped.status);
    Ok(())
}

/// Where the daemon of a profile listens.
pub(crate) fn address(profile: &str) -> anyhow::Result<SocketAddr> {
    let output = script(&["port".to_owned(), profile.to_owned()]).output()?;
    let port = String::from_utf8_lossy(&output.stdout).trim().parse().with_context(|| format!("profile {profile}"))?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
