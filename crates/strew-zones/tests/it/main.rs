//! Tests of budgets by zone.

mod replicas;
mod rule;
