//! User files into typed Kubernetes objects, with every problem at once.
//!
//! [`read`] takes files that the shell handed in as [`Sources`] (this crate does no I/O): streams of
//! YAML, JSON, and lists in either. What comes back is a [`Reading`]: the objects without errors, those
//! that are [`Broken`], so that what else is wrong in them can be said in the same run, and a [`Diagnostic`]
//! for each problem. [`render`] shows them as rustc would; [`locate`] tells
//! where in its file a field of an object stands, for problems found later.
//!
//! A text becomes an object in four steps: documents, values, a check of the value against the
//! schema of its kind (which finds all problems, where a decoder stops at the first), and the typed
//! decode. Places are not kept: when a diagnostic needs one, its document is looked at again, so
//! that a good dump of any size is read at the speed of plain decoding.
//!
//! ```
//! use strew_api::read::{Sources, read, render};
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
mod head;
mod json;
mod kind;
mod locator;
mod nearest;
mod node;
mod raw;
mod reader;
mod reading;
mod render;
mod report;
mod scalar;
mod schema;
mod source;
mod tree;
mod yaml;

pub use broken::Broken;
pub use check::{describe, shortened};
pub use diagnostic::{Diagnostic, Related, Severity};
pub use document::{Document, Format, Origin};
pub use kind::{KINDS, KubeObject, OtherObject, is_namespaced};
pub use locator::{Locator, locate};
pub use nearest::nearest;
pub use raw::{
    RawDocument, RawFault, RawSchema, check_partial, document_at, document_with_letters, embedded,
};
pub use reader::{documents, read, read_edited, read_file};
pub use reading::{Located, Reading};
pub use render::render;
pub use source::{FileId, Place, SourceFile, Sources, Span};
