//! Tokens as statements: a command and its arguments, with lists and dictionaries in them.
//!
//! ```text
//! statement  = word [ "(" ] [ argument { "," argument } ] [ ")" ] ( ";" | line end )
//! argument   = value | name "=>" value            pairs without braces make one dictionary, the last argument
//! value      = string | number | CONSTANT | true | false | nil | "[" values "]" | "{" pairs "}"
//! ```

use super::error::{Error, Place, Result};
use super::lexer::{Spanned, Token};
use super::value::{Data, Pair, Value};

/// How deep lists and dictionaries may lie in each other.
const DEPTH_MAX: usize = 32;

/// A command as it was typed.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) at: Place,
    pub(crate) command: String,
    pub(crate) arguments: Vec<Value>,
}

/// All statements of these tokens.
///
/// # Errors
///
/// The first token that cannot stand where it does.
pub(crate) fn statements(tokens: Vec<Spanned>) -> Result<Vec<Statement>> {
    let end = tokens.last().map_or(Place { line: 1, column: 1 }, |last| last.at);
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), end };
    let mut statements = Vec::new();
    while let Some(first) = parser.tokens.next() {
        match first.token {
            Token::End => {}
            Token::Word(command) => statements.push(parser.statement(first.at, command)?),
            _ => return Err(Error::wrong(first.at, "a command is expected here; see `help`")),
        }
    }
    Ok(statements)
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Spanned>>,
    /// Where the last token is, to name when one is missing.
    end: Place,
}

impl Parser {
    fn statement(&mut self, at: Place, command: String) -> Result<Statement> {
        let in_parentheses = self.take(&Token::Open(b'('));
        let close = if in_parentheses { Token::Close(b')') } else { Token::End };
        let mut arguments = Vec::new();
        let mut pairs = Vec::new();
        let mut pairs_at = at;
        while self.tokens.peek().is_some_and(|next| next.token != close) {
            let value = self.value(0)?;
            if self.take(&Token::Arrow) {
                if pairs.is_empty() {
                    pairs_at = value.at;
                }
                pairs.push(self.pair(&value, 0, &pairs)?);
            } else if pairs.is_empty() {
                arguments.push(value);
            } else {
                return Err(Error::wrong(
                    value.at,
                    "after NAME => value pairs without braces only such pairs can come",
                ));
            }
            if !self.take(&Token::Comma) {
                break;
            }
        }
        if in_parentheses && !self.take(&close) {
            return Err(self.unexpected("`,` or `)`"));
        }
        if self.tokens.peek().is_some() && !self.take(&Token::End) {
            return Err(self.unexpected("`,` or the end of the command"));
        }
        if !pairs.is_empty() {
            arguments.push(Value { at: pairs_at, data: Data::Map(pairs) });
        }
        Ok(Statement { at, command, arguments })
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        let Some(Spanned { token, at }) = self.tokens.next() else { return Err(self.unexpected("a value")) };
        if depth > DEPTH_MAX {
            return Err(Error::wrong(at, format!("lists and dictionaries lie more than {DEPTH_MAX} deep")));
        }
        let data = match token {
            Token::Text(text) => Data::Text(text),
            Token::Integer(number) => Data::Integer(number),
            Token::Word(word) => constant(at, word)?,
            Token::Open(b'[') => self.list(depth)?,
            Token::Open(b'{') => self.map(depth)?,
            _ => return Err(Error::wrong(at, "a value is expected here")),
        };
        Ok(Value { at, data })
    }

    fn list(&mut self, depth: usize) -> Result<Data> {
        let mut list = Vec::new();
        while !self.take(&Token::Close(b']')) {
            list.push(self.value(depth + 1)?);
            if !self.take(&Token::Comma) && self.tokens.peek().is_none_or(|next| next.token != Token::Close(b']')) {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
        Ok(Data::List(list))
    }

    fn map(&mut self, depth: usize) -> Result<Data> {
        let mut pairs = Vec::new();
        while !self.take(&Token::Close(b'}')) {
            let name = self.value(depth + 1)?;
            if !self.take(&Token::Arrow) {
                return Err(self.unexpected("`=>`"));
            }
            pairs.push(self.pair(&name, depth + 1, &pairs)?);
            if !self.take(&Token::Comma) && self.tokens.peek().is_none_or(|next| next.token != Token::Close(b'}')) {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        Ok(Data::Map(pairs))
    }

    /// The pair of this name, whose value follows.
    fn pair(&mut self, name: &Value, depth: usize, before: &[Pair]) -> Result<Pair> {
        let at = name.at;
        let name = name.text("a dictionary's name")?;
        if before.iter().any(|pair| pair.name == name) {
            return Err(Error::wrong(at, format!("{name} is given twice")));
        }
        Ok(Pair { at, name, value: self.value(depth)? })
    }

    /// Reads the next token if it is this one.
    fn take(&mut self, token: &Token) -> bool {
        self.tokens.next_if(|next| next.token == *token).is_some()
    }

    fn unexpected(&mut self, wanted: &str) -> Error {
        let at = self.tokens.peek().map_or(self.end, |next| next.at);
        Error::wrong(at, format!("{wanted} is expected here"))
    }
}

/// A word that stands for a value.
fn constant(at: Place, word: String) -> Result<Data> {
    Ok(match word.as_str() {
        "true" => Data::Bool(true),
        "false" => Data::Bool(false),
        "nil" => Data::Nil,
        _ if word.starts_with(|first: char| first.is_ascii_uppercase()) => Data::Text(word.into()),
        _ => return Err(Error::wrong(at, format!("`{word}` is no value: put names into quotes"))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::lexer::{Begun, Lexed};
    use super::*;

    fn parse(source: &str) -> Result<Vec<Statement>> {
        match Begun::at_line(1).lex(source.as_bytes())? {
            Lexed::Whole(tokens) => statements(tokens),
            Lexed::Open(missing) => Err(missing),
        }
    }

    fn check_wrong(source: &str, expected: &str) {
        assert_eq!(parse(source).unwrap_err().to_string(), expected, "{source}");
    }

    #[test]
    fn pairs_without_braces_are_one_dictionary() {
        let parsed = parse("alter 't1', NAME => 'f1', VERSIONS => 5").unwrap();
        let [Value { data: Data::Text(_), .. }, Value { data: Data::Map(pairs), .. }] = &parsed[0].arguments[..] else {
            panic!("{parsed:?}");
        };
        let names: Vec<_> = pairs.iter().map(|pair| pair.name.as_str()).collect();
        assert_eq!(names, ["NAME", "VERSIONS"]);
    }

    #[test]
    fn statements_end_at_lines_and_semicolons() {
        let parsed = parse("list; version\n\nput('t', 'r', ['a', {B => [1,]}])\n").unwrap();
        let told: Vec<_> = parsed.iter().map(|s| (s.command.as_str(), s.arguments.len(), s.at.line)).collect();
        assert_eq!(told, [("list", 0, 1), ("version", 0, 1), ("put", 3, 3)]);
    }

    #[test]
    fn what_cannot_stand_here_is_told_with_its_place() {
        check_wrong("get t1, 'r'", "line 1, column 5: `t1` is no value: put names into quotes");
        check_wrong("get 't' 'r'", "line 1, column 9: `,` or the end of the command is expected here");
        check_wrong("'t'", "line 1, column 1: a command is expected here; see `help`");
        check_wrong("scan 't', {A => 1, A => 2}", "line 1, column 20: A is given twice");
        check_wrong("scan 't', {A}", "line 1, column 13: `=>` is expected here");
        check_wrong("a ]", "line 1, column 3: a value is expected here");
        check_wrong("a [1", "line 1, column 3: the bracket that is opened here is not closed");
        check_wrong(
            "a A => 1, 'b'",
            "line 1, column 11: after NAME => value pairs without braces only such pairs can come",
        );
        check_wrong("a (1", "line 1, column 3: the bracket that is opened here is not closed");
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |depth: usize| format!("a {}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&deep(DEPTH_MAX)).is_ok());
        assert!(parse(&deep(100_000)).unwrap_err().to_string().contains("more than 32 deep"));
        assert!(parse(&format!("a {}{}", "{A => ".repeat(50), "1")).is_err());
    }
}
