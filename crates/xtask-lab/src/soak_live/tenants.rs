//! The namespaces of the victim and of attacking tenants.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};

use crate::e2e::stage::Stage;

/// The victim's Deployment, in the stage's namespace.
pub(super) const VICTIM: &str = "victim";

/// The namespace of a tenant with expensive pods.
pub(super) const HOSTILE: &str = "hostile";

/// The namespace of a tenant whose pods come and go.
const CHURN: &str = "churn";

const ZONE: &str = "topology.kubernetes.io/zone";

/// Nodes with room for all.
const NODES: usize = 10;

/// The accounts and objects that attacks use.
pub(super) struct Tenants {
    kubeconfigs: [PathBuf; 2],
    /// The uid of the ReplicaSet that the expensive pods name.
    owner: String,
}

impl Tenants {
    /// Makes nodes, namespaces, workloads and accounts.
    pub(super) fn prepare(stage: &Stage) -> anyhow::Result<Self> {
        stage.apply_all((0..NODES).map(node).collect())?;
        stage.apply_all(vec![
            workload("Deployment", VICTIM),
            spread("Deployment", VICTIM, Strategy::Fixed),
        ])?;
        for namespace in [HOSTILE, CHURN] {
            let kubectl = |args: &[&str]| {
                let mut all = vec!["--namespace", namespace];
                all.extend(args);
                stage.kubectl().run(&all)
            };
            kubectl(&["create", "namespace", namespace])?;
            kubectl(&["create", "serviceaccount", "tenant"])?;
            let account = format!("--serviceaccount={namespace}:tenant");
            kubectl(&[
                "create",
                "rolebinding",
                "tenant",
                "--clusterrole=edit",
                &account,
            ])?;
        }
        let file = |namespace: &str| {
            let file = stage.kubeconfig_of(namespace, "tenant", &[])?;
            let own = file.with_file_name(format!("{namespace}.kubeconfig"));
            std::fs::rename(file, &own)?;
            anyhow::Ok(own)
        };
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            workload("ReplicaSet", "owner"),
            spread("ReplicaSet", "owner", Strategy::Adaptive),
        ]});
        let namespace = format!("--namespace={HOSTILE}");
        let apply = ["apply", "--server-side", "--filename=-", &namespace];
        stage.kubectl().run_with(&apply, &list)?;
        let owner = ["get", "replicaset/owner", "--output=json", &namespace];
        let owner: Value = serde_json::from_str(&stage.kubectl().run(&owner)?)?;
        let owner = owner["metadata"]["uid"].as_str().context("a uid")?;
        Ok(Self {
            kubeconfigs: [file(HOSTILE)?, file(CHURN)?],
            owner: owner.to_owned(),
        })
    }

    /// Deletes what an attack has left, so that the next phase begins as the first one did: in one request for each
    /// namespace, since kubectl asks for five pods a second.
    pub(super) fn sweep(stage: &Stage) -> anyhow::Result<()> {
        for namespace in [HOSTILE, CHURN] {
            let pods = format!("/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0");
            stage.kubectl().run(&["delete", "--raw", &pods])?;
        }
        Ok(())
    }

    /// Takes the tenants' namespaces away.
    pub(super) fn clear(stage: &Stage) -> anyhow::Result<()> {
        let delete = ["delete", "namespace", HOSTILE, CHURN, "--wait=false"];
        stage.kubectl().run(&delete).map(drop)
    }

    /// The arguments of an attack with pods of `terms` terms, under a WorkloadSpread.
    pub(super) fn hostile(&self, terms: usize) -> Vec<String> {
        let mut args = self.without_owner(terms);
        args.push(format!("--owner={}", self.owner));
        args
    }

    /// The arguments of the attack with pods that do not concern strew: no controller owns them, and they name another
    /// scheduler.
    pub(super) fn past_strew(&self, terms: usize) -> Vec<String> {
        let mut args = self.without_owner(terms);
        args.push("--scheduler=nobody".to_owned());
        args
    }

    /// The arguments of the attack with pods that strew's scheduler binds, and about which no API server asks the webhook.
    pub(super) fn without_owner(&self, terms: usize) -> Vec<String> {
        let mut args = of("pods", &self.kubeconfigs[0], HOSTILE);
        args.push(format!("--terms={terms}"));
        args
    }

    /// The arguments of churn, with `rate` pods a second.
    pub(super) fn churn(&self, rate: u32) -> Vec<String> {
        let mut args = of("churn", &self.kubeconfigs[1], CHURN);
        args.push(format!("--rate={rate}"));
        args
    }
}

fn of(attack: &str, kubeconfig: &std::path::Path, namespace: &str) -> Vec<String> {
    vec![
        attack.to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={namespace}"),
    ]
}

fn node(number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("n-{number}"), "labels": {ZONE: zone(number)}},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"}},
    })
}

fn zone(number: usize) -> &'static str {
    ["a", "b"][number % 2]
}

/// A workload without pods.
fn workload(kind: &str, name: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "schedulerName": "strew",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "c",
                        "image": "i",
                        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
                    }],
                },
            },
        },
    })
}

#[derive(Clone, Copy)]
enum Strategy {
    Fixed,
    /// With simulated scheduling.
    Adaptive,
}

/// Two zones, of which the first takes 50 pods under Fixed.
fn spread(kind: &str, name: &str, strategy: Strategy) -> Value {
    let subset = |number: usize| {
        let zone = zone(number);
        let expression = json!({"key": ZONE, "operator": "In", "values": [zone]});
        json!({
            "name": zone,
            "requiredNodeSelectorTerm": {"matchExpressions": [expression]},
        })
    };
    let mut subsets = [subset(0), subset(1)];
    // Without `adaptive` it would be Fixed.
    let scheduling = match strategy {
        Strategy::Fixed => {
            subsets[0]["maxReplicas"] = 50.into();
            json!({"type": "Fixed"})
        }
        Strategy::Adaptive => json!({"type": "Adaptive", "adaptive": {}}),
    };
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "WorkloadSpread",
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
            "scheduleStrategy": scheduling,
            "subsets": subsets,
        },
    })
}
