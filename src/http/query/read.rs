//! Requests for queries, and what they are read from; a long one takes its seat first.

use basalt_query::{GetParameters, QueryRequest};
use tokio::task::block_in_place;

use crate::app::App;
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::whole::count_refusal;
use crate::seats::Seat;

/// Requests of so many bytes are read at once.
pub(super) const SMALL_BYTES_MAX: usize = 8 << 10;

/// Reads a request. That takes a while where it is long, and is done with a query's seat then, which it keeps for its run. To tell the
/// runtime so wakes another of its threads, which takes longer than a small request.
///
/// # Errors
///
/// As `from`; 503 where too many queries run.
pub(in crate::http) async fn read<T>(
    app: &App,
    is_small: bool,
    from: impl FnOnce() -> Result<T, ApiError>,
) -> Result<(T, Option<Seat>), ApiError> {
    let from = || from().inspect_err(|wrong| count_refusal(app, wrong));
    if is_small {
        return Ok((from()?, None));
    }
    let seat = app.seats.take().await.map_err(ApiError::overloaded);
    let seat = seat.inspect_err(|refused| count_refusal(app, refused))?;
    Ok((block_in_place(from)?, Some(seat)))
}

/// Whether a request of these texts is read at once.
pub(in crate::http) fn is_small<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut left = SMALL_BYTES_MAX;
    texts.into_iter().all(|text| {
        let fits = left.checked_sub(text.len());
        left = fits.unwrap_or(0);
        fits.is_some()
    })
}

pub(crate) fn from_params(params: &Params, delete: bool, strict: bool) -> Result<QueryRequest, ApiError> {
    read_params(params, delete, strict, QueryRequest::from_get)
}

pub(super) fn read_params<T>(
    params: &Params,
    delete: bool,
    strict: bool,
    read: impl FnOnce(&GetParameters<'_>) -> basalt_query::Result<T>,
) -> Result<T, ApiError> {
    let metrics: Vec<&str> = params.all("m").collect();
    // The plural is what npm's `opentsdb-client` sends; OpenTSDB does not look at it.
    let tsuids: Vec<&str> = params.all("tsuid").chain(params.all("tsuids").filter(|_| !strict)).collect();
    let flag = |name: &str| params.has(name);
    read(&GetParameters {
        start: Some(params.required("start")?),
        end: params.last("end"),
        metrics: &metrics,
        tsuids: &tsuids,
        // OpenTSDB reads these from bodies only.
        timezone: params.last("timezone").filter(|_| !strict),
        use_calendar: flag("use_calendar") && !strict,
        padding: flag("padding"),
        no_annotations: flag("no_annotations"),
        global_annotations: flag("global_annotations"),
        show_tsuids: flag("show_tsuids"),
        ms: flag("ms"),
        show_query: flag("show_query"),
        show_stats: flag("show_stats"),
        show_summary: flag("show_summary"),
        arrays: flag("arrays"),
        delete,
    })
    .map_err(|cause| ApiError::of_query(&cause, strict))
}
