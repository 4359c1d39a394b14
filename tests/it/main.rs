//! The whole program from outside: the real binary over real sockets.

mod daemon;
mod http;
