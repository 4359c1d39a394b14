//! Which names metrics and tags may have, and what is said of those they may not.
//!
//! *Source*: OpenTSDB 2.4 `Tags.validateString`, `IncomingDataPoints.checkMetricAndTags` (rule S-NAMES).

use crate::{Error, NameRole, Result};

/// The rules: letters of any script, ASCII digits, `-_./`, and what the configuration adds; 1 to `tags_max` tags.
///
/// ```
/// use basalt_schema::{NameRole, NameRules};
/// let rules = NameRules::default();
/// assert!(rules.check(NameRole::Metric, "sys.cpu.user").is_ok());
/// let error = rules.check(NameRole::Metric, "a b").unwrap_err();
/// assert_eq!(error.to_string(), "Invalid metric name (\"a b\"): illegal character:  ");
/// ```
#[derive(Debug, Clone)]
pub struct NameRules {
    /// Which ASCII characters are allowed, by their bytes; the bytes of others are not.
    ascii: [bool; 256],
    /// Allowed characters beyond ASCII that are no letters.
    extra: Box<[char]>,
    tags_max: usize,
}

impl NameRules {
    /// OpenTSDB's bound on a point's tags.
    pub const TAGS_MAX_DEFAULT: usize = 8;

    /// Longest name, bytes.
    pub const NAME_BYTES_MAX: usize = 1024;

    /// Rules that also allow the characters of `extra` (`tsd.core.tag.allow_specialchars`).
    pub fn new(extra: &str, tags_max: usize) -> Self {
        let mut ascii = [false; 256];
        let mut beyond = Vec::new();
        let always = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("-_./".chars());
        for character in always.chain(extra.chars()) {
            match u8::try_from(character).ok().filter(u8::is_ascii).and_then(|byte| ascii.get_mut(usize::from(byte))) {
                Some(allowed) => *allowed = true,
                None => beyond.push(character),
            }
        }
        Self { ascii, extra: beyond.into(), tags_max }
    }

    /// Checks one name. *Cost*: one pass; no allocation unless the name is refused.
    ///
    /// # Errors
    /// `Invalid`: empty, or a character that is not allowed.
    pub fn check(&self, role: NameRole, name: &str) -> Result<()> {
        if name.is_empty() {
            return Err(Error::EmptyName { role });
        }
        // Fast path: nearly all names are of these.
        if name.bytes().all(|byte| self.allows_byte(byte)) {
            return Ok(());
        }
        match name.chars().find(|character| !self.allows(*character)) {
            None => Ok(()),
            Some(character) => Err(Error::IllegalCharacter { role, name: name.into(), character }),
        }
    }

    /// Checks a name that is to be given a UID.
    ///
    /// # Errors
    /// `Invalid`: as [`NameRules::check`], or longer than a point's may be.
    pub(crate) fn check_new(&self, role: NameRole, name: &str) -> Result<()> {
        if name.len() > Self::NAME_BYTES_MAX {
            return Err(Error::NameTooLong { role, bytes: name.len(), max: Self::NAME_BYTES_MAX });
        }
        self.check(role, name)
    }

    /// Checks a point's metric and tags in OpenTSDB's order: the number of tags, then the metric, then each tag.
    ///
    /// # Errors
    /// `Invalid`: no tag or too many, or a name that [`NameRules::check`] refuses.
    pub fn check_point(&self, metric: &str, tags: &[(&str, &str)]) -> Result<()> {
        if tags.is_empty() {
            return Err(Error::NoTags { metric: metric.into() });
        }
        if tags.len() > self.tags_max {
            return Err(Error::TooManyTags {
                found: tags.len(),
                max: self.tags_max,
                tags: tags.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            });
        }
        self.check(NameRole::Metric, metric)?;
        tags.iter().try_for_each(|(key, value)| {
            self.check(NameRole::TagName, key)?;
            self.check(NameRole::TagValue, value)
        })
    }

    /// The most tags a point may have.
    pub const fn tags_max(&self) -> usize {
        self.tags_max
    }

    fn allows(&self, character: char) -> bool {
        match u8::try_from(character).ok().filter(u8::is_ascii) {
            Some(byte) => self.allows_byte(byte),
            // Rust's "alphabetic" is Java's "letter" and a few combining vowel signs and letter-like numbers more.
            None => character.is_alphabetic() || self.extra.contains(&character),
        }
    }

    fn allows_byte(&self, byte: u8) -> bool {
        self.ascii.get(usize::from(byte)).is_some_and(|allowed| *allowed)
    }
}

impl Default for NameRules {
    fn default() -> Self {
        Self::new("", Self::TAGS_MAX_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Result<()>, expected: &str) {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }

    #[test]
    fn refusals_read_as_opentsdbs() {
        // S-NAMES
        let rules = NameRules::default();
        check(rules.check(NameRole::Metric, ""), "Invalid metric name: empty string");
        check(rules.check(NameRole::TagName, "a:b"), "Invalid tag name (\"a:b\"): illegal character: :");
        check(rules.check(NameRole::TagValue, "a€"), "Invalid tag value (\"a€\"): illegal character: €");
        check(rules.check_point("m", &[]), "Need at least one tag (metric=m, tags={})");
        let nine: Vec<(&str, &str)> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|key| (key, "v")).into();
        check(
            rules.check_point("m", &nine),
            "Too many tags: 9 maximum allowed: 8, tags: {a=v, b=v, c=v, d=v, e=v, f=v, g=v, h=v, i=v}",
        );
        assert!(rules.check_point("m", nine.get(..8).unwrap()).is_ok());
    }

    #[test]
    fn letters_of_any_script_and_what_the_configuration_adds() {
        assert!(NameRules::default().check(NameRole::Metric, "температура/héé_9-.").is_ok());
        assert!(NameRules::default().check(NameRole::Metric, "a\u{0}").is_err());
        assert!(NameRules::new(":€ ", 8).check(NameRole::TagValue, "a:b €").is_ok());
    }
}
