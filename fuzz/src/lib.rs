//! The laws of all crates by name. A law takes any bytes and panics where a decoder breaks its word; each is told beside
//! its decoders, in the crate's module `foreign`, which exists under `--cfg fuzzing` and in the crate's own tests.

/// The law of that name.
///
/// # Panics
///
/// No crate has it.
pub fn law(name: &str) -> fn(&[u8]) {
    let laws =
        basalt_engine::foreign::LAWS.iter().chain(&basalt_query::foreign::LAWS).chain(&basalt_schema::foreign::LAWS);
    let laws = laws.chain(&basalt_ingest::foreign::LAWS);
    laws.into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no law {name}")).1
}

/// A target that holds any bytes against a law.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::law($name)(bytes));
    };
}
