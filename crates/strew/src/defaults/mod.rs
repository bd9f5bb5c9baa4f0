//! `strew defaults`: default constraints that the API server adds to pods, as MutatingAdmissionPolicies, and a report of
//! what they would change.
//!
//! Reading order: this file (arguments, what is asked), `given` (the file with the constraints), `policy` (what is
//! printed), `admitted` (what the policies do to the pods of a cluster), `report` (from a cluster to the report),
//! `values` (what is written), `text` (for people).

mod admitted;
mod given;
mod policy;
mod report;
mod text;
pub(crate) mod values;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use strew_manifest::read::nearest;
use strew_suite::label_query::LabelQuery;
use strew_wire::default_policy::objects::{Reach, Version};

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::destination;
use crate::diagnostics;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs;
use crate::manifest;
use crate::output::{Format, serialized};
use crate::scenario;
use crate::workloads::{FailOn, WorkloadArgs};
use crate::world::WorldArgs;
use given::Given;
use values::DefaultsReport;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM defaults defaults.yaml                   the policies that add these constraints to pods
  PROGRAM defaults defaults.yaml | kubectl apply -f -
  PROGRAM defaults defaults.yaml dump.json         which workloads would they change, and which are uneven then?
  PROGRAM defaults defaults.yaml --live            the same of the cluster of the current context, which is only read
  PROGRAM defaults defaults.yaml --namespace-selector team=shop
  PROGRAM defaults defaults.yaml dump.json -o json | jq '.workloads[] | select(.uneven)'
  kubectl delete mutatingadmissionpolicies,mutatingadmissionpolicybindings -l app.kubernetes.io/name=strew-defaults

FILE is a KubeSchedulerConfiguration whose profiles have defaultConstraints, or a PodTopologySpreadArgs alone. A pod
without constraints of its own gets them when it is created, so that kube-scheduler, autoscalers and deschedulers all
see them: a pod of a ReplicaSet, StatefulSet or ReplicationController with the labels of its template, any other pod
with the selectors of the Services that select it. Pods of DaemonSets stay as they are.

A namespace opts out with the label defaults.strew.dev/apply=false, a pod with that label or annotation. Pods that
exist keep what they have; deleting the policies ends it.

Exit codes: 0 done; 1 pods would be Pending with the constraints that have a node now, no node has the label of a
constraint, or a workload is uneven under
them and --fail-on Uneven is given; 2 wrong input, such as a file without defaultConstraints; 3 something outside
failed.";

/// Arguments of `strew defaults`.
#[derive(Args, Debug)]
pub(crate) struct DefaultsArgs {
    /// The default constraints: a KubeSchedulerConfiguration or a PodTopologySpreadArgs, or - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Dumps to report on, instead of printing policies: files, folders, or - for standard input
    #[arg(value_name = "DUMP")]
    dumps: Vec<String>,
    /// Report on the live cluster, which is only read
    #[arg(long, conflicts_with_all = ["dumps", "filename"])]
    live: bool,
    /// Namespaces whose pods get no defaults, beside kube-system and that of strew
    #[arg(long, value_name = "NAME", value_parser = manifest::namespace)]
    exclude_namespace: Vec<String>,
    /// The namespace of strew's processes
    #[arg(long, value_name = "NAME", default_value = "strew-system", value_parser = manifest::namespace)]
    strew_namespace: String,
    /// Only pods of namespaces with these labels
    #[arg(long, value_name = "QUERY")]
    namespace_selector: Option<String>,
    /// What happens to a pod for which the policy has an error: it stays as it is, or it is refused
    #[arg(long, value_name = "POLICY", default_value = "Ignore")]
    failure_policy: FailurePolicy,
    /// The version of the policies' API: v1 since Kubernetes 1.36, v1beta1 since 1.34 where it is turned on
    #[arg(long, value_name = "VERSION", default_value = "v1")]
    api_version: ApiVersion,
    /// End with exit code 1 if a workload is uneven under the constraints now
    #[arg(long, value_name = "STATE", ignore_case = true)]
    fail_on: Option<FailOn>,
    /// How to write the policies [default: yaml] or the report
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<DefaultsFormat>,
    /// Write the result into this file, completely or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    workloads: WorkloadArgs,
    /// If there are more workloads than this, show the first; -o wide shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    world: WorldArgs,
}

/// The values of `--failure-policy`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "PascalCase")]
enum FailurePolicy {
    Ignore,
    Fail,
}

impl FailurePolicy {
    fn name(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Fail => "Fail",
        }
    }
}

/// The values of `--api-version`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "lower")]
enum ApiVersion {
    V1,
    V1beta1,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum DefaultsFormat {
    /// The policies as a List; of a report: kind DefaultsReport
    Json,
    /// The same as YAML
    Yaml,
    /// A report with all workloads
    Wide,
}

impl DefaultsFormat {
    fn of_programs(self) -> Option<Format> {
        match self {
            Self::Json => Some(Format::Json),
            Self::Yaml => Some(Format::Yaml),
            Self::Wide => None,
        }
    }
}

pub(crate) fn run(args: &DefaultsArgs, context: &Context) -> Result<u8, Failure> {
    let format = args.output.and_then(DefaultsFormat::of_programs);
    let Some(given) = given::read(&args.file, &args.world.scheduling, format, context)? else {
        return Ok(EXIT_INPUT);
    };
    let query = args.namespace_selector.as_deref();
    let query = query.map(|text| LabelQuery::of_flag("--namespace-selector", text));
    let query = query.transpose()?;
    let names = args.world.names(&args.dumps);
    if args.file == "-" && names.iter().any(|name| name == "-") {
        let error = anyhow!("standard input is read once: for FILE, or for a dump");
        return Err(Failure::input(error).with_hint("name a file for one of them"));
    }
    if names.is_empty() && !args.live {
        return args.print(&given, query.as_ref());
    }
    args.report(&given, query, &names, context)
        .inspect_err(|failure| {
            let first_file = names.first().map_or("", String::as_str);
            diagnostics::print_failure("defaults", failure, format, first_file);
        })
}

impl DefaultsArgs {
    /// The namespaces without defaults.
    fn excluded(&self) -> Vec<String> {
        let own = ["kube-system".to_owned(), self.strew_namespace.clone()];
        own.into_iter()
            .chain(self.exclude_namespace.iter().cloned())
            .collect()
    }

    /// Tells of excluded namespaces in which no workload is.
    fn tell_unknown_namespaces(&self, report: &values::DefaultsReport, context: &Context) {
        for excluded in &self.exclude_namespace {
            let known = report
                .workloads
                .iter()
                .map(|workload| workload.namespace.as_str());
            let known: std::collections::BTreeSet<&str> = known.collect();
            if known.contains(excluded.as_str()) {
                continue;
            }
            let meant =
                nearest(excluded, known).map_or(String::new(), |n| format!(": did you mean {n}?"));
            let note =
                format!("--exclude-namespace {excluded}: no workload is in this namespace{meant}");
            diagnostics::say_note(&note, context);
        }
    }

    /// Prints the policies.
    fn print(&self, given: &Given, query: Option<&LabelQuery>) -> Result<u8, Failure> {
        if self.output == Some(DefaultsFormat::Wide) {
            let error =
                anyhow!("-o wide is for a report: the policies are written as yaml or json");
            return Err(Failure::input(error).with_hint("name a dump, or --live, for a report"));
        }
        if self.fail_on.is_some() {
            let error = anyhow!("--fail-on is for a report");
            return Err(Failure::input(error).with_hint("name a dump, or --live, for a report"));
        }
        let reach = Reach {
            version: match self.api_version {
                ApiVersion::V1 => Version::V1,
                ApiVersion::V1beta1 => Version::V1beta1,
            },
            excluded: self.excluded(),
            namespaces: query.map(LabelQuery::requirements).unwrap_or_default(),
            failure_policy: self.failure_policy.name(),
        };
        let text = policy::written(&given.defaults, &reach, self.output)?;
        destination::write(self.out.as_deref(), &text)?;
        Ok(0)
    }

    /// Writes the report.
    fn report(
        &self,
        given: &Given,
        query: Option<LabelQuery>,
        names: &[String],
        context: &Context,
    ) -> Result<u8, Failure> {
        let asked = report::Asked {
            scope: admitted::Scope {
                excluded: self.excluded(),
                query,
            },
            choice: self.workloads.choice(usize::MAX)?,
        };
        let mut world = self.world.clone();
        // Standard input is read once.
        let is_read_again = given.is_configuration && self.file != "-";
        if is_read_again && world.scheduling.config.is_none() {
            world.scheduling.config = Some(self.file.clone());
        }
        crate::configuration::check(&world.scheduling, names)?;
        let inputs = world.inputs_or_cluster(names, &self.access, "defaults", context)?;
        if let Some(out) = &self.out {
            inputs::check_output(out, &inputs)?;
        }
        if scenario::is_in(&inputs) {
            let error =
                anyhow!("defaults looks at a dump of a cluster, and a file holds a Scenario");
            return Err(Failure::input(error).with_hint("strew simulate --config plays Scenarios"));
        }
        let format = self.output.and_then(DefaultsFormat::of_programs);
        let life = scenario::looked_at(
            &world,
            None,
            names,
            inputs,
            format,
            Some("defaults"),
            context,
        )?;
        let Some(life) = life else {
            return Ok(EXIT_INPUT);
        };
        let report = report::of(&life, given, &asked, context)?;
        self.tell_unknown_namespaces(&report, context);
        let text = match format {
            Some(format) => serialized(&report, format)?,
            None => text::write(
                &report,
                context,
                match self.output {
                    Some(DefaultsFormat::Wide) => usize::MAX,
                    _ => self.top,
                },
            ),
        };
        destination::write(self.out.as_deref(), &text)?;
        Ok(exit(&report, self.fail_on))
    }
}

/// The exit code.
fn exit(report: &DefaultsReport, fail_on: Option<FailOn>) -> u8 {
    let fails_now = fail_on == Some(FailOn::Uneven) && report.summary.uneven > 0;
    let has_no_effect = report.summary.without_domains > 0;
    match fails_now || has_no_effect || report.summary.pending > 0 {
        true => EXIT_NO,
        false => 0,
    }
}

/// The JSON schema of a report.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(DefaultsReport).to_value()
}
