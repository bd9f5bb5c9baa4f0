//! Registers the webhook for pods at the API server, only while a replica is ready.
//!
//! With `failurePolicy: Fail` a registered webhook that does not answer blocks the creation of pods in every namespace.
//! Therefore the MutatingWebhookConfiguration is installed empty. A replica that has answered its own review adds the
//! webhook, the last replica that shuts down removes it, and if replicas are killed, the controller removes it after a
//! while.
//!
//! Reading order: [`plan`] (which step is due), [`replicas`] (which replicas are ready), [`configuration`] (what is
//! written), [`registrar`] (a replica's loop), [`guard`] (the controller's loop), `own_review`, `way` (is the webhook
//! reached as the API server will reach it?), `calls`.

mod calls;
pub mod configuration;
pub mod guard;
mod own_review;
pub mod plan;
pub mod registrar;
pub mod replicas;
mod way;

use strew_wire::workloadspread::registration::NAME;

use crate::Warning;

pub use guard::Guard;
pub(crate) use own_review::PATH as OWN_REVIEW;
pub use registrar::{Registrar, Setup};

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
