//! Pods onto nodes: kube-scheduler's default profile, decided from tallies, explained
