//! The table: minimum, median and maximum of each figure, CPU seconds, and the ratios to the better of the two peers.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

use crate::Kind;

/// The values of a figure with their CPU seconds, round after round.
type Runs = Vec<(f64, f64)>;

/// Every figure of every engine.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// In the order in which they are measured.
    names: Vec<String>,
    runs: BTreeMap<(String, Kind), Runs>,
}

impl Table {
    /// Takes in what a process told: lines of name, value and CPU seconds, by tabs.
    pub(crate) fn add(&mut self, kind: Kind, told: &str) -> Result<()> {
        for line in told.lines() {
            let mut fields = line.split('\t');
            let mut field = || fields.next().with_context(|| format!("a figure in {line:?}"));
            let (name, value, cpu) = (field()?, field()?.parse()?, field()?.parse()?);
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.into());
            }
            self.runs.entry((name.into(), kind)).or_default().push((value, cpu));
        }
        Ok(())
    }

    fn spread(&self, name: &str, kind: Kind) -> Option<[f64; 3]> {
        Some(spread(self.runs.get(&(name.into(), kind))?.iter().map(|(value, _)| *value)))
    }

    /// The median CPU seconds; `None` for what takes none.
    fn cpu(&self, name: &str, kind: Kind) -> Option<f64> {
        let [_, cpu, _] = spread(self.runs.get(&(name.into(), kind))?.iter().map(|(_, cpu)| *cpu));
        (cpu > 0.0).then_some(cpu)
    }

    /// How many times the CPU seconds of the more frugal peer fit: on a machine with others at work the steadier ratio.
    fn cpu_ratio(&self, name: &str) -> Option<f64> {
        let peers = [Kind::Rocksdb, Kind::Fjall].into_iter().filter_map(|kind| self.cpu(name, kind));
        Some(peers.reduce(f64::min)? / self.cpu(name, Kind::Basalt)?)
    }

    /// How many times as good as the better peer, by the medians.
    fn ratio(&self, name: &str) -> Option<f64> {
        let median = |kind| self.spread(name, kind).map(|[_, median, _]| median);
        let peers = [Kind::Rocksdb, Kind::Fjall].into_iter().filter_map(median);
        let ours = median(Kind::Basalt)?;
        if is_rate(name) { Some(ours / peers.reduce(f64::max)?) } else { Some(peers.reduce(f64::min)? / ours) }
    }
}

/// Whether a figure is so many a second: then more is better.
fn is_rate(name: &str) -> bool {
    !(name.contains("compaction") || name.contains("bytes") || name.contains("memory"))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| figure | Basalt | RocksDB | fjall | Basalt to the better | by CPU |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for name in &self.names {
            let (unit, scale) = match name.as_str() {
                name if is_rate(name) => (", k/s", 1e3),
                name if name.contains("compaction") => (", s", 1.0),
                _ => ("", 1.0),
            };
            write!(f, "| {name}{unit}")?;
            for kind in [Kind::Basalt, Kind::Rocksdb, Kind::Fjall] {
                let Some(values) = self.spread(name, kind) else {
                    write!(f, " | ")?;
                    continue;
                };
                let [least, median, most] = values.map(|value| value / scale);
                let digits = if median < 100.0 { 1 } else { 0 };
                write!(f, " | {least:.digits$} / {median:.digits$} / {most:.digits$}")?;
                if let Some(cpu) = self.cpu(name, kind) {
                    write!(f, " ({cpu:.1})")?;
                }
            }
            let told = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
            writeln!(f, " | {} | {} |", told(self.ratio(name)), told(self.cpu_ratio(name)))?;
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
