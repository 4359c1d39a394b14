//! What an import has done so far, in a small JSON file: lines by path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::aside::replace;
use crate::exit::{Exit, Failure};

/// Progress, remembered after every block if a file was named.
#[derive(Debug)]
pub(super) struct Resume {
    file: Option<PathBuf>,
    lines: BTreeMap<String, u64>,
}

impl Resume {
    /// Reads `file`; one that is not there means that nothing is done.
    pub(super) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self { file: None, lines: BTreeMap::new() }) };
        let fail = |why: String| Failure::new(Exit::Failure, format!("cannot use {}: {why}", path.display()));
        let lines = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|cause| fail(cause.to_string()))?,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(cause) => return Err(fail(cause.to_string())),
        };
        Ok(Self { file: Some(path.to_owned()), lines })
    }

    /// Lines of `path` that need not be sent again.
    pub(super) fn done(&self, path: &Path) -> u64 {
        self.lines.get(&path.display().to_string()).copied().unwrap_or(0)
    }

    /// Remembers that the first `lines` of `path` are stored. Written aside and renamed: an import that is killed
    /// meanwhile leaves the file as it was before, never half of one.
    pub(super) fn advance(&mut self, path: &Path, lines: u64) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        self.lines.insert(path.display().to_string(), lines);
        serde_json::to_vec(&self.lines)
            .map_err(std::io::Error::from)
            .and_then(|bytes| replace(file, &bytes))
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot write {}: {cause}", file.display())))
    }
}
