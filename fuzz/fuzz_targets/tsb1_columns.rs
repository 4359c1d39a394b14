#![no_main]

basalt_fuzz::target!("tsb1_columns");
