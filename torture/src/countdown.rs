//! `countdown`: every call to the disk fails in its turn, the first, the second, …, until a run meets no fault.
//!
//! Each fault comes once, and from then on. After it the engine may refuse, or end its writing, but the power loss that
//! follows must find everything that was acknowledged.

use anyhow::Result;
use basalt_engine::io::{Fault, FaultKind, FaultSpan};
use basalt_engine::simulation::under_fault;

const FAULTS: [(FaultKind, FaultSpan); 5] = [
    (FaultKind::Eio, FaultSpan::Once),
    (FaultKind::Eio, FaultSpan::FromThenOn),
    (FaultKind::Enospc, FaultSpan::Once),
    (FaultKind::Enospc, FaultSpan::FromThenOn),
    (FaultKind::Crash, FaultSpan::FromThenOn),
];

/// Fails every `every`-th call of `histories` histories, in each way.
pub(crate) fn run(seed: u64, histories: u64, every: u64) -> Result<String> {
    let (mut runs, mut calls) = (0, 0);
    for seed in seed..seed + histories {
        for (kind, span) in FAULTS {
            let mut after_calls = seed % every;
            runs += 1;
            while under_fault(seed, Fault { after_calls, kind, span })
                .map_err(|violation| anyhow::anyhow!("{kind:?} {span:?} after {after_calls} calls: {violation}"))?
            {
                runs += 1;
                after_calls += every;
            }
            calls = calls.max(after_calls);
        }
    }
    Ok(format!("{runs} runs of histories of up to {calls} calls, {} kinds of fault, 0 lost", FAULTS.len()))
}
