//! What the key's fields say of where writes land, and of how fields are told apart.

use super::Findings;
use super::design::{Design, KeyField, Kind};

/// Cells a second that one region is taken to write without becoming the bottleneck.
const REGION_CELLS_PER_SECOND: u64 = 50_000;
/// From so many values on, a leading field spreads writes by itself.
const SPREADING_VALUES: u64 = 12;
/// More buckets than this many times those needed cost more scans than they spread writes.
const BUCKETS_EXCESS: u64 = 4;

/// Judges the key's fields.
pub(super) fn judge(design: &Design, findings: &mut Findings) {
    leading(design, findings);
    for (at, field) in design.fields.iter().enumerate() {
        let is_last = at + 1 == design.fields.len();
        aligned(design, field, findings);
        buckets(design, field, findings);
        boundary(field, is_last, findings);
    }
}

/// `S-HOT-1`, `S-HOT-3`, `S-LOG-4`: the first field decides which region is written.
fn leading(design: &Design, findings: &mut Findings) {
    let Some(first) = design.leading() else { return };
    let name = &first.name;
    if first.rises() {
        let says = format!("the key's first field `{name}` rises: all new rows fall into one region");
        let advice = "put a field of many values first, such as a metric or host, or a hash of the other fields";
        findings.error("S-HOT-1", says, advice);
    }
    if let Some(count) = first.values.filter(|count| *count < SPREADING_VALUES && !first.is_derived()) {
        let says = format!("`{name}` has {count} values: writes fall into at most as many regions");
        findings.warning("S-HOT-3", says, "put a hash of the other fields first, as a salt");
    }
    if let Some(percent) = first.top_percent.filter(|percent| *percent > 50) {
        let says = format!("one value of `{name}` has {percent} % of all rows: its region is hot");
        findings.warning("S-LOG-4", says, "put a hash of more fields first, as a salt");
    }
}

/// `S-HOT-7`: times that are multiples of a step fall into few buckets.
fn aligned(design: &Design, field: &KeyField, findings: &mut Findings) {
    let Some(count) = field.buckets.map(u64::from).filter(|count| *count > 0 && field.kind == Kind::Bucket) else {
        return;
    };
    // A time that the key does not hold itself may be told by the bucket's own step.
    let inputs = design.fields.iter().filter(|other| field.of.contains(&other.name)).chain([field]);
    let Some(step) = inputs.filter_map(|time| time.step).find(|step| greatest_common_divisor(*step, count) > 1) else {
        return;
    };
    let used = count / greatest_common_divisor(step, count);
    let says = format!("multiples of {step} modulo {count} fall into {used} of {count} buckets");
    let advice =
        format!("make the bucket a hash of the other fields, or take a count that shares no factor with {step}");
    findings.error("S-HOT-7", says, advice);
}

/// `S-HOT-11`: each bucket spreads writes, and is a scan of every range.
fn buckets(design: &Design, field: &KeyField, findings: &mut Findings) {
    let told = (field.fan_out(), design.writes_per_second, design.regions_count());
    let (Some(count), Some(rate), Some(regions)) = told else { return };
    let wanted = rate.div_ceil(REGION_CELLS_PER_SECOND).clamp(1, regions.max(1));
    let name = &field.name;
    if count > wanted.saturating_mul(BUCKETS_EXCESS) || count < wanted {
        let says = format!("`{name}` has {count} values for {rate} cells a second and {regions} regions");
        let advice = format!(
            "{wanted} would do, at {REGION_CELLS_PER_SECOND} cells a second a region: each is one scan of a range more"
        );
        findings.note("S-HOT-11", says, advice);
    }
}

/// `S-KEY-7`, `S-KEY-8`: where a field ends, and whether its filling keeps the order.
fn boundary(field: &KeyField, is_last: bool, findings: &mut Findings) {
    let name = &field.name;
    if field.width().is_none() && field.delimiter.is_none() && !is_last {
        let says = format!("nothing tells where `{name}` ends: a scan of host1 gives host12 too");
        findings.error("S-KEY-7", says, "set `bytes` and pad it, end it by a `delimiter`, or keep a number for it");
    }
    if let Some(pad) = field.pad.filter(|pad| *pad != 0) {
        let says = format!("`{name}` is padded with '{}', by which host12 sorts before host1", pad.escape_ascii());
        findings.warning("S-KEY-8", says, "pad with \\x00, which sorts before everything");
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
