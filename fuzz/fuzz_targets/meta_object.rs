#![no_main]

basalt_fuzz::target!("meta_object");
