//! R rows: the key layouts of the lists that the seeds lost, and that they work on the store: lengths, orders, reads.
//! Hashes stand as any 16 bytes: a store does not know them from others.

use super::Fixture;
use super::scene::Scene;
use crate::{FamilyDescriptor, Get, Scan};

const HASH_BYTES: usize = 16;

/// Sixteen bytes for a name, spread by its bytes.
fn hash(name: &str) -> Vec<u8> {
    let seed = name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(byte.into()));
    [seed.to_be_bytes(), seed.rotate_left(17).to_be_bytes()].concat()
}

fn long(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// A table of these keys, each with a cell that tells its place.
fn stored<'a>(fixture: &'a mut dyn Fixture, keys: &[Vec<u8>]) -> Scene<'a> {
    let scene = Scene::new(fixture, [FamilyDescriptor::new("d")]);
    for (place, key) in keys.iter().enumerate() {
        scene.put(key, "d:n", 1, &place.to_string());
    }
    scene
}

/// The places of the keys that a scan answers.
fn places(scene: &Scene<'_>, scan: Scan) -> Vec<usize> {
    let told = scene.scan(scan);
    told.iter().map(|cell| cell.rsplit('=').next().unwrap().parse().unwrap()).collect()
}

/// A log's elements: hostname, timestamp and event in the key, the message as a column.
pub fn r_3_a_logs_elements(fixture: &mut dyn Fixture) {
    let keys: Vec<_> = (0..4_u64).map(|time| [&b"host1\0login\0"[..], &long(time)].concat()).collect();
    let mut scene = stored(fixture, &keys);
    scene.put(&keys[2], "d:message", 1, "who");
    scene.at_every_stage(|scene| {
        let range = Scan::range(keys[1].clone(), keys[3].clone());
        assert_eq!(scene.scan(range).len(), 3, "two events, of which one has a message");
    });
}

/// `[hash of host][hash of event][time]`: 40 bytes; a host's events of a kind in a range of time are one range of keys.
pub fn r_4_hashes_and_a_time(fixture: &mut dyn Fixture) {
    let key = |host: &str, event: &str, time| [hash(host), hash(event), long(time)].concat();
    let keys: Vec<_> = ["a", "b"]
        .iter()
        .flat_map(|host| ["in", "out"].map(|event| (*host, event)))
        .flat_map(|(host, event)| (0..5).map(move |time| key(host, event, time)))
        .collect();
    assert!(keys.iter().all(|key| key.len() == 2 * HASH_BYTES + 8));
    let mut scene = stored(fixture, &keys);
    scene.at_every_stage(|scene| {
        assert_eq!(places(scene, Scan::range(key("a", "out", 1), key("a", "out", 4))), [6, 7, 8]);
    });
}

/// Numbers for names: a table of `[type][name]` → number, and keys of three longs, 24 bytes.
pub fn r_5_numbers_for_names(fixture: &mut dyn Fixture) {
    let name = |kind: u8, name: &str| [&[kind], name.as_bytes()].concat();
    let names = [name(1, "myserver1.mycompany.com"), name(2, "com.package1.ImportantService")];
    let key = |host, event, time| [long(host), long(event), long(time)].concat();
    let keys: Vec<_> = names.iter().cloned().chain([key(1, 2, 3), key(1, 2, 4), key(1, 3, 0)]).collect();
    assert!(keys[2..].iter().all(|key| key.len() == 24));
    let mut scene = stored(fixture, &keys);
    scene.at_every_stage(|scene| {
        assert_eq!(scene.get(Get::row(keys[0].clone())), ["d:n@1=0"]);
        assert_eq!(places(scene, Scan::prefix(&[long(1), long(2)].concat())), [2, 3]);
    });
}

/// Customer and order: two hashes, 32 bytes, or a long and a hash, 24; a customer's orders are one prefix.
pub fn r_6_customers_and_orders(fixture: &mut dyn Fixture) {
    let hashed = |customer: &str, order: &str| [hash(customer), hash(order)].concat();
    let numbered = |customer, order: &str| [long(customer), hash(order)].concat();
    let keys = [hashed("c1", "o1"), hashed("c1", "o2"), hashed("c2", "o1"), numbered(1, "o1"), numbered(2, "o1")];
    assert_eq!(keys.each_ref().map(Vec::len), [32, 32, 32, 24, 24]);
    let mut scene = stored(fixture, &keys);
    scene.at_every_stage(|scene| {
        let mut of_first = places(scene, Scan::prefix(&hash("c1")));
        of_first.sort_unstable();
        assert_eq!(of_first, [0, 1]);
        assert_eq!(places(scene, Scan::prefix(&long(2))), [4]);
    });
}

/// Record types in one table: the customer first, then its orders, by one scan.
pub fn r_7_a_customer_and_its_orders_in_one_scan(fixture: &mut dyn Fixture) {
    let customer = |id| [long(id), vec![1]].concat();
    let order = |id, number| [long(id), vec![2], long(number)].concat();
    let keys = [customer(1), order(1, 7), order(1, 9), customer(2), order(2, 1)];
    let mut scene = stored(fixture, &keys);
    scene.at_every_stage(|scene| assert_eq!(places(scene, Scan::prefix(&long(1))), [0, 1, 2]));
}

/// Normalised: an order is a get, a scan of its locations, and one of the lines of each.
pub fn r_8_an_order_of_three_tables(fixture: &mut dyn Fixture) {
    let (orders, locations, lines) = (*b"O", *b"S", *b"L");
    let location = |number| [&locations[..], &long(5), &[number]].concat();
    let line = |number, line| [&lines[..], &long(5), &[number, line]].concat();
    let keys = [
        [&orders[..], &long(5)].concat(),
        location(1),
        location(2),
        line(1, 1),
        line(1, 2),
        line(2, 1),
        [&orders[..], &long(6)].concat(),
    ];
    let mut scene = stored(fixture, &keys);
    scene.at_every_stage(|scene| {
        assert_eq!(scene.get(Get::row(keys[0].clone())), ["d:n@1=0"]);
        assert_eq!(places(scene, Scan::prefix(&[&locations[..], &long(5)].concat())), [1, 2]);
        assert_eq!(places(scene, Scan::prefix(&[&lines[..], &long(5), &[1]].concat())), [3, 4]);
    });
}

/// One table with record types: order, locations, lines, in that order, by one scan.
pub fn r_9_an_order_of_one_table(fixture: &mut dyn Fixture) {
    let row = |kind: u8, rest: &[u8]| [&long(5)[..], &[kind], rest].concat();
    let keys = [row(1, &[]), row(2, &[1]), row(2, &[2]), row(3, &[1, 1]), row(3, &[1, 2]), row(3, &[2, 1])];
    let mut scene = stored(fixture, &keys);
    scene.at_every_stage(|scene| assert_eq!(places(scene, Scan::prefix(&long(5))), [0, 1, 2, 3, 4, 5]));
}

/// Denormalised: lines numbered over the whole order, each with its address.
pub fn r_10_lines_with_their_address(fixture: &mut dyn Fixture) {
    let keys: Vec<_> = (0..3).map(|line| [&long(5)[..], &[3, line]].concat()).collect();
    let mut scene = stored(fixture, &keys);
    let columns =
        ["itemNumber", "price", "quantity", "shipToCity", "shipToLine1", "shipToLine2", "shipToState", "shipToZip"];
    for key in &keys {
        for column in columns {
            scene.put(key, &format!("d:{column}"), 1, "v");
        }
    }
    scene.at_every_stage(|scene| {
        let lines = scene.scan(Scan::prefix(&[&long(5)[..], &[3]].concat()));
        assert_eq!(lines.len(), 3 * (1 + columns.len()));
    });
}
