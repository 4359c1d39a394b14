//! What is Java's where OpenTSDB's bytes and texts show it: hashes in IDs of branches, the order of maps, regular expressions.

mod pattern;

pub use pattern::java_pattern;

/// Buckets of a `HashMap` made without a size.
pub const JAVA_MAP_CAPACITY: usize = 16;

/// `String.hashCode`: over UTF-16, wrapping.
pub(crate) fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

/// Sorts `entries` into the order in which a `HashMap<String, …>` of this initial capacity gives them back, filled in the order
/// given, no key twice.
///
/// ```
/// use basalt_schema::{JAVA_MAP_CAPACITY, java_map_order};
///
/// let mut tags = [("dc", 1), ("host", 2)];
/// java_map_order(&mut tags, JAVA_MAP_CAPACITY, |(key, _)| key);
/// assert_eq!(tags, [("host", 2), ("dc", 1)]);
/// ```
pub fn java_map_order<'k, T>(entries: &mut [T], capacity: usize, key: impl Fn(&T) -> &'k str) {
    let mut buckets = capacity.max(1).next_power_of_two();
    // A table doubles as soon as it holds more than three quarters of its buckets.
    while entries.len() > buckets * 3 / 4 {
        buckets *= 2;
    }
    // Doubling keeps the order within a bucket, so that is the order of filling.
    entries.sort_by_key(|entry| {
        let hash = java_hash(key(entry));
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], capacity: usize, expected: &[&str]) {
        let mut order = names.to_vec();
        java_map_order(&mut order, capacity, |name| name);
        assert_eq!(order, expected, "{capacity}");
    }

    /// Printed by `new HashMap<>(capacity)` of a Java 17.
    #[test]
    fn the_order_is_javas() {
        check(&["b", "a"], 16, &["a", "b"]);
        check(&["p", "a", "o"], 16, &["p", "a", "o"]);
        check(&["cpu", "mem", "e1", "e2", "disk"], 16, &["disk", "mem", "cpu", "e1", "e2"]);
        check(&["d", "a"], 2, &["d", "a"]);
        check(&["b", "c", "a"], 1, &["a", "b", "c"]);
        check(&[], 0, &[]);
    }
}
