#![no_main]

basalt_fuzz::target!("query_body");
