//! Text that repeats between the parts of a body that change: each such piece is compared as one number.

/// What a text is expected to begin with: nearly always a few bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lead<'a> {
    text: &'a str,
    /// The same bytes as a number, if they fit, and which of its bits count.
    word: u128,
    mask: Option<u128>,
}

impl<'a> Lead<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let word = text.bytes().take(size_of::<u128>()).rev().fold(0, |word, byte| word << 8 | u128::from(byte));
        Self { text, word, mask: mask(text.len()) }
    }

    /// The first bytes of `text`, as many as asked for.
    #[inline]
    fn beginning(text: &'a str, bytes: usize) -> Option<Self> {
        let lead = text.get(..bytes)?;
        Some(match text.as_bytes().first_chunk() {
            Some(head) => Self { text: lead, word: u128::from_le_bytes(*head), mask: mask(bytes) },
            None => Self::of(lead),
        })
    }

    /// Whether `text` begins with it.
    #[inline]
    fn begins(&self, text: &str) -> bool {
        match (text.as_bytes().first_chunk(), self.mask) {
            (Some(head), Some(mask)) => (u128::from_le_bytes(*head) ^ self.word) & mask == 0,
            _ => text.starts_with(self.text),
        }
    }

    /// The rest of `text` behind it, if `text` begins with it.
    #[inline]
    pub(crate) fn strip<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.begins(text) { text.get(self.text.len()..) } else { None }
    }
}

/// A mask of `bytes` bytes, if they fit into a number.
#[inline]
fn mask(bytes: usize) -> Option<u128> {
    (bytes <= size_of::<u128>()).then(|| u128::MAX.checked_shr(128 - 8 * u32::try_from(bytes).ok()?)).flatten()
}

/// The text of the last time and its value: a sender writes the same time for every point of a round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RepeatedTime<'a>(Option<(Lead<'a>, i64)>);

impl<'a> RepeatedTime<'a> {
    /// The time at the start of `text`, and how many bytes it has. A time other than the last one is read by `read`.
    #[inline]
    pub(crate) fn read(&mut self, text: &'a str, read: impl FnOnce() -> Option<(i64, usize)>) -> Option<(i64, usize)> {
        match self.0 {
            // A digit behind it would make it another time.
            Some((lead, time))
                if lead.begins(text) && !text.as_bytes().get(lead.text.len()).is_some_and(u8::is_ascii_digit) =>
            {
                Some((time, lead.text.len()))
            }
            _ => {
                let (time, bytes) = read()?;
                self.0 = Lead::beginning(text, bytes).map(|lead| (lead, time));
                Some((time, bytes))
            }
        }
    }
}
