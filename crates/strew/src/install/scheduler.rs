//! The scheduler's manifests.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use strew_api::config::{FeatureGates, GateError, Given, LeaderElection, configure};
use strew_api::read::Sources;
use strew_kube::permission::Permission;
use strew_kube::scheduler::permissions::{IN_CLUSTER, OF_FIRST_LEASE, OF_PAGES, of_lease};
use strew_model::Interner;

use super::Common;
use super::manifest::Manifest;
use super::network::Door;
use super::objects::{Container, Part, Rights};
use crate::arguments::Context;
use crate::failure::Failure;
use crate::simulate::say_problems;

/// Where the configuration is mounted.
const MOUNTED: &str = "/etc/strew";

/// Its file.
const FILE: &str = "config.yaml";

/// kube-scheduler's port.
const PORT: u16 = 10259;

/// Arguments of `strew install scheduler`.
#[derive(Args, Debug)]
pub(super) struct SchedulerPart {
    #[command(flatten)]
    pub(super) common: Common,
    /// A KubeSchedulerConfiguration, looked at before it is printed [default: one profile, `strew`]
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Feature gates, looked at and given to the scheduler, for example MinDomainsInPodTopologySpread=false
    #[arg(long, value_name = "GATES", default_value = "")]
    feature_gates: String,
}

impl SchedulerPart {
    /// All objects, in the order in which they are needed; `None`: the configuration is wrong, which was told.
    pub(super) fn manifests(&self, context: &Context) -> Result<Option<Vec<Manifest>>, Failure> {
        let namespace = self.common.namespace.as_str();
        let gates = FeatureGates::parse(&self.feature_gates).map_err(wrong_gates)?;
        let Some((configuration, lease)) = self.configuration(&gates, context)? else {
            return Ok(None);
        };
        let part = Part {
            name: "strew-scheduler",
            namespace,
        };
        let in_cluster: Vec<Permission> = [IN_CLUSTER, OF_PAGES].concat();
        let mut objects = vec![part.namespace(), part.service_account()];
        objects.extend(part.cluster_role(in_cluster.as_slice().into()));
        let names = [lease.as_str()];
        objects.extend(part.role(Rights {
            all: OF_FIRST_LEASE,
            named: &of_lease(&names),
        }));
        objects.push(part.reads_authority());
        objects.push(part.config_map(FILE, &configuration));
        objects.push(part.deployment(self.common.replicas, &self.pod()));
        objects.push(part.budget());
        let doors = [Door::of_pages(PORT, &self.common.metrics_namespace)];
        objects.push(part.network_policy(&doors));
        Ok(Some(objects.into_iter().map(Manifest::from).collect()))
    }

    /// The configuration's text, and the name of its lease.
    fn configuration(
        &self,
        gates: &FeatureGates,
        context: &Context,
    ) -> Result<Option<(String, String)>, Failure> {
        let Some(file) = &self.config else {
            let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                        profiles:\n- schedulerName: strew\n";
            let lease = LeaderElection::default().resource_name;
            return Ok(Some((text.to_owned(), lease)));
        };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {file}"))
            .map_err(Failure::outside)?;
        let mut sources = Sources::new();
        sources.add(file.as_str(), text.as_str());
        match configure(Given::Files(&sources), gates, &mut Interner::new()) {
            Ok(configuration) => Ok(Some((text, configuration.leader_election.resource_name))),
            Err(wrong) => {
                say_problems(&[(wrong, &sources)], "printed", context);
                Ok(None)
            }
        }
    }

    fn pod(&self) -> Value {
        let mut flags = vec![
            format!("--config={MOUNTED}/{FILE}"),
            format!(
                "--leader-elect-resource-namespace={}",
                self.common.namespace
            ),
        ];
        if !self.feature_gates.is_empty() {
            flags.push(format!("--feature-gates={}", self.feature_gates));
        }
        let container = Container {
            name: "scheduler",
            image: &self.common.image,
            flags,
            port: PORT,
        };
        let mut container = container.value();
        container["volumeMounts"] =
            json!([{"name": "config", "mountPath": MOUNTED, "readOnly": true}]);
        json!({
            "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": "strew-scheduler"}}],
        })
    }
}

fn wrong_gates(errors: Vec<GateError>) -> Failure {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failure::input(anyhow!("--feature-gates: {}", errors.join("; ")))
}
