//! What is made from the code, held against the files of the project; and end-to-end cases before they begin.

#[cfg(unix)]
mod e2e;
mod generated;
