//! Reads user files into typed Kubernetes objects, and reports all problems at once.
//!
//! [`read`] takes files as [`Sources`] (this crate does no I/O): streams of YAML, JSON, and lists in either. It returns
//! a [`Reading`]: the objects without errors, the [`Broken`] ones, so that further errors in them can be reported in
//! the same run, and a [`Diagnostic`] for each problem. [`render`] formats diagnostics as rustc does; [`locate`] finds
//! the place of a field in its file, for problems found later.
//!
//! A text becomes an object in four steps: documents, values, a check of the value against the schema of its kind
//! (which finds all problems, while a decoder stops at the first), and the typed decode. Places are not kept: a
//! diagnostic that needs one parses its document again, so that a valid dump of any size is read at the speed of plain
//! decoding.
//!
//! ```
//! use strew_manifest::read::{Sources, read, render};
//!
//! let mut sources = Sources::new();
//! sources.add("web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeNmae: a}");
//! let reading = read(&sources);
//! assert!(reading.has_errors());
//! assert_eq!(reading.diagnostics[0].message, "unknown field \"nodeNmae\", did you mean \"nodeName\"?");
//! println!("{}", render(&reading.diagnostics, &sources, false));
//! ```

mod broken;
mod check;
mod diagnostic;
mod document;
mod earlier;
mod edit;
mod event;
#[cfg(feature = "schemas")]
mod field_writer;
mod fields;
mod foreign;
mod head;
mod json;
mod kind;
mod locator;
mod meaning;
mod nearest;
mod node;
mod objects;
mod played_as;
mod pods;
mod raw;
mod reader;
mod reading;
mod render;
mod report;
mod scalar;
mod scale;
mod schema;
mod source;
mod template;
mod texts;
mod tree;
mod yaml;

pub use broken::Broken;
pub use check::{describe, shortened};
pub use diagnostic::{Diagnostic, Related, Severity};
pub use document::{Document, Format, Origin};
pub use edit::{TextEdit, apply_text_edits, text_edits};
pub use event::EventRecord;
#[cfg(feature = "schemas")]
pub use field_writer::FieldWriter;
pub use fields::FieldTable;
pub use foreign::{CHART_FILE, KUSTOMIZATION_FILES};
pub(crate) use kind::EARLIER;
#[cfg(feature = "schemas")]
pub use kind::field_table;
pub use kind::{KINDS, KubeObject, OtherObject, is_namespaced};
pub use locator::{Locator, locate};
pub use meaning::SCENARIO;
pub use nearest::{is_counted_apart, known_label, misspelt, nearest, nearest_label};
pub use played_as::PlayedAs;
pub use pods::NO_CONTROLLER;
pub use raw::{
    RawDocument, RawFault, RawSchema, check_partial, document_at, document_with_letters, embedded,
    value_of_yaml,
};
pub use reader::{documents, read, read_applying, read_edited, read_file};
pub use reading::{Located, Reading};
pub use render::render;
pub use scale::ScaleTarget;
pub use source::{FileId, How, Place, SourceFile, Sources, Span};
pub use texts::{Text, visit_texts};
