//! Facts with invalid values: which part of them is ignored, and why.
//!
//! strew-manifest refuses such objects in files, but a cluster can contain them. A node is ignored as a whole. A pending pod
//! of this scheduler is not scheduled. A pod on a node counts, without its invalid values.

use std::fmt;
use std::sync::Arc;

use strew_cluster::{NodeFact, PodFact, PodSpec, SpreadConstraint};
use strew_model::{Resources, Symbol};

/// The largest valid amount: 8 PiB, or as many thousandths of a CPU. The sum of a thousand of them still fits.
pub const AMOUNT_MAX: i64 = 1 << 53;

/// Why a fact is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidFact {
    /// An amount is negative.
    Negative(&'static str, i64),
    /// An amount is larger than any machine's.
    TooLarge(&'static str, i64),
    /// A constraint's number is not positive.
    NotPositive(&'static str, i32),
    /// A weight is outside -100 to 100.
    Weight(i32),
    /// It has no name, or no uid.
    Nameless,
    /// It cannot be read.
    Unreadable(Arc<str>),
}

impl fmt::Display for InvalidFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative(what, amount) => write!(f, "{what} is negative: {amount}"),
            Self::TooLarge(what, amount) => {
                write!(f, "{what} is {amount}, more than {AMOUNT_MAX}")
            }
            Self::NotPositive(what, value) => write!(f, "{what} is {value}, not positive"),
            Self::Weight(weight) => write!(f, "a weight is {weight}, beyond -100 to 100"),
            Self::Nameless => f.write_str("it has no name"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

fn amount(what: &'static str, amount: i64) -> Result<(), InvalidFact> {
    match amount {
        0..=AMOUNT_MAX => Ok(()),
        ..0 => Err(InvalidFact::Negative(what, amount)),
        _ => Err(InvalidFact::TooLarge(what, amount)),
    }
}

fn resources(of: &Resources) -> Result<(), InvalidFact> {
    amount("cpu", of.cpu_milli)?;
    amount("memory", of.memory)?;
    amount("ephemeral-storage", of.ephemeral_storage)?;
    let mut scalars = of.scalars().iter();
    scalars.try_for_each(|&(_, value)| amount("an extended resource", value))
}

/// Checks a node.
pub(crate) fn check_node(node: &NodeFact) -> Result<(), InvalidFact> {
    if node.name == Symbol::default() {
        return Err(InvalidFact::Nameless);
    }
    resources(&node.allocatable)?;
    amount("pods", node.pods_max)?;
    let mut images = node.images.iter();
    images.try_for_each(|&(_, size)| amount("an image's size", size))
}

fn constraint(of: &SpreadConstraint) -> Result<(), InvalidFact> {
    if of.max_skew <= 0 {
        return Err(InvalidFact::NotPositive("maxSkew", of.max_skew));
    }
    match of.min_domains {
        Some(domains) if domains <= 0 => Err(InvalidFact::NotPositive("minDomains", domains)),
        _ => Ok(()),
    }
}

fn weight(weight: i32) -> Result<(), InvalidFact> {
    match weight {
        -100..=100 => Ok(()),
        _ => Err(InvalidFact::Weight(weight)),
    }
}

fn spec(of: &PodSpec) -> Result<(), InvalidFact> {
    resources(&of.requests)?;
    resources(&of.used)?;
    for (cpu, memory) in [of.scored, of.used_scored] {
        amount("cpu", cpu)?;
        amount("memory", memory)?;
    }
    of.spread.iter().try_for_each(constraint)?;
    let mut terms = of.affinity.preferred.iter();
    terms.try_for_each(|&(w, _)| weight(w))?;
    let mut terms = of.preferred_nodes.iter();
    terms.try_for_each(|&(w, _)| weight(w))
}

/// Checks a pod.
pub(crate) fn check_pod(pod: &PodFact) -> Result<(), InvalidFact> {
    match pod.uid.is_empty() || pod.name.is_empty() {
        true => Err(InvalidFact::Nameless),
        false => spec(&pod.spec),
    }
}

/// Removes invalid values from a pod.
pub(crate) fn clean(spec: &mut PodSpec) {
    let cut = |amount: &mut i64| *amount = (*amount).clamp(0, AMOUNT_MAX);
    for resources in [&mut spec.requests, &mut spec.used] {
        cut(&mut resources.cpu_milli);
        cut(&mut resources.memory);
        cut(&mut resources.ephemeral_storage);
        let scalars: Vec<(Symbol, i64)> = resources.scalars().to_vec();
        for (name, mut amount) in scalars {
            cut(&mut amount);
            resources.set_scalar(name, amount);
        }
    }
    for (cpu, memory) in [&mut spec.scored, &mut spec.used_scored] {
        cut(cpu);
        cut(memory);
    }
    retain(&mut spec.spread, |c| constraint(c).is_ok());
    retain(&mut spec.affinity.preferred, |(w, _)| weight(*w).is_ok());
    retain(&mut spec.preferred_nodes, |(w, _)| weight(*w).is_ok());
}

fn retain<T>(list: &mut Box<[T]>, keep: impl Fn(&T) -> bool) {
    if !list.iter().all(&keep) {
        let all = std::mem::take(list).into_vec();
        *list = all.into_iter().filter(|item| keep(item)).collect();
    }
}
