//! Tables in which damage is planted: as OpenTSDB's own, cell by cell.

use std::path::Path;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().map(|digit| digit.to_digit(16).unwrap().try_into().unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Opens a folder that no program has open.
fn bare(data: &Path) -> std::sync::Arc<basalt_engine::Engine> {
    let mut options = basalt_engine::EngineOptions::new(data);
    options.folds = basalt_rewrite::HourFold::ALL
        .map(|fold| std::sync::Arc::new(fold) as std::sync::Arc<dyn basalt_store::Fold>)
        .into();
    options.codecs.register(std::sync::Arc::new(Columns));
    basalt_engine::Engine::open(options).unwrap()
}

/// The block encoding that the program registers too.
#[derive(Debug)]
struct Columns;

impl basalt_engine::BlockCodec for Columns {
    fn name(&self) -> &'static str {
        basalt_schema::Tsb1::NAME
    }

    fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
        basalt_schema::Tsb1.encode_into(image, out)
    }

    fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool {
        basalt_schema::Tsb1.decode_into(stored, image)
    }
}

/// Makes tables as OpenTSDB's, which knows no fold: that would mend much of what is planted.
pub(crate) fn make_tables(data: &Path) {
    use basalt_store::{FamilyDescriptor, Store as _, TableDescriptor};
    let engine = bare(data);
    for (name, families) in [("tsdb-uid", &["id", "name"][..]), ("tsdb", &["t"])] {
        let families = families.iter().map(|family| FamilyDescriptor::new(*family)).collect();
        engine.create_table(TableDescriptor::new(name.parse().unwrap(), families), &[]).unwrap();
    }
    engine.close().unwrap();
}

/// Plants `put TABLE KEY FAMILY QUALIFIER VALUE` lines.
pub(crate) fn plant(data: &Path, puts: &[&str]) {
    use basalt_store::{Durability, MutationBatch, Store as _};
    let engine = bare(data);
    for put in puts {
        let words: Vec<&str> = put.split(' ').collect();
        let mut batch = MutationBatch::new(Durability::Fsync);
        let (key, qualifier, value) = (unhex(words[1]), unhex(words[3]), unhex(words[4]));
        batch.row(&key).unwrap().put(words[2].as_bytes(), &qualifier, None, &value).unwrap();
        assert!(engine.apply(&words[0].parse().unwrap(), batch).wait().unwrap().failed.is_empty());
    }
    engine.close().unwrap();
}
