//! What is told of a broken promise.

use std::fmt::Display;

/// What a step of a history comes to: an error is a promise that was broken, in words.
pub(super) type Told<T = ()> = Result<T, String>;

/// Adds where and when to what was told.
pub(super) fn at(place: &str) -> impl Fn(&dyn Display) -> String {
    move |what| format!("{place}: {what}")
}
