//! The fixes of findings in the text of their files: as a patch, and written.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};

use anyhow::anyhow;
use serde_json::{Value, json};
use strew_manifest::fix::{Edit, Fix};
use strew_manifest::read::{
    Diagnostic, FileId, Located, Locator, Reading, Severity, Sources, TextEdit, apply_text_edits,
    documents, text_edits,
};

use crate::failure::Failure;

/// An object, its fix, and the fix as edits of its file.
type Edited<'a> = (&'a Located, &'a Fix, Vec<TextEdit>);

/// What the fixes of one set of files come to.
#[derive(Default)]
pub(super) struct Fixes {
    /// The changed text of each file with fixes, with the number of its fixes.
    pub(super) files: BTreeMap<FileId, (String, usize)>,
    /// Commands for objects that are in no file that can be written, one for each.
    pub(super) commands: Vec<String>,
    /// The number of fixes that only the commands make.
    pub(super) n_by_hand: usize,
}

/// True for a fix that is written. A note may be meant so, and its fix is a proposal.
fn is_written(found: &Diagnostic) -> bool {
    found.fix.is_some() && found.severity != Severity::Note
}

impl Fixes {
    /// The fixes of these findings but notes. One whose changed text does not read as the changed object becomes a
    /// command.
    pub(super) fn of(sources: &Sources, reading: &Reading, found: &[Diagnostic]) -> Self {
        let mut locator = Locator::new(sources);
        let objects = LazyCell::new(|| by_label(reading));
        let mut by_file: BTreeMap<FileId, Vec<Edited<'_>>> = BTreeMap::new();
        let mut by_hand: Vec<(&Located, &Fix)> = Vec::new();
        for diagnostic in found.iter().filter(|found| is_written(found)) {
            let Some(fix) = &diagnostic.fix else { continue };
            let Some(located) = object_of(diagnostic, &objects) else {
                continue;
            };
            let edits = fix.edits.iter();
            let edits = edits.map(|edit| text_edits(sources, &mut locator, &located.origin, edit));
            let edits: Option<Vec<Vec<TextEdit>>> = edits.collect();
            let is_file = is_file(sources, located.origin.file);
            match edits.filter(|_| is_file) {
                Some(edits) => {
                    let file = by_file.entry(located.origin.file).or_default();
                    file.push((located, fix, edits.concat()));
                }
                None => by_hand.push((located, fix)),
            }
        }
        let mut fixes = Self::default();
        for (file, all) in by_file {
            let mut written = Written::NONE;
            written.add(all, &mut |fixes| text_with(sources, file, fixes));
            let left = written.left.into_iter();
            by_hand.extend(left.map(|(located, fix, _)| (located, fix)));
            if let Some(text) = written.text {
                fixes.files.insert(file, (text, written.fixes.len()));
            }
        }
        (fixes.commands, fixes.n_by_hand) = commands(&by_hand);
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

/// The fixes of a file that go together.
struct Written<T> {
    fixes: Vec<T>,
    /// The file's text with them.
    text: Option<String>,
    /// The others.
    left: Vec<T>,
}

impl<T> Written<T> {
    const NONE: Self = Self {
        fixes: Vec::new(),
        text: None,
        left: Vec::new(),
    };

    /// Adds fixes, as far as a text can be written with them. Where it cannot, they are halved until the single fixes are
    /// found: a few of thousands do not cost a reading of the file for each.
    fn add(&mut self, mut more: Vec<T>, text_with: &mut impl FnMut(&[T]) -> Option<String>) {
        let n_before = self.fixes.len();
        self.fixes.append(&mut more);
        if let Some(text) = text_with(&self.fixes) {
            self.text = Some(text);
            return;
        }
        let mut first = self.fixes.split_off(n_before);
        if first.len() < 2 {
            self.left.append(&mut first);
            return;
        }
        let second = first.split_off(first.len() / 2);
        self.add(first, text_with);
        self.add(second, text_with);
    }
}

/// True for files, which can be written; false for standard input and a live cluster.
fn is_file(sources: &Sources, file: FileId) -> bool {
    let name = sources.file(file).name();
    name != "-" && !name.starts_with('<')
}

/// The objects by their labels; equal ones in the order of the files.
fn by_label(reading: &Reading) -> HashMap<String, Vec<&Located>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for located in &reading.objects {
        found
            .entry(located.object.label())
            .or_default()
            .push(located);
    }
    found
}

/// The object that a finding is about.
fn object_of<'r>(
    diagnostic: &Diagnostic,
    objects: &HashMap<String, Vec<&'r Located>>,
) -> Option<&'r Located> {
    let place = diagnostic.place?;
    let mut same = objects.get(diagnostic.object.as_ref()?)?.iter().copied();
    same.find(|located| {
        let document = located.origin.document.span;
        located.origin.file == place.file
            && (document.start..=document.end).contains(&place.span.start)
    })
}

/// The text of a file with these fixes; `None` if it does not read as the file's documents with them.
fn text_with(sources: &Sources, file: FileId, fixes: &[Edited<'_>]) -> Option<String> {
    let edits: Vec<TextEdit> = fixes.iter().flat_map(|(.., edits)| edits.clone()).collect();
    let text = apply_text_edits(sources.file(file).text(), &edits);
    reads_as(sources, file, &text, fixes).then_some(text)
}

/// True if a changed text has the same documents as the file, but for the fixes.
fn reads_as(sources: &Sources, file: FileId, text: &str, fixes: &[Edited<'_>]) -> bool {
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

/// One command for each object, which makes its changes in a cluster. A change of a field that an earlier one sets
/// otherwise is left out; the number of the others is returned.
fn commands(by_hand: &[(&Located, &Fix)]) -> (Vec<String>, usize) {
    let mut objects: Vec<(&Located, Vec<&Edit>)> = Vec::new();
    let mut n_fixes = 0;
    for (located, fix) in by_hand {
        let mut known = objects.iter();
        let known = known.position(|(known, _)| known.origin == located.origin);
        let index = known.unwrap_or(objects.len());
        if known.is_none() {
            objects.push((located, Vec::new()));
        }
        let edits = &mut objects[index].1;
        let contradicts = |edit: &Edit| edits.iter().any(|known| known.contradicts(edit));
        if fix.edits.iter().any(contradicts) {
            continue;
        }
        n_fixes += 1;
        for edit in &fix.edits {
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    let commands = objects
        .iter()
        .filter_map(|(located, edits)| command(located, edits));
    (commands.collect(), n_fixes)
}

/// A command that makes these changes of an object in a cluster.
fn command(located: &Located, edits: &[&Edit]) -> Option<String> {
    let object = &located.object;
    let is_item = |token: &str| token.parse::<usize>().is_ok();
    // Lists are merged by their keys, which a patch of fields does not have: then the JSON patch says it.
    if edits.iter().any(|edit| edit.path.split('/').any(is_item)) {
        let mut whole = object.to_json();
        let mut operations = Vec::new();
        for edit in edits {
            operations.extend(operations_of(&whole, edit));
            if !edit.apply(&mut whole) {
                return None;
            }
        }
        return Some(kubectl(object, "json", &json!(operations)));
    }
    let mut patch = json!({});
    for edit in edits {
        if !edit.apply(&mut patch) {
            return None;
        }
        if let Some(name) = &edit.replaces
            && let Some((parent, _)) = edit.path.rsplit_once('/')
            && let Some(Value::Object(fields)) = patch.pointer_mut(parent)
        {
            fields.insert(name.clone(), Value::Null);
        }
    }
    Some(kubectl(object, "merge", &patch))
}

/// The operations of a JSON patch that make a change of an object. Objects that are missing on the way are made.
fn operations_of(object: &Value, edit: &Edit) -> Vec<Value> {
    let (mut path, mut value) = (edit.path.as_str(), edit.value.clone());
    while let Some((parent, name)) = path.rsplit_once('/') {
        if object.pointer(parent).is_some_and(|there| !there.is_null()) {
            break;
        }
        let name = name.replace("~1", "/").replace("~0", "~");
        value = json!({name: value});
        path = parent;
    }
    let replaced = edit.replaces.iter().filter_map(|name| {
        let (parent, _) = edit.path.rsplit_once('/')?;
        let replaced = format!("{parent}/{name}");
        object.pointer(&replaced)?;
        Some(json!({"op": "remove", "path": replaced}))
    });
    let add = json!({"op": "add", "path": path, "value": value});
    replaced.chain([add]).collect()
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
    fn fixes_that_cannot_be_written_are_left_at_the_cost_of_a_few_readings() {
        let mut n_readings = 0;
        let mut text_with = |fixes: &[u32]| {
            n_readings += 1;
            let are_good = !fixes.iter().any(|fix| [0, 301, 999].contains(fix));
            are_good.then(|| format!("{} fixes", fixes.len()))
        };
        let mut written = Written::NONE;
        written.add((0..1_000).collect(), &mut text_with);
        assert_eq!(written.left, [0, 301, 999]);
        assert!(written.fixes.is_sorted());
        assert_eq!(written.text.as_deref(), Some("997 fixes"));
        let mut none = Written::NONE;
        none.add(vec![0], &mut text_with);
        assert_eq!((none.text, none.left), (None, vec![0]));
        assert!(n_readings < 70, "{n_readings}");
    }

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
