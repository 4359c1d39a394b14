//! A running server, by its telnet door.
//!
//! A block is its lines and then `version`: the server answers that only when every put before it is
//! durable, so the answer is the block's acknowledgement and what stands before it are its errors.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Target, not_now};
use crate::exit::{Exit, Failure};

/// How long a server may take for one block.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection to a server.
pub(crate) struct Remote {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Remote {
    /// Connects to `http://HOST:PORT` or plain `HOST:PORT`; port 4242 unless told.
    pub(crate) fn connect(url: &str) -> Result<Self, Failure> {
        let host = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        if host.contains('/') {
            return Err(Failure::new(Exit::Usage, format!("`{url}` is no server: http://HOST:PORT is expected")));
        }
        let bare_v6 = host.ends_with(']');
        let address = if host.contains(':') && !bare_v6 { host.to_owned() } else { format!("{host}:4242") };
        let fail = |cause| Failure::new(Exit::Failure, format!("cannot reach {address}: {cause}"));
        let stream = TcpStream::connect(&address).map_err(fail)?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .map_err(fail)?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    fn fail(&self, cause: &std::io::Error) -> Failure {
        let line = format!("connection to {} lost: {cause}; the last block may be stored or not", self.address);
        Failure::new(Exit::Failure, line)
    }

    /// Writes and reads at once: a server drops error lines that nobody reads.
    fn exchange(&mut self, text: &[u8]) -> std::io::Result<Vec<String>> {
        let mut writer = self.stream.get_ref().try_clone()?;
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || writer.write_all(text));
            let said = self.read()?;
            writing.join().unwrap_or_else(|_| Err(std::io::Error::other("the writing thread failed")))?;
            Ok(said)
        })
    }

    /// The error lines before the two lines of `version`.
    fn read(&mut self) -> std::io::Result<Vec<String>> {
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_owned();
            if line.starts_with("Built on ") {
                return Ok(said);
            }
            if !line.starts_with("net.opentsdb") {
                said.push(line);
            }
        }
    }
}

impl Target for Remote {
    fn store(&mut self, lines: &[Vec<u8>]) -> Result<Vec<String>, Failure> {
        let text = [lines.concat(), b"version\n".to_vec()].concat();
        let said = self.exchange(&text).map_err(|cause| self.fail(&cause))?;
        match not_now(&said) {
            Some(line) => Err(Failure::new(Exit::TryLater, format!("{} cannot store now: {line}", self.address))),
            None => Ok(said),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
