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

/// Tries every fix, first all together, then each beside those that were accepted before it. A fix that does not take
/// its finding away, or brings a new warning, is dropped.
pub(crate) fn verify(objects: &[&KubeObject], found: &mut [Found], memory: &Memory<'_>) {
    let known: BTreeSet<Key> = found.iter().map(key).collect();
    let fixed: Vec<usize> = (0..found.len())
        .filter(|i| found[*i].fix.is_some())
        .collect();
    if fixed.is_empty() {
        return;
    }
    reconcile(objects, found, &fixed, memory);
    let warned = { fixed.iter().copied() }.filter(|index| is_warning(&found[*index]));
    let warned: Vec<usize> = warned.collect();
    let is_all = warned.is_empty() || warned.len() == fixed.len();
    // What notes propose is not written with the others.
    if works(objects, found, &fixed, &known, memory)
        && (is_all || works(objects, found, &warned, &known, memory))
    {
        fixed
            .iter()
            .for_each(|index| confirm(&mut found[*index].fix));
        return;
    }
    let single_max = match objects.len() {
        0..=SMALL => SINGLE_MAX,
        _ => 1,
    };
    let mut accepted: Vec<Found> = Vec::new();
    for (n_tried, index) in fixed.into_iter().enumerate() {
        let one = &found[index];
        let fix =
            (n_tried < single_max).then(|| completed(objects, one, &accepted, &known, memory));
        match fix.flatten() {
            Some(fix) => {
                found[index].fix = Some(fix);
                if is_warning(&found[index]) {
                    accepted.push(found[index].clone());
                }
            }
            None => {
                if let Some(fix) = found[index].fix.take() {
                    found[index].help.get_or_insert(fix.change);
                }
            }
        }
    }
}

/// Of two fixes that set a field to different values, one takes both findings away, and is the fix of both.
fn reconcile(objects: &[&KubeObject], found: &mut [Found], fixed: &[usize], memory: &Memory<'_>) {
    let mut n_tried = 0;
    for (n, &second) in fixed.iter().enumerate() {
        for &first in &fixed[..n] {
            if n_tried == SINGLE_MAX {
                return;
            }
            if found[first].object != found[second].object
                || !contradict(&found[first], &found[second])
            {
                continue;
            }
            n_tried += 1;
            let takes_both = |by: usize| {
                let left = after(objects, std::slice::from_ref(&found[by]), memory);
                let is_left =
                    |left: &Found| [first, second].iter().any(|i| key(left) == key(&found[*i]));
                left.is_some_and(|left| !left.iter().any(is_left))
            };
            match (takes_both(second), takes_both(first)) {
                (true, _) => found[first].fix = found[second].fix.clone(),
                (false, true) => found[second].fix = found[first].fix.clone(),
                // Which of them is meant is not known: each is tried beside the other.
                (false, false) => {}
            }
        }
    }
}

/// True if they set one field to different values.
fn contradict(one: &Found, other: &Found) -> bool {
    let edits = |found: &Found| {
        found
            .fix
            .iter()
            .flat_map(|fix| fix.edits.clone())
            .collect::<Vec<_>>()
    };
    let (ones, others) = (edits(one), edits(other));
    ones.iter()
        .any(|edit| others.iter().any(|other| edit.contradicts(other)))
}

/// A fix that was tried beside those that are accepted. One that uncovers other findings of its object takes their fixes
/// along: a selector that counts the pods at last is the first to need matchLabelKeys.
fn completed(
    objects: &[&KubeObject],
    one: &Found,
    accepted: &[Found],
    known: &BTreeSet<Key>,
    memory: &Memory<'_>,
) -> Option<Fix> {
    if accepted
        .iter()
        .any(|other| other.object == one.object && contradict(other, one))
    {
        return None;
    }
    let mut all = accepted.to_vec();
    all.push(one.clone());
    for _ in 0..ROUNDS {
        let after = after(objects, &all, memory)?;
        if after.iter().any(|left| key(left) == key(one)) {
            return None;
        }
        let new = after
            .iter()
            .filter(|f| is_warning(f) && !known.contains(&key(f)));
        let new: Vec<&Found> = new.collect();
        let fix = &mut all.last_mut()?.fix;
        if new.is_empty() {
            confirm(fix);
            return fix.take();
        }
        let fix = fix.as_mut()?;
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
    let with: Vec<Found> = fixed.iter().map(|index| found[*index].clone()).collect();
    let Some(left) = after(objects, &with, memory) else {
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
fn after(objects: &[&KubeObject], fixed: &[Found], memory: &Memory<'_>) -> Option<Vec<Found>> {
    let mut values = BTreeMap::new();
    for Found { object, fix, .. } in fixed {
        let (object, fix) = (*object, fix.as_ref()?);
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
