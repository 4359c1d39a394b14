//! `/api/put`.
use super::error::ApiError;
pub(crate) async fn put() -> Result<(), ApiError> {
    Err(ApiError::not_built("/api/put"))
}
