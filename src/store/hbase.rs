//! A cluster as the store.

use basalt_hbase::{HBaseOptions, HBaseStore};
use basalt_schema::{KeyLayout, SchemaConfig, UID_NAME_FAMILY, UidKind};
use basalt_store::{Columns, ErrorKind, Filter, ListOperator, Scan, Store, TableName, with_causes};

use crate::config;
use crate::exit::{Exit, Failure};
use crate::store::failure::exit_of;

/// How many rows of a table tell whether its settings fit.
const ROWS_LOOKED_AT: u64 = 100;

/// Finds the cluster.
///
/// # Errors
///
/// Exit code 3: addresses that are none. 75: nobody answers, which may pass.
pub(super) fn open(config: &config::Hbase) -> Result<HBaseStore, Failure> {
    HBaseStore::open(options(config)).map_err(|cause| refused(&cause))
}

/// Checks what can be checked without asking anybody.
///
/// # Errors
///
/// Exit code 3: addresses that are none.
pub(super) fn check(config: &config::Hbase) -> Result<(), Failure> {
    options(config).check().map_err(|cause| refused(&cause))
}

fn options(config: &config::Hbase) -> HBaseOptions {
    let mut options = HBaseOptions::of_masters(listed(&config.masters));
    options.zookeeper = listed(&config.zookeeper_quorum);
    options.zookeeper_root.clone_from(&config.zookeeper_root);
    options.user.clone_from(&config.user);
    (options.call_timeout, options.operation_timeout) = (config.call_timeout_ms, config.operation_timeout_ms);
    options.fsync_wal = config.fsync_wal;
    options.compression.clone_from(&config.compression);
    options
}

fn refused(cause: &basalt_hbase::Error) -> Failure {
    let exit = match cause.kind() {
        ErrorKind::Invalid => Exit::Config,
        // A running server's points wait for it; a start is not mended by another one.
        _ if matches!(cause, basalt_hbase::Error::LoginRequired { .. }) => Exit::Config,
        kind => exit_of(kind),
    };
    Failure::new(exit, format!("cannot open store hbase: {}", with_causes(cause)))
}

/// Checks that the rows of a data table that others may have made are rows of these settings: with others, points would
/// be written where nobody finds them. Tables of OpenTSDB's record no settings; what can be seen is that its keys' lengths and salts
/// fit, of the first rows and of the last: too few buckets are seen by the last, too many by the first.
///
/// Names may be there before points: the first UIDs tell their widths.
///
/// # Errors
///
/// Exit code 3: of the first or the last rows more than half have other lengths, or more than a quarter other salts; of the first UIDs of a
/// kind more than half have another width. What the store says.
pub(super) fn check_rows(store: &dyn Store, schema: &SchemaConfig) -> Result<(), Failure> {
    check_uids(store, schema)?;
    let layout = KeyLayout { salting: schema.salting, widths: schema.widths };
    let table: TableName =
        schema.data_table.parse().map_err(|cause: basalt_store::Error| Failure::config(with_causes(&cause)))?;
    let unreadable = |cause| unreadable(&table, &cause);
    for (reversed, which) in [(false, "first"), (true, "last")] {
        let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        let scan = Scan { limit_rows: Some(ROWS_LOOKED_AT), reversed, ..Scan::all().with_filter(keys_only) };
        let mut scanner = match store.scan(&table, scan) {
            Ok(scanner) => scanner,
            // It is made with these settings.
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(unreadable(cause)),
        };
        let (mut fitting, mut salted, mut other) = (0_u64, 0_u64, 0_u64);
        while let Some(batch) = scanner.next_wait() {
            for row in batch.map_err(unreadable)?.rows() {
                match layout.decode(row.key()) {
                    // Tells nothing of the salt.
                    Ok(key) if key.is_global_annotations() => {}
                    Ok(key) if key.salt() == layout.salt_of(&key.tsuid()) => fitting += 1,
                    Ok(_) => salted += 1,
                    Err(_) => other += 1,
                }
            }
        }
        // With twice as many buckets half of the salts fit.
        if other > fitting + salted || salted > fitting / 3 {
            let (salt, widths) = (schema.salting, schema.widths);
            let uids = [widths.metric, widths.tagk, widths.tagv].map(|width| width.bytes().to_string()).join(", ");
            return Err(Failure::config(format!(
                "table {table} has rows of other settings: {} of {} rows, the {which} of it, are none with a salt of {} bytes for {} \
                 buckets and UIDs of {uids}; set `schema.salt_width`, `schema.salt_buckets` and `schema.uid_width_…` as they were when \
                 the table was made",
                other + salted,
                fitting + salted + other,
                salt.width(),
                salt.buckets(),
            )));
        }
    }
    Ok(())
}

fn check_uids(store: &dyn Store, schema: &SchemaConfig) -> Result<(), Failure> {
    let table: TableName =
        schema.uid_table.parse().map_err(|cause: basalt_store::Error| Failure::config(with_causes(&cause)))?;
    let found = match first_uids(store, &table) {
        Ok(found) => found,
        // It is made, or its family missed, by who opens it.
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(unreadable(&table, &cause)),
    };
    for kind in UidKind::ALL {
        let widths = || found.iter().filter(|(of, _)| *of == kind).map(|(_, width)| *width);
        let wanted = schema.widths.of(kind).bytes();
        let others = widths().filter(|width| *width != wanted).count();
        if others * 2 > widths().count() {
            return Err(Failure::config(format!(
                "table {table} has UIDs of another width: {others} of its first {} UIDs of {} are not of {wanted} bytes; set \
                 `schema.uid_width_…` as they were when the table was made",
                widths().count(),
                kind.qualifier(),
            )));
        }
    }
    Ok(())
}

/// The kinds and widths of a table's first UIDs.
fn first_uids(store: &dyn Store, table: &TableName) -> basalt_store::Result<Vec<(UidKind, usize)>> {
    let scan = Scan::all().with_columns(Columns::family(UID_NAME_FAMILY)).with_filter(Filter::KeyOnly);
    let mut scanner = store.scan(table, Scan { limit_rows: Some(ROWS_LOOKED_AT), ..scan })?;
    let mut found = Vec::new();
    while let Some(batch) = scanner.next_wait().transpose()? {
        for row in batch.rows() {
            let is_of = |kind: &UidKind| row.cells().any(|cell| cell.qualifier == kind.qualifier().as_bytes());
            found.extend(UidKind::ALL.into_iter().filter(is_of).map(|kind| (kind, row.key().len())));
        }
    }
    Ok(found)
}

fn unreadable(table: &TableName, cause: &basalt_store::Error) -> Failure {
    Failure::new(exit_of(cause.kind()), format!("cannot read {table}: {}", with_causes(cause)))
}

fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_schema::{BaseTime, Salting, TagPair, Tsuid, Uid, UidWidth};
    use basalt_store::{Durability, FamilyDescriptor, MutationBatch, TableDescriptor};

    #[test]
    fn addresses_are_listed_with_commas() {
        assert_eq!(listed(" a:1, b:2 ,"), ["a:1", "b:2"]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn a_cluster_that_asks_for_a_login_ends_the_start_for_good() {
        let asked = basalt_hbase::Error::LoginRequired { server: "a:16000".into(), message: "who".into() };
        assert_eq!(refused(&asked).exit, Exit::Config);
    }

    /// OpenTSDB's own table, unsalted, opened with a salt; and the other way round.
    #[test]
    fn a_table_of_other_settings_is_refused_with_a_clear_line() {
        let store = basalt_store::MemoryStore::new(std::sync::Arc::new(basalt_store::ManualClock::default()));
        let plain = SchemaConfig { salting: Salting::NONE, ..SchemaConfig::default() };
        let salted = SchemaConfig { salting: Salting::new(1, 20).unwrap(), ..SchemaConfig::default() };
        check_rows(&store, &plain).unwrap();
        let table: TableName = plain.data_table.parse().unwrap();
        store.create_table(TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new("t")]), &[]).unwrap();
        let mut batch = MutationBatch::new(Durability::Fsync);
        // Metric, hour, one tag: 13 bytes.
        batch.row(b"\0\0\x01\x65\x53\xf1\0\0\0\x01\0\0\x01").unwrap().put(b"t", b"\0\0", None, b"\x01").unwrap();
        assert!(store.apply(&table, batch).wait().unwrap().failed.is_empty());
        check_rows(&store, &plain).unwrap();
        let failure = check_rows(&store, &salted).unwrap_err();
        assert_eq!(failure.exit, Exit::Config);
        assert!(failure.line.contains("salt of 1 bytes") && failure.line.contains("schema.salt_width"), "{failure}");
    }

    /// Names that OpenTSDB gave UIDs before there was a point.
    #[test]
    fn names_with_uids_of_another_width_are_refused() {
        let store = basalt_store::MemoryStore::new(std::sync::Arc::new(basalt_store::ManualClock::default()));
        let ours = SchemaConfig { salting: Salting::NONE, ..SchemaConfig::default() };
        let table: TableName = ours.uid_table.parse().unwrap();
        let families = ["id", "name"].map(FamilyDescriptor::new).to_vec();
        store.create_table(TableDescriptor::new(table.clone(), families), &[]).unwrap();
        check_rows(&store, &ours).unwrap();
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(b"\0").unwrap().put(b"id", b"metrics", None, &2_u64.to_be_bytes()).unwrap();
        for (uid, name) in [(b"\0\0\x01", b"a"), (b"\0\0\x02", b"b")] {
            batch.row(uid).unwrap().put(b"name", b"metrics", None, name).unwrap();
            batch.row(name).unwrap().put(b"id", b"metrics", None, uid).unwrap();
        }
        // One of ours in vain does not make the table another's.
        batch.row(b"\0\x03").unwrap().put(b"name", b"metrics", None, b"c").unwrap();
        assert!(store.apply(&table, batch).wait().unwrap().failed.is_empty());
        check_rows(&store, &ours).unwrap();
        let width = |bytes| UidWidth::new(bytes).unwrap();
        let mut other = ours.clone();
        other.widths.tagv = width(4);
        check_rows(&store, &other).unwrap();
        other.widths.metric = width(2);
        let failure = check_rows(&store, &other).unwrap_err();
        assert_eq!(failure.exit, Exit::Config);
        assert!(failure.line.contains("2 of its first 3 UIDs of metrics are not of 2 bytes"), "{failure}");
    }

    /// `S-KEY-SALT`: a table of 16 buckets is not opened with another count, be it more or fewer.
    #[test]
    fn a_table_of_another_count_of_buckets_is_refused() {
        let store = basalt_store::MemoryStore::new(std::sync::Arc::new(basalt_store::ManualClock::default()));
        let of = |buckets| SchemaConfig { salting: Salting::new(1, buckets).unwrap(), ..SchemaConfig::default() };
        let ours = of(16);
        let table: TableName = ours.data_table.parse().unwrap();
        store.create_table(TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new("t")]), &[]).unwrap();
        let put = |key: &[u8]| {
            let mut batch = MutationBatch::new(Durability::Fsync);
            batch.row(key).unwrap().put(b"t", b"\0\0", None, b"\x01").unwrap();
            assert!(store.apply(&table, batch).wait().unwrap().failed.is_empty());
        };
        // Of annotations of no series, before all others; their salt is none of a series.
        (0..60).for_each(|hour: u8| put(&[0, 0, 0, 0, 0x65, 0x53, hour, 0]));
        (1..=16).for_each(|buckets| check_rows(&store, &of(buckets)).unwrap());
        let layout = KeyLayout { salting: ours.salting, widths: ours.widths };
        for value in 1..1_000 {
            let pair = TagPair { key: Uid::new(1), value: Uid::new(value) };
            let tsuid = Tsuid::new(Uid::new(1), &[pair], layout.widths);
            put(&layout.series_key(&tsuid).row_key(BaseTime::of_seconds(1_700_000_000)));
        }
        for buckets in [1, 2, 4, 8, 15, 16, 17, 20, 32, 48] {
            let opened = check_rows(&store, &of(buckets));
            assert_eq!(opened.is_ok(), buckets == 16, "{buckets}: {opened:?}");
        }
    }

    #[test]
    fn a_cluster_that_cannot_be_is_a_wrong_setting() {
        let masters = |masters: &str| config::Hbase { masters: masters.to_owned(), ..config::Hbase::default() };
        assert_eq!(open(&masters("nowhere")).unwrap_err().exit, Exit::Config);
    }
}
