//! Where a new table is split into regions: keys that are given, or as many as an algorithm cuts.

use std::path::Path;

use bytes::Bytes;

use super::arguments::Options;
use super::error::{Error, Place, Result};
use super::value::Value;

/// More regions than this are surely a mistake.
const REGIONS_MAX: u64 = 10_000;

/// The split keys that a command's options ask for; none without such an option.
pub(crate) fn taken(options: &mut Options, opens_files: bool) -> Result<Vec<Bytes>> {
    let regions = options.take("NUMREGIONS");
    let algorithm = options.take("SPLITALGO");
    let given = options.take("SPLITS");
    let file = options.take("SPLITS_FILE");
    match (given, file, regions, algorithm) {
        (None, None, None, None) => Ok(Vec::new()),
        (Some(splits), None, None, None) => splits.list().iter().map(|key| key.bytes("a split")).collect(),
        (None, Some(file), None, None) if !opens_files => {
            Err(Error::wrong(file.at, "SPLITS_FILE would be read on the server: give SPLITS"))
        }
        (None, Some(file), None, None) => from_file(&file),
        (None, None, Some(regions), Some(algorithm)) => cut(&regions, &algorithm),
        (None, None, Some(other), None) | (None, None, None, Some(other)) => {
            Err(Error::wrong(other.at, "NUMREGIONS and SPLITALGO go together"))
        }
        (Some(other), ..) | (_, Some(other), ..) => {
            Err(Error::wrong(other.at, "only one of SPLITS, SPLITS_FILE and NUMREGIONS can be given"))
        }
    }
}

/// The lines of a file.
fn from_file(value: &Value) -> Result<Vec<Bytes>> {
    let path = value.text("SPLITS_FILE")?;
    let text = std::fs::read(Path::new(&path))
        .map_err(|cause| Error::wrong(value.at, format!("cannot read {path}: {cause}")))?;
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    Ok(lines.map(Bytes::copy_from_slice).collect())
}

fn cut(regions: &Value, algorithm: &Value) -> Result<Vec<Bytes>> {
    let count: u64 = regions.number("NUMREGIONS", 2)?;
    if count > REGIONS_MAX {
        return Err(Error::wrong(regions.at, format!("NUMREGIONS {count} is too large: at most {REGIONS_MAX}")));
    }
    by_algorithm(&algorithm.text("SPLITALGO")?, count, algorithm.at)
}

/// *Source*: HBase `RegionSplitter`: keys of eight hex digits, eight decimal digits, or eight bytes, evenly apart.
fn by_algorithm(algorithm: &str, count: u64, at: Place) -> Result<Vec<Bytes>> {
    let keys = 1..count;
    Ok(match algorithm {
        "HexStringSplit" => keys.map(|i| format!("{:08x}", (1 << 32) / count * i).into()).collect(),
        "DecimalStringSplit" => keys.map(|i| format!("{:08}", 100_000_000 / count * i).into()).collect(),
        "UniformSplit" => {
            let step = (1_u128 << 64) / u128::from(count);
            keys.map(|i| {
                // Below 2^64, since `i` is below `count`.
                let key = u64::try_from(step * u128::from(i)).unwrap_or(u64::MAX);
                Bytes::copy_from_slice(&key.to_be_bytes())
            })
            .collect()
        }
        _ => {
            let known = "HexStringSplit, DecimalStringSplit, UniformSplit";
            return Err(Error::wrong(at, format!("no split algorithm is called {algorithm}; there are: {known}")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_cut_evenly() {
        let at = Place { line: 1, column: 1 };
        let keys = |algorithm, count| by_algorithm(algorithm, count, at).unwrap();
        assert_eq!(keys("HexStringSplit", 4), ["40000000", "80000000", "c0000000"]);
        assert_eq!(keys("HexStringSplit", 3), ["55555555", "aaaaaaaa"]);
        assert_eq!(keys("DecimalStringSplit", 4), ["25000000", "50000000", "75000000"]);
        assert_eq!(keys("UniformSplit", 2), [&b"\x80\0\0\0\0\0\0\0"[..]]);
        assert!(by_algorithm("Best", 2, at).is_err());
        assert_eq!(keys("UniformSplit", REGIONS_MAX).len(), 9_999);
    }
}
