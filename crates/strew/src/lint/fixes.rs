//! The fixes of findings in the text of their files: as a patch, and written.

use std::collections::BTreeMap;

use anyhow::anyhow;
use serde_json::{Value, json};
use strew_manifest::fix::Fix;
use strew_manifest::read::{
    Diagnostic, FileId, Located, Locator, Reading, Sources, TextEdit, apply_text_edits, documents,
    text_edit,
};

use crate::failure::Failure;

/// An object, its fix, and the fix as edits of its file.
type Edited<'a> = (&'a Located, &'a Fix, Vec<TextEdit>);

/// What the fixes of one set of files come to.
#[derive(Default)]
pub(super) struct Fixes {
    /// The changed text of each file with fixes, with the number of its fixes.
    pub(super) files: BTreeMap<FileId, (String, usize)>,
    /// Commands for objects that are in no file that can be written.
    pub(super) commands: Vec<String>,
}

impl Fixes {
    /// The fixes of these findings. A file whose changed text does not read as the changed objects is left out, and its
    /// fixes become commands.
    pub(super) fn of(sources: &Sources, reading: &Reading, found: &[Diagnostic]) -> Self {
        let mut locator = Locator::new(sources);
        let mut by_file: BTreeMap<FileId, Vec<Edited<'_>>> = BTreeMap::new();
        let mut fixes = Self::default();
        for diagnostic in found {
            let Some(fix) = &diagnostic.fix else { continue };
            let Some(located) = object_of(diagnostic, reading) else {
                continue;
            };
            let edits = fix.edits.iter();
            let edits = edits.map(|edit| text_edit(sources, &mut locator, &located.origin, edit));
            let edits: Option<Vec<TextEdit>> = edits.collect();
            let is_file = is_written(sources, located.origin.file);
            match edits.filter(|_| is_file) {
                Some(edits) => {
                    let file = by_file.entry(located.origin.file).or_default();
                    file.push((located, fix, edits));
                }
                None => fixes.commands.extend(command(located, fix)),
            }
        }
        for (file, all) in by_file {
            let edits: Vec<TextEdit> = all.iter().flat_map(|(.., edits)| edits.clone()).collect();
            let text = apply_text_edits(sources.file(file).text(), &edits);
            match reads_as(sources, file, &text, &all) {
                true => {
                    fixes.files.insert(file, (text, all.len()));
                }
                false => {
                    let commands = all.iter();
                    fixes
                        .commands
                        .extend(commands.filter_map(|(located, fix, _)| command(located, fix)));
                }
            }
        }
        fixes
    }

    /// The changes as a patch that `git apply` and `patch -p1` take.
    pub(super) fn patch(&self, sources: &Sources) -> String {
        let mut patch = String::new();
        for (file, (text, _)) in &self.files {
            let file = sources.file(*file);
            patch += &unified(file.name(), file.text(), text);
        }
        for command in &self.commands {
            patch += &format!("# {command}\n");
        }
        patch
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A file has changed since it was read, or cannot be written.
    pub(super) fn write(&self, sources: &Sources) -> Result<(), Failure> {
        for (file, (text, _)) in &self.files {
            let file = sources.file(*file);
            let name = file.name();
            let now = std::fs::read(name).map_err(|error| {
                Failure::outside(anyhow!(error).context(format!("cannot read {name}")))
            })?;
            if now != file.text().as_bytes() {
                let error = anyhow!(
                    "{name} was not written: it is UTF-16 or compressed, or has changed since it was read"
                );
                return Err(
                    Failure::input(error).with_hint("write the patch instead: strew lint -o patch")
                );
            }
            std::fs::write(name, text).map_err(|error| {
                Failure::outside(anyhow!(error).context(format!("cannot write {name}")))
            })?;
        }
        Ok(())
    }
}

/// True for files, which can be written; false for standard input and a live cluster.
fn is_written(sources: &Sources, file: FileId) -> bool {
    let name = sources.file(file).name();
    name != "-" && !name.starts_with('<')
}

/// The object that a finding is about.
fn object_of<'r>(diagnostic: &Diagnostic, reading: &'r Reading) -> Option<&'r Located> {
    let (place, label) = (diagnostic.place?, diagnostic.object.as_ref()?);
    let mut objects = reading.objects.iter();
    objects.find(|located| {
        let document = located.origin.document.span;
        located.origin.file == place.file
            && (document.start..=document.end).contains(&place.span.start)
            && located.object.label() == *label
    })
}

/// True if a changed text has the same documents as the file, but for the fixes.
fn reads_as(
    sources: &Sources,
    file: FileId,
    text: &str,
    fixes: &[(&Located, &Fix, Vec<TextEdit>)],
) -> bool {
    let of = |text: &str| {
        let mut alone = Sources::new();
        alone.add(sources.file(file).name(), text);
        documents(&alone).0
    };
    let mut wanted: Vec<_> = of(sources.file(file).text());
    for (located, fix, _) in fixes {
        let origin = &located.origin;
        let object = wanted.iter_mut().find(|document| {
            document.origin.document.span.start == origin.document.span.start
                && (document.origin.items.is_empty() || document.origin.items == origin.items)
        });
        let mut value =
            object.map(|document| (document.origin.items.is_empty(), &mut document.value));
        if let Some((true, whole)) = value.as_mut() {
            let mut inner: Option<&mut Value> = Some(whole);
            for item in &origin.items {
                inner = inner.and_then(|v| v.get_mut("items")?.get_mut(*item as usize));
            }
            if !inner.is_some_and(|value| fix.apply(value)) {
                return false;
            }
            continue;
        }
        if !value.is_some_and(|(_, value)| fix.apply(value)) {
            return false;
        }
    }
    let got = of(text);
    got.len() == wanted.len() && got.iter().zip(&wanted).all(|(a, b)| a.value == b.value)
}

/// A command that makes the change in a cluster.
fn command(located: &Located, fix: &Fix) -> Option<String> {
    let object = &located.object;
    let mut patch = json!({});
    for edit in &fix.edits {
        // Lists are merged by their keys, which a patch of fields does not have: then the JSON patch says it.
        if edit
            .path
            .split('/')
            .any(|token| token.parse::<usize>().is_ok())
        {
            let remove = edit.replaces.iter().map(|name| {
                let parent = edit.path.rsplit_once('/').map_or("", |(parent, _)| parent);
                json!({"op": "remove", "path": format!("{parent}/{name}")})
            });
            let operations: Vec<Value> = remove
                .chain([json!({"op": "add", "path": edit.path, "value": edit.value})])
                .collect();
            return Some(kubectl(object, "json", &json!(operations)));
        }
    }
    if !fix.apply(&mut patch) {
        return None;
    }
    for edit in &fix.edits {
        if let Some(name) = &edit.replaces
            && let Some((parent, _)) = edit.path.rsplit_once('/')
            && let Some(Value::Object(fields)) = patch.pointer_mut(parent)
        {
            fields.insert(name.clone(), Value::Null);
        }
    }
    Some(kubectl(object, "merge", &patch))
}

fn kubectl(object: &strew_manifest::read::KubeObject, kind: &str, patch: &Value) -> String {
    let namespace = object
        .namespace()
        .map_or(String::new(), |namespace| format!(" -n {namespace}"));
    format!(
        "kubectl patch {} {}{namespace} --type={kind} -p '{patch}'",
        object.kind().to_lowercase(),
        object.name()
    )
}

/// The lines around a change.
const CONTEXT: usize = 3;

/// The difference of two texts of a file, as a unified diff.
fn unified(name: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (
        old.split_inclusive('\n').collect(),
        new.split_inclusive('\n').collect(),
    );
    // Fixes insert or replace single lines: after a difference, both continue with the next equal line.
    let mut changes: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            i += 1;
            j += 1;
            continue;
        }
        let (n_old, n_new) = next_equal(&old[i..], &new[j..]);
        changes.push((i..i + n_old, j..j + n_new));
        i += n_old;
        j += n_new;
    }
    let shown = name.trim_start_matches("./").trim_start_matches('/');
    let mut text = format!("--- a/{shown}\n+++ b/{shown}\n");
    let mut at = 0;
    while at < changes.len() {
        let mut end = at + 1;
        while end < changes.len() && changes[end].0.start <= changes[end - 1].0.end + 2 * CONTEXT {
            end += 1;
        }
        text += &hunk(&old, &new, &changes[at..end]);
        at = end;
    }
    text
}

/// The numbers of lines to skip on both sides until they are equal again.
fn next_equal(old: &[&str], new: &[&str]) -> (usize, usize) {
    for sum in 1..=old.len() + new.len() {
        for n_old in 0..=sum.min(old.len()) {
            let n_new = sum - n_old;
            let is_equal = match (old.get(n_old), new.get(n_new)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => n_old == old.len() && n_new == new.len(),
                _ => false,
            };
            if is_equal {
                return (n_old, n_new);
            }
        }
    }
    (old.len(), new.len())
}

fn hunk(
    old: &[&str],
    new: &[&str],
    changes: &[(std::ops::Range<usize>, std::ops::Range<usize>)],
) -> String {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return String::new();
    };
    let before = first.0.start.min(CONTEXT);
    let after = (old.len() - last.0.end).min(CONTEXT);
    let old_range = first.0.start - before..last.0.end + after;
    let new_range = first.1.start - before..last.1.end + after;
    let mut text = format!(
        "@@ -{},{} +{},{} @@\n",
        old_range.start + usize::from(!old_range.is_empty()),
        old_range.len(),
        new_range.start + usize::from(!new_range.is_empty()),
        new_range.len()
    );
    let mut line = |sign: char, line: &str| {
        text.push(sign);
        text += line;
        if !line.ends_with('\n') {
            text += "\n\\ No newline at end of file\n";
        }
    };
    let mut at = old_range.start;
    for (gone, come) in changes {
        old[at..gone.start].iter().for_each(|kept| line(' ', kept));
        old[gone.clone()].iter().for_each(|gone| line('-', gone));
        new[come.clone()].iter().for_each(|come| line('+', come));
        at = gone.end;
    }
    old[at..old_range.end]
        .iter()
        .for_each(|kept| line(' ', kept));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_the_changed_lines_with_context() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = "a\nb\nc\nd\nX\ne\nf\nG\nh\n";
        let expected = "--- a/f\n+++ b/f\n@@ -2,7 +2,8 @@\n b\n c\n d\n+X\n e\n f\n-g\n+G\n h\n";
        assert_eq!(unified("./f", old, new), expected);
        let end = "--- a/f\n+++ b/f\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n";
        assert_eq!(unified("f", "a", "a\nb"), end);
    }
}
