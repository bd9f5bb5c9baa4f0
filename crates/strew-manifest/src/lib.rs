//! Text to Kubernetes objects: the one table of kinds, their types, and the rules that all objects obey.
//!
//! [`mod@read`] turns YAML and JSON into typed objects, every problem with its place; [`kinds`] is the table of kinds,
//! [`kruise`] and [`ocm`] have the types of those that are not Kubernetes' own. [`defaults`] and [`validation`] are the
//! rules that configurations and custom resources share with pods, and a [`field`] path names what they are about.
//! [`finding`] is what a person should know, with a [`fix`] or [`advice`] where one is known. [`mod@patch`] changes a stored object, [`snapshot`] removes secrets from a dump of a cluster, [`anonymous`] replaces its names, and [`mod@printable`]
//! makes text safe to print. [`json`] is the only place where they are decoded and encoded. [`quantity`] and [`duration`] are texts with a meaning,
//! [`names`] completes names, [`schedule`] are the times of CronJobs, [`conditions`] are read by several crates.
//!
//! It decides nothing and knows no machine: what decisions read of an object is made in `strew-wire`.

pub mod advice;
pub mod anonymous;
pub mod conditions;
pub mod defaults;
pub mod duration;
pub mod field;
pub mod finding;
pub mod fix;
pub mod json;
pub mod kinds;
pub mod kruise;
pub mod names;
pub mod ocm;
pub mod patch;
pub mod printable;
pub mod quantity;
pub mod read;
pub mod schedule;
pub mod snapshot;
pub mod validation;
