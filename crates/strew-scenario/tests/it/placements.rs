//! The scenarios of Placement: `scenarios/placement/`.

library! {
    "placement/";
    many_placements_share_a_fleet_evenly: "balance.yaml",
    a_contract_asks_for_two_regions: "bounded-regions.yaml",
    a_region_of_clusters_is_lost_and_back: "region-lost-and-back.yaml",
    clusters_are_rolled_out_in_groups: "rollout-groups.yaml",
    providers_regions_and_zones_are_even: "three-levels.yaml",
    a_silent_cluster_is_tolerated_for_a_while: "toleration-seconds.yaml",
    no_kept_cluster_is_missed_in_bad_weather: "under-faults.yaml",
    companies_name_their_own_domains: "use-case-1-own-topology.yaml",
    two_zones_have_two_clusters_each: "use-case-2-even-spread.yaml",
    a_max_skew_holds_clusters_back: "use-case-3-max-skew.yaml",
    regions_come_first_then_zones: "use-case-4-joint-spread.yaml",
    two_thirds_are_in_the_east: "use-case-5-ratio.yaml",
    the_proposals_example_is_what_it_says: "worked-example.yaml",
}
