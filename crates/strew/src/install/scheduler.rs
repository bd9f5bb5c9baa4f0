//! The scheduler's manifests.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use strew_kube::scheduler::permissions::{IN_CLUSTER, OF_FIRST_LEASE, OF_PAGES, of_lease};
use strew_manifest::read::Sources;
use strew_model::Interner;
use strew_wire::config::{FeatureGates, GateError, Given, LeaderElection, configure};

use super::Common;
use super::manifest::Manifest;
use super::network::Door;
use super::objects::{Container, Part};
use super::rights::{Account, rights};
use crate::arguments::Context;
use crate::failure::Failure;
use crate::simulate::say_problems;
use crate::terminal;

/// The name of all its objects.
const NAME: &str = "strew-scheduler";

/// kube-scheduler's default profile.
const OF_KUBE_SCHEDULER: &str = "default-scheduler";

/// The mount path of the configuration.
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
    /// A KubeSchedulerConfiguration, checked before it is printed [default: one profile, `strew`]
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Feature gates, checked and passed to the scheduler, for example MinDomainsInPodTopologySpread=false
    #[arg(long, value_name = "GATES", default_value = "")]
    feature_gates: String,
}

impl SchedulerPart {
    /// All objects, in the order of their dependencies; `None`: the configuration is invalid, which was reported.
    pub(super) fn manifests(&self, context: &Context) -> Result<Option<Vec<Manifest>>, Failure> {
        let gates = FeatureGates::parse(&self.feature_gates).map_err(wrong_gates)?;
        let Some((configuration, lease)) = self.configuration(&gates, context)? else {
            return Ok(None);
        };
        let part = self.part();
        let mut objects = vec![part.namespace()];
        objects.extend(account(&part, &lease).objects());
        objects.push(part.config_map(FILE, &configuration));
        let replicas = self.common.replicas;
        objects.push(part.deployment(replicas, &self.pod()?, Some(&configuration)));
        objects.push(part.budget());
        let doors = [Door::of_pages(PORT, &self.common.metrics_namespace)];
        objects.push(part.network_policy(&doors));
        Ok(Some(objects.into_iter().map(Manifest::from).collect()))
    }

    /// What each right is for, as Markdown.
    pub(super) fn rights(&self) -> String {
        account(&self.part(), &LeaderElection::default().resource_name).table()
    }

    fn part(&self) -> Part<'_> {
        Part {
            name: NAME,
            namespace: &self.common.namespace,
        }
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
            Ok(configuration) => {
                let mut names = configuration.profiles.iter();
                if names.any(|p| p.scheduler_name == OF_KUBE_SCHEDULER) && !context.global.quiet {
                    terminal::say(&format!(
                        "note: kube-scheduler has the profile {OF_KUBE_SCHEDULER}, too: stop it first, or both decide for \
                         the same pods\n"
                    ));
                }
                Ok(Some((text, configuration.leader_election.resource_name)))
            }
            Err(wrong) => {
                say_problems(&[(wrong, &sources)], "printed", context);
                Ok(None)
            }
        }
    }

    fn pod(&self) -> Result<Value, Failure> {
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
            image: self.common.image()?,
            flags,
            port: PORT,
        };
        let mut container = container.value();
        container["volumeMounts"] =
            json!([{"name": "config", "mountPath": MOUNTED, "readOnly": true}]);
        Ok(json!({
            "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": NAME}}],
        }))
    }
}

/// The scheduler's permissions, with a lease of this name.
fn account<'a>(part: &'a Part<'a>, lease: &str) -> Account<'a> {
    Account {
        part,
        in_cluster: rights(&[IN_CLUSTER, OF_PAGES].concat(), &[]),
        in_namespace: rights(OF_FIRST_LEASE, &of_lease(&[lease])),
    }
}

fn wrong_gates(errors: Vec<GateError>) -> Failure {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failure::input(anyhow!("--feature-gates: {}", errors.join("; ")))
}
