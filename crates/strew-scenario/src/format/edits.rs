//! kubectl's short texts: `dedicated=db:NoSchedule`, `zone=b`, `web=nginx:2`.

use strew_manifest::field::FieldPath;
use strew_manifest::read::Diagnostic;
use strew_manifest::validation::text::qualified_name;
use strew_model::Effect;
pub use strew_plan::written::LabelEdit as MetadataEdit;
use strew_plan::written::{self, NODE_EFFECTS, NoEdit};

use super::diagnostics;

/// A change of a node's taints.
pub type TaintEdit = written::TaintEdit<Effect>;

/// A new image: `CONTAINER=IMAGE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageEdit {
    /// The container; none for all, written `*`.
    pub container: Option<String>,
    /// The image.
    pub image: String,
}

pub(super) fn taint(text: &str) -> Result<TaintEdit, Diagnostic> {
    let edit = TaintEdit::parse(text, &NODE_EFFECTS).map_err(|why| refused(text, why))?;
    check_key(edit.key())?;
    Ok(edit)
}

pub(super) fn label(text: &str) -> Result<MetadataEdit, Diagnostic> {
    let edit = MetadataEdit::parse(text).map_err(|why| refused(text, why))?;
    check_key(edit.key())?;
    Ok(edit)
}

fn refused(text: &str, why: NoEdit) -> Diagnostic {
    match why {
        NoEdit::Taint => diagnostics::no_taint(text),
        NoEdit::Effect(name, names) => diagnostics::no_choice(&name, &names),
        NoEdit::Label => diagnostics::no_label(text),
    }
}

impl ImageEdit {
    pub(super) fn parse(text: &str) -> Result<Self, Diagnostic> {
        match text.split_once('=') {
            Some((container, image)) if !container.is_empty() && !image.is_empty() => Ok(Self {
                container: (container != "*").then(|| container.to_owned()),
                image: image.to_owned(),
            }),
            _ => Err(diagnostics::no_image(text)),
        }
    }
}

fn check_key(key: &str) -> Result<(), Diagnostic> {
    match qualified_name(key).into_iter().next() {
        Some(sentence) => Err(diagnostics::bad_key(key, &sentence)),
        None => Ok(()),
    }
}

/// Reads one text, or each of a list.
pub(super) fn each<T>(
    at: &super::value::At<'_>,
    problems: &mut super::problems::Problems,
    parse: impl Fn(&str) -> Result<T, Diagnostic>,
) -> Vec<T> {
    let mut edits = Vec::new();
    for at in at.one_or_many(problems) {
        let Some(text) = at.text(problems) else {
            continue;
        };
        let path: &FieldPath = &at.path;
        match parse(text) {
            Ok(edit) => edits.push(edit),
            Err(error) => problems.add(path, error),
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        assert!(taint("a-b:NoSchedule").is_ok());
        assert!(taint("a b:NoSchedule").is_err());
    }

    #[test]
    fn labels_and_images_are_written_as_for_kubectl() {
        let set =
            |key: &str, value: &str| Some(MetadataEdit::Set(key.to_owned(), value.to_owned()));
        for (text, expected) in [
            ("a=b", set("a", "b")),
            ("a=", set("a", "")),
            ("a-", Some(MetadataEdit::Remove("a".to_owned()))),
            ("a", None),
            ("=b", None),
        ] {
            assert_eq!(label(text).ok(), expected, "{text}");
        }
        let image = |container: Option<&str>| {
            Some(ImageEdit {
                container: container.map(str::to_owned),
                image: "nginx:2".to_owned(),
            })
        };
        for (text, expected) in [
            ("web=nginx:2", image(Some("web"))),
            ("*=nginx:2", image(None)),
            ("nginx:2", None),
            ("web=", None),
        ] {
            assert_eq!(ImageEdit::parse(text).ok(), expected, "{text}");
        }
    }
}
