//! What an import has done so far, in a small JSON file: where the lines went, by path the lines done, and how the file began.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use basalt_schema::hex_lower;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::aside::remember;
use crate::exit::{Exit, Failure};

/// Progress, remembered after every block if a file was named.
#[derive(Debug)]
pub(super) struct Resume {
    file: Option<PathBuf>,
    saved: Saved,
}

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// Where the lines went.
    target: String,
    files: BTreeMap<String, Done>,
}

/// The file's content as some version wrote it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Read {
    Saved(Saved),
    /// As older ones did: of any target.
    Files(BTreeMap<String, Done>),
}

/// What is done of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Done {
    /// As older versions wrote it.
    Lines(u64),
    /// And the first bytes of these lines, by their number and SHA-256: another file of its name is told from it, and a line
    /// that was refused can be mended.
    Of { lines: u64, head_bytes: usize, head_sha256: String },
}

impl Done {
    /// Lines of a file that begins with `head`; none if it is another.
    fn lines(&self, head: &[u8]) -> Option<u64> {
        match self {
            Self::Lines(lines) => Some(*lines),
            Self::Of { lines, head_bytes, head_sha256 } => {
                let same = head.get(..*head_bytes).is_some_and(|head| sha256(head) == *head_sha256);
                same.then_some(*lines)
            }
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex_lower(&Sha256::digest(bytes))
}

impl Resume {
    /// Reads `file`; one that is not there means that nothing is done.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is of an import into another target: nothing that it tells of is there.
    pub(super) fn load(file: Option<&Path>, target: String) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self { file: None, saved: Saved { target, files: BTreeMap::new() } }) };
        let fail = |why: String| Failure::new(Exit::Failure, format!("cannot use {}: {why}", path.display()));
        let read = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|cause| fail(cause.to_string()))?,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Read::Files(BTreeMap::new()),
            Err(cause) => return Err(fail(cause.to_string())),
        };
        let saved = match read {
            Read::Saved(saved) => saved,
            Read::Files(files) => Saved { target: target.clone(), files },
        };
        if saved.target != target {
            return Err(fail(format!(
                "it is of an import into {}, and this one goes into {target}: name another file for --resume, or remove \
                 it to send all lines again",
                saved.target
            )));
        }
        Ok(Self { file: Some(path.to_owned()), saved })
    }

    /// Lines of `path`, which begins with `head`, that need not be sent again.
    ///
    /// # Errors
    ///
    /// It is not the file that lines were stored of: nobody knows which of its own are.
    pub(super) fn done(&self, path: &Path, head: &[u8]) -> Result<u64, Failure> {
        let Some(done) = self.saved.files.get(&path.display().to_string()) else { return Ok(0) };
        done.lines(head).ok_or_else(|| {
            let line = "does not begin as it did when lines of it were stored: name another file for --resume";
            Failure::new(Exit::Failure, format!("{} {line}", path.display()))
        })
    }

    /// Remembers that the first `lines` of `path`, which begins with `head`, are stored. Written aside and renamed: an import that is killed
    /// meanwhile leaves the file as it was before, never half of one.
    pub(super) fn advance(&mut self, path: &Path, head: &[u8], lines: u64) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let count = usize::try_from(lines).unwrap_or(usize::MAX);
        let head_bytes = head.split_inclusive(|byte| *byte == b'\n').take(count).map(<[u8]>::len).sum();
        let head_sha256 = sha256(head.get(..head_bytes).unwrap_or_default());
        let done = Done::Of { lines, head_bytes, head_sha256 };
        self.saved.files.insert(path.display().to_string(), done);
        remember(file, &self.saved)
    }
}
