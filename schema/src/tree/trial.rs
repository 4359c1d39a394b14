//! A series against a tree's rules: which branches and which leaf its names make.
//!
//! Pure: rules and meta object in, path out. It follows OpenTSDB's recursion step by step, since what becomes of levels
//! without a match depends on it, and users read its messages. *Source*: OpenTSDB 2.4 `TreeBuilder`.

use regex::Regex;

use super::branch::{Branch, Leaf, StoredBranch};
use super::rule::{RuleKind, TEXT_BYTES_MAX, TreeRule, compiled};
use super::{Tree, TreeId};
use crate::{TsMeta, UidMeta};

/// Levels that one series may make. OpenTSDB has no bound but its stack.
const LEVELS_MAX: usize = 256;
/// Longest name that a rule gives a branch or leaf: all of those above stand in each branch's cell. OpenTSDB has no bound.
const NAME_BYTES_MAX: usize = 1024;
/// Text of the messages of one series.
const MESSAGES_BYTES_MAX: usize = 1 << 20;

/// A tree whose rules are compiled, ready to try series.
#[derive(Debug)]
pub struct CompiledTree {
    pub(super) id: TreeId,
    pub(super) strict_match: bool,
    pub(super) store_failures: bool,
    levels: Vec<Vec<CompiledRule>>,
}

#[derive(Debug)]
struct CompiledRule {
    rule: TreeRule,
    told: String,
    regex: Option<Regex>,
    separator: Option<Regex>,
    /// Whether it has an expression that does not compile; then it matches nothing.
    is_broken: bool,
}

impl CompiledTree {
    /// Compiles the rules. One whose expression does not compile matches nothing.
    pub fn new(tree: &Tree) -> Self {
        let levels = tree.rules.iter().flat_map(|levels| levels.values());
        let levels = levels.map(|rules| rules.values().cloned().map(CompiledRule::new).collect());
        Self {
            id: tree.tree_id,
            strict_match: tree.strict_match,
            store_failures: tree.store_failures,
            levels: levels.collect(),
        }
    }

    /// Tries a series; stores nothing.
    pub fn try_series(&self, meta: &TsMeta) -> TreeTrial {
        let root = Node { name: "ROOT".into(), ..Node::default() };
        let mut run = Run {
            tree: self,
            meta,
            nodes: vec![root],
            current: None,
            level: 0,
            pieces: None,
            messages: Vec::new(),
            messages_bytes: 0,
            not_matched: String::new(),
            is_too_deep: false,
        };
        run.process(ROOT, 1);
        run.finish()
    }
}

impl CompiledRule {
    fn new(rule: TreeRule) -> Self {
        let (regex, separator) = (compiled(&rule.regex), compiled(&rule.separator));
        let is_broken = regex.is_err() || separator.is_err();
        Self { told: rule.told(), rule, is_broken, regex: regex.ok().flatten(), separator: separator.ok().flatten() }
    }
}

/// What became of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeTrial {
    /// The root with what would hang on it.
    pub branch: Branch,
    /// What was tried, step by step, in OpenTSDB's words.
    pub messages: Vec<String>,
    /// The rules of levels that did not match; empty if all did.
    pub not_matched: String,
    /// Branches from the first level down, and the leaf on the last; `None` where the series has no place.
    pub(super) place: Option<(Vec<String>, Option<String>)>,
}

const ROOT: usize = 0;

/// A branch in the making.
#[derive(Debug, Default)]
struct Node {
    name: String,
    leaf: Option<String>,
    child: Option<usize>,
}

struct Run<'a> {
    tree: &'a CompiledTree,
    meta: &'a TsMeta,
    /// The root first.
    nodes: Vec<Node>,
    /// The branch that is being made; `None` before the first and after a leaf on the root.
    current: Option<usize>,
    level: usize,
    /// A name cut by a separator, and how many of its pieces are used.
    pieces: Option<(Vec<String>, usize)>,
    messages: Vec<String>,
    /// Of all messages, also of those that there was no room for.
    messages_bytes: usize,
    not_matched: String,
    is_too_deep: bool,
}

impl<'a> Run<'a> {
    /// One level; returns whether what hangs below is still to be made a leaf.
    fn process(&mut self, parent: usize, depth: usize) -> bool {
        let Some(rules) = self.tree.levels.get(self.level) else { return true };
        if depth > LEVELS_MAX {
            self.is_too_deep = true;
            return true;
        }
        let previous = self.current;
        self.nodes.push(Node::default());
        let own = self.nodes.len() - 1;
        self.current = Some(own);
        self.match_level(own, rules);
        match &self.pieces {
            Some((pieces, used)) if *used < pieces.len() => {}
            _ => {
                self.pieces = None;
                self.level += 1;
            }
        }
        let depth = depth + 1;
        let is_open = self.process(own, depth);
        let name = self.current.map(|node| self.name(node).to_owned()).unwrap_or_default();
        let before = previous.map(|node| self.name(node).to_owned()).unwrap_or_default();
        if is_open {
            return self.close(parent, previous, name, depth);
        }
        let told = |name: &str| format!("Name: [{name}]");
        if before.is_empty() && !name.is_empty() {
            if depth > 2 {
                self.say(format!("Depth [{depth}] Skipping a non-matched branch, returning: {}", told(&name)));
            }
            return false;
        }
        if name.is_empty() {
            self.say(format!("Depth [{depth}] Branch was empty"));
        } else if name == before {
            self.say(format!("Depth [{depth}] Current was the same as previous"));
            return false;
        } else {
            let child = self.current;
            if let Some(parent) = self.nodes.get_mut(parent) {
                parent.child = child;
            }
            let parent = self.told(parent);
            self.say(format!("Depth [{depth}] Adding branch: {} to parent: {parent}", told(&name)));
        }
        self.current = previous;
        false
    }

    /// The last level that matched becomes a leaf of the one above.
    fn close(&mut self, parent: usize, previous: Option<usize>, name: String, depth: usize) -> bool {
        if name.is_empty() {
            self.current = previous;
            return true;
        }
        if self.name(parent).is_empty() {
            self.say(format!("Depth [{depth}] Parent branch was empty, rolling back"));
            return true;
        }
        let (tsuid, told) = (&self.meta.tsuid, self.told(parent));
        let line = format!("Depth [{depth}] Adding leaf [name: {name} tsuid: {tsuid}] to parent branch [{told}]");
        self.say(line);
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.leaf = Some(name);
        }
        self.current = previous;
        false
    }

    /// Tries a level's rules until one gives the branch a name.
    fn match_level(&mut self, own: usize, rules: &'a [CompiledRule]) {
        for rule in rules {
            self.say(format!("Processing rule: {}", rule.told));
            if let Some(name) = self.apply(rule).filter(|name| !name.is_empty()) {
                if let Some(node) = self.nodes.get_mut(own) {
                    node.name = name;
                }
                return;
            }
        }
        if let Some(last) = rules.last() {
            if !self.not_matched.is_empty() {
                self.not_matched.push(' ');
            }
            self.not_matched.push_str(&last.told);
        }
    }

    /// The display name that a rule makes, if it matches.
    fn apply(&mut self, rule: &'a CompiledRule) -> Option<String> {
        let TreeRule { field, custom_field, .. } = &rule.rule;
        match rule.rule.kind? {
            RuleKind::Metric => self.name_of_value(rule, &self.meta.metric.name),
            RuleKind::Tagk => {
                let value = self.meta.tags.chunks(2).find(|pair| pair.first().is_some_and(|key| key.name == *field));
                let value = value.and_then(|pair| pair.get(1)).map(|value| &value.name);
                self.say_match("tagk", field, rule, value.is_some());
                self.name_of_value(rule, value?)
            }
            RuleKind::MetricCustom => self.name_of_custom(rule, &self.meta.metric, custom_field),
            RuleKind::TagkCustom | RuleKind::TagvCustom => {
                let is_key = rule.rule.kind == Some(RuleKind::TagkCustom);
                let place = usize::from(!is_key);
                let found = self.meta.tags.iter().skip(place).step_by(2).find(|meta| meta.name == *field);
                self.say_match(if is_key { "tagk" } else { "tagv" }, field, rule, found.is_some());
                self.name_of_custom(rule, found?, custom_field)
            }
        }
    }

    fn name_of_custom(&mut self, rule: &'a CompiledRule, meta: &'a UidMeta, member: &str) -> Option<String> {
        let value = meta.custom.as_ref().and_then(|custom| custom.get(member));
        let name = value.and_then(|value| self.name_of_value(rule, value));
        self.say_match("custom tag", member, rule, value.is_some());
        name
    }

    fn name_of_value(&mut self, rule: &'a CompiledRule, value: &str) -> Option<String> {
        if rule.is_broken {
            self.say(format!("Rule {} has an expression that is none", rule.told));
            return None;
        }
        if value.len() > TEXT_BYTES_MAX {
            self.say(format!("Value for rule {} was longer than {TEXT_BYTES_MAX} bytes", rule.told));
            return None;
        }
        if let Some(regex) = &rule.regex {
            let part = self.part(rule, regex, value)?;
            return self.display(rule, value, &part);
        }
        let Some(separator) = &rule.separator else { return self.display(rule, value, value) };
        let (pieces, used) = self.pieces.get_or_insert_with(|| (java_split(value, separator), 0));
        let piece = pieces.get(*used).cloned();
        *used += 1;
        if piece.is_none() {
            self.say(format!("Separator did not match, created an empty list on rule: {}", rule.told));
        }
        self.display(rule, value, &piece?)
    }

    /// The part of a name that a regular expression takes.
    fn part(&mut self, rule: &CompiledRule, regex: &Regex, value: &str) -> Option<String> {
        let captures = regex.captures(value)?;
        let (index, groups) = (rule.rule.regex_group_idx, captures.len() - 1);
        let group = usize::try_from(index).ok().filter(|index| *index < groups);
        let Some(group) = group else {
            self.say(format!("Regex group index [{index}] for rule {} was out of bounds [{groups}]", rule.told));
            return None;
        };
        let part = captures.get(group + 1).map(|part| part.as_str().to_owned()).filter(|part| !part.is_empty());
        if part.is_none() {
            self.say(format!("Extracted value for rule {} was null or empty", rule.told));
        }
        part
    }

    fn display(&mut self, rule: &CompiledRule, value: &str, part: &str) -> Option<String> {
        let shown = self.shown(rule, value, part).filter(|shown| shown.len() <= NAME_BYTES_MAX);
        if shown.is_none() {
            self.say(format!("Display name for rule {} was longer than {NAME_BYTES_MAX} bytes", rule.told));
        }
        shown
    }

    fn shown(&mut self, rule: &CompiledRule, value: &str, part: &str) -> Option<String> {
        let TreeRule { display_format, field, custom_field, kind, .. } = &rule.rule;
        if display_format.is_empty() {
            return Some(part.to_owned());
        }
        let shown = filled(display_format, "{ovalue}", value)?;
        let shown = filled(&filled(&shown, "{value}", part)?, "{tsuid}", &self.meta.tsuid)?;
        if !shown.contains("{tag_name}") {
            return Some(shown);
        }
        let tag_name = match kind {
            Some(RuleKind::Tagk) => field.as_str(),
            Some(RuleKind::MetricCustom | RuleKind::TagkCustom | RuleKind::TagvCustom) => custom_field.as_str(),
            _ => {
                self.say(format!("Display rule {} was of the wrong type to match on {{tag_name}}", rule.told));
                ""
            }
        };
        filled(&shown, "{tag_name}", tag_name)
    }

    fn finish(mut self) -> TreeTrial {
        let is_refused = self.tree.strict_match && !self.not_matched.is_empty();
        if self.is_too_deep {
            self.say(format!("The series makes more than {LEVELS_MAX} levels, will not add: {}", self.meta.tsuid));
        } else if is_refused {
            let tsuid = &self.meta.tsuid;
            self.say(format!("TSUID failed to match one or more rule levels, will not add: {tsuid}"));
        }
        if self.messages_bytes > MESSAGES_BYTES_MAX {
            self.messages.push(format!("Messages beyond {MESSAGES_BYTES_MAX} bytes are left out"));
        }
        let first = self.current.filter(|_| !is_refused && !self.is_too_deep);
        let place = first.map(|first| {
            let (mut names, mut leaf, mut next) = (Vec::new(), None, Some(first));
            while let Some(node) = next.and_then(|node| self.nodes.get(node)) {
                names.push(node.name.clone());
                leaf.clone_from(&node.leaf);
                next = node.child;
            }
            (names, leaf)
        });
        let root_leaf = self.nodes.first().and_then(|root| root.leaf.clone());
        let branch = self.told_root(place.as_ref(), root_leaf);
        TreeTrial { branch, messages: self.messages, not_matched: self.not_matched, place }
    }

    fn told_root(&self, place: Option<&(Vec<String>, Option<String>)>, root_leaf: Option<String>) -> Branch {
        let leaf = |name: Option<String>| {
            let tsuid = self.meta.tsuid.clone();
            let leaf = |display_name| Leaf { metric: String::new(), tags: None, tsuid, display_name };
            name.map(leaf).into_iter().collect::<Vec<_>>()
        };
        let root = StoredBranch::root();
        let (names, last_leaf) = place.cloned().unwrap_or_default();
        let chain = names.iter().scan(StoredBranch::root(), |above, name| {
            *above = above.below(name);
            Some(StoredBranch { path: above.path.clone(), display_name: name.clone() })
        });
        let mut below: Option<Branch> = None;
        for (place, stored) in chain.collect::<Vec<_>>().into_iter().rev().enumerate() {
            let leaves = if place == 0 { leaf(last_leaf.clone()) } else { Vec::new() };
            below = Some(stored.told(self.tree.id, leaves, below.into_iter().collect()));
        }
        root.told(self.tree.id, leaf(root_leaf), below.into_iter().collect())
    }

    fn name(&self, node: usize) -> &str {
        self.nodes.get(node).map_or("", |node| node.name.as_str())
    }

    /// A branch as OpenTSDB tells it; only the root has an id yet.
    fn told(&self, node: usize) -> String {
        if node == ROOT {
            format!("ID: [{:04X}] Name: [ROOT]", self.tree.id.number())
        } else {
            format!("Name: [{}]", self.name(node))
        }
    }

    fn say_match(&mut self, what: &str, name: &str, rule: &CompiledRule, is_match: bool) {
        let verdict = if is_match { "Matched" } else { "No match on" };
        self.say(format!("{verdict} {what} [{name}] for rule: {}", rule.told));
    }

    fn say(&mut self, message: String) {
        self.messages_bytes += message.len();
        if self.messages_bytes <= MESSAGES_BYTES_MAX {
            self.messages.push(message);
        }
    }
}

/// A display name on its way, one of its marks filled in; `None` where that makes it too long.
fn filled(text: &str, mark: &str, by: &str) -> Option<String> {
    let marks = text.matches(mark).count();
    let bytes = (text.len() - marks * mark.len()).saturating_add(marks.saturating_mul(by.len()));
    (bytes <= TEXT_BYTES_MAX).then(|| text.replace(mark, by))
}

/// Java's `String.split`: empty pieces at the end are dropped, and one at the front that a match of no width makes.
fn java_split(text: &str, separator: &Regex) -> Vec<String> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    for found in separator.find_iter(text).filter(|found| found.end() > 0) {
        pieces.push(text.get(from..found.start()).unwrap_or_default().to_owned());
        from = found.end();
    }
    pieces.push(text.get(from..).unwrap_or_default().to_owned());
    if from > 0 {
        while pieces.last().is_some_and(String::is_empty) {
            pieces.pop();
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_as_java_splits_it() {
        let check = |text: &str, separator: &str, expected: &[&str]| {
            assert_eq!(java_split(text, &Regex::new(separator).unwrap()), expected, "{text} at {separator}");
        };
        check("sys.cpu.user", "\\.", &["sys", "cpu", "user"]);
        check("sys", "\\.", &["sys"]);
        check(".a..b..", "\\.", &["", "a", "", "b"]);
        check("abc", ".", &[]);
        check("abc", "", &["a", "b", "c"]);
        check("", "x", &[""]);
    }
}
