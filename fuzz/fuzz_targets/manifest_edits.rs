#![no_main]

basalt_fuzz::target!("manifest_edits");
