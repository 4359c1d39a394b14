#![no_main]

basalt_fuzz::target!("put_block");
