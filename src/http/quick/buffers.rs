//! Buffers of requests. The connections of a thread use the same few in turn: one that waits for its next request has none, and the
//! memory of the one that was given back last is still in the processor's cache.

use std::cell::RefCell;

/// Bytes of a new buffer.
const BYTES_MIN: usize = 16 << 10;

/// A larger buffer is not kept from one request to the next.
pub(super) const BYTES_KEPT: usize = 256 << 10;

/// Buffers that a thread keeps. More are in use at once only while bodies come in pieces.
const KEPT: usize = 8;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with room.
pub(super) fn take() -> Vec<u8> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(BYTES_MIN))
}

/// Gives a buffer back, whatever it holds.
pub(super) fn give(mut buffer: Vec<u8>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < KEPT && (1..=BYTES_KEPT).contains(&buffer.capacity()) {
            buffer.clear();
            spare.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_given_back_last_is_taken_first_and_few_are_kept() {
        let sized = |bytes| Vec::<u8>::with_capacity(bytes);
        for bytes in [0, BYTES_KEPT + 1] {
            give(sized(bytes));
            assert_eq!(take().capacity(), BYTES_MIN, "{bytes} is not kept");
        }
        for more in 1..=KEPT + 1 {
            give(sized(BYTES_MIN + more));
        }
        give(vec![1; BYTES_KEPT]);
        let taken: Vec<_> = (0..=KEPT).map(|_| take().capacity() - BYTES_MIN).collect();
        assert_eq!(taken, (0..=KEPT).rev().collect::<Vec<_>>());
        give(vec![1]);
        assert!(take().is_empty());
    }
}
