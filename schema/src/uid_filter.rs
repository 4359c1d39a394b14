//! Which new names get a UID: those in which every expression of their kind finds a match.
//!
//! Names that have a UID already are not looked at. *Source*: OpenTSDB 2.4 `UniqueIdWhitelistFilter` (rule P-UIDFILTER).

use regex::Regex;

use crate::{Error, Result, UidKind, java_pattern};

/// Expressions for each kind; none lets every name through.
///
/// ```
/// use basalt_schema::{UidFilter, UidKind};
/// let filter = UidFilter::none().with(UidKind::Metric, "^sys\\.,[a-z]+$", ",")?;
/// assert!(filter.allows(UidKind::Metric, "sys.cpu") && filter.allows(UidKind::Tagk, "Host"));
/// assert!(!filter.allows(UidKind::Metric, "app.cpu") && !filter.allows(UidKind::Metric, "sys.0"));
/// // Java's expressions: a word is ASCII's.
/// assert!(!UidFilter::none().with(UidKind::Tagv, r"^\w+$", ",")?.allows(UidKind::Tagv, "café"));
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct UidFilter {
    metric: Vec<Regex>,
    tagk: Vec<Regex>,
    tagv: Vec<Regex>,
}

impl UidFilter {
    /// Lets every name through.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the expressions of a kind: `patterns` cut at each match of the expression `delimiter`. Empty sets none.
    ///
    /// # Errors
    /// `Invalid`: a pattern or delimiter that is no regular expression.
    pub fn with(mut self, kind: UidKind, patterns: &str, delimiter: &str) -> Result<Self> {
        let compiled = |text: &str| {
            let reason = |cause: regex::Error| cause.to_string().replace('\n', " ").into();
            Regex::new(&java_pattern(text))
                .map_err(|cause| Error::InvalidUidPattern { pattern: text.into(), reason: reason(cause) })
        };
        let delimiter = compiled(delimiter)?;
        let pieces = delimiter.split(patterns).filter(|pattern| !pattern.is_empty());
        let pieces = pieces.map(compiled).collect::<Result<_>>()?;
        match kind {
            UidKind::Metric => self.metric = pieces,
            UidKind::Tagk => self.tagk = pieces,
            UidKind::Tagv => self.tagv = pieces,
        }
        Ok(self)
    }

    /// Whether a new name may have a UID.
    pub fn allows(&self, kind: UidKind, name: &str) -> bool {
        let patterns = match kind {
            UidKind::Metric => &self.metric,
            UidKind::Tagk => &self.tagk,
            UidKind::Tagv => &self.tagv,
        };
        patterns.iter().all(|pattern| pattern.is_match(name))
    }
}
