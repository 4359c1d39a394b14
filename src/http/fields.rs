//! The members of a JSON object that a client sent, read as leniently as OpenTSDB reads them.
//!
//! A number may stand where a text is wanted and a text where a number is, unknown members are passed over, and of a
//! repeated one the last counts. `null` is as good as absent.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::json::{self, Rest};

/// A JSON object's members.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

/// Why a body, or a member of it, is not what was wanted; for people.
pub(crate) type Fault = String;

impl Fields {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// No JSON, or no object; what follows it, where that is refused.
    pub(crate) fn parse(body: &[u8], rest: Rest) -> Result<Self, Fault> {
        json::value(body, rest).and_then(Self::of)
    }

    /// Reads a body that is a list of objects.
    ///
    /// # Errors
    ///
    /// No JSON, or no list of objects; what follows it, where that is refused.
    pub(crate) fn parse_list(body: &[u8], rest: Rest) -> Result<Vec<Self>, Fault> {
        match json::value(body, rest)? {
            Value::Array(items) => items.into_iter().map(Self::of).collect(),
            other => Err(format!("a list was expected, {} was found", kind(&other))),
        }
    }

    fn of(value: Value) -> Result<Self, Fault> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(format!("an object was expected, {} was found", kind(&other))),
        }
    }

    /// The names of all members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether the member is there, `null` or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A text; numbers and truth values are written out.
    ///
    /// # Errors
    ///
    /// A list or an object.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        self.0.get(name).map_or(Ok(None), |value| scalar(name, value))
    }

    /// A text that changes something: `null` empties it, an empty one is as good as absent, as in OpenTSDB.
    ///
    /// # Errors
    ///
    /// A list or an object.
    pub(crate) fn change(&self, name: &str) -> Result<Option<String>, Fault> {
        match self.text(name)? {
            Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            None => Ok(self.has(name).then(String::new)),
        }
    }

    /// A number with a fraction, or its text, `NaN` too.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn double(&self, name: &str) -> Result<Option<f64>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| format!("`{name}` is no number")),
            Some(other) => Err(format!("`{name}` is {}, not a number", kind(other))),
        }
    }

    /// A whole number; a fraction is cut off.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Fault> {
        let wrong = || format!("`{name}` is no whole number");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => {
                number.as_i64().or_else(|| truncated(number.as_f64()?)).map(Some).ok_or_else(wrong)
            }
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    /// A truth value, its text, or a whole number that stands for one.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(Value::Number(number)) if !number.is_f64() => Ok(Some(number.as_i64() != Some(0))),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(other) => Err(format!("`{name}` is {}, not true or false", kind(other))),
        }
    }

    /// A list of texts.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| scalar(name, item).map(Option::unwrap_or_default));
                texts.collect::<Result<_, _>>().map(Some)
            }
            Some(other) => Err(format!("`{name}` is {}, not a list", kind(other))),
        }
    }

    /// A list of objects.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn objects(&self, name: &str) -> Result<Option<Vec<Self>>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => items.iter().cloned().map(Self::of).collect::<Result<_, _>>().map(Some),
            Some(other) => Err(format!("`{name}` is {}, not a list", kind(other))),
        }
    }

    /// An object of texts; members that are `null` are left out.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn pairs(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) => {
                let pairs = members.iter().filter_map(|(key, value)| match scalar(name, value) {
                    Ok(None) => None,
                    Ok(Some(text)) => Some(Ok((key.clone(), text))),
                    Err(fault) => Some(Err(fault)),
                });
                pairs.collect::<Result<_, _>>().map(Some)
            }
            Some(other) => Err(format!("`{name}` is {}, not an object", kind(other))),
        }
    }
}

fn scalar(name: &str, value: &Value) -> Result<Option<String>, Fault> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(value) => Ok(Some(value.to_string())),
        other => Err(format!("`{name}` holds {} where a text is wanted", kind(other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn truncated(number: f64) -> Option<i64> {
    // Every double of at most this size is exact as an integer once cut.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "within 2^53 nothing but the fraction is lost")]
    (number.abs() <= EXACT_MAX).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &[u8]) -> Result<Fields, Fault> {
        Fields::parse(body, Rest::Refused)
    }

    #[test]
    fn members_are_taken_as_leniently_as_opentsdb_takes_them() {
        let body = br#"{"n": "7", "f": 3.9, "t": 5, "b": "TRUE", "z": null, "l": ["a", 1, null], "e": "",
            "o": {"a": 1, "b": true, "c": null}, "n": "8"}"#;
        let fields = parse(body).unwrap();
        assert_eq!(fields.integer("n"), Ok(Some(8)));
        assert_eq!(fields.integer("f"), Ok(Some(3)));
        assert_eq!((fields.integer("e"), fields.integer("z"), fields.integer("none")), (Ok(None), Ok(None), Ok(None)));
        assert_eq!(fields.text("t"), Ok(Some("5".into())));
        assert_eq!(fields.flag("b"), Ok(Some(true)));
        let flags = parse(br#"{"one": 1, "none": 0, "less": -1, "half": 0.5}"#).unwrap();
        assert_eq!(
            ["one", "none", "less"].map(|name| flags.flag(name)),
            [true, false, true].map(|flag| Ok(Some(flag)))
        );
        assert!(flags.flag("half").is_err());
        assert_eq!(fields.texts("l"), Ok(Some(vec!["a".into(), "1".into(), String::new()])));
        let pairs = fields.pairs("o").unwrap().unwrap();
        assert_eq!(pairs.into_iter().collect::<Vec<_>>(), [("a".into(), "1".into()), ("b".into(), "true".into())]);
        assert!(fields.has("z") && !fields.has("none"));
        assert_eq!((fields.change("e"), fields.change("z")), (Ok(None), Ok(Some(String::new()))));
        assert_eq!((fields.double("f"), fields.double("n")), (Ok(Some(3.9)), Ok(Some(8.0))));
    }

    #[test]
    fn what_is_of_another_shape_is_a_fault() {
        for body in ["", "[", "[]", "7", "{\"a\":1}x"] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
        for body in ["{}", "[1]", "[{}]x"] {
            assert!(Fields::parse_list(body.as_bytes(), Rest::Refused).is_err(), "{body}");
        }
        let fields = parse(br#"{"a": [1], "b": {"c": {}}, "d": true, "e": 1e300, "f": "x"}"#).unwrap();
        assert!(fields.text("a").is_err() && fields.pairs("b").is_err() && fields.pairs("a").is_err());
        assert!(fields.integer("d").is_err() && fields.integer("e").is_err() && fields.integer("f").is_err());
        assert!(fields.texts("b").is_err() && fields.objects("a").is_err() && fields.flag("e").is_err());
    }
}
