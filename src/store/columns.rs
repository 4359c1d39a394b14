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

    fn later_version(&self, stored: &[u8]) -> Option<u32> {
        Tsb1::later_version(stored)
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use basalt_engine::{BlockCodecs, Engine, EngineOptions, Folder, Repair};
    use basalt_store::{Durability, FamilyDescriptor, Get, MutationBatch, Store, TableDescriptor, TableName};

    use super::*;

    /// [`Columns`], of which a sum goes wrong before it is under a checksum; the writer does not see it unless it may look.
    #[derive(Debug)]
    struct Hurt {
        is_seen: bool,
    }

    impl BlockCodec for Hurt {
        fn name(&self) -> &'static str {
            Columns.name()
        }

        fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
            let encoded = Columns.encode_into(image, out);
            // The section of sums, two bytes as they are (`docs/formats/tsb1.md`).
            let at = out.windows(3).position(|head| head == [73, 0, 2]).unwrap();
            out[at + 3] ^= 1;
            encoded
        }

        fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool {
            Columns.decode_into(stored, image)
        }

        fn open(&self, stored: &[u8], image_bytes: usize) -> Option<Arc<dyn PackedBlock>> {
            Columns.open(stored, image_bytes).filter(|_| self.is_seen)
        }
    }

    /// [`Columns`] as a later program may have it.
    #[derive(Debug)]
    struct Later;

    const LATER: u8 = 3;

    impl BlockCodec for Later {
        fn name(&self) -> &'static str {
            Columns.name()
        }

        fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
            let encoded = Columns.encode_into(image, out);
            assert_eq!(out[0], LATER - 1);
            out[0] = LATER;
            encoded
        }

        fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool {
            Columns.decode_into(&[&[LATER - 1], &stored[1..]].concat(), image)
        }
    }

    /// Writes an hour of points of one byte, ten seconds apart, to a file of a new folder.
    fn write_row(dir: &Path, codec: impl BlockCodec + 'static) {
        let engine = Engine::open(options(dir, codec)).unwrap();
        let table: TableName = "t".parse().unwrap();
        let family = FamilyDescriptor { block_encoding: Tsb1::NAME.into(), ..FamilyDescriptor::new("t") };
        engine.create_table(TableDescriptor::new(table.clone(), vec![family]), &[]).unwrap();
        let qualifier: Vec<u8> = (0..360_u16).flat_map(|n| ((n * 10) << 4).to_be_bytes()).collect();
        let value: Vec<u8> = (0..360_u16).map(|n| (n % 50) as u8).chain([0]).collect();
        let mut batch = MutationBatch::new(Durability::Os);
        batch.row(b"row").unwrap().put(b"t", &qualifier, None, &value).unwrap();
        engine.apply(&table, batch).wait().unwrap();
        engine.flush(&table).unwrap();
        engine.close().unwrap();
    }

    fn options(dir: &Path, codec: impl BlockCodec + 'static) -> EngineOptions {
        let mut options = EngineOptions::new(dir);
        options.limits.reserve_bytes = 0;
        options.codecs = BlockCodecs::default();
        options.codecs.register(Arc::new(codec));
        options
    }

    /// The damage of a folder.
    fn damage(dir: &Path) -> Vec<String> {
        let files = Folder::open(options(dir, Columns)).unwrap().audit(true, &mut |_| {}).unwrap();
        files.iter().filter_map(|file| file.damage.as_ref().map(ToString::to_string)).collect()
    }

    #[test]
    fn a_wrong_sum_of_a_row_is_told_and_made_anew_of_its_points() {
        let dir = tempfile::tempdir().unwrap();
        write_row(dir.path(), Hurt { is_seen: false });
        let told = damage(dir.path());
        assert!(told.len() == 1 && told[0].ends_with("the summary of row row is not that of its points"), "{told:?}");
        let mut repaired = Repair::default();
        Folder::open(options(dir.path(), Columns)).unwrap().repair(true, &mut repaired, &mut |_| {}).unwrap();
        let lost: Vec<_> = repaired.losses.iter().map(|loss| (loss.offset, loss.bytes, loss.cells_count)).collect();
        assert_eq!((lost, repaired.kept_aside.len()), (vec![(24, 0, Some(0))], 1));
        assert!(damage(dir.path()).is_empty());
    }

    #[test]
    fn a_block_with_a_wrong_sum_of_a_row_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        write_row(dir.path(), Hurt { is_seen: true });
        assert!(damage(dir.path()).is_empty());
        let engine = Engine::open(options(dir.path(), Columns)).unwrap();
        let got = engine.get(&"t".parse().unwrap(), Get::rows(vec!["row".into()])).wait().unwrap();
        assert_eq!(got.row(0).unwrap().cells().next().unwrap().value.len(), 361);
    }

    /// The one file with points.
    fn file(dir: &Path) -> PathBuf {
        let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "sst")).collect();
        assert_eq!(files.len(), 1);
        files[0].clone()
    }

    /// Also beside damage: a repair would take it for lost.
    #[test]
    fn a_block_of_a_later_version_is_told_as_such_and_left_alone() {
        for is_damaged in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            write_row(dir.path(), Later);
            let path = file(dir.path());
            let mut bytes = std::fs::read(&path).unwrap();
            if is_damaged {
                // The checksum of the header.
                bytes[20] ^= 1;
                std::fs::write(&path, &bytes).unwrap();
            }
            let mut repaired = Repair::default();
            let folder = Folder::open(options(dir.path(), Columns)).unwrap();
            let ended = folder.repair(true, &mut repaired, &mut |_| {}).unwrap_err();
            drop(folder);
            assert!(ended.is_of_later_program(), "{ended}");
            let told = ended.to_string();
            assert!(told.ends_with("blocks of encoding TSB1 of version 3, which this program does not know"), "{told}");
            assert_eq!((repaired.kept_aside.len(), std::fs::read(file(dir.path())).unwrap()), (0, bytes));
            if !is_damaged {
                assert_eq!(damage(dir.path()), std::slice::from_ref(&told));
                let engine = Engine::open(options(dir.path(), Columns)).unwrap();
                let got = engine.get(&"t".parse().unwrap(), Get::rows(vec!["row".into()])).wait();
                assert!(got.unwrap_err().to_string().contains("TSB1 of version 3"));
                engine.close().unwrap();
                assert_eq!(damage(dir.path()), [told]);
            }
        }
    }
}
