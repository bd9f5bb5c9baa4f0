//! A moment of a cluster as plain values: what there is, how it is spread, and what stays Pending and why.
//!
//! Reading order: [`moment`] (what is stored, as a [`world`] with its [`schedulers`] and [`workload`]s), [`spread`] (each
//! constraint with what it counts: the one rule of which domains count), [`blocked`], [`usage`], [`view`] (all of it
//! for one moment), [`ground`] (which domains count, kept current), [`skews`] (the
//! largest skews on the way), [`natural_order`](mod@natural_order).

pub mod blocked;
pub mod ground;
pub mod moment;
pub mod natural_order;
pub mod schedulers;
pub mod skews;
pub mod spread;
pub mod usage;
pub mod view;
pub mod workload;
pub mod world;
