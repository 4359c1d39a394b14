//! A TOML file as a flat list of settings.

use toml::Value;

/// `[section]` tables as `section.key` and the value's text, in the file's sorted order.
///
/// # Errors
///
/// What is wrong and where, without the file's name: broken TOML, or a value that is a list or a
/// date, which no setting is.
pub(super) fn flatten(text: &str) -> Result<Vec<(String, String)>, String> {
    let table: toml::Table = text.parse().map_err(|cause: toml::de::Error| one_line(text, &cause))?;
    let mut settings = Vec::new();
    for (section, value) in table {
        let Value::Table(keys) = value else {
            return Err(format!("`{section}` stands outside of a [section]"));
        };
        for (key, value) in keys {
            let name = format!("{section}.{key}");
            settings.push((name.clone(), scalar(&value).ok_or_else(|| format!("`{name}` must be one plain value"))?));
        }
    }
    Ok(settings)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

/// The parser's own display spans several lines with a drawing; a log line has room for one.
pub(crate) fn one_line(text: &str, cause: &toml::de::Error) -> String {
    let at = cause.span().map_or(0, |span| span.start);
    let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    format!("line {line}: {}", cause.message().replace('\n', ", "))
}
