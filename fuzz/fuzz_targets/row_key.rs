#![no_main]

basalt_fuzz::target!("row_key");
