//! Tests of placement against the numbers of its specification, against brute force, and of the machine against itself.

mod brute;
mod counters;
mod faults;
mod groups;
mod hub;
mod incremental;
mod machine;
mod ratio;
mod replicas;
mod settle;
mod slow;
mod spread;
mod tables;
mod turns;
mod world;
mod writes;
