//! Tags as Java prints them in OpenTSDB's error texts: a map in the order of Java's hash table.
//!
//! Clients and people search for these texts, so they are the same in every character.

use std::fmt::{self, Write as _};

use crate::java::{JAVA_MAP_CAPACITY, java_map_order};

/// At most this many tags are printed: a body of a million tags must not give a text of a million tags.
const TAGS_PRINTED_MAX: usize = 64;

/// Tags as `{host=a, dc=b}`, in the order in which `java.util.HashMap` gives entries that were put in the given order; of
/// more than 64 the first are told. A value that is none is `null`. *Cost*: one allocation for the order, one for the text.
///
/// ```
/// let tags = [("dc", Some("b")), ("host", Some("a"))];
/// assert_eq!(basalt_schema::tags_text(tags.into_iter()), "{host=a, dc=b}");
/// ```
pub fn tags_text<'t>(tags: impl Iterator<Item = (&'t str, Option<&'t str>)>) -> String {
    let mut tags: Vec<_> = tags.take(TAGS_PRINTED_MAX).collect();
    java_map_order(&mut tags, JAVA_MAP_CAPACITY, |(key, _)| key);
    let mut text = String::from("{");
    for (index, (key, value)) in tags.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        append(&mut text, format_args!("{comma}{key}={}", value.unwrap_or("null")));
    }
    text.push('}');
    text
}

fn append(text: &mut String, arguments: fmt::Arguments<'_>) {
    let written = text.write_fmt(arguments);
    debug_assert!(written.is_ok(), "BUG: a string refused to grow");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[&str], expected: &str) {
        assert_eq!(tags_text(keys.iter().map(|key| (*key, Some("a")))), expected);
    }

    #[test]
    fn maps_print_in_the_order_that_opentsdb_was_seen_to_print() {
        check(
            &["h1", "h2", "h3", "h4", "host", "dc", "rack", "zone", "cpu"],
            "{rack=a, zone=a, host=a, h1=a, cpu=a, h2=a, h3=a, h4=a, dc=a}",
        );
        check(&["host", "dc"], "{host=a, dc=a}");
        check(&["dc", "host"], "{host=a, dc=a}");
        check(&[], "{}");
        assert_eq!(tags_text([("host", None)].into_iter()), "{host=null}");
    }

    #[test]
    fn a_long_map_is_cut() {
        let keys: Vec<String> = (0..1000).map(|key| key.to_string()).collect();
        let text = tags_text(keys.iter().map(|key| (key.as_str(), Some("v"))));
        assert_eq!(text.matches('=').count(), TAGS_PRINTED_MAX);
    }
}
