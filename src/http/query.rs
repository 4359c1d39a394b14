//! `/api/query`.
use super::error::ApiError;
pub(crate) async fn get() -> Result<(), ApiError> {
    Err(ApiError::not_built("/api/query"))
}
pub(crate) async fn post() -> Result<(), ApiError> {
    Err(ApiError::not_built("/api/query"))
}
pub(crate) async fn delete() -> Result<(), ApiError> {
    Err(ApiError::not_built("/api/query"))
}
