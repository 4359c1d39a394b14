//! A data folder without a server: the same ingest, in this process.

use std::sync::Arc;

use basalt_ingest::Door;
use bytes::Bytes;
use tokio::runtime::Runtime;

use super::{Target, not_now};
use crate::app::App;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::telnet::put_lines;

/// An opened folder.
pub(crate) struct Folder {
    runtime: Runtime,
    app: Arc<App>,
}

impl Folder {
    /// Opens the folder that `config` names.
    ///
    /// # Errors
    ///
    /// Exit code 4 when a server holds it; the store's own.
    pub(crate) fn open(config: Config) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start threads: {cause}")))?;
        let app = Arc::new(runtime.block_on(App::open(config))?);
        Ok(Self { runtime, app })
    }
}

impl Target for Folder {
    fn store(&mut self, lines: &[Vec<u8>]) -> Result<Vec<String>, Failure> {
        let lines: Vec<Bytes> = lines.iter().map(|line| Bytes::copy_from_slice(line)).collect();
        let app = Arc::clone(&self.app);
        let storing = self.runtime.spawn(async move { put_lines(&app.ingest, Door::Import, &lines).await });
        let errors = self
            .runtime
            .block_on(storing)
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot store a block: {cause}")))?;
        let said: Vec<String> = errors.into_iter().map(|line| line.trim_end().to_owned()).collect();
        match not_now(&said) {
            Some(line) => Err(Failure::new(Exit::TryLater, format!("the folder cannot be stored to now: {line}"))),
            None => Ok(said),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.runtime.block_on(self.app.close())
    }
}
