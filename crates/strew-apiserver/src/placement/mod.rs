//! Open Cluster Management's objects as a hub's API server takes them: the defaults of their CRDs, what may not change,
//! and what is refused.

mod admission;
#[cfg(test)]
mod tests;
mod validation;
