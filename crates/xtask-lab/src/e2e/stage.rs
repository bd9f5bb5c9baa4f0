//! The environment of a case: a lab, its own namespace and nodes, and strew's processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, Kubectl, Lab, Service, node, until};

/// The deadline for things that take a moment, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The deadline for the deletion of ten thousand pods, at a few hundred a second.
const CLEARED_WITHIN: Duration = Duration::from_secs(300);

/// The namespace that every cluster has, and that no case deletes.
pub(crate) const DEFAULT: &str = "default";

/// The pause between two looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// One lab for all cases.
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    top: PathBuf,
    /// The program under test.
    pub(crate) strew: PathBuf,
    /// The case's own namespace; [`DEFAULT`] for a scenario file.
    pub(crate) namespace: String,
    /// The objects that a scenario file makes.
    pub(crate) made: Vec<Value>,
    /// Whether sizes are those of a real cluster.
    pub(crate) is_full: bool,
    /// Whether the API server has a webhook registered: without one that answers, pods cannot be deleted.
    pub(crate) is_registered: bool,
    /// Whether clusters may exist, which are in no namespace.
    pub(crate) is_hub: bool,
    /// The address at which strew's service accounts find the API server, if not its own port.
    pub(crate) api: Option<Service>,
}

impl Stage {
    pub(crate) fn new(lab: Lab, top: &Path, strew: PathBuf, is_full: bool) -> Self {
        Self {
            lab,
            top: top.to_owned(),
            strew,
            namespace: String::new(),
            made: Vec::new(),
            is_full,
            is_registered: false,
            is_hub: false,
            api: None,
        }
    }

    /// The project's folder.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        self.lab.kubectl()
    }

    /// kubectl in the case's namespace.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut all = vec!["--namespace", &self.namespace];
        all.extend(args);
        self.kubectl().run(&all)
    }

    /// Makes the case's namespace, unless it is [`DEFAULT`].
    pub(crate) fn begin(&mut self, namespace: &str) -> anyhow::Result<()> {
        self.namespace = namespace.to_owned();
        if namespace == DEFAULT {
            return Ok(());
        }
        self.kubectl().run(&["create", "namespace", namespace])?;
        until("no service account", SOON, PAUSE, || {
            Ok(self.run(&["get", "serviceaccount", "default"]).ok())
        })?;
        Ok(())
    }

    /// Deletes the objects of the case: pods, nodes, and the namespace with everything else in it.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.is_registered) {
            let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations,\
                         validatingadmissionpolicies,validatingadmissionpolicybindings,\
                         mutatingadmissionpolicies,mutatingadmissionpolicybindings";
            let ours = "--selector=app.kubernetes.io/part-of=strew";
            self.kubectl().run(&["delete", kinds, ours])?;
        }
        if std::mem::take(&mut self.is_hub) {
            for (version, plural) in [("v1", "managedclusters"), ("v1beta2", "managedclustersets")]
            {
                let group = "cluster.open-cluster-management.io";
                let all = format!("/apis/{group}/{version}/{plural}");
                // A case may have deleted the kind itself.
                if self.kubectl().run(&["get", "--raw", &all]).is_ok() {
                    self.kubectl().run(&["delete", "--raw", &all])?;
                }
            }
        }
        let namespace = &self.namespace;
        if namespace == DEFAULT {
            self.clear_default()?;
        } else {
            self.kubectl()
                .run(&["delete", "namespace", namespace, "--wait=false"])?;
            self.clear()?;
        }
        self.renew_kubelets()
    }

    /// Deletes what a scenario file made. WorkloadSpreads of an older version need a webhook that answers.
    pub(crate) fn delete_made(&mut self) -> anyhow::Result<()> {
        let made = std::mem::take(&mut self.made);
        if made.is_empty() {
            return Ok(());
        }
        let all = json!({"apiVersion": "v1", "kind": "List", "items": made});
        let delete = [
            "delete",
            "--ignore-not-found",
            "--wait=false",
            "--filename=-",
        ];
        self.kubectl().run_with(&delete, &all).map(drop)
    }

    /// Deletes the rest of a scenario file: what others made of its objects, and events.
    fn clear_default(&mut self) -> anyhow::Result<()> {
        self.delete_made()?;
        self.clear()?;
        let workloads =
            "deployments,replicasets,statefulsets,daemonsets,jobs,replicationcontrollers,pods";
        until("workloads stay", CLEARED_WITHIN, PAUSE, || {
            Ok(self.list(workloads)?.is_empty().then_some(()))
        })?;
        self.run(&["delete", "events", "--all"]).map(drop)
    }

    /// Starts the kubelets anew for the next case: kwok may renew no lease of a node that comes again under the name of
    /// a deleted one, and 50 s later all nodes of a case are lost.
    pub(crate) fn renew_kubelets(&mut self) -> anyhow::Result<()> {
        self.lab.component("kwok")?.kill();
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        self.kubectl().run(&["delete", "--raw", leases])?;
        self.lab.component("kwok")?.restart()
    }

    /// Deletes the namespace's pods, at once, and all nodes.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        let namespace = &self.namespace;
        let mut refused = Ok(());
        let gone = until("pods stay", CLEARED_WITHIN, PAUSE, || {
            // As many as one request can take; the API server may not know yet that the webhook is gone.
            let all =
                format!("/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0&limit=1000");
            refused = self.kubectl().run(&["delete", "--raw", &all]).map(drop);
            Ok(self.pods()?.is_empty().then_some(()))
        });
        refused.and(gone)?;
        self.kubectl().run(&["delete", "--raw", "/api/v1/nodes"])?;
        Ok(())
    }

    /// A file of e2e/cases.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.top.join("e2e/cases").join(name)
    }

    /// Applies a file of e2e/cases: its nodes first, and the rest when they are Ready.
    pub(crate) fn apply(&self, name: &str) -> anyhow::Result<()> {
        let path = self.file(name);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        self.apply_all(objects)
            .with_context(|| path.display().to_string())
    }

    /// Applies objects as [`Self::apply`] does.
    pub(crate) fn apply_all(&self, objects: Vec<Value>) -> anyhow::Result<()> {
        let (nodes, others): (Vec<Value>, Vec<Value>) =
            objects.into_iter().partition(|o| o["kind"] == "Node");
        if !nodes.is_empty() {
            self.apply_list(nodes.into_iter().map(node).collect())?;
            self.until_nodes_are_ready()?;
        }
        if !others.is_empty() {
            self.apply_list(others)?;
        }
        Ok(())
    }

    fn apply_list(&self, items: Vec<Value>) -> anyhow::Result<()> {
        let all = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let namespace = format!("--namespace={}", self.namespace);
        // Server-side: no annotation, and one request for each object.
        let args = ["apply", "--server-side", "--filename=-", &namespace];
        until(
            "the API server does not know a PriorityClass",
            SOON,
            PAUSE,
            || {
                match self.kubectl().run_with(&args, &all) {
                    Ok(_) => Ok(Some(())),
                    // Its admission learns of a class by a watch of its own, some time after the class is stored.
                    Err(refused) if refused.to_string().contains("no PriorityClass with name") => {
                        Ok(None)
                    }
                    Err(refused) => Err(refused),
                }
            },
        )
    }

    /// Waits until the nodes are Ready, and have lost the taint of nodes that are not.
    pub(crate) fn until_nodes_are_ready(&self) -> anyhow::Result<()> {
        until("nodes are not ready", SOON, PAUSE, || {
            let nodes = self.kubectl().objects("nodes")?;
            let is_ready = |node: &Value| {
                let conditions = node["status"]["conditions"].as_array();
                let mut conditions = conditions.into_iter().flatten();
                let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
                conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
                    && !taints.any(|t| t["key"] == "node.kubernetes.io/not-ready")
            };
            Ok(nodes.iter().all(is_ready).then_some(()))
        })
    }

    /// strew's scheduler as the only replica, with these additional arguments.
    pub(crate) fn scheduler(&mut self, args: &[&str]) -> anyhow::Result<Component> {
        let mut all = vec!["--leader-elect=false"];
        all.extend(args);
        self.replica(&all)
    }

    /// strew's scheduler, which logs its decisions.
    pub(crate) fn replica(&mut self, args: &[&str]) -> anyhow::Result<Component> {
        let mut all = vec![
            "scheduler",
            "--kubeconfig=kubeconfig",
            "--secure-port=0",
            "--v=4",
            "--logging-format=json",
        ];
        all.extend(args);
        self.lab.start_strew(&self.strew, &all)
    }

    /// The case's pods.
    pub(crate) fn pods(&self) -> anyhow::Result<Vec<Value>> {
        self.list("pods")
    }

    /// Objects of the case's namespace.
    pub(crate) fn list(&self, kinds: &str) -> anyhow::Result<Vec<Value>> {
        let text = self.run(&["get", kinds, "--output=json"])?;
        let mut list: Value = serde_json::from_str(&text)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("kubectl get {kinds} printed no list"),
        }
    }

    /// One object of the case's namespace.
    pub(crate) fn get(&self, object: &str) -> anyhow::Result<Value> {
        let text = self.run(&["get", object, "--output=json"])?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Waits until the pods satisfy `ask`; the error describes them if they do not in time.
    pub(crate) fn until_pods<T>(
        &self,
        what: &str,
        mut ask: impl FnMut(&[Value]) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut last = Vec::new();
        let answer = until(what, SOON, PAUSE, || {
            last = self.pods()?;
            Ok(ask(&last))
        });
        answer.with_context(|| described(&last))
    }

    /// Waits until `placed` pods are on nodes, and `refused` pods have a refusal; there are no other pods.
    pub(crate) fn until_placed(&self, placed: usize, refused: usize) -> anyhow::Result<Vec<Value>> {
        let what = format!("{placed} pods on nodes, {refused} refused");
        self.until_pods(&what, |pods| {
            let is_going = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
            let on_nodes = pods.iter().filter(|pod| node_of(pod).is_some()).count();
            let told = pods.iter().filter(|pod| refusal(pod).is_some()).count();
            let is_so = (on_nodes, told, pods.len()) == (placed, refused, placed + refused)
                && !pods.iter().any(is_going);
            is_so.then(|| pods.to_vec())
        })
    }

    /// The number of these pods in each domain: values of a node label.
    pub(crate) fn spread(
        &self,
        pods: &[Value],
        topology_key: &str,
    ) -> anyhow::Result<BTreeMap<String, usize>> {
        let mut domains = BTreeMap::new();
        for node in self.kubectl().objects("nodes")? {
            if let Some(value) = node["metadata"]["labels"][topology_key].as_str() {
                domains.insert(name_of(&node).to_owned(), value.to_owned());
            }
        }
        let mut counts: BTreeMap<String, usize> =
            domains.values().map(|value| (value.clone(), 0)).collect();
        for node in pods.iter().filter_map(node_of) {
            if let Some(domain) = domains.get(node) {
                *counts.entry(domain.clone()).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Events about an object of the case's namespace, in the form of events.k8s.io, with this reason.
    pub(crate) fn events(&self, name: &str, reason: &str) -> anyhow::Result<Vec<Value>> {
        let mut events = self.list("events.events.k8s.io")?;
        events.retain(|e| e["regarding"]["name"] == name && e["reason"] == reason);
        Ok(events)
    }

    /// Waits until there is such an event.
    pub(crate) fn until_event(&self, name: &str, reason: &str) -> anyhow::Result<Value> {
        let what = format!("an event {reason} of {name}");
        until(&what, SOON, PAUSE, || Ok(self.events(name, reason)?.pop()))
    }
}

/// An object's name.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The node that a pod is on.
pub(crate) fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str()
}

/// Why a pod is on no node, from its condition.
pub(crate) fn refusal(pod: &Value) -> Option<&str> {
    let condition = scheduled_condition(pod)?;
    (condition["status"] == "False" && condition["reason"] == "Unschedulable")
        .then(|| condition["message"].as_str().unwrap_or_default())
}

/// A pod's condition PodScheduled.
pub(crate) fn scheduled_condition(pod: &Value) -> Option<&Value> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|c| c["type"] == "PodScheduled")
}

fn described(pods: &[Value]) -> String {
    let each = pods.iter().take(12).map(|pod| {
        let at = node_of(pod).or_else(|| refusal(pod));
        format!("{}: {}", name_of(pod), at.unwrap_or("nothing said"))
    });
    format!(
        "{} pods: {}",
        pods.len(),
        each.collect::<Vec<_>>().join("; ")
    )
}
