//! CEL as strew uses it: expectations of scenarios, OCM's selectors of clusters, and policies of admission.
//!
//! The grammar is `cel`'s, the Kubernetes functions are `kube-cel`'s; evaluation is ours, over values that are shared
//! instead of copied, because `cel` 0.13 copies every pod for every look at it, finds `int` and `uint` unequal, reads
//! `!!x` as `!x` and `'text'.field` as `false`, walks maps in random order, and has no bound on cost.
//!
//! Everything is a function of its arguments: no clock, and maps are walked in the order of their keys.
//!
//! Where this differs from cel-go:
//! - types are checked at compile time for OCM's selectors and for policies, as far as the names of fields do not
//!   matter; names and numbers of arguments always are, and in scenarios the fields of pods and nodes;
//! - messages such as `Object{}` and `JSONPatch{}` of policies are refused;
//! - missing labels in scenarios: see [`Environment::Scenario`];
//! - costs are near cel-go's, not equal: [`Budget`];
//! - quantities beyond what an API server keeps exactly (19 digits before the point, 9 after) are refused;
//! - texts longer, deeper or wider than [`limits`] are refused;
//! - literals with three quotes and raw bytes are refused: `cel`'s parser misreads them;
//! - `getHours('Europe/Berlin')` and the like are not there: time zones would be data of this machine.
//!
//! Cost: an unoptimised build makes 10,000 pods of JSON into a [`Value`] in 0.31 s, once for all expressions, and
//! answers `pods.all(p, p.annotations['…'] == (p.labels.subset == 'ecs' ? '200' : '100'))` over them in 0.13 s
//! (90,001 units; ten times the pods take ten times as long). A text is compiled in 0.3 ms.
//!
//! Modules in reading order: `value`, `variables`, `program`, `source` (what the parser may be given), `lower` (its
//! tree into ours: `node`), `fields`, `types` with `signatures`, `evaluate` with `operators` and `functions`, `library` (theirs).

mod budget;
mod error;
mod evaluate;
mod fields;
mod function;
mod functions;
mod library;
pub mod limits;
mod lower;
mod names;
mod node;
mod operators;
mod pattern;
mod program;
mod signatures;
mod source;
mod types;
mod value;
mod variables;
mod walk;

pub use budget::Budget;
pub use error::{CompileError, EvalError, EvalErrorKind, Unknown};
pub use program::Program;
pub use value::Value;
pub use variables::{Environment, NODE_FIELDS, POD_FIELDS, Variables};
