//! The language of expressions: arithmetic, comparison and logic over numbers, read once into a program for a stack.
//!
//! ```text
//! ternary  := or [ "?" ternary ":" ternary | "?:" ternary ]      unary  := ( "-" | "!" | "not" ) unary | primary
//! or       := and ( ("||" | "or") and )*                          primary := number | "true" | "false" | name
//! and      := equal ( ("&&" | "and") equal )*                                | "(" ternary ")"
//! equal    := order [ ("==" | "eq" | "!=" | "ne") order ]
//! order    := sum [ ("<" | "lt" | "<=" | "le" | ">" | "gt" | ">=" | "ge") sum ]
//! sum      := product ( ("+" | "-") product )*
//! product  := unary ( ("*" | "/" | "div" | "%" | "mod") unary )*
//! ```
//!
//! Whole literals are integers and divide as such (`1/2` is 0); every variable is a double; true is 1 and false is 0;
//! what is divided by zero, or its rest, is 0. *Source*: Apache Commons JEXL 2.1 in its lenient mode, as OpenTSDB 2.4
//! uses it. Its texts, blocks, methods, bits and regular expressions are refused.
//!
//! *Bounds*: [`TEXT_BYTES_MAX`], [`DEPTH_MAX`]. A run allocates nothing but the stack that is handed to it.

mod parser;
mod token;

use crate::aggregate::to_double;
use crate::error::ExpressionFault;
use crate::{Error, Result};

/// Bytes of one expression.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Nested parentheses, signs and ternaries.
const DEPTH_MAX: usize = 64;

/// An expression ready to run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    ops: Vec<Op>,
    variables: Vec<String>,
}

/// A value on the stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Integer(i64),
    Double(f64),
    Boolean(bool),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Push(Value),
    /// The variable of this place.
    Load(usize),
    /// The top once more.
    Repeat,
    Negate,
    Not,
    Binary(Binary),
    /// Of a condition and two values, one.
    Select,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Rest,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

impl Program {
    /// Reads an expression. With `short_fractions` literals with a point have the precision of 32 bits, as in JEXL.
    ///
    /// # Errors
    /// `Invalid`: what cannot be read, and where.
    pub(crate) fn parse(text: &str, short_fractions: bool) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::Expression(ExpressionFault::TooLong { limit: TEXT_BYTES_MAX }));
        }
        parser::parse(text, short_fractions)
    }

    /// Names of the variables, each once, in the order of their places.
    pub(crate) fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The value where the variables have these values, in the order of [`Program::variables`].
    pub(crate) fn run(&self, values: &[f64], stack: &mut Vec<Value>) -> f64 {
        stack.clear();
        for op in &self.ops {
            step(*op, values, stack);
        }
        stack.pop().map_or(f64::NAN, Value::double)
    }
}

/// A stack that is too short is no case that the parser makes; its values count as not-a-number.
fn step(op: Op, values: &[f64], stack: &mut Vec<Value>) {
    let value = match op {
        Op::Push(value) => value,
        Op::Load(place) => Value::Double(values.get(place).copied().unwrap_or(f64::NAN)),
        Op::Repeat => stack.last().copied().unwrap_or(Value::NAN),
        Op::Negate => match pop(stack) {
            Value::Integer(value) => value.checked_neg().map_or(Value::Double(-to_double(value)), Value::Integer),
            value => Value::Double(-value.double()),
        },
        Op::Not => Value::Boolean(!pop(stack).truth()),
        Op::Binary(binary) => {
            let right = pop(stack);
            binary.of(pop(stack), right)
        }
        Op::Select => {
            let (otherwise, then) = (pop(stack), pop(stack));
            if pop(stack).truth() { then } else { otherwise }
        }
    };
    stack.push(value);
}

fn pop(stack: &mut Vec<Value>) -> Value {
    stack.pop().unwrap_or(Value::NAN)
}

impl Value {
    const NAN: Self = Self::Double(f64::NAN);

    fn double(self) -> f64 {
        match self {
            Self::Integer(value) => to_double(value),
            Self::Double(value) => value,
            Self::Boolean(value) => f64::from(u8::from(value)),
        }
    }

    /// Zero and not-a-number are false.
    fn truth(self) -> bool {
        match self {
            Self::Boolean(value) => value,
            Self::Integer(value) => value != 0,
            Self::Double(value) => !value.is_nan() && value.abs() > 0.0,
        }
    }
}

impl Binary {
    fn of(self, left: Value, right: Value) -> Value {
        match self {
            Self::And => Value::Boolean(left.truth() && right.truth()),
            Self::Or => Value::Boolean(left.truth() || right.truth()),
            Self::Equal => Value::Boolean(order(left, right).is_eq()),
            Self::NotEqual => Value::Boolean(order(left, right).is_ne()),
            Self::Less => Value::Boolean(order(left, right).is_lt()),
            Self::LessOrEqual => Value::Boolean(order(left, right).is_le()),
            Self::Greater => Value::Boolean(order(left, right).is_gt()),
            Self::GreaterOrEqual => Value::Boolean(order(left, right).is_ge()),
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Rest => {
                if let (Value::Integer(left), Value::Integer(right)) = (left, right)
                    && let Some(value) = self.of_integers(left, right)
                {
                    return Value::Integer(value);
                }
                Value::Double(self.of_doubles(left.double(), right.double()))
            }
        }
    }

    /// `None` where 64 bits do not hold it.
    fn of_integers(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            _ => left.checked_rem(right),
        }
    }

    fn of_doubles(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            _ if right.abs() <= 0.0 => 0.0,
            Self::Divide => left / right,
            _ => left % right,
        }
    }
}

/// Not-a-number is equal to itself and below all else.
fn order(left: Value, right: Value) -> std::cmp::Ordering {
    if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
        return left.cmp(&right);
    }
    let (left, right) = (left.double(), right.double());
    left.partial_cmp(&right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
}

#[cfg(test)]
mod tests;
