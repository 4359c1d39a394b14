//! Lines of the shell, on a store in memory that opens no file: any bytes are commands or refused in words.

#![no_main]

use std::sync::Arc;

use basalt_shell::{Shell, Style};
use basalt_store::{ManualClock, MemoryStore, Timestamp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp(1_000)))));
    let mut out = Vec::new();
    let mut shell = Shell::new(store, &mut out, Style::default()).remote();
    shell.feed(b"create 't', 'f'; put 't', 'r', 'f:q', 'v'").expect("a table can be made");
    for line in script.split(|byte| *byte == b'\n') {
        if let Err(failed) = shell.feed(line) {
            assert!(!failed.to_string().is_empty());
        }
    }
    if let Err(failed) = shell.end() {
        assert!(!failed.to_string().is_empty());
    }
});
