//! The scheduler's manifests.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use strew_kube::connect::{ConnectError, connect};
use strew_kube::rivals::placed_by_others;
use strew_kube::scheduler::permissions::{OF_FIRST_LEASE, OF_PAGES, in_cluster, of_lease};
use strew_manifest::read::Sources;
use strew_model::Interner;
use strew_wire::config::{
    ClientConnection, FeatureGates, GateError, Given, LeaderElection, configure,
};

use super::Common;
use super::network::Door;
use super::objects::{Container, Part};
use super::rights::{Account, rights};
use crate::cluster::access::{self, AccessArgs};
use crate::cluster::ask;
use crate::context::Context;
use crate::diagnostics::say_problems;
use crate::failure::Failure;
use crate::manifest::Manifest;
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
    #[command(flatten)]
    pub(super) access: AccessArgs,
}

/// The scheduler's configuration.
struct Configured {
    text: String,
    /// The names of its profiles.
    profiles: Vec<String>,
    /// The name of its lease.
    lease: String,
}

impl SchedulerPart {
    /// All objects, in the order of their dependencies; `None`: the configuration is invalid, which was reported. Warns of
    /// other schedulers with the same profiles.
    pub(super) fn manifests(&self, context: &Context) -> Result<Option<Vec<Manifest>>, Failure> {
        let Some(configured) = self.configured(context)? else {
            return Ok(None);
        };
        let manifests = self.objects(&configured)?;
        self.warn_of_rivals(&configured, context)?;
        Ok(Some(manifests))
    }

    /// The same objects, without a question to a cluster.
    pub(super) fn unasked(&self, context: &Context) -> Result<Option<Vec<Manifest>>, Failure> {
        let configured = self.configured(context)?;
        configured
            .map(|configured| self.objects(&configured))
            .transpose()
    }

    fn objects(&self, configured: &Configured) -> Result<Vec<Manifest>, Failure> {
        let part = self.part();
        let mut objects = vec![part.namespace()];
        objects.extend(account(&part, &configured.lease).objects());
        objects.push(part.config_map(FILE, &configured.text));
        objects.extend(part.quota(&self.common));
        objects.push(part.deployment(&self.common, &self.pod()?, Some(&configured.text))?);
        objects.push(part.budget());
        let doors = [Door::of_pages(PORT, &self.common.metrics_namespace)];
        objects.push(part.network_policy(&doors));
        Ok(objects.into_iter().map(Manifest::from).collect())
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

    /// The configuration; `None`: it is invalid, which was reported.
    fn configured(&self, context: &Context) -> Result<Option<Configured>, Failure> {
        let gates = FeatureGates::parse(&self.feature_gates).map_err(wrong_gates)?;
        let Some(file) = &self.config else {
            return Ok(Some(Configured {
                text:
                    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                       profiles:\n- schedulerName: strew\n"
                        .to_owned(),
                profiles: vec!["strew".to_owned()],
                lease: LeaderElection::default().resource_name,
            }));
        };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {file}"))
            .map_err(Failure::outside)?;
        let mut sources = Sources::new();
        sources.add(file.as_str(), text.as_str());

        match configure(Given::Files(&sources), &gates, &mut Interner::new()) {
            Ok(configuration) => {
                let profiles = configuration.profiles.into_iter();
                Ok(Some(Configured {
                    text,
                    profiles: profiles.map(|profile| profile.scheduler_name).collect(),
                    lease: configuration.leader_election.resource_name,
                }))
            }
            Err(wrong) => {
                say_problems(&[(wrong, &sources)], "printed", context);
                Ok(None)
            }
        }
    }

    /// Warns of other schedulers that decide for pods of the profiles, if a cluster is known.
    ///
    /// # Errors
    /// The cluster of the flags does not answer.
    fn warn_of_rivals(&self, configured: &Configured, context: &Context) -> Result<(), Failure> {
        let mut said = Vec::new();
        let pods = match ask(self.rivals(configured)) {
            Ok(pods) => pods,
            Err(error) if self.access.is_named() => return Err(error),
            Err(error) => {
                said.push(format!(
                    "note: whether another scheduler has the same profile could not be asked ({})\n",
                    error.in_a_line()
                ));
                BTreeMap::new()
            }
        };
        let namespace = &self.common.namespace;
        for profile in &configured.profiles {
            if let Some(pod) = pods.get(profile) {
                said.push(format!(
                    "warning: another scheduler, such as kube-scheduler, has the profile {profile}: pod {pod} is on a node, \
                     and strew has not run in namespace {namespace} yet. Stop the other one first, or both decide for the \
                     same pods\n"
                ));
            } else if profile == OF_KUBE_SCHEDULER {
                said.push(format!(
                    "note: kube-scheduler has the profile {profile}, too: stop it first, or both decide for the same \
                     pods\n"
                ));
            }
        }
        if !context.quiet {
            said.iter().for_each(|text| terminal::say(text));
        }
        Ok(())
    }

    /// For each profile that another scheduler has, a pod that it has put onto a node; empty if no cluster is known.
    async fn rivals(&self, configured: &Configured) -> Result<BTreeMap<String, String>, Failure> {
        let mut pods = BTreeMap::new();
        let access = self.access.of(&ClientConnection::default());
        let client = match connect(&access, "strew").await {
            Ok(connection) => connection.client,
            Err(ConnectError::Nowhere(_)) => return Ok(pods),
            Err(error) => return Err(access::failure(error)),
        };
        let namespace = &self.common.namespace;
        for profile in &configured.profiles {
            let pod = placed_by_others(&client, profile, namespace, &configured.lease).await;
            if let Some(pod) = pod.map_err(Failure::outside)? {
                pods.insert(profile.clone(), pod);
            }
        }
        Ok(pods)
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
        in_cluster: rights(&[&in_cluster()[..], OF_PAGES].concat(), &[]),
        in_namespace: rights(OF_FIRST_LEASE, &of_lease(&[lease])),
    }
}

fn wrong_gates(errors: Vec<GateError>) -> Failure {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failure::input(anyhow!("--feature-gates: {}", errors.join("; ")))
}
