//! The table: minimum, median and maximum of each figure, and the ratio of the medians.

use std::collections::BTreeMap;
use std::fmt;

use crate::server::Kind;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) points_a_second: f64,
    pub(crate) cpu_a_million: f64,
    pub(crate) peak_mib: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points_a_second, cpu_a_million, peak_mib } = self;
        write!(f, "{points_a_second:.0} points/s, {cpu_a_million:.2} CPU s/M, {peak_mib:.0} MiB")
    }
}

/// All runs, by batch size and server.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<(usize, Kind), Vec<Figures>>);

impl Table {
    pub(crate) fn add(&mut self, kind: Kind, batch: usize, figures: Figures) {
        self.0.entry((batch, kind)).or_default().push(figures);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| batch | server | k points/s, min / median / max | CPU s a million points, min / median / max | peak MiB |"
        )?;
        writeln!(f, "|---|---|---|---|---|")?;
        for ((batch, kind), runs) in &self.0 {
            let rate = spread(runs.iter().map(|r| r.points_a_second / 1000.0));
            let cpu = spread(runs.iter().map(|r| r.cpu_a_million));
            let [_, peak, _] = spread(runs.iter().map(|r| r.peak_mib));
            let [a, b, c] = rate;
            let [d, e, g] = cpu;
            writeln!(f, "| {batch} | {kind} | {a:.0} / {b:.0} / {c:.0} | {d:.2} / {e:.2} / {g:.2} | {peak:.0} |")?;
        }
        Ok(())
    }
}

/// Minimum, median, maximum.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}
