#![no_main]

basalt_fuzz::target!("sstable_footer");
