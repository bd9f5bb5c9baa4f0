//! What an API server does to its clients: busy, gone, forgetful. It answers as each test says.

mod hub;
mod log;
mod running;
mod server;
mod world;

mod connecting;
mod keeping;
mod mirroring;
mod panicking;
mod placements;
mod refusing;
mod registering;
mod rights;
mod sending;
mod spreads;
mod watching;
mod webhook;
