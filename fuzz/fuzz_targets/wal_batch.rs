#![no_main]

basalt_fuzz::target!("wal_batch");
