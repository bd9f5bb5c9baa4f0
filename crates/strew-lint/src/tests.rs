use std::collections::BTreeSet;

use strew_manifest::read::{KubeObject, Sources, read};

use super::{Depth, Found, RULES, lint};

/// The findings about these documents, each as `code severity object`.
fn found(text: &str) -> Vec<String> {
    let found = all(text, false);
    let each = found.iter().map(|(object, found)| {
        let (code, severity) = (found.code, found.severity.name());
        format!("{code} {severity} {object}")
    });
    each.collect()
}

fn all(text: &str, more_come: bool) -> Vec<(String, Found)> {
    let mut sources = Sources::new();
    sources.add("a.yaml", text);
    let reading = read(&sources);
    assert_eq!(reading.diagnostics, [], "{text}");
    let objects: Vec<&KubeObject> = reading.objects.iter().map(|l| &l.object).collect();
    let found = lint(&objects, more_come, Depth::Written).into_iter();
    let found = found.map(|found| (objects[found.object].label(), found));
    found.collect()
}

/// A Deployment of six pods with the label `app=web`.
fn deployment(name: &str, more: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: 6
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}, tier: front}}}}
    spec:
      containers: [{{name: a, image: b}}]
{more}---
"
    )
}

fn constrained(fields: &str) -> String {
    let constraint = format!(
        "      topologySpreadConstraints: [{{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, {fields}}}]\n"
    );
    deployment("web", &constraint)
}

fn node(name: &str, labels: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n---\n")
}

fn budget(fields: &str) -> String {
    format!(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: b, namespace: shop}}\nspec: {{{fields}}}\n---\n"
    )
}

const ZONE: &str = "topologyKey: topology.kubernetes.io/zone";
const OWN: &str = "labelSelector: {matchLabels: {app: web}}";
const WEB: &str = "Deployment shop/web";

#[test]
fn sound_files_have_no_finding() {
    let zones =
        node("a", "topology.kubernetes.io/zone: a") + &node("b", "topology.kubernetes.io/zone: b");
    let web = constrained(&format!(
        "{ZONE}, {OWN}, matchLabelKeys: [pod-template-hash]"
    ));
    let sound = [
        web.clone() + &budget("minAvailable: 5, selector: {matchLabels: {app: web}}"),
        zones + &web,
        // Each alone: the rest is elsewhere.
        web.clone(),
        budget("minAvailable: 1, selector: {matchLabels: {app: other}}"),
        web + &deployment("api", "")
            + &budget("maxUnavailable: 25%, selector: {matchLabels: {tier: front}}"),
        constrained(&format!("topologyKey: example.com/rack, {OWN}")),
    ];
    for text in sound {
        assert_eq!(found(&text), [""; 0], "{text}");
    }
}

#[test]
fn a_constraint_counts_pods_and_not_domains() {
    let other = "labelSelector: {matchLabels: {app: api}}";
    let text = constrained(&format!("{ZONE}, {other}")) + &deployment("api", "");
    let all = all(&text, false);
    let [(object, found)] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(
        (object.as_str(), found.code),
        (WEB, "constraint-counts-none")
    );
    assert_eq!(found.numbers, [("counted", 0), ("pods", 6)]);
    assert_eq!(
        found.message,
        "the constraint counts none of the 6 pods of the workload, so it does not spread them: its selector is app=api"
    );
    let typo = constrained(&format!(
        "{ZONE}, labelSelector: {{matchLabels: {{app: wbe}}}}"
    ));
    let help = self::all(&typo, false).remove(0).1.help;
    assert_eq!(help.as_deref(), Some("did you mean app=web?"));
    let none = constrained(ZONE);
    assert_eq!(found_of(&none), ["constraint-counts-none"]);
}

fn found_of(text: &str) -> Vec<&'static str> {
    all(text, false)
        .iter()
        .map(|(_, found)| found.code)
        .collect()
}

#[test]
fn a_constraint_that_counts_one_pod_of_a_stateful_set() {
    let text = |label: &str| {
        format!(
            "apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 3
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      containers: [{{name: a, image: b}}]
      topologySpreadConstraints:
      - {{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, {ZONE}, labelSelector: {{matchLabels: {{{label}}}}}}}
"
        )
    };
    let one = all(&text("statefulset.kubernetes.io/pod-name: db-1"), false);
    assert_eq!((one.len(), one[0].1.code), (1, "constraint-counts-some"));
    assert_eq!(one[0].1.numbers, [("counted", 1), ("pods", 3)]);
    assert_eq!(
        found_of(&text("statefulset.kubernetes.io/pod-name: db-7")),
        ["constraint-counts-none"]
    );
    assert_eq!(found_of(&text("app: db")), [""; 0]);
}

#[test]
fn keys_are_compared_with_labels() {
    let misspelt = constrained(&format!(
        "{ZONE}, {OWN}, matchLabelKeys: [pod-template-hsah]"
    ));
    let all = all(&misspelt, false);
    assert_eq!(all[0].1.code, "match-label-key-missing");
    assert_eq!(
        all[0].1.help.as_deref(),
        Some("did you mean pod-template-hash?")
    );

    // Without nodes only misspelt well-known keys are told.
    let zome = constrained(&format!("topologyKey: topology.kubernetes.io/zome, {OWN}"));
    assert_eq!(found_of(&zome), ["topology-key-missing"]);
    let with_nodes = zome + &node("a", "topology.kubernetes.io/zone: a");
    assert_eq!(found_of(&with_nodes), ["topology-key-missing"]);
    for key in [
        "topology.kubernetes.io/rack",
        "failure-domain.beta.kubernetes.io/zone",
        "zone",
    ] {
        let other = constrained(&format!("topologyKey: {key}, {OWN}"));
        assert_eq!(found_of(&other), [""; 0], "{key}");
    }

    let web = constrained(&format!("{ZONE}, {OWN}"));
    let zones = ["a", "b"]
        .map(|z| node(z, &format!("topology.kubernetes.io/zone: {z}")))
        .concat();
    assert_eq!(
        found_of(&(web.clone() + &zones + &node("c", ""))),
        ["topology-key-partial"]
    );
    // Pods do not go to the control plane, whatever its labels.
    let tainted = "apiVersion: v1\nkind: Node\nmetadata: {name: c}\nspec: {taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]}\n---\n";
    assert_eq!(found_of(&(web.clone() + &zones + tainted)), [""; 0]);
    let one =
        node("a", "topology.kubernetes.io/zone: a") + &node("b", "topology.kubernetes.io/zone: a");
    assert_eq!(found_of(&(web.clone() + &one)), ["one-domain"]);
    let asks = constrained(&format!("{ZONE}, {OWN}, minDomains: 2"));
    assert_eq!(found_of(&(asks + &one)), [""; 0]);
    let soft = web.replace("DoNotSchedule", "ScheduleAnyway") + &one;
    assert_eq!(found(&soft), [format!("one-domain note {WEB}")]);
    // Every kubelet sets the label of its hostname.
    let hostname = constrained(&format!("topologyKey: kubernetes.io/hostname, {OWN}"));
    assert_eq!(
        found_of(&(hostname + &node("a", "") + &node("b", ""))),
        [""; 0]
    );
}

#[test]
fn budgets_are_compared_with_pods() {
    let web = deployment("web", "");
    let with = |fields: &str| found_of(&(web.clone() + &budget(fields)));
    let own = "selector: {matchLabels: {app: web}}";
    for (fields, code) in [
        ("maxUnavailable: 0", "budget-allows-none"),
        ("maxUnavailable: 0%", "budget-allows-none"),
        ("minAvailable: 100%", "budget-allows-none"),
        ("minAvailable: 6", "budget-allows-none"),
        ("minAvailable: 95%", "budget-allows-none"),
        ("minAvailable: 5", ""),
        ("minAvailable: 50%", ""),
        ("maxUnavailable: 1%", ""),
    ] {
        let found = with(&format!("{fields}, {own}"));
        assert_eq!(found.concat(), code, "{fields}");
    }
    assert_eq!(
        with("minAvailable: 1, selector: {matchLabels: {app: wbe}}"),
        ["budget-selects-none"]
    );
    // A label that the pods may get while they run.
    let role = budget("minAvailable: 1, selector: {matchLabels: {app: web, role: primary}}");
    let role = found(&(web.clone() + &role));
    assert_eq!(
        role,
        ["budget-selects-none note PodDisruptionBudget shop/b"]
    );
    let elsewhere =
        budget(&format!("minAvailable: 1, {own}")).replace("namespace: shop", "namespace: shpo");
    assert_eq!(found_of(&(web.clone() + &elsewhere)), ["budget-elsewhere"]);
    let two = budget("minAvailable: 1, selector: {matchLabels: {tier: front}}")
        .replace("name: b,", "name: c,");
    let two = web + &budget(&format!("minAvailable: 1, {own}")) + &two;
    assert_eq!(
        found(&two),
        ["budgets-overlap warning PodDisruptionBudget shop/c"]
    );
}

#[test]
fn an_autoscaler_sets_the_number_of_pods() {
    let scaler = |name: &str| {
        format!(
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: h, namespace: shop}}\nspec: {{minReplicas: 6, maxReplicas: 9, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}}}\n---\n"
        )
    };
    let least = |n: u8| {
        let budget = budget(&format!(
            "minAvailable: {n}, selector: {{matchLabels: {{app: web}}}}"
        ));
        all(&(deployment("web", "") + &scaler("web") + &budget), false)
    };
    assert_eq!(least(5), []);
    let (_, found) = &least(6)[0];
    assert_eq!(found.code, "budget-allows-none");
    assert!(
        found.message.starts_with("while an autoscaler keeps its minimum, the budget allows no eviction: minAvailable 6 of 6 pods"),
        "{}",
        found.message
    );
    let missing = all(&(deployment("web", "") + &scaler("wbe")), false);
    assert_eq!(missing[0].1.code, "autoscaler-target-missing");
    assert_eq!(missing[0].1.help.as_deref(), Some("did you mean \"web\"?"));
    // The target may be in another file.
    assert_eq!(found_of(&scaler("web")), [""; 0]);
}

#[test]
fn claims_that_pods_name_are_there() {
    let claim = |name: &str, namespace: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Gi}}}}}}\n---\n"
        )
    };
    let volume = "      volumes: [{name: d, persistentVolumeClaim: {claimName: dta}}]\n";
    let web = deployment("web", volume);
    let missing = ["claim-missing warning Deployment shop/web"];
    assert_eq!(found(&(web.clone() + &claim("data", "shop"))), missing);
    assert_eq!(found(&(web.clone() + &claim("dta", "shop"))), [""; 0]);
    // The claims of the namespace may be elsewhere.
    assert_eq!(found(&web), [""; 0]);
    assert_eq!(found(&(web + &claim("dta", "other"))), [""; 0]);
}

#[test]
fn two_autoscalers_of_one_workload_are_told() {
    let scaler = |name: &str, target: &str| {
        format!(
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{maxReplicas: 3, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}}}\n---\n"
        )
    };
    let files = deployment("web", "") + &scaler("a", "web") + &scaler("b", "web");
    assert_eq!(found_of(&files), ["autoscalers-share-target"]);
    let other = deployment("web", "").replace("name: web, ", "name: web2, ");
    let other = other.replace("app: web", "app: web2");
    let files = deployment("web", "") + &other + &scaler("a", "web") + &scaler("b", "web2");
    assert_eq!(found_of(&files), [""; 0]);
}

#[test]
fn suspended_jobs_are_told() {
    let job = |suspend: bool| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec:\n  suspend: {suspend}\n  template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: b}}]}}}}\n---\n"
        )
    };
    assert_eq!(found(&job(true)), ["suspended note Job default/j"]);
    assert_eq!(found(&job(false)), [""; 0]);
}

#[test]
fn selectors_nodes_namespaces_and_claims() {
    let shared =
        deployment("web", "") + &deployment("web", "").replace("name: web, ", "name: web2, ");
    assert_eq!(
        found(&shared),
        ["selectors-overlap warning Deployment shop/web2"]
    );

    let service = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: shop}}\nspec: {{selector: {{app: {value}}}, ports: [{{port: 80}}]}}\n---\n"
        )
    };
    assert_eq!(
        found_of(&(deployment("web", "") + &service("wbe"))),
        ["service-selects-none"]
    );
    for sound in ["web", "postgres"] {
        assert_eq!(
            found_of(&(deployment("web", "") + &service(sound))),
            [""; 0]
        );
    }

    let cloned = ["a", "b"]
        .map(|name| node(name, "kubernetes.io/hostname: template"))
        .concat();
    assert_eq!(found(&cloned), ["hostname-shared warning Node b"]);

    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n";
    let misspelt = deployment("web", "").replace("namespace: shop", "namespace: shpo");
    let misspelt = format!("{namespace}{misspelt}");
    assert_eq!(
        found(&misspelt),
        ["namespace-misspelt warning Deployment shpo/web"]
    );
    assert_eq!(
        found_of(&format!("{namespace}{}", deployment("web", ""))),
        [""; 0]
    );

    let claim = |mode: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data, namespace: shop}}\nspec: {{accessModes: [{mode}], resources: {{requests: {{storage: 1Gi}}}}}}\n---\n"
        )
    };
    let volume = "      volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n";
    let sharing = deployment("web", volume);
    assert_eq!(
        found_of(&(sharing.clone() + &claim("ReadWriteOnce"))),
        ["claim-shared"]
    );
    assert_eq!(
        found_of(&(sharing.clone() + &claim("ReadWriteOncePod"))),
        ["claim-shared"]
    );
    let kept = sharing.replace(
        "      volumes:",
        "      nodeSelector: {kubernetes.io/hostname: a}\n      volumes:",
    );
    let of_kept = |mode| found_of(&(kept.clone() + &claim(mode)));
    assert_eq!(of_kept("ReadWriteOnce"), [""; 0]);
    assert_eq!(of_kept("ReadWriteOncePod"), ["claim-shared"]);
    assert_eq!(found_of(&(sharing + &claim("ReadWriteMany"))), [""; 0]);
}

/// A scenario may bring what is missing.
#[test]
fn nothing_is_missing_where_more_comes() {
    let missing = deployment("web", "")
        + &budget("minAvailable: 1, selector: {matchLabels: {app: wbe}}")
        + &node("a", "");
    assert_eq!(all(&missing, true), []);
    assert_eq!(found_of(&missing), ["budget-selects-none"]);
}

/// Codes are names for tools, and a rule says why.
#[test]
fn each_rule_has_a_name_of_its_own_and_says_why() {
    let codes: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(codes.len(), RULES.len());
    for rule in RULES {
        let is_code = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(rule.code.chars().all(is_code), "{}", rule.code);
        assert!(!rule.what.ends_with('.'), "{}", rule.what);
        assert!(rule.why.ends_with('.'), "{}", rule.why);
    }
    // Every rule about WorkloadSpreads has a row, too.
    let spreads = include_str!("../../strew-wire/src/workloadspread/lint.rs");
    let rows = spreads
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.split('`').next());
    for code in rows {
        assert!(codes.contains(code), "{code}");
    }
}
