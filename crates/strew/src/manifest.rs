//! Objects that are printed for `kubectl apply`, some with a comment for readers.

use serde_json::{Value, json};
use strew_manifest::validation::text;

use crate::failure::Failure;
use crate::output::{Format, serialized};

/// An object with its comment; JSON has no comments.
pub(crate) struct Manifest {
    comment: &'static str,
    pub(crate) object: Value,
}

impl From<Value> for Manifest {
    fn from(object: Value) -> Self {
        Self {
            comment: "",
            object,
        }
    }
}

impl Manifest {
    /// An object with a comment of one or more lines.
    pub(crate) fn with_comment(comment: &'static str, object: Value) -> Self {
        Self { comment, object }
    }

    fn yaml(&self) -> Result<String, Failure> {
        let comment = self.comment.lines().map(|line| match line {
            "" => "#\n".to_owned(),
            line => format!("# {line}\n"),
        });
        let comment: String = comment.collect();
        Ok(comment + &serialized(&self.object, Format::Yaml)?)
    }
}

/// A stream of documents, or one `List`.
pub(crate) fn written(manifests: &[Manifest], output: &str) -> Result<String, Failure> {
    if output == "json" {
        let items: Vec<&Value> = manifests.iter().map(|manifest| &manifest.object).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        return serialized(&list, Format::Json);
    }
    let documents: Result<Vec<String>, Failure> = manifests.iter().map(Manifest::yaml).collect();
    Ok(documents?.join("---\n"))
}

/// A namespace's name, by the API server's rules.
pub(crate) fn namespace(name: &str) -> Result<String, String> {
    let wrong = text::dns_label(name);
    match wrong.is_empty() {
        true => Ok(name.to_owned()),
        false => Err(wrong.join("; ")),
    }
}
