//! `cargo xtask dist`: the binary to install. A first one counts what it does under a load of puts, questions and a start after
//! a kill; the second is built by these counts (`docs/decisions/0022-built-by-profile.md`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::import_check::basalt::{Server, pause, target, word};
use crate::process::{did, said};
use crate::workspace;

/// How long a start may take to replay the log.
const READY_MAX: Duration = Duration::from_mins(2);

/// Puts of the load: protocol, points a request, connections, and the seconds that they cover, of 1,000 points each. They are few
/// enough to stay in memtables: loops over all points, as flushes and wide questions have them, would make puts look rare.
const PUTS: [(&str, u32, u32, u32); 6] = [
    ("json", 50, 4, 1_000),
    ("json", 50, 64, 1_000),
    ("json", 500, 4, 3_000),
    ("json", 500, 64, 3_000),
    ("json", 5000, 4, 3_000),
    ("telnet", 500, 4, 1_000),
];

/// The first second of the points.
const START: u32 = 1_700_000_000;

/// Builds the binary, and says where it is.
pub(crate) fn run() -> Result<()> {
    let compiler = Compiler::ask()?;
    let profdata = compiler.profdata()?;
    let folder = std::path::absolute(target())?.join("dist");
    let (raw, merged) = (folder.join("counts"), folder.join("basalt.profdata"));
    if raw.exists() {
        std::fs::remove_dir_all(&raw)?;
    }
    println!("== 1 of 3: a binary that counts what it does");
    let counting = compiler.build(&folder.join("counting"), &format!("-Cprofile-generate={}", word(&raw)?))?;
    println!("== 2 of 3: its load");
    load(&counting)?;
    did(Command::new(profdata).arg("merge").arg("-o").arg(&merged).arg(&raw))?;
    println!("== 3 of 3: the binary to install");
    let built = compiler.build(&folder.join("built"), &format!("-Cprofile-use={}", word(&merged)?))?;
    let installed = folder.join("basalt");
    std::fs::copy(built, &installed)?;
    println!("{}", installed.display());
    Ok(())
}

/// What is asked of the compiler.
#[derive(Debug)]
struct Compiler {
    host: String,
    /// The major version of its LLVM: counts are read by tools of the same.
    llvm: String,
}

impl Compiler {
    fn ask() -> Result<Self> {
        Self::read(&said(Command::new("rustc").arg("-vV"))?).context("`rustc -vV` tells no host or no version of LLVM")
    }

    fn read(told: &str) -> Option<Self> {
        let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let llvm = field("LLVM version:")?.split('.').next()?.to_owned();
        Some(Self { host: field("host:")?.to_owned(), llvm })
    }

    /// The tool that merges counts.
    fn profdata(&self) -> Result<PathBuf> {
        let Self { host, llvm } = self;
        let sysroot = PathBuf::from(said(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
        let with_rust = sysroot.join("lib/rustlib").join(host).join("bin/llvm-profdata");
        let of_system = PathBuf::from(format!("llvm-profdata-{llvm}"));
        let runs = |tool: &PathBuf| Command::new(tool).arg("--version").output().is_ok_and(|ran| ran.status.success());
        [with_rust, of_system].into_iter().find(runs).with_context(|| {
            format!("no llvm-profdata of LLVM {llvm}: `rustup component add llvm-tools`, or the package llvm-{llvm}")
        })
    }

    /// The binary, built with a flag more. A target is named so that the flag is not for build scripts.
    fn build(&self, folder: &Path, flag: &str) -> Result<PathBuf> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--release", "--bin", "basalt", "--target", &self.host, "--target-dir"]);
        // Unlike RUSTFLAGS it takes paths with blanks.
        command.arg(folder).env("CARGO_ENCODED_RUSTFLAGS", flag).current_dir(workspace());
        did(&mut command)?;
        Ok(folder.join(&self.host).join("release/basalt"))
    }
}

/// Puts of every kind, questions to memtables and to files, a start after a kill. A binary writes its counts when it ends by itself.
fn load(program: &Path) -> Result<()> {
    let (folder, config) = (tempfile::tempdir()?, tempfile::NamedTempFile::new()?);
    let data = folder.path().join("data");
    let mut from = START;
    let server = serve(program, &data, config.path())?;
    for put in PUTS {
        from = self::put(program, &server, put, from)?;
    }
    ask(program, &server, from)?;
    server.stop()?;
    let killed = serve(program, &data, config.path())?;
    from = self::put(program, &killed, ("json", 500, 4, 4_000), from)?;
    drop(killed);
    serve(program, &data, config.path())?.stop()?;
    did(Command::new(program).args(["compact", "--data-dir"]).arg(&data))?;
    let server = serve(program, &data, config.path())?;
    ask(program, &server, from)?;
    server.stop()
}

/// A server that has replayed its log.
fn serve(program: &Path, data: &Path, config: &Path) -> Result<Server> {
    let server = Server::start(program, data, config)?;
    let until = Instant::now() + READY_MAX;
    while server.get("/api/version").is_err() {
        ensure!(Instant::now() < until, "Basalt was not ready within {} s", READY_MAX.as_secs());
        pause();
    }
    Ok(server)
}

/// Puts points from a second on; gives the second behind the last.
fn put(program: &Path, server: &Server, put: (&str, u32, u32, u32), from: u32) -> Result<u32> {
    let (protocol, batch, connections, span) = put;
    let numbers = [("--batch", batch), ("--connections", connections), ("--start", from), ("--span", span)];
    bench(program, server, "ingest", &numbers, &["--protocol", protocol])?;
    Ok(from + span)
}

/// Asks every kind of question of the points before a second.
fn ask(program: &Path, server: &Server, end: u32) -> Result<()> {
    let numbers = [("--start", START), ("--span", end - START), ("--count", 200), ("--connections", 1)];
    bench(program, server, "query", &numbers, &[])
}

fn bench(program: &Path, server: &Server, what: &str, numbers: &[(&str, u32)], more: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(["bench", what, "--url", &format!("http://{}", server.address)]).args(more);
    for (name, number) in numbers {
        command.args([name, number.to_string().as_str()]);
    }
    did(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_tells_its_host_and_its_llvm() {
        let told = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.2\n";
        let read = Compiler::read(told).unwrap();
        assert_eq!((&*read.host, &*read.llvm), ("x86_64-unknown-linux-gnu", "22"));
        assert!(Compiler::read("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\n").is_none());
    }
}
