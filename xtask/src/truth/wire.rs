//! Frames of the pipe to `tests/oracle/truth`: big-endian numbers, byte strings with their length before them.

use anyhow::{Context as _, Result};

/// A request's arguments as they grow.
#[derive(Debug, Default)]
pub(super) struct Ask(pub(super) Vec<u8>);

impl Ask {
    pub(super) fn u8(mut self, n: u8) -> Self {
        self.0.push(n);
        self
    }

    pub(super) fn flag(self, flag: bool) -> Self {
        self.u8(u8::from(flag))
    }

    pub(super) fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }

    /// A length; what is longer than the pipe can tell is refused by its far end.
    pub(super) fn count(self, n: usize) -> Self {
        self.u32(u32::try_from(n).unwrap_or(u32::MAX))
    }

    pub(super) fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_be_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: impl AsRef<[u8]>) -> Self {
        let mut ask = self.count(bytes.as_ref().len());
        ask.0.extend(bytes.as_ref());
        ask
    }
}

/// An answer, read from the front.
#[derive(Debug)]
pub(super) struct Told<'a>(pub(super) &'a [u8]);

impl<'a> Told<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count).context("the driver's answer ends early")?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take(8)?.try_into()?))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.u32()? as usize;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// A list, each by `read`.
    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.u32()?).map(|_| read(self)).collect()
    }
}
