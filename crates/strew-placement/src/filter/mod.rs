//! The filters: which clusters can be selected. First [`predicate`], then [`taint`]. Source: spec/placement §2.3.

pub mod predicate;
pub mod taint;
