//! Looks of endpoints at names, annotations and the like, on threads that may wait for the store.

use std::sync::Arc;

use axum::response::Response;
use basalt_schema::Schema;

use super::error::ApiError;
use crate::app::App;
use crate::bodies::BodyPool;

impl App {
    /// As [`App::look`], of work that may fail.
    ///
    /// # Errors
    ///
    /// As `work`; 503 where too many are at it, 500 if it panics.
    pub(super) async fn with_schema<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Schema) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.look(work).await?
    }

    /// As [`App::look_as_query`]: what `work` reads may be as much as a query's answer. So may its text, which is to be written there,
    /// of the memory that it is given.
    ///
    /// # Errors
    ///
    /// As [`App::with_schema`]; 503 where too many queries run.
    pub(super) async fn with_seat(
        &self,
        work: impl FnOnce(&Schema, &Arc<BodyPool>) -> Result<Response, ApiError> + Send + 'static,
    ) -> Result<Response, ApiError> {
        let pool = Arc::clone(&self.bodies);
        self.look_as_query(move |schema| work(schema, &pool)).await?
    }
}
