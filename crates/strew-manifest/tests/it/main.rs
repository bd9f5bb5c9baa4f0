//! Integration tests of strew-manifest: one binary.

mod read;
