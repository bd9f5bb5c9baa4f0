//! What an API server does to those who ask it: busy, gone, forgetful. It answers as each test says.

mod server;
mod world;

mod keeping;
mod sending;
mod watching;
mod webhook;
