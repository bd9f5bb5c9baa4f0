//! `strew install`: its output, and the definitions that it leaves alone.

use std::collections::BTreeMap;

use serde_json::Value;
use snapbox::{Data, file};

use crate::{COMPONENTS, crds, json, root, stderr, stdout, strew};

/// With an image, and without a known cluster.
fn install(args: &str) -> snapbox::cmd::Command {
    alone(&format!(
        "install {args} --image registry.example.com/strew:0.1.0"
    ))
}

/// Without a known cluster: `HOME` has no kubeconfig, and it does not run in a pod.
fn alone(args: &str) -> snapbox::cmd::Command {
    strew(args)
        .env("HOME", "/nowhere")
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
}

/// The objects of a kind.
fn of_kind(list: &Value, kind: &str) -> Vec<Value> {
    let items = list["items"].as_array().unwrap().iter();
    items.filter(|o| o["kind"] == kind).cloned().collect()
}

#[test]
fn the_manifests_of_each_part() {
    for part in COMPONENTS {
        let run = install(&format!("{part} {}", crds(part, "never")));
        let snapshot = format!("crates/strew/tests/it/snapshots/install-{part}.yaml");
        let snapshot = Data::read_from(&root().join(snapshot), None);
        run.assert().code(0).stdout_eq(snapshot);
    }
}

/// An image that no registry has would leave a cluster with roles and webhooks and without a process.
#[test]
fn an_image_is_required_and_looked_at() {
    for part in [
        "scheduler",
        "workloadspread --crds=never",
        "placement --crds=never",
    ] {
        let run = alone(&format!("install {part}")).assert().code(2);
        assert_eq!(stdout(&run), "");
        assert_eq!(
            stderr(&run),
            "error: --image is required: no image of strew is published yet\n\
             hint: build one with deploy/Containerfile, push it to a registry that the nodes reach, and name it: --image \
             registry.example.com/strew:0.1.0\n"
        );
    }
    for (flag, why) in [
        ("--image=Strew:1", "not an image such as"),
        ("--image=strew:", "not a tag"),
        ("--namespace=strew.system", "must not contain dots"),
        (
            "--metrics-namespace=Monitoring",
            "must consist of lower case",
        ),
        ("--replicas=0", "0 is not in 1..=100"),
    ] {
        let run = alone(&format!("install scheduler {flag}")).assert().code(2);
        assert_eq!(stdout(&run), "");
        assert!(stderr(&run).contains(why), "{flag}: {}", stderr(&run));
    }
}

/// A changed ConfigMap reaches a process only with a new pod.
#[test]
fn pods_are_made_anew_when_their_configuration_changes() {
    let file = std::env::temp_dir().join(format!("strew-hash-{}.yaml", std::process::id()));
    let hash_with = |name: &str| {
        let config = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{{schedulerName: {name}}}]\n"
        );
        std::fs::write(&file, config).unwrap();
        let run = install(&format!("scheduler -o json --config {}", file.display()));
        let run = run.assert().code(0);
        let said = stderr(&run);
        assert_eq!(
            said.contains("kube-scheduler has the profile"),
            name == "default-scheduler"
        );
        let deployment = of_kind(&json(&run), "Deployment").remove(0);
        let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
        annotations["checksum/config"].as_str().unwrap().to_owned()
    };
    let first = hash_with("first");
    assert_eq!(first.len(), 64);
    assert_eq!(hash_with("first"), first);
    assert_ne!(hash_with("default-scheduler"), first);
    std::fs::remove_file(&file).unwrap();
}

/// docs/rights.md equals the output of `--rights`: `SNAPSHOTS=overwrite` writes it again.
#[test]
fn the_page_of_rights_is_made_from_the_code() {
    let mut page = ABOUT_RIGHTS.to_owned();
    for part in COMPONENTS {
        let run = alone(&format!("install {part} --rights")).assert().code(0);
        page += &format!("\n## `strew install {part}`\n\n{}", stdout(&run));
    }
    let run = alone("ui --rights").assert().code(0);
    page += &format!("\n## `strew ui`\n\n{ABOUT_UI}\n\n{}", stdout(&run));
    snapbox::assert_data_eq!(page, file!["../../../../docs/rights.md"].raw());
}

const ABOUT_UI: &str = "It has no account of its own and is installed nowhere: it uses these rights of the user whose \
kubeconfig it reads. `strew ui --rights` prints the table.";

const ABOUT_RIGHTS: &str = "\
# What each right is for

`strew install COMPONENT --rights` prints these tables; the roles are made from the same lists. `where` is the whole \
cluster or the component's namespace. A name after the resource limits the right to the object of that name. Each process \
checks its rights at the start and names all that are missing.

What the accounts may write with these rights is bounded further: [security.md](security.md#what-strews-own-accounts-may-do).
";

#[test]
fn a_webhook_outside_the_cluster_has_no_deployment_and_no_service() {
    let args = "workloadspread --crds=always --webhook-url https://127.0.0.1:9443/ --static-registration -o json";
    let list = json(&install(args).assert().code(0));
    let deployments = of_kind(&list, "Deployment");
    let names: Vec<&Value> = deployments.iter().map(|d| &d["metadata"]["name"]).collect();
    assert_eq!(names, ["strew-controller"]);
    assert_eq!(of_kind(&list, "Service"), [Value::Null; 0]);
    // Its rights stay: the service account is needed to start it.
    assert_eq!(of_kind(&list, "ServiceAccount").len(), 2);
    let mut urls = Vec::new();
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        for configuration in of_kind(&list, kind) {
            for webhook in configuration["webhooks"].as_array().unwrap() {
                urls.push(webhook["clientConfig"]["url"].as_str().unwrap().to_owned());
            }
        }
    }
    let definition = &of_kind(&list, "CustomResourceDefinition")[0];
    let conversion = &definition["spec"]["conversion"]["webhook"]["clientConfig"]["url"];
    urls.push(conversion.as_str().unwrap().to_owned());
    assert_eq!(
        urls,
        [
            "https://127.0.0.1:9443/admit/pods",
            "https://127.0.0.1:9443/admit/pods",
            "https://127.0.0.1:9443/validate/workloadspreads",
            "https://127.0.0.1:9443/admit/evictions",
            "https://127.0.0.1:9443/convert/workloadspreads",
        ]
    );
    let wrong = install("workloadspread --webhook-url http://127.0.0.1:1").assert();
    assert!(stderr(&wrong.code(2)).contains("https:// only"));
}

#[test]
fn a_failure_policy_is_that_of_creations_and_pods_can_always_go() {
    let policies = |args: &str| -> Vec<String> {
        let list = json(&install(args).assert().code(0));
        let kinds = [
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ];
        let all = kinds.iter().flat_map(|kind| of_kind(&list, kind));
        let webhooks = all.flat_map(|c| c["webhooks"].as_array().unwrap().clone());
        let told = webhooks.map(|w| {
            let name = w["name"].as_str().unwrap().split('.').next().unwrap();
            format!("{name} {}", w["failurePolicy"].as_str().unwrap())
        });
        told.collect()
    };
    let common = "workloadspread --crds=never --static-registration -o json";
    let expected = |policy: &str| {
        [
            format!("pods {policy}"),
            "pod-deletions Ignore".to_owned(),
            format!("workloadspreads {policy}"),
            // The plain budget decides then.
            "evictions Ignore".to_owned(),
        ]
    };
    assert_eq!(policies(common), expected("Fail"));
    let ignoring = format!("{common} --failure-policy=Ignore");
    assert_eq!(policies(&ignoring), expected("Ignore"));
    let wrong = install(&format!("{common} --failure-policy=fail")).assert();
    assert!(stderr(&wrong.code(2)).contains("possible values: Fail, Ignore"));
}

/// Until a replica is ready, no creation of a pod waits; the replicas have the flags of their registration.
#[test]
fn the_webhook_is_installed_without_a_registration() {
    let args = "workloadspread --crds=never --failure-policy=Ignore --strict -o json";
    let list = json(&install(args).assert().code(0));
    let configuration = &of_kind(&list, "MutatingWebhookConfiguration")[0];
    assert!(configuration["webhooks"].is_null(), "{configuration}");
    let flags = |deployment: &Value| -> Vec<String> {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let args = container["args"].as_array().unwrap().iter();
        let args = args.map(|arg| arg.as_str().unwrap().to_owned());
        args.filter(|arg| arg.contains("strict") || arg.contains("policy"))
            .collect()
    };
    let deployments = of_kind(&list, "Deployment");
    let [webhook, controller] = &deployments[..] else {
        panic!("{deployments:?}");
    };
    assert_eq!(flags(webhook), ["--failure-policy=Ignore", "--strict"]);
    assert_eq!(flags(controller), ["--strict"]);
}

#[test]
fn nobody_gets_a_right_on_all_objects_where_one_name_is_enough() {
    let list = json(
        &install("workloadspread --crds=never -o json")
            .assert()
            .code(0),
    );
    let mut roles = of_kind(&list, "ClusterRole");
    roles.extend(of_kind(&list, "Role"));
    let guarded = [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "customresourcedefinitions",
        "secrets",
    ];
    let mut n_seen = 0;
    for role in &roles {
        for rule in role["rules"].as_array().into_iter().flatten() {
            assert_ne!(rule["verbs"][0], "*");
            let resource = rule["resources"][0].as_str().unwrap();
            let is_in_cluster = role["kind"] == "ClusterRole";
            assert!(!is_in_cluster || !["secrets", "configmaps"].contains(&resource));
            // The name of an object is unknown when its creation is authorized.
            if guarded.contains(&resource) && rule["verbs"] != serde_json::json!(["create"]) {
                assert!(rule["resourceNames"].is_array(), "{rule}");
                n_seen += 1;
            }
        }
    }
    assert_eq!(n_seen, 5);
}

/// Write access to another part's lease can keep that part from leading, or imitate its leader.
#[test]
fn each_account_renews_its_own_leases_alone() {
    let mut owners = BTreeMap::new();
    for part in [
        "scheduler",
        "workloadspread --crds=never",
        "placement --crds=never",
    ] {
        let list = json(&install(&format!("{part} -o json")).assert().code(0));
        for role in of_kind(&list, "Role")
            .iter()
            .chain(&of_kind(&list, "ClusterRole"))
        {
            for rule in role["rules"].as_array().into_iter().flatten() {
                if rule["resources"] != serde_json::json!(["leases"]) {
                    continue;
                }
                assert_eq!(role["kind"], "Role", "{role}");
                if rule["verbs"] == serde_json::json!(["create"]) {
                    continue;
                }
                let leases = rule["resourceNames"].as_array();
                let leases = leases.unwrap_or_else(|| panic!("of all leases: {rule}"));
                if rule["verbs"] == serde_json::json!(["get"]) {
                    continue;
                }
                let name = role["metadata"]["name"].as_str().unwrap();
                for lease in leases {
                    let lease = lease.as_str().unwrap().to_owned();
                    let before = owners.insert(lease, name.to_owned());
                    assert!(
                        before.is_none_or(|before| before == name),
                        "{rule} of {name}"
                    );
                }
            }
        }
    }
    let leases: Vec<&String> = owners.keys().collect();
    let expected = [
        "strew-controller",
        "strew-placement",
        "strew-scheduler",
        "strew-webhook",
        "strew-webhook-replicas",
    ];
    assert_eq!(leases, expected);
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  leaderElection: {resourceName: mine}\nprofiles: [{schedulerName: strew}]\n";
    let file = std::env::temp_dir().join(format!("strew-lease-{}.yaml", std::process::id()));
    std::fs::write(&file, config).unwrap();
    let args = format!("scheduler --config {} -o json", file.display());
    let list = json(&install(&args).assert().code(0));
    let rules = &of_kind(&list, "Role")[0]["rules"];
    assert_eq!(
        rules[1]["resourceNames"],
        serde_json::json!(["mine"]),
        "{rules}"
    );
    std::fs::remove_file(&file).unwrap();
}

/// Probes need no rule: kubelets can always connect to the pods of their node.
#[test]
fn who_may_reach_which_port() {
    let policies = |args: &str| -> Vec<Value> {
        let list = json(&install(&format!("{args} -o json")).assert().code(0));
        let mut told = Vec::new();
        for policy in of_kind(&list, "NetworkPolicy") {
            let spec = &policy["spec"];
            let name = &policy["metadata"]["name"];
            assert_eq!(
                spec["podSelector"]["matchLabels"]["app.kubernetes.io/name"],
                *name
            );
            assert_eq!(spec["policyTypes"], serde_json::json!(["Ingress"]));
            for rule in spec["ingress"].as_array().unwrap() {
                told.push(serde_json::json!([
                    name,
                    rule["ports"][0]["port"],
                    rule["from"]
                ]));
            }
        }
        told
    };
    let pods = serde_json::json!([{"namespaceSelector": {}}]);
    let part = "workloadspread --crds=never";
    let controller = serde_json::json!(["strew-controller", 10261, pods]);
    let expected = [
        serde_json::json!(["strew-webhook", 9443, null]),
        serde_json::json!(["strew-webhook", 10262, pods]),
        controller.clone(),
    ];
    assert_eq!(policies(part), expected);
    let url = format!("{part} --webhook-url https://10.0.0.7:9443");
    assert_eq!(policies(&url), [controller]);
    let named = "--api-server-cidr 10.0.0.0/28 --api-server-cidr fd00::7/128 --metrics-namespace monitoring";
    let named = policies(&format!("{part} {named}"));
    let own =
        serde_json::json!({"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "strew"}}});
    let networks = serde_json::json!([{"ipBlock": {"cidr": "10.0.0.0/28"}}, {"ipBlock": {"cidr": "fd00::7/128"}}, own]);
    assert_eq!(named[0][2], networks);
    let monitoring = &named[1][2][0]["namespaceSelector"]["matchExpressions"][0];
    assert_eq!(monitoring["values"], serde_json::json!(["monitoring"]));
    assert_eq!(named[2][2], named[1][2]);
    for (part, port) in [("scheduler", 10259), ("placement --crds=never", 10261)] {
        assert_eq!(policies(part)[0][1], port, "{part}");
    }
    let wrong = install(&format!("{part} --api-server-cidr 10.0.0.7/28")).assert();
    assert!(stderr(&wrong.code(2)).contains("bits beyond the first 28"));
}

/// A network plugin must not wait for a webhook that waits for it.
#[test]
fn pods_that_can_be_no_target_are_not_asked_about() {
    let told = |args: &str| -> (Vec<String>, Vec<Value>) {
        let args = format!("workloadspread --crds=never -o json {args}");
        let list = json(&install(&args).assert().code(0));
        let container =
            &of_kind(&list, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
        let flags = container["args"].as_array().unwrap().iter();
        let flags = flags.map(|flag| flag.as_str().unwrap().to_owned());
        let flags = flags.filter(|f| f.contains("exclude") || f.contains("daemon"));
        let kinds = [
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ];
        let all = kinds.iter().flat_map(|kind| of_kind(&list, kind));
        let all = all.flat_map(|c| c["webhooks"].as_array().cloned().unwrap_or_default());
        (flags.collect(), all.collect())
    };
    let (flags, webhooks) =
        told("--static-registration --exclude-namespace cni --exclude-namespace dns");
    assert_eq!(
        flags,
        ["--exclude-namespace=cni", "--exclude-namespace=dns"]
    );
    let mut n_of_pods = 0;
    for webhook in &webhooks {
        let of_pods = webhook["name"] != "workloadspreads.webhook.strew.dev";
        n_of_pods += usize::from(of_pods);
        let selector = &webhook["namespaceSelector"]["matchExpressions"];
        let mut names = serde_json::json!(["strew-system", "kube-system"]);
        let of_evictions = webhook["name"] == "evictions.webhook.strew.dev";
        if of_evictions {
            // Budgets by zone ask for no WorkloadSpread.
            names = serde_json::json!(["strew-system", "kube-system", "cni", "dns"]);
            assert!(selector[1].is_null(), "{webhook}");
        } else if of_pods {
            names = serde_json::json!(["strew-system", "kube-system", "cni", "dns"]);
            let label = serde_json::json!({
                "key": "strew.dev/workloadspread", "operator": "NotIn", "values": ["disabled"],
            });
            assert_eq!(selector[1], label, "{webhook}");
        } else {
            // Stored objects are validated, whatever the labels of the namespace.
            assert!(selector[1].is_null(), "{webhook}");
        }
        assert_eq!(selector[0]["values"], names, "{webhook}");
    }
    assert_eq!(n_of_pods, 3);
    let asks_about_all = |webhook: &Value| {
        let condition = webhook["matchConditions"][0]["expression"]
            .as_str()
            .unwrap();
        !condition.contains("o.kind != 'DaemonSet'")
    };
    assert!(!asks_about_all(&webhooks[0]) && !asks_about_all(&webhooks[1]));
    let (flags, webhooks) = told("--static-registration --daemon-sets");
    assert_eq!(flags, ["--daemon-sets"]);
    assert!(asks_about_all(&webhooks[0]) && asks_about_all(&webhooks[1]));
}

/// A test on a real API server shows what they refuse (e2e `ws-bounded`).
#[test]
fn policies_bound_what_the_accounts_write() {
    let list = json(
        &install("workloadspread --crds=never --namespace other -o json")
            .assert()
            .code(0),
    );
    let (policies, bindings) = (
        of_kind(&list, "ValidatingAdmissionPolicy"),
        of_kind(&list, "ValidatingAdmissionPolicyBinding"),
    );
    assert_eq!(policies.len(), 5);
    for (policy, binding) in policies.iter().zip(&bindings) {
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(
            binding["spec"]["validationActions"],
            serde_json::json!(["Deny"])
        );
        let who = policy["spec"]["matchConditions"][0]["expression"]
            .as_str()
            .unwrap();
        for account in ["strew-webhook", "strew-controller"] {
            let user = format!("'system:serviceaccount:other:{account}'");
            assert!(who.contains(&user), "{who}");
        }
    }
    // Every resource that a role can write is bounded.
    let mut written = Vec::new();
    for role in of_kind(&list, "ClusterRole") {
        for rule in role["rules"].as_array().into_iter().flatten() {
            if rule["resourceNames"].is_array() {
                written.push(rule["resources"][0].clone());
            }
        }
    }
    let bounded: Vec<Value> = policies
        .iter()
        .flat_map(|p| {
            let rules = &p["spec"]["matchConstraints"]["resourceRules"];
            rules.as_array().unwrap()
        })
        .flat_map(|rule| rule["resources"].as_array().unwrap())
        .cloned()
        .collect();
    assert!(
        written.len() >= 3 && written.iter().all(|r| bounded.contains(r)),
        "{written:?}"
    );
    // Pods and budgets, whose names no role can restrict.
    for pods in ["pods", "pods/eviction", "poddisruptionbudgets"] {
        assert!(
            bounded.iter().any(|resource| resource == pods),
            "{bounded:?}"
        );
    }
    // Resources that a role can create under any name.
    let mut created = Vec::new();
    for role in of_kind(&list, "Role") {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let verbs = rule["verbs"].as_array().unwrap();
            if rule["resourceNames"].is_null() && verbs.iter().any(|verb| verb == "create") {
                created.push(rule["resources"][0].clone());
            }
        }
    }
    assert!(
        created.len() >= 3 && created.iter().all(|r| bounded.contains(r)),
        "{created:?}"
    );
}

#[test]
fn definitions_are_printed_where_somebody_says_so() {
    for (part, n) in [("workloadspread", 1), ("placement", 6)] {
        let list = json(
            &install(&format!("{part} --crds=always -o json"))
                .assert()
                .code(0),
        );
        assert_eq!(
            of_kind(&list, "CustomResourceDefinition").len(),
            n,
            "{part}"
        );
        // The cluster is unknown: its definitions may be Kruise's or OCM's.
        let run = install(&format!("{part} -o json")).assert().code(0);
        assert_eq!(of_kind(&json(&run), "CustomResourceDefinition").len(), 0);
        let said = stderr(&run);
        assert!(
            said.starts_with("note: the CustomResourceDefinitions are left out: "),
            "{said}"
        );
        assert!(said.contains("--crds=always prints them"), "{said}");
        let quiet = install(&format!("{part} -o json --quiet")).assert().code(0);
        assert_eq!(stderr(&quiet), "");
        // A cluster that the user names must answer.
        let named = install(&format!("{part} --kubeconfig=/nowhere/config")).assert();
        let named = named.code(3);
        assert_eq!(stdout(&named), "");
        assert!(stderr(&named).contains("kubeconfig /nowhere/config: "));
    }
}

/// An unreachable cluster of the environment costs the warning only: the manifests are printed.
#[test]
fn another_scheduler_is_asked_for_where_a_cluster_is_known() {
    let run = install("scheduler").assert().code(0);
    assert_eq!(stderr(&run), "");
    // An API server that is not there: nothing listens on port 1.
    let kubeconfig = std::env::temp_dir().join(format!("strew-rivals-{}", std::process::id()));
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
                contexts: [{name: a, context: {cluster: a, user: a}}]\n\
                clusters: [{name: a, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: a, user: {}}]\n";
    std::fs::write(&kubeconfig, text).unwrap();
    let run = install("scheduler").env("KUBECONFIG", &kubeconfig);
    let run = run.assert().code(0);
    let said = stderr(&run);
    assert!(
        said.starts_with(
            "note: whether another scheduler has the same profile could not be asked ("
        ),
        "{said}"
    );
    assert!(stdout(&run).contains("kind: Deployment"));
    let quiet = install("scheduler --quiet").env("KUBECONFIG", &kubeconfig);
    assert_eq!(stderr(&quiet.assert().code(0)), "");
    // A cluster that the arguments name must answer.
    let named = install(&format!("scheduler --kubeconfig {}", kubeconfig.display()));
    assert!(stderr(&named.assert().code(3)).contains("does not answer"));
    // One that takes connections and says nothing does not hold the manifests up for ever.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());
    std::fs::write(&kubeconfig, text.replace("127.0.0.1:1", &server)).unwrap();
    let run = install("scheduler").env("KUBECONFIG", &kubeconfig);
    let run = run.timeout(std::time::Duration::from_secs(120)).assert();
    let run = run.code(0);
    assert!(
        stderr(&run).contains("no answer within 10 s"),
        "{}",
        stderr(&run)
    );
    assert!(stdout(&run).contains("kind: Deployment"));
    std::fs::remove_file(&kubeconfig).unwrap();
}
