//! `cargo xtask differential`: random data and random requests to a real OpenTSDB and to Basalt, and what they answer
//! must be the same.
//!
//! A data set is put into empty tables of both. Then come requests that only read, over several connections, then some
//! that change something, one by one, then reading ones again. Where answers differ, and no rule of
//! `tests/differential/known.json` covers it, the script is made as small as it goes and printed. One seed, one run,
//! but for the points by the clock. What counts as the same is told in `tests/golden/README.md`.

mod alike;
mod ask;
pub(crate) mod draw;
mod known;
mod pair;
mod shrink;
mod spoil;
mod world;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};

use crate::golden::answer::Answer;
use crate::golden::compare;
use crate::golden::scenario::Step;
use crate::import_check::basalt;
use crate::oracle;
use draw::Draw;
use known::Known;
use pair::{Kind, Pair, Servers, Side};
use shrink::Script;
use world::World;

const USAGE: &str = "\
usage: cargo xtask differential [--count N] [--seed S] [--profile NAME]... [--store NAME]... [--connections N] [--shrink N]
                                [--basalt FILE]

  --count        requests in all (2000)
  --seed         what everything is drawn from (1)
  --profile      the oracle's profiles, in turn (plain, salted, appends, meta and rollup)
  --store        Basalt's stores, in turn (memory and embedded); `hbase` is the very tables of OpenTSDB's daemon: one of the
                 two, in turn, writes, and both are asked
  --connections  over which reading requests are asked at once (4)
  --shrink       differences to make small; further ones are told as they are (8)
  --basalt       the binary to ask; built from this tree unless named";

/// Requests of one data set: reading, changing, reading again.
const READS_COUNT: u64 = 90;
const WRITES_COUNT: u64 = 40;

/// Characters of an answer in a report.
const BODY_CHARS_MAX: usize = 1500;

struct Options {
    count: u64,
    seed: u64,
    profiles: Vec<String>,
    stores: Vec<String>,
    connections: usize,
    shrinks: usize,
    basalt: Option<String>,
}

/// One exchange whose answers differ.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) step: Step,
    pub(crate) real: Answer,
    pub(crate) ours: Answer,
    /// A line each.
    pub(crate) differs: Vec<String>,
}

impl Case {
    fn new(step: &Step, (real, ours): (Answer, Answer)) -> Option<Self> {
        let (mut alike_real, mut alike_ours) = (real.clone(), ours.clone());
        alike::prepare(step, &mut alike_real);
        alike::prepare(step, &mut alike_ours);
        let differs = compare::differences(step, &alike_real, &alike_ours);
        (!differs.is_empty()).then(|| Self { step: step.clone(), real, ours, differs })
    }

    fn request(&self) -> String {
        self.step.describe("")
    }

    /// What the like of it has in common: the endpoint, and where the answers differ, without names and numbers.
    fn likeness(&self) -> String {
        let request = self.request();
        let endpoint = request.split('?').next().unwrap_or_default();
        let place = self.differs.first().map(|line| line.split(": expected").next().unwrap_or(line));
        let place: String = place.unwrap_or_default().chars().filter(|c| !c.is_ascii_digit()).collect();
        let message =
            |answer: &Answer| answer.body().chars().filter(|c| !c.is_ascii_digit()).take(40).collect::<String>();
        let errors = if self.real.status == self.ours.status { String::new() } else { message(&self.real) };
        format!("{endpoint} {place} {:?} {:?} {errors}", self.real.status, self.ours.status)
    }
}

/// What a run came to.
#[derive(Debug, Default)]
struct Tally {
    asked: u64,
    known: BTreeMap<String, u64>,
    unsteady: u64,
    other: u64,
    /// Likenesses that were told already.
    told: BTreeSet<String>,
    /// Cells of shared tables by who wrote them and their form.
    forms: BTreeMap<(Side, &'static str), u64>,
}

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    if let Some(tool) = oracle::missing_tool() {
        println!("differential: skipped, `{tool}` is not installed (the oracle needs java, javac and mvn)");
        return Ok(());
    }
    let known = Known::read(&crate::workspace().join("tests/differential/known.json"))?;
    let program = options.basalt.as_ref().map_or_else(basalt::build_unoptimised, |file| Ok(file.into()))?;
    let mut pair = Pair::new(&options.profiles, program, options.stores.iter().any(|store| store == pair::SHARED))?;
    let mut tally = Tally::default();
    let mut drawn = Draw::new(options.seed);
    for (number, profile) in options.profiles.iter().cycle().enumerate() {
        if tally.asked >= options.count {
            break;
        }
        let store = &options.stores[number % options.stores.len()];
        // Each profile by each writer, however many profiles there are.
        let is_ours = (number + number / options.profiles.len()) % 2 == 1;
        let side = if is_ours { Side::Ours } else { Side::Real };
        let kind = Kind { profile, store, writer: (store == pair::SHARED).then_some(side) };
        let mut one = One { pair: &mut pair, known: &known, options: &options, kind, tally: &mut tally, live: None };
        one.run(&mut drawn.fork())?;
    }
    for (rule, count) in &tally.known {
        println!("known: {count:5} {rule}");
    }
    for ((writer, form), cells) in &tally.forms {
        println!("cells of the shared tables, written by {writer}: {cells:5} {form}");
    }
    let known_count: u64 = tally.known.values().sum();
    let (asked, other, unsteady) = (tally.asked, tally.other, tally.unsteady);
    println!("differential: {asked} requests, {known_count} known differences, {unsteady} unsteady, {other} other");
    ensure!(other == 0, "{other} of {asked} answers differ and are in no list");
    Ok(())
}

fn options(args: &[String]) -> Result<Options> {
    let (profiles, stores) = (Vec::new(), Vec::new());
    let mut options = Options { count: 2000, seed: 1, profiles, stores, connections: 4, shrinks: 8, basalt: None };
    let mut words = args.iter();
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value\n{USAGE}"))?;
        match name.as_str() {
            "--count" => options.count = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--profile" => options.profiles.push(value.clone()),
            "--store" => options.stores.push(value.clone()),
            "--connections" => options.connections = value.parse::<usize>()?.max(1),
            "--shrink" => options.shrinks = value.parse()?,
            "--basalt" => options.basalt = Some(value.clone()),
            _ => bail!("{USAGE}"),
        }
    }
    if options.profiles.is_empty() {
        options.profiles = ["plain", "salted", "appends", "meta", "rollup"].map(str::to_owned).to_vec();
    }
    if options.stores.is_empty() {
        options.stores = ["memory", "embedded"].map(str::to_owned).to_vec();
    }
    Ok(options)
}

/// One data set and its requests.
struct One<'a> {
    pair: &'a mut Pair,
    known: &'a Known,
    options: &'a Options,
    kind: Kind<'a>,
    tally: &'a mut Tally,
    /// Servers with the points and requests of the latest attempt.
    live: Option<(Script, Servers)>,
}

impl One<'_> {
    fn run(&mut self, draw: &mut Draw) -> Result<()> {
        let mut world = World::draw(draw, self.kind.profile, now()?);
        let servers = self.pair.fresh(self.kind)?;
        servers.seed(&world.lines)?;
        world.tsuids = servers.tsuids()?;
        let reads: Vec<Step> = (0..READS_COUNT).map(|_| ask::draw(draw, &world)).collect();
        let mut writes: Vec<Step> = (0..WRITES_COUNT).map(|index| write::draw(draw, &world, index)).collect();
        if self.kind.writer.is_some() {
            // One drawn is rare, as little is left to be asked for after some.
            writes.insert(draw.index(writes.len()), write::delete(draw, &world));
        }
        let rereads: Vec<Step> = (0..READS_COUNT).map(|_| ask::draw(draw, &world)).collect();

        let mut cases: Vec<(usize, Case)> = Vec::new();
        cases.extend(self.read(&servers, &reads).into_iter().map(|case| (0, case)));
        let unchanged = cases.len();
        let mut asker = servers.asker();
        for (index, step) in writes.iter().enumerate() {
            let answers = asker.change(step);
            cases.extend(answers.and_then(|answers| Case::new(step, answers)).map(|case| (index, case)));
        }
        servers.settle()?;
        let changed = cases.len();
        cases.extend(self.read(&servers, &rereads).into_iter().map(|case| (writes.len(), case)));
        drop(servers);
        if let Some(writer) = self.kind.writer {
            for (form, count) in self.pair.forms(self.kind.profile)? {
                *self.tally.forms.entry((writer, form)).or_default() += count;
            }
        }

        self.tally.asked += READS_COUNT * 2 + writes.len() as u64;
        for (place, (before, case)) in cases.into_iter().enumerate() {
            let (lines, before, step) = (world.lines.clone(), writes[..before].to_vec(), case.step.clone());
            let only_reads = !(unchanged..changed).contains(&place);
            self.judge(Script { lines, before, step, only_reads }, case)?;
        }
        self.live = None;
        Ok(())
    }

    /// Asks steps that change nothing, over several connections.
    fn read(&self, servers: &Servers, steps: &[Step]) -> Vec<Case> {
        let cases = Mutex::new(Vec::new());
        let share = steps.len().div_ceil(self.options.connections);
        std::thread::scope(|scope| {
            for steps in steps.chunks(share) {
                let cases = &cases;
                scope.spawn(move || {
                    let mut asker = servers.asker();
                    let found: Vec<Case> = steps.iter().filter_map(|step| Case::new(step, asker.ask(step))).collect();
                    cases.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(found);
                });
            }
        });
        cases.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts a difference; one that no rule covers and that is none of the told is made small and printed.
    fn judge(&mut self, script: Script, case: Case) -> Result<()> {
        if let Some(rule) = self.known.rule(&case) {
            *self.tally.known.entry(rule.to_owned()).or_default() += 1;
            return Ok(());
        }
        let likeness = case.likeness();
        if self.tally.told.contains(&likeness) {
            self.tally.other += 1;
            return Ok(());
        }
        if self.attempt(&script)?.is_none() {
            self.tally.unsteady += 1;
            let differs = case.differs.first().map_or("", String::as_str);
            println!("unsteady, {}, not seen again: {}\n  {differs}", self.kind, case.request());
            return Ok(());
        }
        self.tally.other += 1;
        let (mut smallest, mut last) = (script, case);
        if self.tally.told.len() < self.options.shrinks {
            smallest = shrink::shrink(smallest, |script| {
                let found = self.attempt(script)?;
                let same = found.filter(|found| found.likeness() == likeness);
                Ok(same.map(|found| last = found).is_some())
            })?;
        }
        self.tally.told.insert(likeness);
        println!("\n=== {}, difference {}", self.kind, self.tally.told.len());
        tell(&smallest, &last);
        Ok(())
    }

    /// Plays a script from empty tables; the difference of its last step, if there is one that is not known.
    fn attempt(&mut self, script: &Script) -> Result<Option<Case>> {
        let alike =
            |live: &Script| live.only_reads && live.lines == script.lines && live.before.len() == script.before.len();
        let servers = match self.live.take() {
            Some((live, servers)) if alike(&live) => servers,
            _ => {
                let servers = self.pair.fresh(self.kind)?;
                servers.seed(&script.lines)?;
                let mut asker = servers.asker();
                for step in &script.before {
                    asker.change(step);
                }
                servers.settle()?;
                servers
            }
        };
        let mut asker = servers.asker();
        let case = Case::new(&script.step, asker.ask(&script.step));
        self.live = Some((script.clone(), servers));
        Ok(case.filter(|case| self.known.rule(case).is_none()))
    }
}

fn tell(script: &Script, case: &Case) {
    for line in &script.lines {
        println!("  {line}");
    }
    for step in &script.before {
        println!("  {}", step.describe(""));
    }
    println!("{}\n  {}", case.request(), case.differs.join("\n  "));
    for (name, answer) in [("OpenTSDB", &case.real), ("Basalt  ", &case.ours)] {
        let body: String = answer.body().chars().take(BODY_CHARS_MAX).collect();
        println!("{name} {} {body}", answer.status.unwrap_or_default());
    }
}

/// Seconds since 1970.
fn now() -> Result<u64> {
    #[expect(clippy::disallowed_methods, reason = "the newest points must be near the clock of both servers")]
    let now = std::time::SystemTime::now();
    Ok(now.duration_since(std::time::UNIX_EPOCH)?.as_secs())
}
