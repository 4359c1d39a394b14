//! A server's answer to a put with `details`.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// The longest answer that is read: every point of a block refused with its echo.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The longest line of a head.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// Answers in the order of their requests.
pub(super) struct Reader(BufReader<TcpStream>);

/// One answer.
#[derive(Debug)]
pub(super) struct Answer {
    status: u16,
    body: Vec<u8>,
}

/// Why no point of a request counts as answered.
#[derive(Debug)]
pub(super) enum NoReport {
    /// The server asks to come back.
    Later(String),
    /// It refuses the request as such, or answers what is no report.
    Refused(String),
}

/// What `details` gives.
#[derive(Debug, Deserialize)]
struct Report {
    success: u64,
    failed: u64,
    #[serde(default)]
    errors: Vec<ReportError>,
}

#[derive(Debug, Deserialize)]
struct ReportError {
    #[serde(default)]
    datapoint: serde_json::Value,
    error: String,
}

impl Reader {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// Reads the next answer, its length told or in chunks.
    pub(super) fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("content-length", value)) => length = value.parse().map_err(io::Error::other)?,
                Some(("transfer-encoding", value)) => chunked = value == "chunked",
                Some(_) => {}
                None if line.is_empty() => break,
                None => return Err(io::Error::other("the answer's head is no HTTP")),
            }
        }
        let mut body = Vec::new();
        if !chunked {
            self.add(&mut body, length)?;
            return Ok(Answer { status, body });
        }
        loop {
            let size = u64::from_str_radix(self.line()?.trim(), 16).map_err(io::Error::other)?;
            self.add(&mut body, size)?;
            self.line()?;
            if size == 0 {
                return Ok(Answer { status, body });
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.0.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
    }

    fn add(&mut self, body: &mut Vec<u8>, length: u64) -> io::Result<()> {
        if body.len() as u64 + length > ANSWER_BYTES_MAX {
            return Err(io::Error::other("the answer is too long"));
        }
        let read = self.0.by_ref().take(length).read_to_end(body)? as u64;
        if read == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Answer {
    /// One text for each of `points` that was refused.
    pub(super) fn refused(self, points: usize) -> Result<Vec<String>, NoReport> {
        let said = || String::from_utf8_lossy(&self.body).chars().take(400).collect::<String>();
        if self.status >= 500 {
            return Err(NoReport::Later(format!("{} {}", self.status, said())));
        }
        let report: Report = match serde_json::from_slice(&self.body) {
            Ok(report) if self.status == 200 || self.status == 400 => report,
            _ => return Err(NoReport::Refused(format!("{} {}", self.status, said()))),
        };
        let answered = report.success + report.failed;
        if answered != points as u64 || report.errors.len() as u64 != report.failed {
            return Err(NoReport::Refused(format!("of {points} points {answered} are told of: {}", said())));
        }
        Ok(report.errors.into_iter().map(|error| format!("{}: {}", error.error, error.datapoint)).collect())
    }
}

impl NoReport {
    pub(super) fn of(self, address: &str) -> Failure {
        match self {
            Self::Later(said) => Failure::new(Exit::TryLater, format!("{address} cannot store now: {said}")),
            Self::Refused(said) => Failure::new(Exit::Failure, format!("{address} takes no points: {said}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: Result<usize, bool>) {
        let answer = Answer { status, body: body.as_bytes().to_vec() };
        let found = answer.refused(3).map(|texts| texts.len()).map_err(|no| matches!(no, NoReport::Later(_)));
        assert_eq!(found, expected, "{status} {body}");
    }

    /// Silence, or an answer about other points, is never success.
    #[test]
    fn only_a_report_of_every_point_counts() {
        check(200, r#"{"success":3,"failed":0,"errors":[]}"#, Ok(0));
        check(400, r#"{"success":1,"failed":2,"errors":[{"error":"x","datapoint":{}},{"error":"y"}]}"#, Ok(2));
        check(200, r#"{"success":2,"failed":0,"errors":[]}"#, Err(false));
        check(400, r#"{"success":1,"failed":2,"errors":[]}"#, Err(false));
        check(204, "", Err(false));
        check(400, r#"{"error":{"code":400}}"#, Err(false));
        check(413, "", Err(false));
        check(503, "{}", Err(true));
        check(500, r#"{"success":3,"failed":0,"errors":[]}"#, Err(true));
    }
}
