//! What a design's column families say.

use super::Findings;
use super::design::{Design, FamilyPlan};

/// From so many families on it is too many.
const FAMILIES_MANY: usize = 4;
/// How far apart families' rows, and values of one family, may be.
const APART_MAX: u64 = 100;
/// Bytes of a qualifier that nobody minds.
const QUALIFIER_BYTES: u64 = 8;
const VALUE_BYTES_MAX: u64 = 1 << 20;
const COLUMNS_MAX: u64 = 100_000;
const VERSIONS_MANY: u32 = 100;
/// More versions than this, with times of the writer's own, are a time axis.
const VERSIONS_OF_TIME: u32 = 3;

/// Judges the families.
pub(super) fn judge(design: &Design, findings: &mut Findings) {
    count(design, findings);
    together(design, findings);
    rows(design, findings);
    for family in &design.families {
        names(family, findings);
        values(family, findings);
        versions(family, findings);
    }
    key_above_value(design, findings);
}

/// `S-CF-1`.
fn count(design: &Design, findings: &mut Findings) {
    let count = design.families.len();
    if count >= FAMILIES_MANY {
        let says = format!("{count} column families: each flush and compaction handles all of them");
        findings.warning("S-CF-1", says, "keep one, and two or three where reads use one or the other");
    }
}

/// `S-CF-3`: what is read together lies together.
fn together(design: &Design, findings: &mut Findings) {
    let all: u64 = design.accesses.iter().map(|asked| asked.weight).sum();
    for (at, one) in design.families.iter().enumerate() {
        for other in design.families.iter().skip(at + 1) {
            let reads = |name: &String, asked: &super::Access| asked.families.contains(name);
            let both = design.accesses.iter().filter(|asked| reads(&one.name, asked) && reads(&other.name, asked));
            let both: u64 = both.map(|asked| asked.weight).sum();
            if both * 2 > all {
                let says = format!("`{}` and `{}` are read together by {both} of {all} reads", one.name, other.name);
                findings.warning("S-CF-3", says, "make them one family");
            }
        }
    }
}

/// `S-CF-4`: a small family is spread over the regions of a large one.
fn rows(design: &Design, findings: &mut Findings) {
    let told = || design.families.iter().filter_map(|family| Some((family.rows?, &family.name)));
    if let (Some((least, small)), Some((most, large))) = (told().min(), told().max())
        && most > least.saturating_mul(APART_MAX)
    {
        let says = format!("`{large}` has {most} rows, `{small}` {least}: scans of `{small}` pass all regions");
        findings.warning("S-CF-4", says, "make them two tables");
    }
}

/// `S-CF-6`, `S-SIZE-3`, `S-SIZE-4`: names ride on every cell.
fn names(family: &FamilyPlan, findings: &mut Findings) {
    let name = &family.name;
    if name.len() > 1 {
        let extra = name.len() - 1;
        let says = format!("family `{name}` has {} bytes, {extra} GB more in 10^9 cells than one letter", name.len());
        findings.note("S-CF-6", says, "name it with one letter; encodings save most of it on disk, not on the wire");
    }
    let mean = |of: &[u64]| of.iter().sum::<u64>().checked_div(of.len() as u64);
    let named: Vec<u64> = family.qualifiers.iter().map(|name| name.len() as u64).collect();
    let Some(qualifier) = mean(&named).or(family.qualifier_bytes) else { return };
    let value = mean(&family.value_bytes).unwrap_or_default();
    if qualifier > QUALIFIER_BYTES && qualifier > value {
        let says = format!(
            "qualifiers of `{name}` have {qualifier} bytes, values {value}: {qualifier} GB of names in 10^9 cells"
        );
        findings.warning("S-SIZE-4", says, "shorten them: `via`, not `myVeryImportantAttribute`");
    }
}

/// `S-CF-5`, `S-TYPE-2`, `S-TALL-2`: what cells hold, and how many there are in a row.
fn values(family: &FamilyPlan, findings: &mut Findings) {
    let name = &family.name;
    let (least, most) = (family.value_bytes.iter().min().copied(), family.value_bytes.iter().max().copied());
    if let (Some(least), Some(most)) = (least, most) {
        if most > least.max(1).saturating_mul(APART_MAX) {
            let says = format!("values of `{name}` have from {least} to {most} bytes: one block size suits not both");
            findings.warning("S-CF-5", says, "give the large ones a family of their own");
        }
        if most > VALUE_BYTES_MAX || most > u64::from(family.block_bytes).saturating_mul(4) {
            let says = format!("values of `{name}` have {most} bytes, its blocks {}", family.block_bytes);
            findings.warning("S-TYPE-2", says, "keep large objects elsewhere and their place here, or cut them");
        }
    }
    if let Some(columns) = family.columns.filter(|columns| *columns > COLUMNS_MAX) {
        let says = format!("a row of `{name}` has {columns} columns");
        findings.warning("S-TALL-2", says, "put what names the column into the key: more rows of fewer columns");
    }
}

/// `S-VERS-8`, `S-VERS-9`, `S-VERS-11`, `S-TALL-1`, `S-PUT-5`.
fn versions(family: &FamilyPlan, findings: &mut Findings) {
    let FamilyPlan { name, versions, min_versions, .. } = family;
    if min_versions > versions {
        let says = format!("`{name}` keeps at least {min_versions} versions and at most {versions}");
        findings.error("S-VERS-8", says, "set MIN_VERSIONS to VERSIONS at most: no such table can be made");
    } else if *min_versions > 0 && family.ttl_seconds.is_none() {
        let says = format!("`{name}` has MIN_VERSIONS and no TTL, without which they mean nothing");
        findings.warning("S-VERS-9", says, "set a TTL, or leave MIN_VERSIONS out");
    }
    if *versions >= VERSIONS_MANY {
        let says = format!("`{name}` keeps {versions} versions: files grow, and reads pass them");
        findings.warning("S-VERS-11", says, "put the time into the key: a row for each");
    } else if *versions > VERSIONS_OF_TIME && family.explicit_times {
        let says = format!("`{name}` keeps {versions} versions of times of its writers' own");
        findings.warning("S-TALL-1", says, "put the time into the key: rows are found by it, versions are not");
    }
    if let Some(ttl) = family.ttl_seconds.filter(|_| family.explicit_times) {
        let says = format!("`{name}` forgets cells {ttl} s after times that its writers set");
        let advice = "let the store set them, or see that they are milliseconds of now: older ones are gone at once";
        findings.warning("S-PUT-5", says, advice);
    }
}

/// `S-SIZE-1`: every cell carries its key.
fn key_above_value(design: &Design, findings: &mut Findings) {
    let key: Option<u64> = design.fields.iter().map(super::KeyField::width).sum();
    let values: Vec<u64> = design.families.iter().flat_map(|family| &family.value_bytes).copied().collect();
    if let (Some(key), Some(most)) = (key, values.iter().max())
        && key > *most
    {
        let says = format!("the key has {key} bytes, the largest value {most}: a cell is mostly its key");
        findings.note("S-SIZE-1", says, "a block encoding or a fold of many points into a cell saves it on disk");
    }
}
