//! Registers the webhook for pods at the API server, only while a replica is ready.
//!
//! With `failurePolicy: Fail` a registered webhook that does not answer blocks the creation of pods in every namespace.
//! Therefore the MutatingWebhookConfiguration is installed empty. A replica that has answered its own review adds the
//! webhook, the last replica that shuts down removes it, and if replicas are killed, the controller removes it after a
//! while.
//!
//! Reading order: [`plan`] (which step is due), [`replicas`] (which replicas are ready), [`configuration`] (what is
//! written), [`registrar`] (a replica's machine), [`guard`] (the controller's), [`way`] (how the API server reaches the
//! webhook), [`requests`], [`failures`] (waits).

pub mod configuration;
pub mod failures;
pub mod guard;
pub mod plan;
pub mod registrar;
pub mod replicas;
pub mod requests;
pub mod way;

use strew_wire::workloadspread::registration::NAME;

use crate::warning::Warning;

pub use guard::Guard;
pub use registrar::Registrar;
pub use requests::ANSWER_WITHIN;

/// The next step after a failure, for warnings.
const TRIED_AGAIN: &str = "tried again after a wait that grows";

/// Logs a failure of the registration.
fn warn(action: &str, error: &str, next: &str) {
    let warning = Warning {
        kind: "MutatingWebhookConfiguration",
        namespace: "",
        name: NAME,
        node: None,
        action,
        error: &error,
        next,
    };
    warning.log();
}
