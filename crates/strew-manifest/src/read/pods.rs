//! Kinds of other projects that make pods.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::diagnostic::Diagnostic;
use super::document::Origin;
use super::kind::{KubeObject, group_of};
use super::played_as::PlayedAs;
use super::reading::Located;

/// Kinds whose objects make pods, by group. Objects of other kinds do if they have a pod template.
const MAKERS: &[(&str, &[&str])] = &[
    ("acid.zalan.do", &["postgresql"]),
    ("agones.dev", &["Fleet", "GameServer", "GameServerSet"]),
    (
        "apps.kruise.io",
        &[
            "AdvancedCronJob",
            "BroadcastJob",
            "DaemonSet",
            "StatefulSet",
            "UnitedDeployment",
        ],
    ),
    ("apps.openshift.io", &["DeploymentConfig"]),
    ("argoproj.io", &["CronWorkflow", "Rollout", "Workflow"]),
    ("batch.volcano.sh", &["Job"]),
    ("cassandra.datastax.com", &["CassandraDatacenter"]),
    ("elasticsearch.k8s.elastic.co", &["Elasticsearch"]),
    ("flink.apache.org", &["FlinkDeployment"]),
    ("game.kruise.io", &["GameServerSet"]),
    ("jobset.x-k8s.io", &["JobSet"]),
    (
        "kafka.strimzi.io",
        &[
            "Kafka",
            "KafkaBridge",
            "KafkaConnect",
            "KafkaMirrorMaker2",
            "KafkaNodePool",
        ],
    ),
    ("keda.sh", &["ScaledJob"]),
    ("kibana.k8s.elastic.co", &["Kibana"]),
    (
        "kubeflow.org",
        &["MPIJob", "PyTorchJob", "TFJob", "XGBoostJob"],
    ),
    (
        "kubevirt.io",
        &[
            "VirtualMachine",
            "VirtualMachineInstance",
            "VirtualMachineInstanceReplicaSet",
        ],
    ),
    ("leaderworkerset.x-k8s.io", &["LeaderWorkerSet"]),
    (
        "monitoring.coreos.com",
        &[
            "Alertmanager",
            "Prometheus",
            "PrometheusAgent",
            "ThanosRuler",
        ],
    ),
    ("mongodbcommunity.mongodb.com", &["MongoDBCommunity"]),
    ("pingcap.com", &["TidbCluster"]),
    ("postgresql.cnpg.io", &["Cluster", "Pooler"]),
    ("rabbitmq.com", &["RabbitmqCluster"]),
    ("ray.io", &["RayCluster", "RayJob", "RayService"]),
    (
        "serving.knative.dev",
        &["Configuration", "Revision", "Service"],
    ),
    ("serving.kserve.io", &["InferenceService"]),
    (
        "sparkoperator.k8s.io",
        &["ScheduledSparkApplication", "SparkApplication"],
    ),
    ("tekton.dev", &["PipelineRun", "TaskRun"]),
    ("trainer.kubeflow.org", &["TrainJob"]),
];

/// The last words of kinds that have a pod template and make no pods: others use it, match it, or are defined by it.
const TEMPLATE_OF_OTHERS: &[&str] = &[
    "Class",
    "Definition",
    "Policy",
    "Profile",
    "Runtime",
    "Template",
    "Trait",
];

/// Groups whose objects hold manifests that are applied in other clusters.
const OF_OTHER_CLUSTERS: &[&str] = &[
    "fleet.cattle.io",
    "work.karmada.io",
    "work.open-cluster-management.io",
];

/// The group of strew's own kinds, of which they are below.
const OWN: &str = "strew.dev";

/// The largest depth at which a template is looked for.
const DEPTH_MAX: usize = 8;

/// True if a controller makes pods of an object of this unknown kind.
pub(super) fn makes_pods(group: &str, kind: &str, fields: &Map<String, Value>) -> bool {
    let is_maker = |(of, kinds): &(&str, &[&str])| *of == group && kinds.contains(&kind);
    if MAKERS.iter().any(is_maker) {
        return true;
    }
    // strew's own kinds hold manifests, which make pods later if at all.
    let is_own = group == OWN
        || group
            .strip_suffix(OWN)
            .is_some_and(|rest| rest.ends_with('.'));
    let is_others = TEMPLATE_OF_OTHERS.iter().any(|word| kind.ends_with(word));
    !group.is_empty()
        && !is_own
        && !OF_OTHER_CLUSTERS.contains(&group)
        && !is_others
        && fields
            .get("spec")
            .is_some_and(|spec| has_template(spec, DEPTH_MAX))
}

/// True if it has a field `…Template` with containers.
fn has_template(value: &Value, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let is_named = name.ends_with("emplate");
            (is_named && is_pod_template(value)) || has_template(value, depth - 1)
        }),
        Value::Array(items) => items.iter().any(|item| has_template(item, depth - 1)),
        _ => false,
    }
}

fn is_pod_template(value: &Value) -> bool {
    let containers = &value["spec"]["containers"];
    containers.as_array().is_some_and(|all| !all.is_empty())
}

/// True if a kind that strew plays has the same fields: a selector and a pod template.
pub(super) fn is_playable(fields: &Map<String, Value>) -> bool {
    let spec = fields.get("spec").unwrap_or(&Value::Null);
    spec["selector"].is_object() && is_pod_template(&spec["template"])
}

/// Objects that make pods and whose controllers strew does not have, by kind.
#[derive(Debug, Default)]
pub(super) struct Makers(BTreeMap<String, Kept>);

/// The objects of one kind.
#[derive(Debug)]
struct Kept {
    objects: Vec<(String, Origin)>,
    /// `Rollout.argoproj.io`, if all of them can be played as another kind.
    played_as: Option<String>,
}

impl Makers {
    pub(super) fn add(&mut self, object: &KubeObject, origin: &Origin, is_playable: bool) {
        let kind = object.kind_in_group().into_owned();
        let name = format!("{}.{}", object.kind(), group_of(object.api_version()));
        let kept = self.0.entry(kind).or_insert_with(|| Kept {
            objects: Vec::new(),
            played_as: Some(name),
        });
        kept.objects.push((object.label(), origin.clone()));
        if !is_playable {
            kept.played_as = None;
        }
    }

    /// A warning for each kind, at its first object; `objects` are all of the files.
    pub(super) fn warnings(self, objects: &[Located]) -> Vec<(Origin, Diagnostic)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let owners = objects
            .iter()
            .filter_map(|located| located.object.metadata());
        let owners = owners.flat_map(|metadata| metadata.owner_references.iter().flatten());
        let owners: HashSet<(&str, &str)> = owners
            .map(|owner| (owner.kind.as_str(), group_of(&owner.api_version)))
            .collect();
        let warning = |(kind, kept): (String, Kept)| {
            let mut of_kind = kept.objects.into_iter();
            let n = of_kind.len();
            let (label, origin) = of_kind.next()?;
            let (name, group) = kind.split_once(" (").unwrap_or((&kind, ""));
            let consequence = match owners.contains(&(name, group.trim_end_matches(')'))) {
                true => "its pods stay as they are in the files, and no others are made",
                false => "its pods are missing from the answer",
            };
            let times = match n {
                1 => String::new(),
                n => format!(" ({n} objects)"),
            };
            let message = format!("strew has no controller for {kind}{times}: {consequence}");
            let mut warning = Diagnostic::warning(NO_CONTROLLER, message).about(label);
            warning.help = kept.played_as.map(|source| {
                let target = PlayedAs::target_like(name);
                format!("--as {source}={target} plays it as a {target}")
            });
            Some((origin, warning))
        };
        self.0.into_iter().filter_map(warning).collect()
    }
}

/// The code of the warning about a kind that makes pods and whose controller strew does not have.
pub const NO_CONTROLLER: &str = "no-controller";
