//! What each way of reading takes (`S-KEY-1`): the key is the only index, and it is read from its beginning.

use std::fmt;

use super::Findings;
use super::design::{Access, Design, KeyField, Kind};

/// How a store finds what an access asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// One row by its whole key.
    Get,
    /// One range of rows that share the beginning of their key.
    ShortScan,
    /// One range for each value of a hash or bucket that stands first.
    FanOut(u64),
    /// Every row of the table.
    FullScan,
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get => out.write_str("get"),
            Self::ShortScan => out.write_str("short scan"),
            Self::FanOut(count) => write!(out, "fan-out of {count}"),
            Self::FullScan => out.write_str("full scan"),
        }
    }
}

/// What an access takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The access.
    pub name: String,
    /// How it is found.
    pub path: Path,
    /// How many calls of the store that is.
    pub calls: u64,
    /// The field at which the key's beginning ends, if any.
    pub stops_at: Option<String>,
}

/// Walks along the key as far as the access tells it.
pub(super) fn answer(design: &Design, asked: &Access) -> Answer {
    let (mut calls, mut known_count) = (1_u64, 0_u64);
    let mut stop = None;
    for field in &design.fields {
        if is_known(field, asked) {
            known_count += 1;
        } else if let Some(count) = field.fan_out() {
            calls = calls.saturating_mul(count);
        } else {
            stop = Some(field);
            break;
        }
    }
    let is_ranged = stop.is_some_and(|field| asked.range.as_ref() == Some(&field.name) && is_ordered(field));
    // What is only a hash of something does not narrow the range of rows: a prefix needs a field that was asked for.
    let is_narrow = is_ranged || known_count > 0;
    let path = match (stop, calls) {
        (None, 1) if !design.fields.is_empty() => Path::Get,
        (Some(_), 1) if is_narrow => Path::ShortScan,
        (_, count) if count > 1 && is_narrow => Path::FanOut(count),
        _ => Path::FullScan,
    };
    let calls = if path == Path::FullScan { 1 } else { calls };
    Answer { name: asked.name.clone(), path, calls, stops_at: stop.map(|field| field.name.clone()) }
}

/// Whether the access tells the field's value, or all that it is made of.
fn is_known(field: &KeyField, asked: &Access) -> bool {
    let has = |name: &String| asked.equals.contains(name);
    has(&field.name) || (field.is_derived() && !field.of.is_empty() && field.of.iter().all(has))
}

/// Whether neighbours of its values are neighbours in the key.
fn is_ordered(field: &KeyField) -> bool {
    !field.reversed && !matches!(field.kind, Kind::Hash | Kind::Bucket | Kind::Random)
}

/// Judges the accesses.
pub(super) fn judge(design: &Design, answers: &[Answer], findings: &mut Findings) {
    for (asked, answer) in design.accesses.iter().zip(answers) {
        let name = &asked.name;
        absent(design, asked, findings);
        unordered(design, asked, findings);
        random(design, asked, findings);
        match answer.path {
            Path::FullScan => {
                let stop = answer.stops_at.as_deref().unwrap_or_default();
                let says = format!("`{name}` reads every row: it does not tell the key's `{stop}`");
                let advice = "put what it tells first in the key, or keep an index table whose key begins with it";
                findings.warning("S-KEY-1", says, advice);
            }
            Path::FanOut(count) => {
                let says = format!("`{name}` takes {count} calls, one for each value of a hash or bucket");
                findings.note("S-TALL-5", says, "make the hash or bucket of fields that the access tells");
            }
            Path::Get | Path::ShortScan => {}
        }
    }
    newest(design, findings);
}

/// `S-KEY-2`: only the key is an index.
fn absent(design: &Design, asked: &Access, findings: &mut Findings) {
    let is_there = |name: &&String| design.fields.iter().any(|field| field.name == **name || field.of.contains(name));
    for gone in asked.equals.iter().chain(&asked.range).filter(|name| !is_there(name)) {
        let says = format!("`{}` asks by `{gone}`, which is no field of the key", asked.name);
        findings.note("S-KEY-2", says, "it filters what is read, and spares no reading; mind the spelling too");
    }
}

/// `S-HOT-6`, `S-HOT-10`: no range of what has lost its order.
fn unordered(design: &Design, asked: &Access, findings: &mut Findings) {
    let Some(wanted) = &asked.range else { return };
    let name = &asked.name;
    match design.fields.iter().find(|field| field.name == *wanted) {
        Some(field) if field.reversed => findings.error(
            "S-HOT-6",
            format!("`{name}` asks a range of `{wanted}`, which is reversed and has no order"),
            "keep the field as it is, after a hash or bucket that spreads writes",
        ),
        Some(field) if is_ordered(field) => {}
        None if !design.fields.iter().any(|field| field.kind == Kind::Hash && field.of.contains(wanted)) => {}
        _ => findings.error(
            "S-HOT-10",
            format!("`{name}` asks a range of `{wanted}`, of which the key has a hash only, without order"),
            "put the field itself into the key, after the hash",
        ),
    }
}

/// `S-HOT-8`, `S-HOT-9`: nobody knows a random number again.
fn random(design: &Design, asked: &Access, findings: &mut Findings) {
    let Some(field) = design.fields.iter().find(|field| field.kind == Kind::Random) else { return };
    let (name, random) = (&asked.name, &field.name);
    if asked.equals.contains(random) {
        return;
    }
    let is_point =
        asked.range.is_none() && design.fields.iter().all(|field| field.kind == Kind::Random || is_known(field, asked));
    if is_point {
        let says = format!("`{name}` asks for one row and cannot know its random `{random}`");
        findings.error("S-HOT-8", says, "leave it out, or keep an index table that tells it");
    } else {
        let says = format!("`{name}` scans rows that the random `{random}` scatters");
        findings.warning("S-HOT-9", says, "use a hash of fields that the access tells, which can be made again");
    }
}

/// `S-REV-4`: what most readers want first stands first.
fn newest(design: &Design, findings: &mut Findings) {
    let all: u64 = design.accesses.iter().map(|asked| asked.weight).sum();
    let newest: u64 = design.accesses.iter().filter(|asked| asked.newest_first).map(|asked| asked.weight).sum();
    let Some(time) = design.fields.iter().find(|field| field.kind == Kind::Time) else { return };
    if newest * 2 > all && !time.newest_first {
        let says = format!("{newest} of {all} reads want the newest first, and `{}` stands oldest first", time.name);
        findings.note("S-REV-4", says, "keep the largest time less the time, or live with reverse scans");
    } else if newest * 2 <= all && all > 0 && time.newest_first {
        let says = format!("{newest} of {all} reads want the newest first, and `{}` stands newest first", time.name);
        findings.note("S-REV-4", says, "keep the time as it is: a reverse scan serves the few");
    }
}
