//! `strew uninstall`: prints what to delete of a component, in an order in which nothing waits for a deleted object. It
//! only prints; `kubectl delete -f -` deletes.
//!
//! The objects are those that [`install`] prints, and those that processes create, which the roles name. Reading order:
//! this file, [`definitions`] (the definitions of custom kinds).

mod definitions;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::install::{self, Component, elsewhere};
use crate::manifest::{Manifest, written};
use crate::terminal;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM uninstall scheduler | kubectl delete --ignore-not-found -f -
  PROGRAM uninstall workloadspread --namespace spreading | kubectl delete --ignore-not-found -f -
  PROGRAM uninstall placement --crds > what-goes.yaml    with the definitions, after asking the cluster
  PROGRAM uninstall scheduler --with-namespace           when it is the last component

It only prints. The order is that of deletion: webhook configurations first, so that no creation of a pod waits for a
webhook that is gone. What is outside the namespace is left out where the cluster, if one is known, has it for an
installation in another namespace.
Exit codes: 0 done; 2 wrong usage; 3 the cluster of --kubeconfig, or with --crds any, cannot be asked.";

/// Arguments of `strew uninstall`.
#[derive(Args, Debug)]
pub(crate) struct UninstallArgs {
    #[command(subcommand)]
    component: Installed,
}

#[derive(Subcommand, Debug)]
enum Installed {
    /// The scheduler
    Scheduler(ComponentArgs),
    /// WorkloadSpreads: webhook and controller, and the webhook configurations
    Workloadspread(ComponentArgs),
    /// The placement controller
    Placement(ComponentArgs),
    /// The controller that keeps ReplicaSets spread
    Keep(ComponentArgs),
    /// The audit
    Audit(ComponentArgs),
    /// The controller that makes labelled workloads even again; pods that it evicted stay where they came back
    Rebalance(ComponentArgs),
}

/// The arguments of every component.
#[derive(Args, Debug)]
struct ComponentArgs {
    /// The namespace of the installation
    #[arg(long, value_name = "NAME", default_value = "strew-system", value_parser = install::flags::namespace)]
    namespace: String,
    /// Delete the namespace as well, with everything in it: also objects of other programs and components
    #[arg(long)]
    with_namespace: bool,
    /// Delete the CustomResourceDefinitions of strew as well, and so all objects of these kinds; the cluster is asked
    /// for their numbers
    #[arg(long)]
    crds: bool,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = ["yaml", "json"])]
    output: String,
    #[command(flatten)]
    access: AccessArgs,
}

/// Kinds in the order of deletion.
///
/// Webhook configurations are deleted before the webhook. Bindings are deleted before objects that processes create, so
/// that a process that is still ending cannot create them again; the policies that bound the accounts are deleted after
/// the bindings.
const ORDER: &[&str] = &[
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "Deployment",
    "PodDisruptionBudget",
    "RoleBinding",
    "ClusterRoleBinding",
    "Role",
    "ClusterRole",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "Service",
    "NetworkPolicy",
    "ResourceQuota",
    "ConfigMap",
    "Lease",
    "Secret",
    "ServiceAccount",
];

/// Resources of which a process creates objects that its role names, with their versions and kinds.
const MADE: &[(&str, &str, &str)] = &[
    ("leases", "coordination.k8s.io/v1", "Lease"),
    ("secrets", "v1", "Secret"),
];

const ABOUT: &str = "Delete in this order: kubectl delete --ignore-not-found -f -";

pub(crate) fn run(args: &UninstallArgs, context: &Context) -> Result<u8, Failure> {
    let (component, args) = match &args.component {
        Installed::Scheduler(args) => (Component::Scheduler, args),
        Installed::Workloadspread(args) => (Component::WorkloadSpread, args),
        Installed::Placement(args) => (Component::Placement, args),
        Installed::Keep(args) => (Component::Keep, args),
        Installed::Audit(args) => (Component::Audit, args),
        Installed::Rebalance(args) => (Component::Rebalance, args),
    };
    let mut objects = installed(component, &args.namespace, context)?;
    let say = |text: String| {
        if !context.quiet {
            terminal::say(&format!("note: {text}\n"));
        }
    };
    if let Some(found) = elsewhere::find(&objects, &args.namespace, &args.access)? {
        // A binding in kube-system has one name, too.
        objects.retain(|object| object["metadata"]["namespace"] == *args.namespace);
        say(format!(
            "ClusterRoleBinding {} is of the installation in namespace {}: what is not in namespace {} is left out",
            found.binding, found.namespace, args.namespace
        ));
    }
    let definitions = component.definitions();
    if args.crds {
        for found in definitions::of_strew(&definitions, &args.access)? {
            say(found.note);
            objects.extend(found.object);
        }
    } else if !definitions.is_empty() {
        say("CustomResourceDefinitions and their objects stay; --crds prints strew's definitions, too".to_owned());
    }
    if args.with_namespace {
        objects.push(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": args.namespace}}),
        );
    } else {
        say(format!(
            "namespace {} stays; --with-namespace prints it, too",
            args.namespace
        ));
    }
    let mut manifests: Vec<Manifest> = Vec::new();
    for (index, object) in objects.into_iter().enumerate() {
        manifests.push(match index {
            0 => Manifest::with_comment(ABOUT, object),
            _ => object.into(),
        });
    }
    terminal::print(&written(&manifests, &args.output)?)?;
    Ok(0)
}

/// The identities of all objects of a component, sorted by [`ORDER`].
fn installed(
    component: Component,
    namespace: &str,
    context: &Context,
) -> Result<Vec<Value>, Failure> {
    let printed = install::objects_of(component, namespace, context)?;
    let mut objects: Vec<Value> = Vec::new();
    for object in &printed {
        objects.push(identity(object));
        objects.extend(made_under(object));
    }
    if component == Component::WorkloadSpread {
        // For `--client-ca-file`, which may have been given.
        let name = strew_wire::workloadspread::registration::NAME;
        let metadata = json!({"name": name, "namespace": namespace});
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
    }
    let rank = |object: &Value| ORDER.iter().position(|kind| object["kind"] == *kind);
    objects.retain(|object| rank(object).is_some());
    objects.sort_by_key(|object| rank(object));
    let mut seen = Vec::new();
    objects.retain(|object| {
        let is_new = !seen.contains(object);
        if is_new {
            seen.push(object.clone());
        }
        is_new
    });
    Ok(objects)
}

/// The identity of an object for `kubectl delete`.
fn identity(object: &Value) -> Value {
    let mut metadata = json!({"name": object["metadata"]["name"]});
    if object["metadata"]["namespace"].is_string() {
        metadata["namespace"] = object["metadata"]["namespace"].clone();
    }
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata})
}

/// The objects that a process creates, by its Role.
fn made_under(role: &Value) -> Vec<Value> {
    if role["kind"] != "Role" {
        return Vec::new();
    }
    let mut made = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for (resource, version, kind) in MADE {
            if rule["resources"][0] != *resource {
                continue;
            }
            for name in rule["resourceNames"].as_array().into_iter().flatten() {
                made.push(json!({
                    "apiVersion": version,
                    "kind": kind,
                    "metadata": {"name": name, "namespace": role["metadata"]["namespace"]},
                }));
            }
        }
    }
    made
}
