//! How requests name trees and branches, and the words for those that do not.

use crate::http::call::Call;
use crate::http::error::ApiError;

/// The parameter `treeid`; 0 for none.
pub(super) fn tree_id(call: &Call) -> Result<i64, ApiError> {
    call.params.last("treeid").map_or(Ok(0), |text| number(text, "Unable to parse 'tree' value").map(i64::from))
}

pub(super) fn number(text: &str, message: &str) -> Result<i32, ApiError> {
    text.parse().map_err(|_| ApiError::bad_with(message, format!("For input string: \"{text}\"")))
}

pub(super) fn no_tree(id: i64) -> ApiError {
    ApiError::not_found(&format!("Unable to locate tree: {id}"))
}

pub(super) fn unsupported() -> ApiError {
    ApiError::bad("Unsupported HTTP request method")
}

/// Hex of either case; a missing leading zero is taken as there.
pub(super) fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
    let digits: Vec<u8> =
        (hex.chars().count() % 2 == 1).then_some(Some(0)).into_iter().chain(digits).collect::<Option<_>>()?;
    let (pairs, _) = digits.as_chunks::<2>();
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
