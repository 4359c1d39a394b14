//! The members of a JSON object that a client sent, read as leniently as OpenTSDB reads them.
//!
//! A number may stand where a text is wanted and a text where a number is, unknown members are passed over, and of a
//! repeated one the last counts. `null` is as good as absent. A number that stands for a text is the text that was sent:
//! `1.10` is no `1.1`, and a long one loses no digit.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::{self, Rest};

/// A JSON object's members, each as it was written.
#[derive(Debug)]
pub(crate) struct Fields(BTreeMap<String, Box<RawValue>>);

/// Why a body, or a member of it, is not what was wanted; for people.
pub(crate) type Fault = String;

impl Fields {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// No JSON, or no object; what follows it, where that is refused.
    pub(crate) fn parse(body: &[u8], rest: Rest) -> Result<Self, Fault> {
        json::value(body, rest).and_then(|value| Self::of(&value))
    }

    /// Reads a body that is a list of objects.
    ///
    /// # Errors
    ///
    /// No JSON, or no list of objects; what follows it, where that is refused.
    pub(crate) fn parse_list(body: &[u8], rest: Rest) -> Result<Vec<Self>, Fault> {
        let value = json::value(body, rest)?;
        if !is_list(&value) {
            return Err(format!("a list was expected, {} was found", kind(&value)));
        }
        list_of(&value)
    }

    fn of(value: &RawValue) -> Result<Self, Fault> {
        if !value.get().starts_with('{') {
            return Err(format!("an object was expected, {} was found", kind(value)));
        }
        serde_json::from_str(value.get()).map(Self).map_err(|cause| cause.to_string())
    }

    /// What the member is, read; nothing where it is absent or `null`.
    fn read(&self, name: &str) -> Result<Option<Value>, Fault> {
        let Some(written) = self.0.get(name) else { return Ok(None) };
        serde_json::from_str(written.get()).map_err(|cause| format!("`{name}` cannot be read: {cause}"))
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
        match self.read(name)? {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| format!("`{name}` is no number")),
            Some(_) => Err(format!("`{name}` is {}, not a number", self.kind(name))),
        }
    }

    /// A whole number; a fraction is cut off. A text of blanks, or of `null`, is as good as absent.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Fault> {
        let wrong = || format!("`{name}` is no whole number");
        match self.read(name)? {
            None => Ok(None),
            Some(Value::Number(number)) => {
                number.as_i64().or_else(|| truncated(number.as_f64()?)).map(Some).ok_or_else(wrong)
            }
            Some(Value::String(text)) if ["", "null"].contains(&text.trim()) => Ok(None),
            Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    /// A truth value, its text, or a whole number that stands for one; a text of blanks, or of `null`, is false.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        match self.read(name)? {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(Value::Number(number)) if !number.is_f64() => Ok(Some(number.as_i64() != Some(0))),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if ["", "false", "null"].contains(&&*text.trim().to_ascii_lowercase()) => {
                Ok(Some(false))
            }
            Some(_) => Err(format!("`{name}` is {}, not true or false", self.kind(name))),
        }
    }

    /// A list of texts.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Fault> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let items: Vec<&RawValue> = read_parts(list)?;
        items
            .into_iter()
            .map(|item| scalar(name, item).map(Option::unwrap_or_default))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A list of objects.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn objects(&self, name: &str) -> Result<Option<Vec<Self>>, Fault> {
        self.list(name)?.map(list_of).transpose()
    }

    /// An object of texts; members that are `null` are left out.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub(crate) fn pairs(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Fault> {
        let Some(written) = self.0.get(name).filter(|written| !is_null(written)) else { return Ok(None) };
        if !written.get().starts_with('{') {
            return Err(format!("`{name}` is {}, not an object", kind(written)));
        }
        let members: BTreeMap<String, &RawValue> = read_parts(written)?;
        let pairs = members.into_iter().filter_map(|(key, value)| match scalar(name, value) {
            Ok(None) => None,
            Ok(Some(text)) => Some(Ok((key, text))),
            Err(fault) => Some(Err(fault)),
        });
        pairs.collect::<Result<_, _>>().map(Some)
    }

    /// The member, which is a list where it is there.
    fn list(&self, name: &str) -> Result<Option<&RawValue>, Fault> {
        match self.0.get(name).filter(|written| !is_null(written)) {
            Some(written) if !is_list(written) => Err(format!("`{name}` is {}, not a list", kind(written))),
            found => Ok(found.map(|written| &**written)),
        }
    }

    fn kind(&self, name: &str) -> &'static str {
        self.0.get(name).map_or("null", |written| kind(written))
    }
}

fn list_of(list: &RawValue) -> Result<Vec<Fields>, Fault> {
    let items: Vec<&RawValue> = read_parts(list)?;
    items.into_iter().map(Fields::of).collect()
}

/// The items or members of a value that is known to be a list or an object.
fn read_parts<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Result<T, Fault> {
    serde_json::from_str(value.get()).map_err(|cause| cause.to_string())
}

fn scalar(name: &str, value: &RawValue) -> Result<Option<String>, Fault> {
    match value.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => {
            serde_json::from_str(value.get()).map(Some).map_err(|cause| format!("`{name}` is no text: {cause}"))
        }
        Some(b'[' | b'{') => Err(format!("`{name}` holds {} where a text is wanted", kind(value))),
        _ => Ok(Some(value.get().to_owned())),
    }
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a truth value",
        Some(b'"') => "a text",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
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
        let texts = parse(br#"{"blanks": " ", "null": "null", "padded": " true ", "other": "x"}"#).unwrap();
        assert_eq!(
            ["blanks", "null", "padded"].map(|name| texts.flag(name)),
            [false, false, true].map(|flag| Ok(Some(flag)))
        );
        assert!(texts.flag("other").is_err());
        assert_eq!((texts.integer("blanks"), texts.integer("null")), (Ok(None), Ok(None)));
        assert_eq!(fields.texts("l"), Ok(Some(vec!["a".into(), "1".into(), String::new()])));
        let pairs = fields.pairs("o").unwrap().unwrap();
        assert_eq!(pairs.into_iter().collect::<Vec<_>>(), [("a".into(), "1".into()), ("b".into(), "true".into())]);
        assert!(fields.has("z") && !fields.has("none"));
        assert_eq!((fields.change("e"), fields.change("z")), (Ok(None), Ok(Some(String::new()))));
        assert_eq!((fields.double("f"), fields.double("n")), (Ok(Some(3.9)), Ok(Some(8.0))));
    }

    #[test]
    fn a_number_that_stands_for_a_text_is_as_it_was_sent() {
        let body = br#"{"t": 123456789012345678901234567890, "l": [1.10, 1E3], "o": {"version": 1.10, "big": 1e400}}"#;
        let fields = parse(body).unwrap();
        assert_eq!(fields.text("t"), Ok(Some("123456789012345678901234567890".into())));
        assert_eq!(fields.texts("l"), Ok(Some(vec!["1.10".into(), "1E3".into()])));
        let pairs = fields.pairs("o").unwrap().unwrap();
        assert_eq!(
            pairs.into_iter().collect::<Vec<_>>(),
            [("big".into(), "1e400".into()), ("version".into(), "1.10".into())]
        );
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
