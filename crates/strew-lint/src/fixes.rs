//! Fixes are tried: the change is made in a copy of its object, and the rules are applied again.

use std::collections::{BTreeMap, BTreeSet};

use strew_manifest::fix::Fix;
use strew_manifest::read::{KubeObject, Severity};

use crate::{Depth, Found, Memory, apply};

/// The most fixes that are tried one by one, where not all of them work together.
const SINGLE_MAX: usize = 20;

/// The number of objects up to which that is cheap.
const SMALL: usize = 500;

/// How often a fix is completed.
const ROUNDS: usize = 3;

/// What a finding is about, without its place in a list.
type Key = (&'static str, usize, String);

fn key(found: &Found) -> Key {
    (found.code, found.object, found.path.to_string())
}

/// Notes that a fix uncovers may be meant so.
fn is_warning(found: &Found) -> bool {
    found.severity == Severity::Warning
}

/// Tries every fix, first all together. A fix that does not take its finding away, or brings a new
/// warning, is dropped.
pub(crate) fn verify(objects: &[&KubeObject], found: &mut [Found], memory: &Memory<'_>) {
    let known: BTreeSet<Key> = found.iter().map(key).collect();
    let fixed: Vec<usize> = (0..found.len())
        .filter(|i| found[*i].fix.is_some())
        .collect();
    if fixed.is_empty() {
        return;
    }
    if works(objects, found, &fixed, &known, memory) {
        fixed
            .iter()
            .for_each(|index| confirm(&mut found[*index].fix));
        return;
    }
    let single_max = match objects.len() {
        0..=SMALL => SINGLE_MAX,
        _ => 1,
    };
    for (n_tried, index) in fixed.into_iter().enumerate() {
        let fix = (n_tried < single_max).then(|| completed(objects, found, index, &known, memory));
        match fix.flatten() {
            Some(fix) => found[index].fix = Some(fix),
            None => {
                if let Some(fix) = found[index].fix.take() {
                    found[index].help.get_or_insert(fix.change);
                }
            }
        }
    }
}

/// A fix that was tried. One that uncovers other findings of its object takes their fixes along: a selector that counts
/// the pods at last is the first to need matchLabelKeys.
fn completed(
    objects: &[&KubeObject],
    found: &[Found],
    index: usize,
    known: &BTreeSet<Key>,
    memory: &Memory<'_>,
) -> Option<Fix> {
    let mut one = found[index].clone();
    for _ in 0..ROUNDS {
        let after = after(objects, std::slice::from_ref(&one), &[0], memory)?;
        if after.iter().any(|left| key(left) == key(&one)) {
            return None;
        }
        let new = after
            .iter()
            .filter(|f| is_warning(f) && !known.contains(&key(f)));
        let new: Vec<&Found> = new.collect();
        if new.is_empty() {
            confirm(&mut one.fix);
            return one.fix;
        }
        let fix = one.fix.as_mut()?;
        for uncovered in new {
            let more = uncovered
                .fix
                .as_ref()
                .filter(|_| uncovered.object == one.object)?;
            fix.change = format!("{}, {}", fix.change, more.change);
            fix.edits.extend(more.edits.iter().cloned());
        }
    }
    None
}

/// True if these fixes take their findings away and bring no new warning.
fn works(
    objects: &[&KubeObject],
    found: &[Found],
    fixed: &[usize],
    known: &BTreeSet<Key>,
    memory: &Memory<'_>,
) -> bool {
    let Some(left) = after(objects, found, fixed, memory) else {
        return false;
    };
    let keys: BTreeSet<Key> = left.iter().map(key).collect();
    let is_gone = fixed
        .iter()
        .all(|index| !keys.contains(&key(&found[*index])));
    let mut warnings = left.iter().filter(|left| is_warning(left));
    is_gone && warnings.all(|left| known.contains(&key(left)))
}

/// What is found after these fixes; `None` if one of them cannot be made.
fn after(
    objects: &[&KubeObject],
    found: &[Found],
    fixed: &[usize],
    memory: &Memory<'_>,
) -> Option<Vec<Found>> {
    let mut values = BTreeMap::new();
    for &index in fixed {
        let fix = found[index].fix.as_ref()?;
        let object = found[index].object;
        let value = values
            .entry(object)
            .or_insert_with(|| objects[object].to_json());
        if !fix.apply(value) {
            return None;
        }
    }
    let mut changed: BTreeMap<usize, KubeObject> = BTreeMap::new();
    for (object, value) in values {
        changed.insert(object, KubeObject::of_json(value).ok()?);
    }
    let all = objects.iter().enumerate();
    let all: Vec<&KubeObject> = all
        .map(|(index, object)| changed.get(&index).unwrap_or(object))
        .collect();
    Some(apply(&all, false, Depth::Tried, memory))
}

fn confirm(fix: &mut Option<Fix>) {
    if let Some(fix) = fix {
        let found = "the finding is gone, and no warning is new".to_owned();
        fix.verified.get_or_insert(found);
    }
}
