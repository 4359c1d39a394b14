//! The block encoding `TSB1` as the engine takes it: the schema knows the bytes, the engine when they are asked for.

use basalt_engine::BlockCodec;
use basalt_schema::Tsb1;

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
}
