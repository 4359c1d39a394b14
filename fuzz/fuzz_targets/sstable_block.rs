#![no_main]

basalt_fuzz::target!("sstable_block");
