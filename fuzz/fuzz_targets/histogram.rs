#![no_main]

basalt_fuzz::target!("histogram");
