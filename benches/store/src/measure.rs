//! One engine through every load, each in a new folder.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::cells::{self, Order};
use crate::subject::{Durability, Rows, Seen, Subject};
use crate::{Args, Kind, basalt, fjall, process, rocks};

/// Cells that a short scan asks for.
const SHORT_SCAN_CELLS: u64 = 100;

/// A figure: its name, its value, and the CPU seconds that it took, where it is of a time.
#[derive(Debug)]
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    cpu_seconds: f64,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{:.2}", self.name, self.value, self.cpu_seconds)
    }
}

/// Every figure of an engine.
pub(crate) fn run(kind: Kind, args: &Args) -> Result<Vec<Figure>> {
    let mut run = Run { args, figures: Vec::new() };
    let dir = args.dir.join("data");
    let mut subject = open(kind, &dir)?;
    run.load(&mut *subject, "put, random order", Order::Random, args.cells, Durability::Os)?;
    run.scan(&mut *subject, "full scan, as loaded")?;
    run.timed("compaction of everything", 0, || subject.compact())?;
    let bytes = process::bytes(&dir, &|file| subject.is_data(file))?;
    run.tell("bytes a cell on disk", bytes as f64 / args.cells as f64);
    run.scan(&mut *subject, "full scan, compacted")?;
    run.short_scans(&mut *subject)?;
    run.gets(&mut *subject, "get, there", 0)?;
    run.gets(&mut *subject, "get, not there", args.cells / args.columns)?;
    drop(subject);
    let mut subject = open(kind, &dir)?;
    run.load(&mut *subject, "put, sorted", Order::Sorted, args.cells, Durability::Os)?;
    drop(subject);
    let mut subject = open(kind, &dir)?;
    run.load(
        &mut *subject,
        "put, random order, each batch synced",
        Order::Random,
        args.durable_cells,
        Durability::Fsync,
    )?;
    drop(subject);
    run.tell("peak memory, MiB", process::peak_mib()?);
    fs::remove_dir_all(&dir)?;
    Ok(run.figures)
}

fn open(kind: Kind, dir: &Path) -> Result<Box<dyn Subject>> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    Ok(match kind {
        Kind::Basalt => Box::new(basalt::Basalt::open(dir)?),
        Kind::Rocksdb => Box::new(rocks::Rocks::open(dir)?),
        Kind::Fjall => Box::new(fjall::Fjall::open(dir)?),
    })
}

struct Run<'a> {
    args: &'a Args,
    figures: Vec<Figure>,
}

impl Run<'_> {
    fn tell(&mut self, name: &'static str, value: f64) {
        self.figures.push(Figure { name, value, cpu_seconds: 0.0 });
    }

    /// Tells how many a second a piece of work does, or its seconds when it has no number.
    fn timed<T>(&mut self, name: &'static str, count: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (started, cpu) = (Instant::now(), process::cpu_seconds()?);
        let done = work()?;
        let seconds = started.elapsed().as_secs_f64();
        let value = if count == 0 { seconds } else { count as f64 / seconds };
        self.figures.push(Figure { name, value, cpu_seconds: process::cpu_seconds()? - cpu });
        Ok(done)
    }

    fn load(
        &mut self,
        subject: &mut dyn Subject,
        name: &'static str,
        order: Order,
        cells: u64,
        durability: Durability,
    ) -> Result<()> {
        let &Args { columns, batch, .. } = self.args;
        let (rows, step) = (cells / columns, batch / columns);
        self.timed(name, cells, || {
            for from in (0..rows).step_by(usize::try_from(step)?) {
                subject.put(Rows { from, to: rows.min(from + step), columns, order }, durability)?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, subject: &mut dyn Subject, name: &'static str) -> Result<()> {
        let &Args { cells, columns, .. } = self.args;
        let seen = self.timed(name, cells, || subject.scan_all())?;
        ensure!(seen.cells == cells / columns * columns, "{name}: {} cells of {cells}", seen.cells);
        Ok(())
    }

    fn short_scans(&mut self, subject: &mut dyn Subject) -> Result<()> {
        let &Args { cells, columns, short_scans, .. } = self.args;
        let rows = SHORT_SCAN_CELLS / columns;
        let seen = self.timed("short scans of 100", short_scans * SHORT_SCAN_CELLS, || {
            let mut all = Seen::default();
            for scan in 0..short_scans {
                let from = cells::row(Order::Random, cells::mix(scan) % (cells / columns));
                let seen = subject.scan_some(&from, rows, columns)?;
                all.cells += seen.cells;
            }
            Ok(all)
        })?;
        // Those that begin at the very end find fewer.
        ensure!(seen.cells > short_scans * rows * columns * 99 / 100, "{} cells by short scans", seen.cells);
        Ok(())
    }

    fn gets(&mut self, subject: &mut dyn Subject, name: &'static str, beyond: u64) -> Result<()> {
        let &Args { cells, columns, gets, .. } = self.args;
        self.timed(name, gets, || {
            for get in 0..gets {
                let (number, column) = (cells::mix(get) % (cells / columns) + beyond, get % columns);
                let found = subject.get(&cells::row(Order::Random, number), cells::qualifier(column))?;
                let expected = (beyond == 0).then(|| cells::value(number, column));
                ensure!(found == expected, "row {number}, column {column}: {found:?}");
            }
            Ok(())
        })
    }
}
