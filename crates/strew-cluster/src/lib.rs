//! What there is: nodes, pods, pod classes, and the tallies kept up to date
