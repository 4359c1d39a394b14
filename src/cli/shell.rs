//! `basalt shell`: the HBase shell's dialect on a data folder or a running server.

mod interrupt;
mod line;

use std::io::{BufRead, BufReader, BufWriter, IsTerminal as _, Read as _};
use std::path::PathBuf;

use basalt_shell::{Next, Reason, Shell, Style};
use clap::Args;

use self::interrupt::Interrupts;
use self::line::{Terminal, Typed};
use super::folder::{check_home, closing};
use super::{Sources, StoreFlag, start_log, tell_of_cluster};
use crate::config::StoreKind;
use crate::exit::{Exit, Failure};
use crate::remote::Remote;
use crate::store::OpenStore;

/// Longest line in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// `basalt shell`.
#[derive(Debug, Args)]
#[command(after_help = "\
Commands are the HBase shell's: create, put, get, scan, alter, … ; `help` lists them. They come from
-e, a file or standard input, and stop at the first error, but for a person at a terminal, whose
Ctrl-C ends a command that prints, and a second one the shell. The folder must be free; while a
server runs on it, --url has that server do the commands, from the same machine only.

Examples:
  basalt shell --store memory                                          a trial, nothing is kept
  basalt shell -e \"list\"
  basalt shell --json -e \"scan 'tsdb-uid', {LIMIT => 10}\"
  basalt shell --data-dir /var/lib/basalt make-tables.hbase
  basalt shell --url http://127.0.0.1:4242 -e status

Exit codes: 0 done, 1 a command failed, 4 folder in use, 5 damaged data, 74 nothing more can be
made durable, 75 try later: the disk is full, or the server is busy.")]
pub(super) struct ShellCommand {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    place: StoreFlag,
    /// Make the data folder if there is none
    #[arg(long)]
    create: bool,
    /// Have this running server do the commands
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "create", "data_dir", "config"])]
    url: Option<String>,
    /// Run this command, or several with `;` between them; may be given again
    #[arg(short = 'e', long = "execute", value_name = "COMMAND", conflicts_with = "file")]
    execute: Vec<String>,
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,
    /// Print cell times in milliseconds instead of dates
    #[arg(long)]
    epoch: bool,
    /// Run the commands of this file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl ShellCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if let Some(url) = &self.url {
            start_log(self.sources.log_level.as_deref(), &[])?;
            let interrupts = Interrupts::default();
            let mut out = interrupts.over(BufWriter::new(std::io::stdout().lock()));
            return self.feed(Shell::elsewhere(Remote::new(url, &mut out, self.style())?), &interrupts);
        }
        let mut layers = self.sources.layers();
        layers.flags.extend(self.place.layer());
        let config = self.sources.begin(&layers)?;
        tell_of_cluster(&config);
        if config.store.kind == StoreKind::Embedded && !self.create {
            check_home(&config.store.data_dir, "name it with --data-dir, or add --create")?;
        }
        let store = OpenStore::open(&config)?;
        let done = store.check_tables().and_then(|()| self.run_on(&store));
        let closed = closing(|| store.close());
        done.and(closed)
    }

    fn run_on(&self, store: &OpenStore) -> Result<(), Failure> {
        let interrupts = Interrupts::default();
        let mut out = interrupts.over(BufWriter::new(std::io::stdout().lock()));
        self.feed(Shell::new(store.store(), &mut out, self.style()), &interrupts)
    }

    fn style(&self) -> Style {
        Style { json: self.json, epoch: self.epoch }
    }

    /// Feeds the shell what there is to do.
    fn feed(&self, mut shell: Shell<'_>, interrupts: &Interrupts) -> Result<(), Failure> {
        let stdin = std::io::stdin();
        if let Some(path) = &self.file {
            let file = std::fs::File::open(path)
                .map_err(|cause| Failure::new(Exit::Failure, format!("cannot open {}: {cause}", path.display())))?;
            return script(&mut shell, BufReader::new(file)).map_err(|Failure { exit, line }| {
                let place = if line.is_empty() { String::new() } else { format!("{}: ", path.display()) };
                Failure::new(exit, place + &line)
            });
        }
        if !self.execute.is_empty() {
            return script(&mut shell, self.execute.join("\n").as_bytes());
        }
        if stdin.is_terminal() { talk(&mut shell, interrupts) } else { script(&mut shell, stdin.lock()) }
    }
}

/// Runs a script up to its end or its first error.
fn script(shell: &mut Shell<'_>, mut source: impl BufRead) -> Result<(), Failure> {
    let mut line = Vec::new();
    while read_line(&mut source, &mut line)? {
        if shell.feed(&line)? == Next::End {
            break;
        }
    }
    Ok(shell.end()?)
}

/// Talks with a person, who is told of errors and goes on.
fn talk(shell: &mut Shell<'_>, interrupts: &Interrupts) -> Result<(), Failure> {
    interrupts.hear()?;
    shell.say(
        "The HBase shell's commands on this store; `help` lists them, Tab completes them, Ctrl-C ends one that prints, `exit` the shell.\n",
    )?;
    let mut terminal = Terminal::open()?;
    let done = answer(shell, &mut terminal, interrupts);
    terminal.close();
    done
}

fn answer(shell: &mut Shell<'_>, terminal: &mut Terminal, interrupts: &Interrupts) -> Result<(), Failure> {
    let mut next = Next::Command;
    while next != Next::End {
        let sign = if next == Next::Rest { '*' } else { '>' };
        let prompt = format!("basalt:{:03}{sign} ", shell.line_number());
        next = match terminal.read(&prompt, shell.tables())? {
            Typed::End => break,
            Typed::Dropped => {
                shell.forget();
                Next::Command
            }
            Typed::Line(line) => fed(shell, &line, interrupts)?,
        };
    }
    Ok(())
}

/// Does what a person's line says: what fails is told, and an interrupt ends what is printed.
fn fed(shell: &mut Shell<'_>, line: &str, interrupts: &Interrupts) -> Result<Next, Failure> {
    let done = shell.feed(line.as_bytes());
    // Also one that came when the command was done: it is not the next one's.
    let is_interrupted = interrupts.take();
    match done {
        Ok(next) => Ok(next),
        Err(failed) if failed.reason() != Reason::Output => {
            shell.say(&format!("\nERROR: {failed}\n\n"))?;
            Ok(Next::Command)
        }
        Err(_) if is_interrupted => {
            shell.say("\n")?;
            Ok(Next::Command)
        }
        Err(failed) => Err(failed.into()),
    }
}

/// Reads the next line into `line`, its end included; says whether there was one.
fn read_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Failure> {
    line.clear();
    let read = source.take(LINE_BYTES_MAX).read_until(b'\n', line);
    let count = read.map_err(|cause| Failure::new(Exit::Failure, format!("cannot read the commands: {cause}")))?;
    if count as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
        return Err(Failure::new(Exit::Failure, format!("a line is longer than {LINE_BYTES_MAX} bytes")));
    }
    Ok(count > 0)
}
