//! spec/scheduler.md §1.2, row by row.

use super::*;

/// Checks one spread constraint that is good but for these fields.
#[track_caller]
fn check_spread(fields: Value, expected: &[&str]) {
    check_spread_with(&AdmissionOptions::KUBERNETES_1_36, fields, expected);
}

#[track_caller]
fn check_spread_with(options: &AdmissionOptions, fields: Value, expected: &[&str]) {
    let mut constraint = json!({
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"bar": "x"}},
    });
    constraint
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let expected: Vec<String> = expected
        .iter()
        .map(|line| {
            line.replace("P.", "spec.topologySpreadConstraints[0].")
                .replace("P[", "spec.topologySpreadConstraints[0][")
        })
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_spec_with(
        options,
        json!({"topologySpreadConstraints": [constraint]}),
        &expected,
    );
}

#[test]
fn spread_constraints() {
    check_spread(
        json!({"maxSkew": 0}),
        &["P.maxSkew: Invalid value: 0: must be greater than zero"],
    );
    check_spread(
        json!({"topologyKey": ""}),
        &["P.topologyKey: Required value: can not be empty"],
    );
    check_spread(json!({"topologyKey": "not a/valid key!"}), &[]);
    let actions = "supported values: \"DoNotSchedule\", \"ScheduleAnyway\"";
    check_spread(
        json!({"whenUnsatisfiable": "Nope"}),
        &[&format!(
            "P.whenUnsatisfiable: Unsupported value: \"Nope\": {actions}"
        )],
    );
    check_spread(
        json!({"whenUnsatisfiable": ""}),
        &[&format!(
            "P.whenUnsatisfiable: Unsupported value: \"\": {actions}"
        )],
    );
    check_spread(
        json!({"minDomains": 0}),
        &["P.minDomains: Invalid value: 0: must be greater than zero"],
    );
    check_spread(
        json!({"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}),
        &[
            "P.minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        ],
    );
    check_spread(
        json!({"nodeAffinityPolicy": "Foo", "nodeTaintsPolicy": "Bar"}),
        &[
            "P.nodeAffinityPolicy: Unsupported value: \"Foo\": supported values: \"Honor\", \"Ignore\"",
            "P.nodeTaintsPolicy: Unsupported value: \"Bar\": supported values: \"Honor\", \"Ignore\"",
        ],
    );
    check_spread(
        json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        &[
            "P.labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ],
    );
}

#[test]
fn spread_constraints_are_all_reported_in_order() {
    check_spread(
        json!({"maxSkew": -1, "topologyKey": "", "whenUnsatisfiable": "x", "minDomains": -2}),
        &[
            "P.maxSkew: Invalid value: -1: must be greater than zero",
            "P.topologyKey: Required value: can not be empty",
            "P.whenUnsatisfiable: Unsupported value: \"x\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            "P.minDomains: Invalid value: -2: must be greater than zero",
            "P.minDomains: Invalid value: -2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not x",
        ],
    );
}

#[test]
fn spread_pairs_are_unique() {
    let constraint = |action: &str| json!({"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": action, "labelSelector": {}});
    let (hard, soft) = (constraint("DoNotSchedule"), constraint("ScheduleAnyway"));
    check_spec(json!({"topologySpreadConstraints": [hard, soft]}), &[]);
    check_spec(
        json!({"topologySpreadConstraints": [soft, hard, hard]}),
        &[
            "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{topology.kubernetes.io/zone, DoNotSchedule}\"",
        ],
    );
}

#[test]
fn match_label_keys() {
    check_spread(json!({"matchLabelKeys": ["foo", "absent"]}), &[]);
    check_spread(
        json!({"matchLabelKeys": ["foo", "a b"], "labelSelector": null}),
        &["P.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
    );
    check_spread(
        json!({"matchLabelKeys": ["a b"]}),
        &["P.matchLabelKeys[0]: Invalid value: \"a b\": name part must consist of…"],
    );
    let both = "Invalid value: \"foo\": exists in both matchLabelKeys and labelSelector";
    let selector = json!({"matchLabels": {"foo": "x"}});
    check_spread(
        json!({"matchLabelKeys": ["app", "foo"], "labelSelector": selector}),
        &[&format!("P[1]: {both}")],
    );
    check_spread(
        json!({"matchLabelKeys": ["foo", "foo"]}),
        &[&format!("P[1]: {both}")],
    );
    let legacy = AdmissionOptions {
        merge_spread_match_label_keys: false,
        ..AdmissionOptions::KUBERNETES_1_36
    };
    check_spread_with(
        &legacy,
        json!({"matchLabelKeys": ["app", "foo"], "labelSelector": selector}),
        &[&format!("P.matchLabelKeys[1]: {both}")],
    );
    check_spread_with(&legacy, json!({"matchLabelKeys": ["foo", "foo"]}), &[]);
}

#[test]
fn a_template_may_have_a_key_that_its_pods_may_not() {
    let mut given = workload(json!({}));
    given["spec"]["template"]["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["app"],
    }]);
    check::<Deployment>(given, &[]);
}

#[test]
fn spread_warnings() {
    check_spread(
        json!({"labelSelector": null}),
        &["P.labelSelector: a null labelSelector results in matching no pod"],
    );
    check_spread(
        json!({"topologyKey": "failure-domain.beta.kubernetes.io/zone"}),
        &[
            "P.topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
        ],
    );
    let mut given = workload(json!({}));
    given["spec"]["template"]["spec"]["topologySpreadConstraints"] =
        json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]);
    check::<Deployment>(
        given,
        &[
            "spec.template.spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ],
    );
}
