//! When the API server asks the webhook about pods: only while a replica is ready to answer.
//!
//! With `failurePolicy: Fail` a webhook that is registered and does not answer stops the creation of pods in every
//! namespace. So the MutatingWebhookConfiguration is installed empty. A replica that has answered a review of its own
//! writes the webhook in, the last one that ends in good order takes it out, and where replicas are killed, the
//! controller takes it out after a while.
//!
//! Reading order: [`plan`] (what is done when), [`replicas`] (which replicas are ready), [`configuration`] (what is
//! written), [`registrar`] (a replica's loop), [`guard`] (the controller's), `own_review`, `calls`.

mod calls;
pub mod configuration;
pub mod guard;
mod own_review;
pub mod plan;
pub mod registrar;
pub mod replicas;

use strew_api::workloadspread::registration::NAME;

use crate::Warning;

pub use guard::Guard;
pub(crate) use own_review::PATH as OWN_REVIEW;
pub use registrar::{Registrar, Setup};

/// After a failure.
const TRIED_AGAIN: &str = "tried again after a wait that grows";

/// Logs what failed about the registration.
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
