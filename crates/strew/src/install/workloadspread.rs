//! The manifests of WorkloadSpread: webhook, controller, and the registration of the webhook.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use strew_kube::controller::Name;
use strew_kube::controller::permissions::{
    OF_FIRST_LEASE, OF_PAGES, of, of_configuration, of_lease, of_registration, of_replicas,
};
use strew_kube::serve::access::Clients;
use strew_kube::webhook::permissions::{
    IN_NAMESPACE, OF_AUTHORITY, OF_CONFIGURATIONS, OF_REPLICAS, OF_SECRET, in_cluster,
};
use strew_wire::workloadspread::crd;
use strew_wire::workloadspread::policy::{Account, Accounts};
use strew_wire::workloadspread::registration::{NAME, Reach, Registration, SERVICE_PORT};

use super::Common;
use super::definitions::DefinitionArgs;
use super::flags;
use super::network::{Door, cidr};
use super::objects::{Container, Part, cluster_role_binding};
use super::pods::argument;
use super::rights::{Account as ServiceAccount, rights};
use crate::context::Context;
use crate::failure::Failure;
use crate::manifest::Manifest;
use crate::webhook::FailurePolicy;

/// The webhook's port for reviews.
const WEBHOOK_PORT: u16 = 9443;

/// The webhook's port for health and metrics.
const WEBHOOK_PAGES: u16 = 10262;

/// The controller's port.
pub(super) const CONTROLLER_PAGES: u16 = 10261;

/// The mount path of the client authority, and its file.
const MOUNTED: &str = "/etc/strew";
const CLIENT_AUTHORITY: &str = "client-ca.crt";

/// The webhook of evictions, which keeps budgets by zone.
const OF_EVICTIONS: &str = "evictions.webhook.strew.dev";

/// The flag of webhook and controller.
const STRICT: &str = "--strict";

/// The role with the rights on custom kinds, and the label of the roles that it aggregates.
const CUSTOM: (&str, &str) = ("strew:custom-workloads", "strew.dev/custom-workloads");

const ABOUT_CUSTOM: &str = "\
WorkloadSpreads of custom kinds: strew must be able to read such workloads, and their scale if they have one.
It gets these rights from every ClusterRole with the label strew.dev/custom-workloads, for example:

  apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata:
    name: strew:game-servers
    labels: {strew.dev/custom-workloads: \"true\"}
  rules:
  - apiGroups: [game.kruise.io]
    resources: [gameserversets, gameserversets/scale]
    verbs: [get, list, watch]

Which kinds may be targets is told elsewhere: docs/workloadspread.md.";

const ABOUT_REGISTRATION: &str = "\
Without a webhook: a replica that is ready writes it in, and takes it out when it is the last one to end. Pods of a
controller wait for the webhook from then on, but for those of DaemonSets, and in kube-system, in strew's own namespace,
and in namespaces with the label strew.dev/workloadspread=disabled.";

const ABOUT_STATIC: &str = "\
From here on pods with a controller wait for the webhook, but for those of DaemonSets, and in kube-system, in strew's own
namespace, and in namespaces with the label strew.dev/workloadspread=disabled.";

/// The definition of WorkloadSpread, with a conversion webhook.
pub(super) fn definition() -> Value {
    crd::workload_spread(&Reach::Service(String::new()))
}

/// Arguments of `strew install workloadspread`.
#[derive(Args, Debug)]
pub(super) struct WorkloadSpreadPart {
    #[command(flatten)]
    pub(super) common: Common,
    /// The URL of a webhook outside the cluster: no Deployment and no Service are printed for it
    #[arg(long, value_name = "URL", value_parser = url)]
    webhook_url: Option<String>,
    /// What happens to pods while the webhook is registered and no replica answers
    #[arg(long, value_name = "POLICY", default_value = "Fail")]
    failure_policy: FailurePolicy,
    /// Keep the webhook registered: creations of pods are refused while no replica is ready, instead of being created
    /// in no subset
    #[arg(long)]
    strict: bool,
    /// A further namespace whose pods the webhook does not handle: of a network plugin that the webhook's own pods
    /// need. May be repeated; the label strew.dev/workloadspread=disabled on a namespace has the same effect
    #[arg(long, value_name = "NAME", value_parser = flags::namespace)]
    exclude_namespace: Vec<String>,
    /// Handle pods of DaemonSets, too: if they are listed as targets
    #[arg(long)]
    daemon_sets: bool,
    /// Do not register the webhook of evictions: budgets with the annotation strew.dev/zone-aware are plain ones
    #[arg(long)]
    no_budgets_by_zone: bool,
    /// Print the webhook's complete registration, for a webhook that does not register itself: with --webhook-cert-file
    /// or --manage-configurations=false. Creations of pods are refused whenever no replica answers
    #[arg(long)]
    static_registration: bool,
    /// Allow only this network to reach the webhook's port: the network of the API servers, as the webhook's pods see
    /// it. May be repeated. If it is wrong, no call arrives, and creations of pods are refused [default: all networks]
    #[arg(long, value_name = "CIDR", value_parser = cidr, conflicts_with = "webhook_url")]
    api_server_cidr: Vec<String>,
    /// Let the webhook answer reviews only for clients with a certificate that an authority of this file (PEM) has
    /// signed, and print the file as a ConfigMap: for API servers whose --admission-control-config-file names such a
    /// certificate
    #[arg(long, value_name = "FILE", conflicts_with = "webhook_url")]
    client_ca_file: Option<PathBuf>,
    /// The common name of such a certificate; may be repeated [default: any that is signed]
    #[arg(long, value_name = "NAME", requires = "client_ca_file")]
    client_name: Vec<String>,
    /// A further argument of the webhook alone; may be repeated
    #[arg(long, value_name = "ARGUMENT", value_parser = argument, allow_hyphen_values = true,
          conflicts_with = "webhook_url")]
    webhook_extra_arg: Vec<String>,
    /// A further argument of the controller alone; may be repeated
    #[arg(long, value_name = "ARGUMENT", value_parser = argument, allow_hyphen_values = true)]
    controller_extra_arg: Vec<String>,
    #[command(flatten)]
    pub(super) definitions: DefinitionArgs,
}

impl WorkloadSpreadPart {
    /// All objects, in the order of their dependencies.
    pub(super) fn manifests(&self, context: &Context) -> Result<Vec<Manifest>, Failure> {
        let namespace = self.common.namespace.as_str();
        let registration = Registration {
            reach: match &self.webhook_url {
                Some(url) => Reach::Url(url.clone()),
                None => Reach::Service(namespace.to_owned()),
            },
            namespace: namespace.to_owned(),
            failure_policy: self.failure_policy.text(),
            excluded: self.exclude_namespace.clone(),
            daemon_sets: self.daemon_sets,
        };
        let (webhook, controller) = self.parts();
        let of_webhook = webhook_account(&webhook);
        let definition = crd::workload_spread(&registration.reach);
        let mut manifests = vec![Manifest::from(webhook.namespace())];
        manifests.extend(self.definitions.chosen(vec![definition], context)?);
        let mut add = |objects: Vec<Value>| {
            manifests.extend(objects.into_iter().map(Manifest::from));
        };
        add(of_webhook.objects());
        add(controller_account(&controller, Name::WorkloadSpread).objects());
        add(registration.policies(&Accounts {
            webhook: Account {
                user: webhook.user(),
                leases: &of_webhook.own("leases"),
                secrets: &of_webhook.own("secrets"),
            },
            controller: Account {
                user: controller.user(),
                leases: &[controller.name],
                secrets: &[],
            },
        }));
        let of_pages = |port| Door::of_pages(port, &self.common.metrics_namespace);
        if self.webhook_url.is_none() {
            let authority = self.client_authority()?;
            if let Some(authority) = &authority {
                add(vec![webhook.config_map(CLIENT_AUTHORITY, authority)]);
            }
            let doors = [
                Door::of_api_servers(WEBHOOK_PORT, &self.api_server_cidr),
                of_pages(WEBHOOK_PAGES),
            ];
            add(webhook.quota(&self.common).into_iter().collect());
            add(vec![
                webhook.service(SERVICE_PORT, WEBHOOK_PORT),
                webhook.deployment(&self.common, &self.webhook_pod()?, authority.as_deref())?,
                webhook.budget(),
                webhook.network_policy(&doors),
            ]);
        }
        add(controller.quota(&self.common).into_iter().collect());
        add(vec![
            controller.deployment(&self.common, &self.controller_pod()?, None)?,
            controller.budget(),
            controller.network_policy(&[of_pages(CONTROLLER_PAGES)]),
        ]);
        manifests.extend(custom_kinds(&[&webhook, &controller]));
        manifests.push(match self.static_registration {
            true => Manifest::with_comment(ABOUT_STATIC, registration.mutating_registered()),
            false => Manifest::with_comment(ABOUT_REGISTRATION, registration.mutating()),
        });
        manifests.push(self.validating(&registration).into());
        Ok(manifests)
    }

    /// The ValidatingWebhookConfiguration, without the webhook of evictions if that is wanted.
    fn validating(&self, registration: &Registration) -> Value {
        let mut validating = registration.validating();
        if let Some(webhooks) = validating["webhooks"].as_array_mut()
            && self.no_budgets_by_zone
        {
            webhooks.retain(|webhook| webhook["name"] != OF_EVICTIONS);
        }
        validating
    }

    /// What each right is for, as Markdown.
    pub(super) fn rights(&self) -> String {
        let (webhook, controller) = self.parts();
        let webhook = webhook_account(&webhook).table();
        let controller = controller_account(&controller, Name::WorkloadSpread).table();
        let (name, label) = CUSTOM;
        format!(
            "{webhook}\n{controller}\nBoth accounts also have the ClusterRole `{name}`, which is empty until a ClusterRole \
             has the label `{label}`: the rights to read workloads of custom kinds.\n"
        )
    }

    /// Webhook and controller.
    fn parts(&self) -> (Part<'_>, Part<'_>) {
        let part = |name| Part {
            name,
            namespace: &self.common.namespace,
        };
        (part(NAME), part("strew-controller"))
    }

    /// The client authority, checked.
    fn client_authority(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.client_ca_file else {
            return Ok(None);
        };
        let shown = file.display();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"));
        let text = text.map_err(Failure::outside)?;
        match Clients::of_authority(&text) {
            Ok(_) => Ok(Some(text)),
            Err(_) => Err(Failure::input(anyhow!(
                "{shown} holds no certificates in PEM"
            ))),
        }
    }

    fn webhook_pod(&self) -> Result<Value, Failure> {
        let mut flags = vec![
            format!("--namespace={}", self.common.namespace),
            format!("--webhook-port={WEBHOOK_PORT}"),
        ];
        if self.failure_policy != FailurePolicy::Fail {
            flags.push(format!("--failure-policy={}", self.failure_policy.text()));
        }
        flags.extend(self.strict.then(|| STRICT.to_owned()));
        let excluded = self.exclude_namespace.iter();
        flags.extend(excluded.map(|name| format!("--exclude-namespace={name}")));
        flags.extend(self.daemon_sets.then(|| "--daemon-sets".to_owned()));
        if self.client_ca_file.is_some() {
            flags.push(format!("--client-ca-file={MOUNTED}/{CLIENT_AUTHORITY}"));
        }
        let names = self.client_name.iter();
        flags.extend(names.map(|name| format!("--client-name={name}")));
        flags.extend(self.webhook_extra_arg.iter().cloned());
        let container = Container {
            name: "webhook",
            image: self.common.image()?,
            flags,
            port: WEBHOOK_PAGES,
        };
        let mut container = container.value();
        let ports = json!([
            {"name": "webhook", "containerPort": WEBHOOK_PORT},
            {"name": "https", "containerPort": WEBHOOK_PAGES},
        ]);
        container["ports"] = ports;
        // Calls still arrive for a moment after the pod left the Service, and each call that fails is a refused pod.
        container["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 5}}});
        if self.client_ca_file.is_none() {
            return Ok(json!({"containers": [container]}));
        }
        container["volumeMounts"] =
            json!([{"name": "clients", "mountPath": MOUNTED, "readOnly": true}]);
        Ok(json!({
            "containers": [container],
            "volumes": [{"name": "clients", "configMap": {"name": NAME}}],
        }))
    }

    fn controller_pod(&self) -> Result<Value, Failure> {
        let mut container = controller(&self.common, Name::WorkloadSpread, "strew-controller")?;
        let namespace = &self.common.namespace;
        let custom = format!("--configuration-namespace={namespace}");
        container.flags.push(custom);
        container
            .flags
            .extend(self.strict.then(|| STRICT.to_owned()));
        let extra = self.controller_extra_arg.iter().cloned();
        container.flags.extend(extra);
        Ok(json!({"containers": [container.value()]}))
    }
}

/// The container of `strew controller` with one controller and a lease of its own.
///
/// # Errors
/// No image is given.
pub(super) fn controller<'a>(
    common: &'a Common,
    name: Name,
    lease: &str,
) -> Result<Container<'a>, Failure> {
    Ok(Container {
        name: "controller",
        image: common.image()?,
        flags: vec![
            format!("--controllers={name}"),
            format!("--leader-elect-resource-name={lease}"),
            format!("--leader-elect-resource-namespace={}", common.namespace),
        ],
        port: CONTROLLER_PAGES,
    })
}

/// The service account of a controller; its lease has the name of the part.
pub(super) fn controller_account<'a>(part: &'a Part<'a>, name: Name) -> ServiceAccount<'a> {
    let leases = [part.name];
    ServiceAccount {
        part,
        in_cluster: rights(&[&of(name)[..], OF_PAGES].concat(), of_registration(name)),
        in_namespace: rights(
            &[OF_FIRST_LEASE, of_configuration(name)].concat(),
            &[&of_lease(&leases), of_replicas(name)].concat(),
        ),
    }
}

fn webhook_account<'a>(part: &'a Part<'a>) -> ServiceAccount<'a> {
    ServiceAccount {
        part,
        in_cluster: rights(&[&in_cluster()[..], OF_PAGES].concat(), OF_CONFIGURATIONS),
        in_namespace: rights(
            &[IN_NAMESPACE, OF_AUTHORITY].concat(),
            &[OF_SECRET, OF_REPLICAS].concat(),
        ),
    }
}

/// An aggregated ClusterRole. It is printed without rules, so that applying it again removes none.
fn custom_kinds(parts: &[&Part<'_>]) -> [Manifest; 2] {
    let (name, label) = CUSTOM;
    let metadata = json!({"name": name, "labels": {"app.kubernetes.io/part-of": "strew"}});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
    });
    let binding = cluster_role_binding(&metadata, name, parts);
    [
        Manifest::with_comment(ABOUT_CUSTOM, role),
        Manifest::from(binding),
    ]
}

/// A URL in the API server's form, without the paths of the webhooks, which are appended.
fn url(text: &str) -> Result<String, anyhow::Error> {
    let rest = text.strip_prefix("https://");
    let rest = rest.ok_or_else(|| anyhow!("an API server calls webhooks by https:// only"))?;
    let rest = rest.trim_end_matches('/');
    if rest.is_empty() || rest.starts_with('/') || rest.contains(['?', '#', '@', ' ']) {
        return Err(anyhow!(
            "expected a URL such as https://10.0.0.7:9443, without a user, a query or a fragment"
        ));
    }
    Ok(format!("https://{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_one_that_an_api_server_calls() {
        for (text, expected) in [
            ("https://127.0.0.1:9443", Some("https://127.0.0.1:9443")),
            (
                "https://hooks.example.com/",
                Some("https://hooks.example.com"),
            ),
            ("http://127.0.0.1:9443", None),
            ("https://", None),
            ("https://host/below/", Some("https://host/below")),
            ("https://host?a=b", None),
            ("https:///path", None),
            ("https://user@host", None),
        ] {
            assert_eq!(url(text).ok().as_deref(), expected, "{text}");
        }
    }
}
