//! Which clusters may be selected at all: [`predicate`], then [`taint`]. Source: spec/placement §2.3.

pub mod predicate;
pub mod taint;
