//! The table: minimum, median and maximum of each figure, and the medians beside VictoriaMetrics'.

use std::collections::BTreeMap;
use std::fmt;

use crate::load::Door;
use crate::peer::Kind;

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

/// All runs, by protocol, batch size and server.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<(Door, usize, Kind), Vec<Figures>>);

impl Table {
    pub(crate) fn add(&mut self, kind: Kind, door: Door, batch: usize, figures: Figures) {
        self.0.entry((door, batch, kind)).or_default().push(figures);
    }

    /// Median rate and CPU of VictoriaMetrics in the same rows.
    fn victoria_metrics(&self, door: Door, batch: usize) -> Option<(f64, f64)> {
        let runs = self.0.get(&(door, batch, Kind::VictoriaMetrics))?;
        let [_, rate, _] = spread(runs.iter().map(|r| r.points_a_second / 1000.0));
        let [_, cpu, _] = spread(runs.iter().map(|r| r.cpu_a_million));
        Some((rate, cpu))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| door, batch | server | k points/s, min / median / max | CPU s a million points, min / median / max | rate, CPU of VictoriaMetrics' | peak MiB |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for ((door, batch, kind), runs) in &self.0 {
            let [a, rate, c] = spread(runs.iter().map(|r| r.points_a_second / 1000.0));
            let [d, cpu, g] = spread(runs.iter().map(|r| r.cpu_a_million));
            let [_, peak, _] = spread(runs.iter().map(|r| r.peak_mib));
            let beside = match self.victoria_metrics(*door, *batch) {
                Some((its_rate, its_cpu)) if *kind != Kind::VictoriaMetrics => {
                    format!("{:.2}, {:.2}", rate / its_rate, cpu / its_cpu)
                }
                _ => String::new(),
            };
            writeln!(
                f,
                "| {door}, {batch} | {kind} | {a:.0} / {rate:.0} / {c:.0} | {d:.2} / {cpu:.2} / {g:.2} | {beside} | {peak:.0} |"
            )?;
        }
        Ok(())
    }
}

/// Minimum, median, maximum.
pub(crate) fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}
