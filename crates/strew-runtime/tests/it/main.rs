//! The driver in virtual time, around a machine that wants what a test says.

mod calls;
mod expressions;
mod lease;
mod order;
mod refused;
mod retry;
mod toy;
mod watches;
