//! The text of points, the long part of an answer: as few and as short copies a point as can be.

use super::value;

/// Digits that change from point to point.
const TAIL_DIGITS: usize = 3;
/// What these digits count up to before those before them change.
const STEM: u16 = 1_000;

/// Room for opening, sign, digits, and what stands behind them. A copy of a length that the compiler knows is two moves.
const TEXT_BYTES: usize = 32;

/// What stands before a point's value: a comma, the opening, its time. Times that share all but their last digits, as
/// neighbours do, share what is written.
#[derive(Debug)]
pub(super) struct PointHead {
    /// Opening, digits, and what stands between time and value.
    text: [u8; TEXT_BYTES],
    text_bytes: usize,
    /// Where the last digits stand in `text`.
    tail_at: usize,
    /// The first of the times that share what `text` holds; none where `text` is one time's alone.
    stem_from: Option<i64>,
    opening: &'static [u8],
    between: &'static [u8],
}

impl PointHead {
    /// With a comma in `opening` before all points but the first.
    pub(super) fn new(opening: &'static [u8], between: &'static [u8]) -> Self {
        Self { text: [0; TEXT_BYTES], text_bytes: 0, tail_at: 0, stem_from: None, opening, between }
    }

    /// Appends the head of a point at `time`; without the opening's comma if it is the first.
    #[inline]
    pub(super) fn write(&mut self, out: &mut Vec<u8>, time: i64, is_first: bool) {
        if self.tail(time).is_none() {
            self.set(time);
        }
        let from = out.len();
        out.extend_from_slice(&self.text);
        out.truncate(from + self.text_bytes);
        // Behind the copy and not before it: a processor waits until what was written in pieces can be read as a whole.
        if let Some(place) = out.get_mut(from + self.tail_at..).and_then(|rest| rest.first_chunk_mut())
            && let Some(tail) = self.tail(time)
        {
            *place = tail;
        }
        if is_first {
            out.remove(from);
        }
    }

    /// The last digits of a time that shares all others with `text`.
    fn tail(&self, time: i64) -> Option<[u8; TAIL_DIGITS]> {
        let past = time.checked_sub(self.stem_from?)?;
        u16::try_from(past).ok().filter(|past| *past < STEM).map(digits)
    }

    /// Writes `text` anew.
    #[cold]
    fn set(&mut self, time: i64) {
        let mut text = Vec::with_capacity(TEXT_BYTES);
        text.extend_from_slice(self.opening);
        value(&mut text, &time);
        self.stem_from = (time >= STEM.into()).then_some(time - time % i64::from(STEM));
        self.tail_at = text.len().saturating_sub(TAIL_DIGITS);
        text.extend_from_slice(self.between);
        assert!(text.len() <= TEXT_BYTES, "BUG: a point's head of {} bytes", text.len());
        self.text_bytes = text.len();
        for (place, byte) in self.text.iter_mut().zip(text) {
            *place = byte;
        }
    }
}

/// The digits of a number from 0 up to 999. In as few bits as it needs: to divide takes most of a head's time.
fn digits(number: u16) -> [u8; TAIL_DIGITS] {
    let digit = |of: u16| b'0' + u8::try_from(of % 10).unwrap_or_default();
    [digit(number / 100), digit(number / 10), digit(number)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_what_their_times_are_written_alone() {
        let times =
            [0, 7, 999, 1_000, 1_001, 1_999, 2_000, 2_000, 1_700_000_000, 1_700_000_999, 1_700_001_000, 5, 1_005];
        let negative = [-1_000_000, -1, 1_700_000_010, i64::MAX, i64::MIN, 12_345, 1_500];
        for (opening, between) in [(&b",\""[..], &b"\":"[..]), (b",[", b",")] {
            let mut head = PointHead::new(opening, between);
            for (place, time) in times.into_iter().chain(negative).enumerate() {
                let mut out = Vec::new();
                head.write(&mut out, time, place == 0);
                let texts = [opening, time.to_string().as_bytes(), between].concat();
                assert_eq!(out, texts[usize::from(place == 0)..], "{time}");
            }
        }
    }
}
