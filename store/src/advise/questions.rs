//! The seven questions of a new table (`S-TWIT-1`), and what their answers make: a design's text, and the shell's `create`.

use std::fmt::Write as _;

use super::design::{Design, Kind};
use crate::{Error, Result};

/// The questions, each with what an answer looks like.
pub const QUESTIONS: [&str; 7] = [
    "1. What is the row key made of? NAME:KIND or NAME:KIND:BYTES, in order, such as `host:text:20 at:time`; kinds: \
     text, digits, hex, number, time, sequence, id, hash, bucket, random",
    "2. How many column families are there?",
    "3. What goes where? FAMILY=WHAT for each, with commas, such as `d=readings, m=notes`",
    "4. How many columns has a row? One number, or one for each family, with commas",
    "5. What are the columns called? A usual name, or one for each family, with commas",
    "6. What do cells hold? Bytes of a usual value, or one number for each family, with commas",
    "7. How many versions are kept? One number, or one for each family, with commas",
];

/// The answers as a design's text, in TOML.
///
/// # Errors
/// `Invalid`: an answer that is none, with the question's number.
pub fn spec(table: &str, answers: &[String; 7]) -> Result<String> {
    let [key, count, places, columns, names, values, versions] = answers;
    let mut text = format!("table = {}\n", quoted("the table", table)?);
    for field in key.split_whitespace() {
        write_field(&mut text, field)?;
    }
    let count: usize = number("answer 2", count)?;
    let places: Vec<&str> = places.split(',').map(str::trim).collect();
    if places.len() != count {
        return Err(wrong("answer 3", format!("{count} families are expected, and {} are told", places.len())));
    }
    let columns = each("answer 4", columns, count)?;
    let names = each("answer 5", names, count)?;
    let values = each("answer 6", values, count)?;
    let versions = each("answer 7", versions, count)?;
    let rest = columns.iter().zip(&names).zip(values.iter().zip(&versions));
    for (place, ((columns, name), (value, versions))) in places.iter().zip(rest) {
        let (family, what) = place.split_once('=').map_or((*place, ""), |(family, what)| (family.trim(), what.trim()));
        let columns: u64 = number("answer 4", columns)?;
        let value: u64 = number("answer 6", value)?;
        let versions: u32 = number("answer 7", versions)?;
        let what: String = what.chars().filter(|letter| !letter.is_control()).collect();
        write!(text, "\n[[family]]\n# {what}\nname = {}\n", quoted("answer 3", family)?).unwrap_or_default();
        writeln!(text, "columns = {columns}\nqualifiers = [{}]", quoted("answer 5", name)?).unwrap_or_default();
        writeln!(text, "value_bytes = [{value}]\nversions = {versions}").unwrap_or_default();
    }
    Ok(text)
}

/// The shell's command that makes the design's table.
///
/// # Errors
/// `Invalid`: no family; a name that the shell would take for more than a name.
pub fn create_line(design: &Design) -> Result<String> {
    if design.families.is_empty() {
        return Err(wrong("the design", "a table has at least one column family".to_owned()));
    }
    let mut line = format!("create '{}'", plain("the table", &design.table)?);
    for family in &design.families {
        write!(line, ", {{NAME => '{}', VERSIONS => {}", plain("a family", &family.name)?, family.versions)
            .unwrap_or_default();
        if family.min_versions > 0 {
            write!(line, ", MIN_VERSIONS => {}", family.min_versions).unwrap_or_default();
        }
        if let Some(ttl) = family.ttl_seconds {
            write!(line, ", TTL => {ttl}").unwrap_or_default();
        }
        write!(line, ", BLOCKSIZE => {}}}", family.block_bytes).unwrap_or_default();
    }
    if !design.splits.is_empty() {
        let keys = design.splits.iter().map(|key| {
            key.iter().fold(String::new(), |text, byte| match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => text + &char::from(*byte).to_string(),
                _ => text + &format!("\\x{byte:02x}"),
            })
        });
        let keys: Vec<String> = keys.map(|key| format!("\"{key}\"")).collect();
        write!(line, ", SPLITS => [{}]", keys.join(", ")).unwrap_or_default();
    }
    Ok(line)
}

fn write_field(text: &mut String, field: &str) -> Result<()> {
    let mut parts = field.split(':');
    let (name, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("text"));
    if Kind::named(kind).is_none() {
        return Err(wrong("answer 1", format!("`{kind}` of `{field}` is no kind of field")));
    }
    write!(text, "\n[[key]]\nname = {}\nkind = \"{kind}\"\n", quoted("answer 1", name)?).unwrap_or_default();
    if let Some(bytes) = parts.next() {
        writeln!(text, "bytes = {}", number::<u32>("answer 1", bytes)?).unwrap_or_default();
    }
    match parts.next() {
        None => Ok(()),
        Some(_) => Err(wrong("answer 1", format!("`{field}` has more than NAME:KIND:BYTES"))),
    }
}

/// An answer's parts: one for each family, or the same for all.
fn each<'a>(what: &'static str, answer: &'a str, count: usize) -> Result<Vec<&'a str>> {
    let parts: Vec<&str> = answer.split(',').map(str::trim).collect();
    match parts.as_slice() {
        [one] => Ok(vec![*one; count]),
        _ if parts.len() == count => Ok(parts),
        _ => Err(wrong(what, format!("one for all or {count} are expected, and {} are told", parts.len()))),
    }
}

fn number<N: std::str::FromStr>(what: &'static str, text: &str) -> Result<N> {
    text.trim().parse().map_err(|_| wrong(what, format!("`{}` is no number that fits", text.trim())))
}

/// A name that means itself in the shell's quotes and in TOML's.
fn plain<'a>(what: &'static str, name: &'a str) -> Result<&'a str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-.:".contains(letter);
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(name);
    }
    Err(wrong(what, format!("`{name}` is no name of letters, digits, _, -, . and :")))
}

fn quoted(what: &'static str, name: &str) -> Result<String> {
    plain(what, name).map(|name| format!("\"{name}\""))
}

fn wrong(what: &'static str, reason: String) -> Error {
    Error::InvalidArgument { what, reason: reason.into() }
}
