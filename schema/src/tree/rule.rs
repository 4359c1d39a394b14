//! One rule: which name of a series it looks at, and what it makes of it.
//!
//! *Source*: OpenTSDB 2.4 `TreeRule`.

use std::collections::BTreeMap;

use basalt_store::{Columns, Durability, Get, MutationBatch};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize};

use super::{DATA_FAMILY, RULE_PREFIX, TreeId};
use crate::json_cell::EditMode;
use crate::{Error, Result, Schema, java_pattern, meta_json};

/// Memory that one rule's expression may take.
const REGEX_BYTES_MAX: usize = 256 << 10;
/// Longest text of a rule. OpenTSDB has no bound but the cell's.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// What a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RuleKind {
    /// The metric's name.
    Metric,
    /// A custom member of the metric's meta object.
    MetricCustom,
    /// The value of a tag.
    Tagk,
    /// A custom member of a tag key's meta object.
    TagkCustom,
    /// A custom member of a tag value's meta object.
    TagvCustom,
}

impl RuleKind {
    /// Reads its name in any case.
    ///
    /// # Errors
    /// `Invalid`: another word, or none.
    pub fn parse(text: &str) -> Result<Self> {
        match text.to_lowercase().as_str() {
            "" => Err(Error::InvalidTreeRule { reason: "Rule type was empty".into() }),
            "metric" => Ok(Self::Metric),
            "metric_custom" => Ok(Self::MetricCustom),
            "tagk" => Ok(Self::Tagk),
            "tagk_custom" => Ok(Self::TagkCustom),
            "tagv_custom" => Ok(Self::TagvCustom),
            _ => Err(Error::InvalidTreeRule { reason: "Unrecognized rule type".into() }),
        }
    }

    /// Its name as OpenTSDB writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metric => "METRIC",
            Self::MetricCustom => "METRIC_CUSTOM",
            Self::Tagk => "TAGK",
            Self::TagkCustom => "TAGK_CUSTOM",
            Self::TagvCustom => "TAGV_CUSTOM",
        }
    }
}

/// A rule as it is stored and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRule {
    /// What it looks at; `None` in a cell that says none, which then matches nothing.
    #[serde(rename = "type", default, deserialize_with = "kind")]
    pub kind: Option<RuleKind>,
    /// The tag key or value.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub field: String,
    /// Takes a part of the name: group [`TreeRule::regex_group_idx`] + 1 of the first match.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub regex: String,
    /// A regular expression at which the name is cut into levels of their own.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub separator: String,
    /// In a line.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub description: String,
    /// At length.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub notes: String,
    /// Rules of one level are tried until one matches.
    #[serde(default)]
    pub level: i32,
    /// In this order.
    #[serde(default)]
    pub order: i32,
    /// Its tree.
    #[serde(default)]
    pub tree_id: i64,
    /// Name of the custom member.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub custom_field: String,
    /// Which group of the regular expression; 0 is the first.
    #[serde(default)]
    pub regex_group_idx: i32,
    /// What is shown, with `{value}`, `{ovalue}`, `{tsuid}`, `{tag_name}` filled in; empty for the value alone.
    #[serde(default, deserialize_with = "meta_json::text")]
    pub display_format: String,
}

/// What of a rule is set; `None` is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleEdit {
    /// Which rule.
    pub level: i32,
    /// Which rule.
    pub order: i32,
    /// As in [`TreeRule`].
    pub kind: Option<RuleKind>,
    /// As in [`TreeRule`].
    pub field: Option<String>,
    /// As in [`TreeRule`].
    pub regex: Option<String>,
    /// As in [`TreeRule`].
    pub separator: Option<String>,
    /// As in [`TreeRule`].
    pub description: Option<String>,
    /// As in [`TreeRule`].
    pub notes: Option<String>,
    /// As in [`TreeRule`].
    pub custom_field: Option<String>,
    /// As in [`TreeRule`].
    pub regex_group_idx: Option<i32>,
    /// As in [`TreeRule`].
    pub display_format: Option<String>,
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<RuleKind>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| RuleKind::parse(&name).map_err(serde::de::Error::custom)).transpose()
}

impl TreeRule {
    fn empty(tree: TreeId, level: i32, order: i32) -> Self {
        Self {
            kind: None,
            field: String::new(),
            regex: String::new(),
            separator: String::new(),
            description: String::new(),
            notes: String::new(),
            level,
            order,
            tree_id: tree.number().into(),
            custom_field: String::new(),
            regex_group_idx: 0,
            display_format: String::new(),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        meta_json::decode("tree rule", bytes)
    }

    /// As OpenTSDB tells it: `[1:0:0:METRIC]`.
    pub(super) fn told(&self) -> String {
        let kind = self.kind.map_or("null", RuleKind::name);
        format!("[{}:{}:{}:{kind}]", self.tree_id, self.level, self.order)
    }

    /// OpenTSDB's own checks, in its words, and the length of texts.
    fn check(self) -> Result<Self> {
        let refused = |reason: String| Err(Error::InvalidTreeRule { reason: reason.into() });
        let Some(kind) = self.kind else { return refused("Missing rule type".into()) };
        if kind != RuleKind::Metric && self.field.is_empty() {
            return refused(format!("Missing field name required for {} rule", kind.name()));
        }
        if !matches!(kind, RuleKind::Metric | RuleKind::Tagk) && self.custom_field.is_empty() {
            return refused(format!("Missing custom field name required for {} rule", kind.name()));
        }
        if self.regex_group_idx < 0 {
            return refused("Invalid regex group index. Cannot be less than 0".into());
        }
        let texts = [
            ("field", &self.field),
            ("regex", &self.regex),
            ("separator", &self.separator),
            ("description", &self.description),
            ("notes", &self.notes),
            ("customField", &self.custom_field),
            ("displayFormat", &self.display_format),
        ];
        if let Some((name, text)) = texts.into_iter().find(|(_, text)| text.len() > TEXT_BYTES_MAX) {
            return refused(format!("`{name}` has {} bytes, and {TEXT_BYTES_MAX} are allowed", text.len()));
        }
        for pattern in [&self.regex, &self.separator] {
            compiled(pattern)?;
        }
        Ok(self)
    }
}

/// A regular expression of a rule; `None` for an empty one.
///
/// # Errors
/// `Invalid`: no regular expression.
pub(super) fn compiled(pattern: &str) -> Result<Option<Regex>> {
    if pattern.is_empty() {
        return Ok(None);
    }
    let regex = RegexBuilder::new(&java_pattern(pattern)).size_limit(REGEX_BYTES_MAX).build();
    regex.map(Some).map_err(|cause| {
        // The lines before the last show the translated text.
        let cause = cause.to_string();
        let cause = cause.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::InvalidTreeRule {
            reason: format!("The regular expression '{pattern}' is not one we can run: {cause}").into(),
        }
    })
}

impl RuleEdit {
    /// Whether nothing is given; a place other than level 0, order 0 counts as given, as in OpenTSDB.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a text is a regular expression.
    ///
    /// # Errors
    /// `Invalid`: it is none; lookaround and back references are not known here.
    pub fn check_expression(text: &str) -> Result<()> {
        compiled(text).map(drop)
    }

    fn applied(&self, stored: TreeRule, tree: TreeId, mode: EditMode) -> TreeRule {
        let kept = if mode == EditMode::Merge { stored } else { TreeRule::empty(tree, self.level, self.order) };
        let text = |given: &Option<String>, kept: String| given.clone().unwrap_or(kept);
        TreeRule {
            kind: self.kind.or(kept.kind),
            field: text(&self.field, kept.field),
            regex: text(&self.regex, kept.regex),
            separator: text(&self.separator, kept.separator),
            description: text(&self.description, kept.description),
            notes: text(&self.notes, kept.notes),
            level: self.level,
            order: self.order,
            tree_id: tree.number().into(),
            custom_field: text(&self.custom_field, kept.custom_field),
            regex_group_idx: self.regex_group_idx.unwrap_or(kept.regex_group_idx),
            display_format: text(&self.display_format, kept.display_format),
        }
    }
}

fn qualifier(level: i32, order: i32) -> Vec<u8> {
    [RULE_PREFIX, format!("{level}:{order}").as_bytes()].concat()
}

impl Schema {
    /// Changes or makes a rule; `None` where that says nothing new. Durable when it returns.
    ///
    /// # Errors
    /// `Invalid`: a place below 0, or a rule that OpenTSDB refuses. `Conflict`: others changed it at every attempt.
    /// `Corrupt`, and the store's own.
    pub fn edit_tree_rule(&self, tree: TreeId, edit: &RuleEdit, mode: EditMode) -> Result<Option<TreeRule>> {
        for (place, name) in [(edit.level, "level"), (edit.order, "order")] {
            if place < 0 {
                return Err(Error::InvalidTreeRule { reason: format!("Invalid rule {name}").into() });
            }
        }
        let cell = self.tree_cell(&tree.bytes(), &qualifier(edit.level, edit.order));
        let before = cell.read()?.map(|bytes| TreeRule::decode(&bytes)).transpose()?;
        let empty = || TreeRule::empty(tree, edit.level, edit.order);
        if let Some(before) = before
            && mode == EditMode::Merge
            && edit.applied(before.clone(), tree, mode) == before
        {
            return Ok(None);
        }
        let stored = cell.edit(|before| {
            let before = before.map_or_else(|| Ok(empty()), TreeRule::decode)?;
            let after = edit.applied(before, tree, mode).check()?;
            Ok((meta_json::encode(&after), after))
        })?;
        self.live_trees().forget();
        Ok(Some(stored))
    }

    /// Deletes a rule; whether there was one. Durable when it returns.
    ///
    /// # Errors
    /// The store's own.
    pub fn delete_tree_rule(&self, tree: TreeId, level: i32, order: i32) -> Result<bool> {
        let was_there = self.tree_cell(&tree.bytes(), &qualifier(level, order)).delete()?;
        self.live_trees().forget();
        Ok(was_there)
    }

    /// Gives a tree these rules, the last of one place, and no others; none of them deletes all. One atomic change,
    /// durable when it returns. OpenTSDB deletes first and may then stop half-way.
    ///
    /// # Errors
    /// `Invalid`: a rule that OpenTSDB refuses; then nothing changes. The store's own.
    pub fn replace_tree_rules(&self, tree: TreeId, edits: &[RuleEdit]) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for edit in edits {
            let rule = edit.applied(TreeRule::empty(tree, edit.level, edit.order), tree, EditMode::Replace).check()?;
            wanted.insert(qualifier(edit.level, edit.order), meta_json::encode(&rule));
        }
        let get = Get::row(tree.bytes().to_vec()).with_columns(Columns::family(DATA_FAMILY));
        let found = self.store().get(&self.tables().tree, get).wait()?;
        let mut batch = MutationBatch::new(Durability::Fsync);
        for cell in found.rows().flat_map(|row| row.cells()) {
            // Those that stay are put over: a tombstone would hide a put of the same millisecond.
            if cell.qualifier.starts_with(RULE_PREFIX) && !wanted.contains_key(cell.qualifier) {
                batch.row(&tree.bytes())?.delete_column(DATA_FAMILY, cell.qualifier, Some(cell.timestamp))?;
            }
        }
        for (qualifier, rule) in &wanted {
            batch.row(&tree.bytes())?.put(DATA_FAMILY, qualifier, None, rule)?;
        }
        self.apply(&self.tables().tree, batch)?;
        self.live_trees().forget();
        Ok(())
    }
}
