//! Nodes, or clusters of a fleet, as the user names them: by name, or a whole domain as `KEY/VALUE`.

use std::collections::BTreeSet;

use anyhow::anyhow;
use strew_manifest::read::nearest;
use strew_plan::{Member, Part};

use crate::failure::Failure;

/// The words for the members in errors.
pub(crate) struct Words {
    /// `node`.
    pub(crate) noun: &'static str,
    /// Where they were searched, with a blank before it.
    pub(crate) place: &'static str,
    /// What a domain consists of, with a comma before it.
    pub(crate) source: &'static str,
    /// How a domain is written.
    pub(crate) domain: &'static str,
}

/// The members that a part names.
///
/// # Errors
/// If it names none: without a change the answer would mislead.
pub(crate) fn find<'a, M: Member>(
    part: &Part,
    members: &'a [M],
    words: &Words,
) -> Result<Vec<&'a M>, Failure> {
    let found: Vec<&M> = members.iter().filter(|m| part.means(*m)).collect();
    match (found.is_empty(), part) {
        (false, _) => Ok(found),
        (true, Part::Named(name)) => Err(no_name(name, members, words)),
        (true, Part::Domain { key, value }) => Err(no_domain(key, value, members, words)),
    }
}

fn no_name<M: Member>(name: &str, members: &[M], words: &Words) -> Failure {
    let Words {
        noun,
        place,
        domain,
        ..
    } = words;
    let failure = Failure::input(anyhow!("there is no {noun} {name:?}{place}"));
    failure.with_hint(match nearest(name, members.iter().map(M::name)) {
        Some(meant) => format!("did you mean {meant}? A {domain}"),
        None => format!("a {domain}"),
    })
}

fn no_domain<M: Member>(key: &str, value: &str, members: &[M], words: &Words) -> Failure {
    let known: BTreeSet<&str> = members.iter().flat_map(|m| m.domains(key)).collect();
    let Words { noun, source, .. } = words;
    let failure = Failure::input(anyhow!("no {noun} has {key}={value}{source}"));
    failure.with_hint(
        match (known.is_empty(), nearest(value, known.iter().copied())) {
            (true, _) => format!("no {noun} has {key} at all"),
            (false, Some(meant)) => format!("did you mean {key}/{meant}?"),
            (false, None) => there_are(known),
        },
    )
}

/// The name that was meant, or else the first of those that there are.
pub(crate) fn instead(name: &str, known: BTreeSet<&str>) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant}?"),
        None => there_are(known),
    }
}

fn there_are(known: BTreeSet<&str>) -> String {
    if known.is_empty() {
        return "there are none".to_owned();
    }
    let some: Vec<&str> = known.into_iter().take(10).collect();
    format!("there are {}", some.join(", "))
}
