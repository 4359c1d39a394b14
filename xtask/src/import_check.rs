//! `cargo xtask import-check`: what `basalt import` must do, shown end to end.
//!
//! Without `--generate`: points go into a real OpenTSDB, its own `tsdb scan --import` dumps them, Basalt imports the
//! dump, and the same queries are asked of both. With it: a dump of that many points is made, its import is timed beside
//! `/api/put` of the same points, killed half-way, gone on with, and every point must be there once.

pub(crate) mod basalt;
mod dump;
mod full;
mod load;
mod rate;
pub(crate) mod series;
mod world;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

const USAGE: &str = "\
usage: cargo xtask import-check [--points N] [--seed S] [--basalt FILE] [--keep FOLDER]
       cargo xtask import-check --generate N [--rounds N] [--round-points N] [--basalt FILE] [--keep FOLDER]

  --points        points put into OpenTSDB, dumped and imported (1M)
  --seed          what they are drawn from (1)
  --generate      points of a dump that is made instead; no OpenTSDB is needed
  --rounds        turns of `/api/put` and import before it (3)
  --round-points  points of a turn (5M)
  --basalt        the binary; built from this tree, optimised, unless named
  --keep          where files are left; else in a temporary folder that goes at the end

Numbers may end in k or M.";

/// What is asked for.
#[derive(Debug)]
struct Options {
    points: u64,
    seed: u64,
    generate: Option<u64>,
    rounds: u64,
    round_points: u64,
    basalt: Option<PathBuf>,
    keep: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    if options.generate.is_none()
        && let Some(tool) = crate::oracle::missing_tool()
    {
        println!("import-check: skipped, `{tool}` is not installed (the oracle needs java, javac and mvn)");
        return Ok(());
    }
    let program = options.basalt.clone().map_or_else(basalt::build, Ok)?;
    let temporary = tempfile::tempdir()?;
    let folder = options.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    let mut tally = Tally::default();
    match options.generate {
        None => dump::run(&options, &program, &folder, &mut tally)?,
        Some(points) => {
            let rates = rate::run(&options, &program, &folder, &mut tally)?;
            full::run(points, rates, &program, &folder, &mut tally)?;
        }
    }
    let Tally { passed, failed } = tally;
    println!("import-check: {passed} passed, {failed} failed");
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

/// What was checked, and how it came out.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Counts a check and prints it.
    fn check(&mut self, is_right: bool, what: &str) {
        self.passed += u64::from(is_right);
        self.failed += u64::from(!is_right);
        println!("{} {what}", if is_right { "ok  " } else { "FAIL" });
    }
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options {
        points: 1_000_000,
        seed: 1,
        generate: None,
        rounds: 3,
        round_points: 5_000_000,
        basalt: None,
        keep: None,
    };
    let mut words = args.iter();
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value\n{USAGE}"))?;
        match name.as_str() {
            "--points" => options.points = count(value)?,
            "--seed" => options.seed = value.parse()?,
            "--generate" => options.generate = Some(count(value)?),
            "--rounds" => options.rounds = value.parse()?,
            "--round-points" => options.round_points = count(value)?,
            "--basalt" => options.basalt = Some(value.into()),
            "--keep" => options.keep = Some(value.into()),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(options)
}

/// `50M` is fifty million.
fn count(text: &str) -> Result<u64> {
    let (digits, unit) = match text.strip_suffix(['M', 'm']) {
        Some(digits) => (digits, 1_000_000),
        None => text.strip_suffix(['K', 'k']).map_or((text, 1), |digits| (digits, 1_000)),
    };
    let number: u64 = digits.parse().with_context(|| format!("`{text}` is no count"))?;
    ensure!(number > 0, "`{text}` is no count");
    number.checked_mul(unit).with_context(|| format!("`{text}` is too much"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_end_in_thousands_and_millions() {
        assert_eq!([count("7").ok(), count("2k").ok(), count("50M").ok()], [Some(7), Some(2_000), Some(50_000_000)]);
        assert!(["", "M", "0", "x", "99999999999999M"].iter().all(|text| count(text).is_err()));
    }
}
