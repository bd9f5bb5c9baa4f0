//! Profiles that differ where decisions do.

use strew_cluster::SpreadConstraint;
use strew_model::Selector;
use strew_scheduler::{DefaultConstraints, Profile, TieRule};

/// The profile of a seed.
pub(crate) fn profile(seed: u64) -> Profile {
    let mut profile = Profile::default();
    if seed.is_multiple_of(3) {
        let list = DefaultConstraints::System.constraints();
        let hard = |c: &SpreadConstraint| SpreadConstraint {
            hard: true,
            selector: Selector::Nothing,
            ..c.clone()
        };
        let list = vec![hard(&list[1]), list[0].clone()];
        profile.default_constraints = DefaultConstraints::List(list);
    }
    if seed.is_multiple_of(5) {
        profile.ties = TieRule::FirstName;
        profile.ignore_preferred_terms_of_existing_pods = true;
    }
    profile
}
