//! kubectl's short texts: `dedicated=db:NoSchedule`, `zone=b`, `web=nginx:2`.

use strew_manifest::field::FieldPath;
use strew_manifest::read::Diagnostic;
use strew_manifest::validation::text::qualified_name;
use strew_model::Effect;

use super::diagnostics;

/// A change of a node's taints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaintEdit {
    /// `KEY=VALUE:EFFECT` or `KEY:EFFECT`
    Add {
        /// Its key.
        key: String,
        /// Its value, often empty.
        value: String,
        /// What it does.
        effect: Effect,
    },
    /// `KEY:EFFECT-`, or `KEY-` for all effects.
    Remove {
        /// Its key.
        key: String,
        /// Only the taint with this effect.
        effect: Option<Effect>,
    },
}

/// A change of labels or annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataEdit {
    /// `KEY=VALUE`
    Set(String, String),
    /// `KEY-`
    Remove(String),
}

/// A new image: `CONTAINER=IMAGE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageEdit {
    /// The container; none for all, written `*`.
    pub container: Option<String>,
    /// The image.
    pub image: String,
}

const EFFECTS: [(&str, Effect); 3] = [
    ("NoSchedule", Effect::NoSchedule),
    ("PreferNoSchedule", Effect::PreferNoSchedule),
    ("NoExecute", Effect::NoExecute),
];

impl TaintEdit {
    /// Source: `parseTaint` of `k8s.io/kubectl/pkg/cmd/taint`, v1.36.
    pub(super) fn parse(text: &str) -> Result<Self, Diagnostic> {
        let no_taint = || diagnostics::no_taint(text);
        let (spec, is_removal) = match text.strip_suffix('-') {
            Some(spec) => (spec, true),
            None => (text, false),
        };
        let (pair, effect) = match spec.split_once(':') {
            Some((pair, name)) => (pair, Some(effect(name)?)),
            None => (spec, None),
        };
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key.is_empty() || value.contains(['=', ':']) {
            return Err(no_taint());
        }
        check_key(key)?;
        let key = key.to_owned();
        match (is_removal, effect) {
            (true, effect) => Ok(Self::Remove { key, effect }),
            (false, Some(effect)) => Ok(Self::Add {
                key,
                value: value.to_owned(),
                effect,
            }),
            (false, None) => Err(no_taint()),
        }
    }
}

fn effect(name: &str) -> Result<Effect, Diagnostic> {
    let found = EFFECTS.iter().find(|(known, _)| *known == name);
    let names = EFFECTS.map(|(name, _)| name);
    found
        .map(|(_, effect)| *effect)
        .ok_or_else(|| diagnostics::no_choice(name, &names))
}

impl MetadataEdit {
    pub(super) fn parse(text: &str) -> Result<Self, Diagnostic> {
        let edit = match text.split_once('=') {
            Some((key, value)) => Self::Set(key.to_owned(), value.to_owned()),
            None => match text.strip_suffix('-') {
                Some(key) => Self::Remove(key.to_owned()),
                None => return Err(diagnostics::no_label(text)),
            },
        };
        let (Self::Set(key, _) | Self::Remove(key)) = &edit;
        check_key(key)?;
        Ok(edit)
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
    fn taints_are_written_as_for_kubectl() {
        let add = |key: &str, value: &str, effect| {
            Some(TaintEdit::Add {
                key: key.to_owned(),
                value: value.to_owned(),
                effect,
            })
        };
        let remove = |key: &str, effect| {
            Some(TaintEdit::Remove {
                key: key.to_owned(),
                effect,
            })
        };
        let cases = [
            ("a=b:NoSchedule", add("a", "b", Effect::NoSchedule)),
            ("a:NoExecute", add("a", "", Effect::NoExecute)),
            (
                "x.io/a=:PreferNoSchedule",
                add("x.io/a", "", Effect::PreferNoSchedule),
            ),
            ("a-", remove("a", None)),
            ("a:NoSchedule-", remove("a", Some(Effect::NoSchedule))),
            ("a=b:NoSchedule-", remove("a", Some(Effect::NoSchedule))),
            ("a=b", None),
            ("a", None),
            (":NoSchedule", None),
            ("a=b:noschedule", None),
            ("a b:NoSchedule", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(TaintEdit::parse(text).ok(), expected, "{text}");
        }
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
            assert_eq!(MetadataEdit::parse(text).ok(), expected, "{text}");
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
