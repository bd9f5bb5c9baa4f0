//! OCM's objects on a hub's API server: defaults of their CRDs, immutable fields, validation.

mod admission;
#[cfg(test)]
mod tests;
mod validation;
