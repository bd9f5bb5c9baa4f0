//! PodDisruptionBudgets by zone: evictions never disrupt two zones at once.
//!
//! A budget counts pods, and not zones: one that allows 3 of 9 pods to be away allows one in each of three zones. With
//! the annotation [`ZONE_AWARE`] a budget names a topology key, and an eviction is refused while pods of another domain
//! of that key are away. The plain budget stays the outer bound, which the API server keeps by itself.
//!
//! [`rule`] decides about one eviction from facts. [`machine`] asks it for each review of an eviction, and claims the
//! domain in an annotation of the budget ([`CLAIM`]) before it allows one: a write under the budget's resourceVersion,
//! so that two replicas never allow two domains.
//!
//! Reading order: [`claim`], [`rule`], [`facts`] (input of the machine), [`effect`], [`machine`].
//!
//! Source: docs/budgets.md.

pub mod claim;
pub mod effect;
pub mod facts;
pub mod machine;
pub mod rule;

use strew_model::time::Span;

pub use claim::Claim;
pub use effect::{Answer, Effect, EffectId, Outcome};
pub use facts::{Ask, BudgetFact, BudgetKey, Input, PodRow, RequestId};
pub use machine::{Counters, Zones};
pub use rule::{Away, Domain, Place, PodState, Refusal, Verdict, decide};

/// The annotation of a PodDisruptionBudget with the topology key whose domains must not be disrupted at once.
pub const ZONE_AWARE: &str = "strew.dev/zone-aware";

/// The namespaces whose evictions the webhook does not review: the control plane's, and strew's own.
pub const UNREVIEWED: [&str; 2] = ["kube-system", "strew-system"];

/// The annotation of a PodDisruptionBudget with the [`Claim`]; strew writes it.
pub const CLAIM: &str = "strew.dev/disrupted-zone";

/// How long a domain counts as disrupted after an eviction was granted in it, whatever the pods show: the API server
/// carries the eviction out, for which it tries at most 10 s, and watches show it, within this time.
pub const HOLD: Span = Span::from_secs(30);

/// In how many seconds a refused client is asked to try again.
pub const RETRY_AFTER_S: u32 = 5;
