//! The grammar of formulas.
//!
//! ```text
//! formula  := name "(" argument ( "," argument )* ")"         what follows the last parenthesis is not looked at
//! argument := formula | metric | name
//! metric   := an `m=` text: up to a comma or parenthesis outside of its own braces and parentheses
//! name     := ( letter | digit | one of -_#/$@|.'[] )+
//! ```
//!
//! Blanks between words are skipped. OpenTSDB's own grammar knows of metrics plain tags alone; ours takes all of `m=`.

use crate::error::FormulaFault;
use crate::{Error, Result};

/// Formulas in formulas.
const DEPTH_MAX: usize = 32;

/// A formula as written.
#[derive(Debug, PartialEq)]
pub(super) struct Tree<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<Argument<'a>>,
}

/// What stands between its commas.
#[derive(Debug, PartialEq)]
pub(super) enum Argument<'a> {
    Tree(Tree<'a>),
    Metric(String),
    Text(&'a str),
}

/// Reads a formula.
///
/// # Errors
/// `Invalid`: it is none, or too deep.
pub(super) fn parse(text: &str) -> Result<Tree<'_>> {
    Reader { text, rest: text }.formula(0)
}

impl Tree<'_> {
    /// Adds the metrics in the order in which they are written.
    pub(super) fn add_metrics<'a>(&'a self, metrics: &mut Vec<&'a str>) {
        for argument in &self.arguments {
            match argument {
                Argument::Tree(tree) => tree.add_metrics(metrics),
                Argument::Metric(text) => metrics.push(text),
                Argument::Text(_) => {}
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn fault(&self) -> Error {
        Error::Formula(FormulaFault::Syntax(self.text.into()))
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn takes(&mut self, sign: char) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.fault()) }
    }

    fn name(&mut self) -> Result<&'a str> {
        self.skip_blanks();
        let in_name = |letter: char| letter.is_ascii_alphanumeric() || "-_#/$@|.'[]".contains(letter);
        let length = self.rest.find(|letter| !in_name(letter)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.fault())?;
        if name.is_empty() {
            return Err(self.fault());
        }
        self.rest = rest;
        Ok(name)
    }

    fn formula(&mut self, depth: usize) -> Result<Tree<'a>> {
        let name = self.name()?;
        self.expect('(')?;
        self.arguments(name, depth)
    }

    fn arguments(&mut self, name: &'a str, depth: usize) -> Result<Tree<'a>> {
        if depth == DEPTH_MAX {
            return Err(Error::Formula(FormulaFault::TooDeep { limit: DEPTH_MAX }));
        }
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.argument(depth)?);
            if !self.takes(',') {
                self.expect(')')?;
                return Ok(Tree { name, arguments });
            }
        }
    }

    fn argument(&mut self, depth: usize) -> Result<Argument<'a>> {
        let before = {
            self.skip_blanks();
            self.rest
        };
        let name = self.name()?;
        if self.takes('(') {
            return Ok(Argument::Tree(self.arguments(name, depth + 1)?));
        }
        if self.takes(':') {
            self.rest = before;
            return Ok(Argument::Metric(self.metric()));
        }
        Ok(Argument::Text(name))
    }

    /// Up to the comma or parenthesis that ends it, without blanks.
    fn metric(&mut self) -> String {
        let mut open = 0_usize;
        let end = self.rest.find(|letter| match letter {
            '{' | '(' => {
                open += 1;
                false
            }
            ')' | ',' if open == 0 => true,
            '}' | ')' => {
                open = open.saturating_sub(1);
                false
            }
            _ => false,
        });
        let (metric, rest) = self.rest.split_at_checked(end.unwrap_or(self.rest.len())).unwrap_or((self.rest, ""));
        self.rest = rest;
        metric.chars().filter(|letter| !letter.is_ascii_whitespace()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn e_gexp_a_formula_is_a_tree() {
        let tree = parse(" scale ( absolute(sum:1m-avg:a{h=*,d=x|y} {k=regexp(a.*)}), 2.5 ) rest").unwrap();
        let inner = Tree {
            name: "absolute",
            arguments: vec![Argument::Metric("sum:1m-avg:a{h=*,d=x|y}{k=regexp(a.*)}".into())],
        };
        assert_eq!(tree, Tree { name: "scale", arguments: vec![Argument::Tree(inner), Argument::Text("2.5")] });
        let mut metrics = Vec::new();
        tree.add_metrics(&mut metrics);
        assert_eq!(metrics, ["sum:1m-avg:a{h=*,d=x|y}{k=regexp(a.*)}"]);
        assert_eq!(parse("f(sum:a,'10min')").unwrap().arguments[1], Argument::Text("'10min'"));
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        for text in ["", "sum:a", "f", "f(", "f()", "f(a", "f(sum:a", "f(a,)", "f(a,b", "f(a b)", "f(§)", "f(\"x\")"] {
            assert!(matches!(parse(text), Err(Error::Formula(FormulaFault::Syntax(_)))), "{text}");
        }
        assert!(matches!(parse(&"f(".repeat(5_000)), Err(Error::Formula(FormulaFault::TooDeep { .. }))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_text_is_read_or_refused(text in "[ab:(){},' .*]{0,40}|\\PC{0,20}") {
            parse(&text).ok();
        }
    }
}
