#![no_main]

basalt_fuzz::target!("series_block");
