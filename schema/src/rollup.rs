//! Rollups: numbers that each stand for many points, in tables of their own.
//!
//! ```text
//! row        salt, metric, base time, tags as a data row; the base is the start of the interval's own span, in UTC
//! qualifier  aggregate's ID: 1 byte, then 2 bytes: 12 bits of slot, 4 bits of flags       slot = (time - base) / interval
//! old form   aggregate's name in lower case and a colon, then the same 2 bytes
//! value      as a point's
//! ```
//!
//! *Source*: OpenTSDB 2.4 `RollupConfig`, `RollupInterval`, `RollupUtils` (rules S-ROLLUP-CONFIG, S-ROLLUP-BASE,
//! S-ROLLUP-QUAL, S-PREAGG).

mod config;

use basalt_store::TableName;
use chrono::{DateTime, Datelike, NaiveTime};

use crate::qualifier::point_kind;
use crate::value::decode_word;
use crate::{BaseTime, Damage, PointKind, Result, RowCell, Value};

pub use config::{RollupSettings, Rollups};

/// Seconds of a day.
const DAY_S: u32 = 86_400;

/// How much time a row of rollups holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSpan {
    /// So many hours from the epoch on.
    Hours(u32),
    /// A day.
    Day,
    /// A month.
    Month,
    /// A year.
    Year,
}

impl RowSpan {
    /// The start of the row that holds a time.
    pub fn base(self, seconds: u32) -> u32 {
        let date = || DateTime::from_timestamp(i64::from(seconds), 0).map(|time| time.date_naive());
        let first = match self {
            Self::Hours(hours) => return seconds - seconds % (hours * BaseTime::SPAN_S),
            Self::Day => return seconds - seconds % DAY_S,
            Self::Month => date().and_then(|date| date.with_day(1)),
            Self::Year => date().and_then(|date| date.with_ordinal(1)),
        };
        let start = first.map(|date| date.and_time(NaiveTime::MIN).and_utc().timestamp());
        start.and_then(|start| u32::try_from(start).ok()).unwrap_or_default()
    }

    /// The most seconds that a row holds, as OpenTSDB counts them: months of 32 days, years of 366.
    pub const fn seconds_max(self) -> u32 {
        match self {
            Self::Hours(hours) => hours * BaseTime::SPAN_S,
            Self::Day => DAY_S,
            Self::Month => 32 * DAY_S,
            Self::Year => 366 * DAY_S,
        }
    }
}

/// An interval of which rollups are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollup {
    name: Box<str>,
    interval_s: u32,
    span: RowSpan,
    table: TableName,
    preaggregate_table: TableName,
    is_default: bool,
    delay_s: u32,
}

impl Rollup {
    /// How many slots a qualifier can tell, in its 12 bits. OpenTSDB lets a row have more ([`Rollup::lacks_slots`]).
    pub const SLOTS_MAX: u32 = 1 << 12;

    /// As the configuration names it: `1h`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its seconds.
    pub const fn interval_s(&self) -> u32 {
        self.interval_s
    }

    /// How much time a row holds.
    pub const fn span(&self) -> RowSpan {
        self.span
    }

    /// Where its rollups lie.
    pub const fn table(&self) -> &TableName {
        &self.table
    }

    /// Where those lie that also were joined across series.
    pub const fn preaggregate_table(&self) -> &TableName {
        &self.preaggregate_table
    }

    /// Whether it is the one whose table is that of the points themselves.
    pub const fn is_default(&self) -> bool {
        self.is_default
    }

    /// How late rollups may be, in seconds; 0 where that is not told.
    pub const fn delay_s(&self) -> u32 {
        self.delay_s
    }

    /// The most values of a row, as OpenTSDB counts them.
    pub const fn slots_count(&self) -> u32 {
        self.span.seconds_max() / self.interval_s
    }

    /// Whether the end of its longest rows has no slots: those of `10m` with a `rowSpan` of `1n` last for 28 days and 10
    /// hours.
    pub const fn lacks_slots(&self) -> bool {
        let longest_s = match self.span {
            RowSpan::Month => 31 * DAY_S,
            span => span.seconds_max(),
        };
        longest_s.div_ceil(self.interval_s) > Self::SLOTS_MAX
    }

    /// The row's base and the qualifier of a value; `Err` tells the slot where the row has none such.
    ///
    /// # Errors
    /// The slot: no row has it, or no qualifier can tell it. OpenTSDB cuts such a slot to 12 bits, which are those of another
    /// point.
    pub fn column(
        &self,
        seconds: u32,
        aggregate: &RollupAggregate,
        kind: PointKind,
    ) -> std::result::Result<(u32, [u8; 3]), u32> {
        let base = self.span.base(seconds);
        let slot = (seconds - base) / self.interval_s;
        if slot >= self.slots_count().min(Self::SLOTS_MAX) {
            return Err(slot);
        }
        let [_, _, high, low] = ((slot << 4) | u32::from(kind.flags())).to_be_bytes();
        Ok((base, [aggregate.id, high, low]))
    }
}

/// What made one number of many, and the ID it is stored under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupAggregate {
    id: u8,
    name: Box<str>,
}

impl RollupAggregate {
    /// The first byte of its qualifiers.
    pub const fn id(&self) -> u8 {
        self.id
    }

    /// Its name in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The slot and the value of a cell, if it is of this aggregate, in either form.
    ///
    /// # Errors
    /// `Corrupt`: it is, and its value is not as long as its qualifier says.
    pub fn decode(&self, cell: &RowCell<'_>) -> Result<Option<(u32, Value)>> {
        let Some([high, low]) = self.slot_and_flags(cell.qualifier) else { return Ok(None) };
        let kind = point_kind(low);
        let word = decode_word(kind, cell.value).ok_or_else(|| cell.corrupt(Damage::ValueLength))?;
        let slot = u16::from_be_bytes([high, low]) >> 4;
        Ok(Some((u32::from(slot), Value::from_word(kind, word))))
    }

    fn slot_and_flags(&self, qualifier: &[u8]) -> Option<[u8; 2]> {
        match *qualifier {
            [id, high, low] if id == self.id => Some([high, low]),
            _ => qualifier.strip_prefix(self.name.as_bytes())?.strip_prefix(b":")?.try_into().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_store::{ErrorKind, SeqNo, Timestamp};

    use super::*;
    use crate::Door;

    #[test]
    fn s_rollup_base_rows_begin_with_their_span() {
        for (span, seconds, base) in [
            (RowSpan::Hours(6), 1_370_530_800, 1_370_520_000),
            (RowSpan::Hours(6), 1_370_541_599, 1_370_520_000),
            (RowSpan::Hours(2), 1_370_523_660, 1_370_520_000),
            (RowSpan::Hours(1), 1_370_523_660, 1_370_523_600),
            (RowSpan::Day, 1_370_532_925, 1_370_476_800),
            (RowSpan::Month, 1_370_532_925, 1_370_044_800),
            (RowSpan::Year, 1_370_532_925, 1_356_998_400),
            (RowSpan::Year, u32::MAX, 4_291_747_200),
        ] {
            assert_eq!(span.base(seconds), base, "{span:?} {seconds}");
        }
    }

    /// A slot over 12 bits would be another's: the 29th day's first ones fell on those of the first.
    #[test]
    fn s_rollup_qual_what_has_no_slot_is_refused() {
        let rollups = |interval: &str, span: &str| {
            let json = format!(
                r#"{{"aggregationIds":{{"sum":0}},"intervals":[
                    {{"table":"t","preAggregationTable":"p","interval":"{interval}","rowSpan":"{span}"}}]}}"#
            );
            Rollups::parse(&json, RollupSettings::default()).unwrap()
        };
        let kind = Value::Int(1).encode(Door::Http).unwrap().0;
        let (base, of_10m) = (1_698_796_800, rollups("10m", "1n"));
        let (rollup, sum) = (of_10m.by_name("10m").unwrap(), of_10m.aggregate("sum").unwrap());
        assert_eq!(rollup.column(base + 4096 * 600 - 1, sum, kind), Ok((base, [0, 0xFF, 0xF0])));
        for slot in [4096, 4319] {
            assert_eq!(rollup.column(base + slot * 600, sum, kind), Err(slot));
        }
        for (interval, span, lacks) in [
            ("10m", "1n", true),
            ("11m", "1n", false),
            ("12m", "1n", false),
            ("2h", "1y", true),
            ("3h", "1y", false),
            ("15s", "1d", true),
            ("30s", "1d", false),
            ("1s", "1h", false),
            ("1s", "2h", true),
        ] {
            let rollups = rollups(interval, span);
            assert_eq!(rollups.by_name(interval).unwrap().lacks_slots(), lacks, "{interval} {span}");
        }
    }

    /// S-ROLLUP-QUAL: the cells of section 14 of the dump, and the old form.
    #[test]
    fn s_rollup_qual_cells_are_the_servers_byte_for_byte() {
        let dump = include_str!("../../tests/golden/raw-rows.txt");
        let json = r#"{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[
            {"table":"t","preAggregationTable":"p","interval":"1m","rowSpan":"1h","defaultInterval":true},
            {"table":"t10","preAggregationTable":"p10","interval":"10m","rowSpan":"1d"},
            {"table":"t1h","preAggregationTable":"p1h","interval":"1h","rowSpan":"1n"},
            {"table":"t1d","preAggregationTable":"p1d","interval":"1d","rowSpan":"1y"}]}"#;
        let rollups = Rollups::parse(json, RollupSettings::default()).unwrap();
        for (interval, aggregate, value, table) in [
            ("1m", "sum", Value::Int(7), "rollup-tsdb"),
            ("10m", "Sum", Value::Int(8), "rollup-tsdb-10m"),
            ("1h", "SUM", Value::Int(100), "rollup-tsdb-1h"),
            ("1h", "count", Value::Int(10), "rollup-tsdb-1h"),
            ("1h", "min", Value::Float(1.5), "rollup-tsdb-1h"),
            ("1h", "max", Value::Float(std::f64::consts::PI), "rollup-tsdb-1h"),
            ("1d", "sum", Value::Int(9), "rollup-tsdb-1d"),
        ] {
            let rollup = rollups.by_name(interval).unwrap();
            let aggregate = rollups.aggregate(aggregate).unwrap();
            let (kind, bytes) = value.encode(Door::Http).unwrap();
            let (base, qualifier) = rollup.column(1_700_000_000, aggregate, kind).unwrap();
            let hex = crate::hex::lower;
            let cell = format!("000001{base:08x}000001000001 t {} {}", hex(&qualifier), hex(&bytes));
            let mut lines = dump.lines().skip_while(|line| *line != format!("## {table}"));
            assert!(lines.by_ref().take_while(|line| !line.is_empty()).any(|line| line == cell), "{table}: {cell}");
            let slot = (1_700_000_000 - base) / rollup.interval_s();
            let decode = |qualifier: &[u8], value: &[u8]| {
                aggregate.decode(&RowCell { qualifier, value, timestamp: Timestamp(1), seq: SeqNo(1) })
            };
            assert_eq!(decode(&qualifier, &bytes).unwrap(), Some((slot, value)));
            let old = [aggregate.name().as_bytes(), b":", &qualifier[1..]].concat();
            assert_eq!(decode(&old, &bytes).unwrap(), Some((slot, value)));
            assert_eq!(decode(&[77, 0, 0], &bytes).unwrap(), None);
            for qualifier in [&qualifier[..], &old] {
                assert_eq!(decode(qualifier, &[]).unwrap_err().kind(), ErrorKind::Corrupt);
            }
        }
    }
}
