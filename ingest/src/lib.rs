//! Text in, mutations out: parse, check, resolve, encode, batch, apply.
