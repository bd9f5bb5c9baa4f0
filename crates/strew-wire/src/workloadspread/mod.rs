//! WorkloadSpread on the wire: rules, facts and requests. Its types are in [`strew_manifest::kruise`].
//!
//! Reading order: [`annotations`] (settings beyond Kruise), [`marker`], [`status`],
//! [`subset_contents`] (ids for texts), [`facts`] (objects to inputs), [`mod@inject`] (a subset into a pod), [`review`]
//! (`AdmissionReview`), [`pending_reviews`], [`request`] (effects); [`validation`], [`validating`] and [`converting`]
//! (reviews of WorkloadSpreads), [`lint`], [`crd`] (the CustomResourceDefinition), [`registration`] (webhook
//! configurations), [`policy`] (what strew itself may write there).
//!
//! Source of all rules: spec/workloadspread.

pub mod annotations;
pub mod bounds;
pub mod converting;
pub mod crd;
pub mod facts;
pub mod inject;
pub mod lint;
pub mod marker;
pub mod pending_reviews;
pub mod policy;
pub mod registration;
pub mod request;
pub mod review;
pub mod status;
pub mod subset_contents;
#[cfg(test)]
mod tests;
pub mod validating;
pub mod validation;

pub use facts::Translator;
use strew_manifest::kruise::{conversion, spec, v1beta1};
