//! `/api/search/lookup`: series by metric and tags, from the series index. The other searches are a plugin's in OpenTSDB,
//! and answered as by one without it.
//!
//! Where OpenTSDB needs its meta table filled, or reads all data of a metric, the index answers whatever `useMeta` says;
//! strictly, `useMeta: false` reads row keys too, since the index remembers series whose points were deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Path, State};
use axum::http::Method;
use axum::response::Response;
use basalt_schema::{FoundSeries, Lookup, LookupPage};
use serde::Serialize;

use super::call::Call;
use super::error::ApiError;
use super::fields::{Fault, Fields};
use super::json::{self, Rest};
use crate::app::App;

/// Series answered when the request does not say how many.
const LIMIT_DEFAULT: i64 = 25;
/// Series answered at most, whatever the request says: some 25 MB of JSON. `totalResults` counts all.
const SERIES_MAX: usize = 100_000;

/// Tags that a look-up may name: each is looked for in each metric.
const TAGS_MAX: usize = 1_000;

/// The searches that need a plugin.
const PLUGIN_TYPES: [&str; 5] = ["tsmeta", "tsmeta_summary", "tsuids", "uidmeta", "annotation"];

/// A lookup as it was asked, and as it is told again.
#[derive(Debug)]
struct LookupRequest {
    /// A body's, which is told again and no more.
    query: Option<String>,
    metric: Option<String>,
    /// `None` where a body has no list of tags.
    tags: Option<Vec<LookupTag>>,
    limit: i64,
    start_index: i64,
    use_meta: bool,
}

#[derive(Debug, Clone, Serialize)]
struct LookupTag {
    key: Option<String>,
    value: Option<String>,
}

/// The answer, member by member in OpenTSDB's order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'a [LookupTag]>,
    limit: i64,
    /// Milliseconds it took.
    time: u32,
    results: Vec<Found<'a>>,
    start_index: i64,
    total_results: u64,
}

#[derive(Debug, Serialize)]
struct Found<'a> {
    tsuid: String,
    metric: &'a str,
    tags: BTreeMap<&'a str, &'a str>,
}

/// Without a type of search.
pub(crate) async fn untyped(State(app): State<Arc<App>>, call: Call) -> ApiError {
    match call.meant() {
        Ok(method) if method == Method::GET || method == Method::POST => {
            ApiError::bad_with("Invalid search query type supplied", "Type provided was null or empty")
        }
        Ok(method) => ApiError::search_method(&method, app.config.compat.strict),
        Err(error) => error,
    }
}

/// One type of search.
pub(crate) async fn typed(
    State(app): State<Arc<App>>,
    Path(kind): Path<String>,
    call: Call,
) -> Result<Response, ApiError> {
    let method = call.meant()?;
    if method != Method::GET && method != Method::POST {
        return Err(ApiError::search_method(&method, app.config.compat.strict));
    }
    match kind.as_str() {
        "lookup" => lookup(&app, &call).await,
        kind if PLUGIN_TYPES.contains(&kind) => Err(without_plugin(&call)),
        other => Err(ApiError::bad_with("Invalid search query type supplied", format!("Unknown type: {other}"))),
    }
}

/// What is wrong with the request, if anything; else that there is no such search.
fn without_plugin(call: &Call) -> ApiError {
    if call.body.is_empty() {
        let checked = call.params.required("query").and_then(|_| {
            number(call, "limit", 0)?;
            number(call, "start_index", 0)
        });
        if let Err(error) = checked {
            return error;
        }
    }
    ApiError::bad_with("Searching is not enabled", "Searching has not been enabled on this TSD")
}

async fn lookup(app: &Arc<App>, call: &Call) -> Result<Response, ApiError> {
    let began = Instant::now();
    let strict = app.config.compat.strict;
    let ask = if call.body.is_empty() {
        LookupRequest::of_params(call, strict)?
    } else {
        let fields = Fields::parse(&call.body, Rest::Left);
        fields
            .and_then(|fields| LookupRequest::of_fields(&fields))
            .map_err(|fault| ApiError::bad_body(fault, strict))?
    };
    if ask.metric.is_none() && ask.tags.as_ref().is_none_or(Vec::is_empty) {
        return Err(ApiError::bad("Missing metric and tags. Please supply at least one value."));
    }
    if let Some(count) = ask.tags.as_ref().map(Vec::len).filter(|count| *count > TAGS_MAX) {
        return Err(ApiError::too_many("tags", count, TAGS_MAX));
    }
    let wanted = ask.lookup(strict);
    app.with_seat(move |schema, pool| {
        let page = schema.lookup(&wanted).map_err(|cause| ApiError::of_lookup(&cause))?;
        json::counted(pool, &ask.answer(&page, began, strict))
    })
    .await
}

impl LookupRequest {
    /// Of a query string OpenTSDB knows no start; so does `strict`.
    fn of_params(call: &Call, strict: bool) -> Result<Self, ApiError> {
        let text = call.params.required("m")?;
        let (metric, tags) = parse_series(text).map_err(|fault| ApiError::bad_with("Unable to parse query", fault))?;
        let use_meta = call.params.last("use_meta").is_none_or(|text| text.eq_ignore_ascii_case("true"));
        let limit = number(call, "limit", LIMIT_DEFAULT)?;
        let start_index = match () {
            () if strict => 0,
            () if call.params.has("start_index") => number(call, "start_index", 0)?,
            () => number(call, "startIndex", 0)?,
        };
        Ok(Self { query: None, metric, tags: Some(tags), limit, start_index, use_meta })
    }

    fn of_fields(fields: &Fields) -> Result<Self, Fault> {
        let tags = fields.objects("tags")?.map(|tags| {
            let tags = tags.iter().map(|tag| Ok(LookupTag { key: tag.text("key")?, value: tag.text("value")? }));
            tags.collect::<Result<_, Fault>>()
        });
        Ok(Self {
            query: fields.text("query")?,
            metric: if fields.has("metric") { fields.text("metric")? } else { Some("*".into()) },
            tags: tags.transpose()?,
            limit: fields.integer("limit")?.unwrap_or(LIMIT_DEFAULT),
            start_index: fields.integer("startIndex")?.unwrap_or(0),
            use_meta: fields.flag("useMeta")?.unwrap_or(true),
        })
    }

    /// OpenTSDB counts what it answers as the total, knows no start, and forgets values without a key beside a key; so
    /// does `strict`. Told not to use the meta table, it finds what has rows.
    fn lookup(&self, strict: bool) -> Lookup {
        let some = |text: &Option<String>| text.clone().filter(|text| text != "*");
        let mut tags: Vec<_> = self.tags.iter().flatten().map(|tag| (some(&tag.key), some(&tag.value))).collect();
        if strict && tags.iter().any(|(key, _)| key.is_some()) {
            tags.retain(|(key, _)| key.is_some());
        }
        Lookup {
            metric: some(&self.metric).filter(|metric| !metric.is_empty()),
            tags,
            skip: if strict { 0 } else { usize::try_from(self.start_index).unwrap_or(0) },
            limit: usize::try_from(self.limit).ok().filter(|limit| *limit > 0).unwrap_or(SERIES_MAX).min(SERIES_MAX),
            with_rows: strict && !self.use_meta,
        }
    }

    fn answer<'a>(&'a self, page: &'a LookupPage, began: Instant, strict: bool) -> Answer<'a> {
        Answer {
            kind: "LOOKUP",
            query: self.query.as_deref(),
            metric: self.metric.as_deref(),
            tags: self.tags.as_deref(),
            limit: self.limit,
            time: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX),
            results: page.series.iter().map(Found::of).collect(),
            start_index: self.start_index,
            total_results: if strict { page.series.len() as u64 } else { page.total },
        }
    }
}

impl<'a> Found<'a> {
    fn of(series: &'a FoundSeries) -> Self {
        Self {
            tsuid: series.tsuid.to_string(),
            metric: &series.names.metric,
            tags: series.names.tags.iter().map(|(key, value)| (&**key, &**value)).collect(),
        }
    }
}

fn number(call: &Call, name: &str, default: i64) -> Result<i64, ApiError> {
    let Some(text) = call.params.last(name) else { return Ok(default) };
    let number =
        text.parse::<i32>().map_err(|_| ApiError::bad(format!("Unable to convert '{name}' to a valid number")))?;
    Ok(number.into())
}

/// `metric{key=value,key=,=value}`, of which metric or tags may be missing.
fn parse_series(text: &str) -> Result<(Option<String>, Vec<LookupTag>), Fault> {
    let Some((metric, rest)) = text.split_once('{') else { return Ok((Some(text.to_owned()), Vec::new())) };
    let metric = (!metric.is_empty()).then(|| metric.to_owned());
    let tags = rest.strip_suffix('}').ok_or_else(|| format!("Missing '}}' at the end of: {text}"))?;
    if tags.is_empty() {
        return match metric {
            Some(metric) => Ok((Some(metric), Vec::new())),
            None => Err(format!("Missing metric and tags: {text}")),
        };
    }
    let tags = tags.split(',').map(|tag| parse_tag(tag).map_err(|fault| format!("When parsing tag '{tag}': {fault}")));
    Ok((metric, tags.collect::<Result<_, _>>()?))
}

fn parse_tag(tag: &str) -> Result<LookupTag, Fault> {
    if tag.chars().count() < 2 {
        return Err("Missing tag pair".into());
    }
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match tag.split_once('=') {
        Some((key, value)) if !value.contains('=') => Ok(LookupTag { key: some(key), value: some(value) }),
        _ => Err(format!("invalid tag: {tag}")),
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::{AnnotationEdit, AnnotationPlace, EditMode, PointTime, Schema, TreeEdit, TsMetaEdit};

    use super::*;

    #[test]
    fn a_series_is_read_with_any_part_missing() {
        // M-LOOKUP
        let check = |text: &str, expected: &str| {
            let side = |text: &Option<String>| text.clone().unwrap_or("?".into());
            let found = parse_series(text).map(|(metric, tags)| {
                let tags = tags.iter().map(|tag| format!(" {}={}", side(&tag.key), side(&tag.value)));
                side(&metric) + &tags.collect::<String>()
            });
            assert_eq!(found.unwrap_or_else(|fault| fault), expected, "{text}");
        };
        check("m", "m");
        check("m{}", "m");
        check("m{a=b,c=,=d}", "m a=b c=? ?=d");
        check("{a=*}", "? a=*");
        check("{}", "Missing metric and tags: {}");
        check("m{a", "Missing '}' at the end of: m{a");
        check("m{aa}", "When parsing tag 'aa': invalid tag: aa");
        check("m{=}", "When parsing tag '=': Missing tag pair");
        check("m{a=b=c}", "When parsing tag 'a=b=c': invalid tag: a=b=c");
    }

    #[test]
    fn a_value_without_a_key_counts_beside_a_key_unless_strict() {
        let (metric, tags) = parse_series("m{*=web01,dc=lga}").unwrap();
        let ask = LookupRequest { query: None, metric, tags: Some(tags), limit: 0, start_index: 3, use_meta: false };
        let (ours, strict) = (ask.lookup(false), ask.lookup(true));
        assert_eq!((ours.with_rows, strict.with_rows), (false, true));
        assert_eq!((ours.tags.len(), ours.skip, ours.limit), (2, 3, SERIES_MAX));
        assert_eq!((strict.tags.len(), strict.skip), (1, 0));
    }

    /// What all series of a metric are, all global annotations, meta objects, and what a tree makes of a series.
    async fn large_answers(app: &Arc<App>, lookup: String, series: &str) -> [Result<Response, ApiError>; 4] {
        let call = |path: &str, body: String| {
            let params = super::super::params::Params::of(&path.parse().unwrap()).unwrap();
            Call { method: Method::GET, params, body: body.into(), strict: false }
        };
        let (state, path) = (|| State(Arc::clone(app)), |kind: &str| Path(kind.to_owned()));
        let get = |path: &str| call(path, String::new());
        [
            typed(state(), path("lookup"), call("/", lookup)).await,
            super::super::annotation::range(state(), get("/?start_time=1")).await,
            super::super::ts_meta::meta(state(), get("/?m=m")).await,
            super::super::tree::below(state(), path("test"), get(&format!("/?treeid=1&tsuids={series}"))).await,
        ]
    }

    /// However slowly: a seat is not held for that long.
    #[tokio::test]
    async fn large_answers_count_as_bodies_until_they_are_sent() {
        let app = Arc::new(App::in_memory(|_| {}).await);
        let text = "x".repeat(2 << 20);
        let lookup = format!(r#"{{"metric":"m","query":"{text}"}}"#);
        let fill = move |schema: &Schema| {
            let notes = || Some(text.clone());
            let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
            schema.create_ts_meta(&tsuid, &TsMetaEdit { notes: notes(), ..TsMetaEdit::default() }).unwrap();
            schema.create_tree(&TreeEdit { name: Some("T".into()), ..TreeEdit::default() }, 0).unwrap();
            let place = AnnotationPlace { tsuid: None, start: PointTime::from_number(9).unwrap() };
            let note = AnnotationEdit { notes: notes(), ..AnnotationEdit::default() };
            schema.edit_annotation(&place, &note, EditMode::Merge).unwrap();
            Ok(tsuid.to_string())
        };
        let series = app.with_schema(fill).await.unwrap();
        let answers = large_answers(&app, lookup, &series).await;
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.status() == 200)), "{answers:?}");
        for (left, answer) in (0..answers.len() as u64).rev().zip(answers) {
            assert_eq!(app.bodies.used_bytes(), (left + 1) * (3 << 20));
            drop(answer);
        }
        assert_eq!(app.bodies.used_bytes(), 0);
    }

    /// What may be as large as a query's answer is read by as many at once as queries are.
    #[tokio::test(start_paused = true)]
    async fn large_answers_wait_for_a_querys_seat() {
        let app =
            Arc::new(App::in_memory(|config| (config.query.max_concurrent, config.query.max_waiting) = (1, 1)).await);
        let check = async |expected: [u16; 4]| {
            let answers = large_answers(&app, r#"{"metric":"m"}"#.into(), "00").await;
            let found =
                answers.map(|answer| answer.map_or_else(|error| error.status(), |found| found.status()).as_u16());
            assert_eq!(found, expected);
        };
        let seat = app.seats.take().await.unwrap();
        check([503; 4]).await;
        drop(seat);
        check([404, 200, 404, 404]).await;
    }
}
