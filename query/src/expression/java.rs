//! The order of Java's hash tables, where OpenTSDB's answers show it: an expression's series has the tags of the
//! variable that comes first in one.

/// The capacity of a table made without one.
pub(crate) const CAPACITY_DEFAULT: usize = 16;

/// The places of `names` in the order in which a `HashMap<String, …>` of this initial capacity gives them back, filled
/// in the order of `names`, of which none is twice.
pub(crate) fn hash_order(names: &[&str], capacity: usize) -> Vec<usize> {
    let mut buckets = capacity.max(1).next_power_of_two();
    // A table doubles as soon as it holds more than three quarters of its buckets.
    while names.len() > buckets * 3 / 4 {
        buckets *= 2;
    }
    let mut places: Vec<usize> = (0..names.len()).collect();
    // Doubling keeps the order within a bucket, so that is the order of filling.
    places.sort_by_key(|place| names.get(*place).map(|name| spread(name) as usize & (buckets - 1)));
    places
}

/// `String.hashCode`, its upper half folded in.
fn spread(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], capacity: usize, expected: &[&str]) {
        let order: Vec<&str> = hash_order(names, capacity).into_iter().map(|place| names[place]).collect();
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
    }
}
