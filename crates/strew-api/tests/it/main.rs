//! Integration tests of strew-api: one binary.

mod read;
