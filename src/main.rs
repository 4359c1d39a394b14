//! The program: HTTP, telnet, command line, configuration, wiring.

fn main() {}
