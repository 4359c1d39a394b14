//! Client libraries that put points and read them back: each driver in `tests/clients` checks what its library makes of
//! the answers, and ends with 1 and a line where that is not what it sent.

use std::path::Path;
use std::process::Command;

use super::{built, found, push, run};

#[test]
fn go_opentsdb_goclient() {
    let Some(driver) = found(&built("goclient")) else { return };
    push("goclient", |port, out| run(Command::new(driver).args(["127.0.0.1", &port.to_string()]), out));
}

/// `rollupUsage` in every spelling, beside put, query, last and suggest.
#[test]
fn java_opentsdb_sdk() {
    let Some(jars) = found(&built("java-lib")) else { return };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/java/Push.java");
    push("javasdk", |port, out| {
        let mut java = Command::new("java");
        java.arg("-cp").arg(jars.join("*")).args([source, "127.0.0.1", &port.to_string()]);
        run(&mut java, out);
    });
}

/// It only reads: the driver puts the points itself.
#[test]
fn npm_opentsdb() {
    let Some(modules) = found(&built("npm/node_modules/opentsdb")) else { return };
    let folder = modules.ancestors().nth(2).unwrap_or(Path::new(".")).to_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/npm/push.js");
    push("npm", |port, out| {
        let mut node = Command::new("node");
        node.env("CLIENTS_NPM", &folder).args([source, "127.0.0.1", &port.to_string()]);
        run(&mut node, out);
    });
}
