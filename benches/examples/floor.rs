//! The least that a durable server of puts can do: it reads requests, writes as many bytes as Basalt's log has of their points,
//! makes them durable once for all that have come, and answers. It looks at no point. One thread, which waits for nothing but
//! the disk and its senders.
//!
//! What it takes is what the system takes: no server that answers after a sync takes less of the processors here. It takes
//! Basalt's arguments, so that it stands in an older Basalt's place:
//!
//! ```sh
//! cargo build --release --example floor && cargo run --release -- --before target/release/examples/floor
//! ```

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

#[path = "shared/plain_http.rs"]
mod plain_http;

use plain_http::{READY, STORED, head_of};

/// Body bytes for a byte of the log: a point of 217 bytes is 16 there.
const BODY_BYTES_A_LOG_BYTE: usize = 217 / 16;

/// Bytes of the log, which is written from its beginning again at its end.
const LOG_BYTES: u64 = 64 << 20;

/// How often those who have sent meanwhile are looked for before a sync, as Basalt does.
const TURNS: usize = 3;

/// The token of the listener.
const LISTENER: Token = Token(usize::MAX);

struct Connection {
    stream: TcpStream,
    /// It grows as it must, and is overwritten by the next request.
    buffer: Vec<u8>,
    filled: usize,
}

/// What came of a look at a connection.
enum Came {
    Nothing,
    /// A whole put with a body of so many bytes.
    Put(usize),
    /// A question whether it is ready, which was answered, or the end.
    Over,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let value_of = |name| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let mut listener = TcpListener::bind(value_of("--listen").context("no --listen ADDR:PORT")?.parse()?)?;
    let log = make_log(Path::new(value_of("--data-dir").context("no --data-dir DIR")?))?;
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(128));
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let (mut connections, mut offset) = (Vec::<Option<Connection>>::new(), 0);
    let (mut asked, mut asked_bytes) = (Vec::new(), 0);
    let junk = vec![1; 1 << 20];
    loop {
        for turn in 0..=TURNS {
            poll.poll(&mut events, (turn > 0).then_some(Duration::ZERO))?;
            for event in &events {
                if event.token() == LISTENER {
                    accept(&listener, &poll, &mut connections)?;
                    continue;
                }
                let Some(place) = connections.get_mut(event.token().0) else { continue };
                let Some(connection) = place else { continue };
                match connection.receive()? {
                    Came::Nothing => {}
                    Came::Put(bytes) => {
                        asked.push(event.token().0);
                        asked_bytes += bytes;
                    }
                    Came::Over => *place = None,
                }
            }
            if asked.is_empty() {
                break;
            }
        }
        if asked.is_empty() {
            continue;
        }
        let record = &junk[..(asked_bytes / BODY_BYTES_A_LOG_BYTE).min(junk.len())];
        if offset + record.len() as u64 > LOG_BYTES {
            offset = 0;
        }
        log.write_all_at(record, offset)?;
        log.sync_data()?;
        offset += record.len() as u64;
        asked_bytes = 0;
        for place in asked.drain(..) {
            if let Some(Some(connection)) = connections.get_mut(place) {
                connection.stream.write_all(STORED)?;
            }
        }
    }
}

/// Written beforehand, so that a sync has no more to do than to bring the bytes to the disk.
fn make_log(folder: &Path) -> Result<File> {
    std::fs::create_dir_all(folder)?;
    let log = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(folder.join("floor.log"))?;
    let piece = vec![0; 1 << 20];
    for at in (0..LOG_BYTES).step_by(piece.len()) {
        log.write_all_at(&piece, at)?;
    }
    log.sync_all()?;
    Ok(log)
}

fn accept(listener: &TcpListener, poll: &Poll, connections: &mut Vec<Option<Connection>>) -> Result<()> {
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nodelay(true)?;
                poll.registry().register(&mut stream, Token(connections.len()), Interest::READABLE)?;
                connections.push(Some(Connection { stream, buffer: vec![0; 64 << 10], filled: 0 }));
            }
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(cause) => return Err(cause.into()),
        }
    }
}

impl Connection {
    /// Takes what is there; senders have one request in flight.
    fn receive(&mut self) -> Result<Came> {
        loop {
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Ok(Came::Over),
                Ok(got) => self.filled += got,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Came::Nothing),
                Err(cause) => return Err(cause.into()),
            }
            let Some((head, body)) = head_of(&self.buffer[..self.filled])? else { continue };
            if body == 0 {
                // Whether it is ready.
                self.stream.write_all(READY)?;
                return Ok(Came::Over);
            }
            ensure!(self.filled <= head + body, "more than one request in flight");
            if self.filled == head + body {
                self.filled = 0;
                return Ok(Came::Put(body));
            }
            self.buffer.resize(self.buffer.len().max(head + body), 0);
        }
    }
}
