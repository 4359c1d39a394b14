//! The whole program from outside.
