//! The checks of rules, a file for each subject.

pub(super) mod autoscaler;
pub(super) mod budget;
pub(super) mod claim;
pub(super) mod constraint;
pub(super) mod domains;
pub(super) mod ideal;
pub(super) mod job;
pub(super) mod labels;
pub(super) mod namespace;
pub(super) mod node;
pub(super) mod opted;
pub(super) mod placed;
pub(super) mod quota;
pub(super) mod rollout;
pub(super) mod template;
pub(super) mod zone;
