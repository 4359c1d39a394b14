//! The block encoding `TSB1` as the engine takes it: the schema knows the bytes, the engine when they are asked for.

use std::sync::Arc;

use basalt_engine::{BlockCodec, PackedBlock};
use basalt_schema::{Tsb1, Tsb1Block};
use basalt_store::{PackedPoint, PackedRows, Packing, SeqNo, Timestamp};

/// [`Tsb1`] behind the engine's trait.
#[derive(Debug)]
pub(super) struct Columns;

impl BlockCodec for Columns {
    fn name(&self) -> &'static str {
        Tsb1::NAME
    }

    fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
        Tsb1.encode_into(image, out)
    }

    fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool {
        Tsb1.decode_into(stored, image)
    }

    fn open(&self, stored: &[u8], image_bytes: usize) -> Option<Arc<dyn PackedBlock>> {
        Some(Arc::new(Opened(Tsb1.open(stored.to_vec(), image_bytes)?)))
    }

    fn point(&self, qualifier: &[u8], value: &[u8]) -> Option<PackedPoint> {
        Tsb1.point(qualifier, value)
    }
}

/// [`Tsb1Block`] likewise.
#[derive(Debug)]
struct Opened(Tsb1Block);

impl PackedBlock for Opened {
    fn rows_count(&self) -> usize {
        self.0.rows_count()
    }

    fn row_key(&self, row: usize) -> &[u8] {
        self.0.row_key(row)
    }

    fn written(&self, row: usize) -> (Timestamp, SeqNo) {
        self.0.written(row)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn pack(&self, row: usize, packing: Packing, out: &mut PackedRows) -> bool {
        self.0.pack(row, packing, out)
    }

    fn cell(&self, row: usize, qualifier: &mut Vec<u8>, value: &mut Vec<u8>) -> bool {
        self.0.cell(row, qualifier, value)
    }
}
