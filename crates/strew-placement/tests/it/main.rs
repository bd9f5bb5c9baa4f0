//! Placement against the numbers of its specification, against brute force, and its machine against itself.

mod brute;
mod ratio;
mod settle;
mod spread;
mod world;
mod writes;
