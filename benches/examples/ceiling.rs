//! The least that a server of puts can do: it reads requests, scans their points, looks up their series and keeps the points in
//! memory. No log, no row keys, no checks of what is not needed, a thread a connection.
//!
//! It takes Basalt's arguments, so that it stands in an older Basalt's place:
//!
//! ```sh
//! cargo build --release --example ceiling && cargo run --release -- --before target/release/examples/ceiling
//! ```

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, RwLock};

use anyhow::{Context, Result, ensure};
use basalt_ingest::{Door, Ingest, IngestLimits, RawPoint, decode_text, parse_value};
use basalt_schema::{Schema, SchemaConfig, Value};
use basalt_store::{ManualClock, MemoryStore, Store};
use foldhash::fast::{FixedState, RandomState};
use std::hash::{BuildHasher, Hasher};

#[path = "shared/plain_http.rs"]
mod plain_http;

use plain_http::{READY, STORED, head_of};

/// What is kept of a series.
type Series = Mutex<Vec<(i64, u64)>>;

struct Ceiling {
    ingest: Ingest,
    /// By the hash of the bytes that a series is spelled with.
    series: RwLock<HashMap<u64, Series, RandomState>>,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let listen = args.iter().position(|arg| arg == "--listen").and_then(|at| args.get(at + 1));
    let listener = TcpListener::bind(listen.context("no --listen ADDR:PORT")?)?;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    let schema = Arc::new(Schema::open(Arc::clone(&store), SchemaConfig::default())?);
    let ingest = Ingest::new(schema, store, IngestLimits::default());
    let ceiling = Arc::new(Ceiling { ingest, series: RwLock::default() });
    for stream in listener.incoming() {
        let (stream, ceiling) = (stream?, Arc::clone(&ceiling));
        std::thread::spawn(move || ceiling.serve(stream).unwrap_or_else(|cause| eprintln!("{cause:#}")));
    }
    Ok(())
}

impl Ceiling {
    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let (mut buffer, mut filled) = (vec![0; 1 << 16], 0);
        loop {
            let Some((head, body)) = head_of(&buffer[..filled])? else {
                match stream.read(&mut buffer[filled..])? {
                    0 => return Ok(()),
                    more => filled += more,
                }
                continue;
            };
            let end = head + body;
            buffer.resize(buffer.len().max(end), 0);
            if filled < end {
                stream.read_exact(&mut buffer[filled..end])?;
                filled = end;
            }
            if body > 0 {
                self.put(&buffer[head..end])?;
                stream.write_all(STORED)?;
            } else {
                // Whether it is ready.
                stream.write_all(READY)?;
                return Ok(());
            }
            buffer.copy_within(end..filled, 0);
            filled -= end;
        }
    }

    fn put(&self, body: &[u8]) -> Result<()> {
        let text = decode_text(body);
        let points = self.ingest.parse_put(&text)?;
        if self.keep(&points)? {
            return Ok(());
        }
        // New series: made known first, as a server of them has to.
        ensure!(self.ingest.submit(&points, Door::Http)?.wait().is_all_stored(), "points are refused");
        let mut series = self.series.write().expect("no thread panics");
        for point in &points {
            series.entry(hash(point)).or_default();
        }
        drop(series);
        ensure!(self.keep(&points)?, "a series is not there");
        Ok(())
    }

    /// Keeps points unless a series is new.
    fn keep(&self, points: &[RawPoint<'_>]) -> Result<bool> {
        let series = self.series.read().expect("no thread panics");
        for point in points {
            let Some(kept) = series.get(&hash(point)) else { return Ok(false) };
            let value = parse_value(&point.value.context("no value")?.decode()).ok().context("no number")?;
            let bits = match value {
                Value::Int(number) => number.cast_unsigned(),
                Value::Float(number) => number.to_bits(),
            };
            kept.lock().expect("no thread panics").push((point.timestamp, bits));
        }
        Ok(true)
    }
}

fn hash(point: &RawPoint<'_>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(point.metric.map_or("", |metric| metric.raw()).as_bytes());
    hasher.write(point.tags.raw().as_bytes());
    hasher.finish()
}
