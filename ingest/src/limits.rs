//! Bounds on what is taken in.

/// Bounds on bodies, points and what is under way. The bytes of a body and the durability are settings of the
/// server; the others are as they are here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestLimits {
    /// Bytes of a put body after inflation; the HTTP layer stops reading there.
    pub body_bytes_max: usize,
    /// Points of one body.
    pub body_points_max: usize,
    /// Bytes of a metric, tag name or tag value. OpenTSDB has no bound but its store's on row keys.
    pub name_bytes_max: usize,
    /// Points under way, taken and not yet answered, over all doors.
    pub inflight_points_max: u64,
    /// Bytes of text under way, over all doors.
    pub inflight_bytes_max: u64,
    /// Spellings of series kept; one is some 100 to 150 bytes.
    pub known_series_max: usize,
    /// The durability that a point has when it is answered.
    pub durability: basalt_store::Durability,
}

impl IngestLimits {
    /// Depth of nesting in fields that are skipped.
    pub const NESTING_DEPTH_MAX: u32 = 127;
}

impl Default for IngestLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 64 << 20,
            body_points_max: 200_000,
            name_bytes_max: basalt_schema::NameRules::NAME_BYTES_MAX,
            inflight_points_max: 2_000_000,
            inflight_bytes_max: 256 << 20,
            known_series_max: 1 << 20,
            durability: basalt_store::Durability::Fsync,
        }
    }
}
