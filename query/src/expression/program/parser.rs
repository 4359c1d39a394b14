//! Expressions read by precedence; what is read is written at once as the program's operations.

use std::collections::HashMap;

use super::token::{Kind, Token, tokens};
use super::{Binary, DEPTH_MAX, Op, Program, Value};
use crate::error::ExpressionFault;
use crate::{Error, Result};

/// Operators of two operands by how tight they bind, loosest first; all of them from left to right.
const LEVELS: [&[(&str, Binary)]; 6] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[("<", Binary::Less), ("<=", Binary::LessOrEqual), (">", Binary::Greater), (">=", Binary::GreaterOrEqual)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Rest)],
];

/// Levels whose operators do not follow one another, as in JEXL: `a < b < c` would compare a truth value.
const ONCE: [usize; 2] = [2, 3];

pub(super) fn parse(text: &str, short_fractions: bool) -> Result<Program> {
    let program = Program { ops: Vec::new(), variables: Vec::new() };
    let mut parser =
        Parser { text, tokens: tokens(text)?, next: 0, depth: 0, short_fractions, program, places: HashMap::new() };
    parser.ternary()?;
    match parser.tokens.get(parser.next) {
        Some(_) => Err(parser.fault()),
        None => Ok(parser.program),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    depth: usize,
    short_fractions: bool,
    program: Program,
    /// The variables' places by their names, of which there may be thousands.
    places: HashMap<&'a str, usize>,
}

impl<'a> Parser<'a> {
    /// The next word is none that may stand here.
    fn fault(&self) -> Error {
        let at = self.tokens.get(self.next).map_or(self.text.len(), |token| token.at);
        Error::Expression(ExpressionFault::Syntax { text: self.text.into(), at })
    }

    /// Goes over the next word if it is this sign.
    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.tokens.get(self.next), Some(Token { kind: Kind::Sign(found), .. }) if *found == sign);
        self.next += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.fault()) }
    }

    fn emit(&mut self, op: Op) {
        self.program.ops.push(op);
    }

    /// Runs `read` one level deeper.
    fn deeper(&mut self, read: fn(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth == DEPTH_MAX {
            return Err(Error::Expression(ExpressionFault::TooDeep { limit: DEPTH_MAX }));
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn ternary(&mut self) -> Result<()> {
        self.binary(0)?;
        if self.takes("?:") {
            self.emit(Op::Repeat);
            self.deeper(Self::ternary)?;
            self.emit(Op::Select);
        } else if self.takes("?") {
            self.deeper(Self::ternary)?;
            self.expect(":")?;
            self.deeper(Self::ternary)?;
            self.emit(Op::Select);
        }
        Ok(())
    }

    /// Operators of `level` and tighter ones. It recurs as deep as there are levels.
    fn binary(&mut self, level: usize) -> Result<()> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        self.binary(level + 1)?;
        while let Some((_, binary)) = operators.iter().find(|(sign, _)| self.takes(sign)) {
            self.binary(level + 1)?;
            self.emit(Op::Binary(*binary));
            if ONCE.contains(&level) {
                break;
            }
        }
        Ok(())
    }

    fn unary(&mut self) -> Result<()> {
        let op = if self.takes("-") {
            Op::Negate
        } else if self.takes("!") {
            Op::Not
        } else {
            return self.primary();
        };
        self.deeper(Self::unary)?;
        self.emit(op);
        Ok(())
    }

    fn primary(&mut self) -> Result<()> {
        if self.takes("(") {
            self.deeper(Self::ternary)?;
            return self.expect(")");
        }
        let op = match self.tokens.get(self.next).map(|token| token.kind) {
            Some(Kind::Integer(value)) => Op::Push(Value::Integer(value)),
            Some(Kind::Fraction { digits, is_double }) => {
                Op::Push(Value::Double(self.fraction(digits, is_double).ok_or_else(|| self.fault())?))
            }
            Some(Kind::Name("true")) => Op::Push(Value::Boolean(true)),
            Some(Kind::Name("false")) => Op::Push(Value::Boolean(false)),
            Some(Kind::Name(name)) => Op::Load(self.place_of(name)),
            Some(Kind::Sign(_)) | None => return Err(self.fault()),
        };
        self.next += 1;
        self.emit(op);
        Ok(())
    }

    /// JEXL keeps a fraction on 32 bits and computes with the decimal that those print as.
    fn fraction(&self, digits: &str, is_double: bool) -> Option<f64> {
        if is_double || !self.short_fractions {
            return digits.parse().ok();
        }
        digits.parse::<f32>().ok()?.to_string().parse().ok()
    }

    fn place_of(&mut self, name: &'a str) -> usize {
        let variables = &mut self.program.variables;
        *self.places.entry(name).or_insert_with(|| {
            variables.push(name.to_owned());
            variables.len() - 1
        })
    }
}
