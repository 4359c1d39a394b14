//! `sim`: seeded histories of the engine on disks that a power loss may legally leave.
//!
//! The history is the engine's own (`basalt_engine::simulation`), which its tests run a few hundred of. Here every
//! processor runs them, each seed is one history, and of one in a hundred that is proved: run twice, its courses are one.

use anyhow::{Result, ensure};
use basalt_engine::simulation::history;

use crate::tickets;

/// Of so many histories one is run twice.
const TWICE_ONE_IN: u64 = 100;

pub(crate) fn run(seed: u64, histories: u64) -> Result<String> {
    tickets::each(seed..seed + histories, |seed| {
        let trace = history(seed)?;
        ensure!(!seed.is_multiple_of(TWICE_ONE_IN) || history(seed)? == trace, "seed {seed} is two histories");
        Ok(())
    })?;
    Ok(format!("{histories} histories from seed {seed}, 0 violations, one in {TWICE_ONE_IN} run twice"))
}
