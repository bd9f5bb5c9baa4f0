//! The tools: five commands of strew with typed arguments and typed results.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::schema::SchemaKind;
use crate::{place, what_if};

/// The largest number of seeds of a call.
const SEEDS_MAX: u32 = 100;

/// A text as a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    /// A name such as web.yaml, which errors in it use.
    pub(super) name: String,
    /// YAML with one or more documents, or JSON, as kubectl writes and reads it.
    pub(super) content: String,
}

/// Simulates where pods go and what happens to them: deploys the workloads of the files in a simulated cluster,
/// restarts them, scales them to half, loses the largest zone and restores it, and reports after each step how pods
/// spread, what is Pending and why. Files with a document of kind Scenario have steps and expectations of their own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Simulate {
    /// Manifests of workloads, and of nodes, if they are known; a dump of a cluster.
    #[serde(default)]
    files: Vec<File>,
    /// Files and folders below the folder of --root, in addition to the texts.
    #[serde(default)]
    paths: Vec<String>,
    /// Made-up nodes in addition to those of the files; 12 if the files have none.
    nodes: Option<u32>,
    /// Zones of the made-up nodes.
    zones: Option<u32>,
    /// Allocatable CPU of each made-up node, such as 8.
    node_cpu: Option<String>,
    /// Allocatable memory of each made-up node, such as 32Gi.
    node_memory: Option<String>,
    /// End after this step, or at this time: of the built-in steps deploy, rollout, lose, restore, cronjobs or scale. To ask
    /// where pods go, deploy is enough.
    until: Option<String>,
    /// Show only the workloads of this namespace.
    namespace: Option<String>,
    /// Show only workloads with these labels, such as app=web.
    selector: Option<String>,
    /// Count pods by these topology keys, too.
    #[serde(default)]
    by: Vec<String>,
    /// For a Scenario: play only these variants.
    #[serde(default)]
    variants: Vec<String>,
    /// The number of seeds to play, at most 100: times, names and ties are drawn from a seed.
    seeds: Option<NonZeroU32>,
    /// The first seed, or the only one.
    seed: Option<u64>,
}

/// Explains why a pod is Pending, or why it is on its node: the sum of each spread constraint for every domain, what
/// every node lacks, the scores, and single changes that would place the pod, each verified. Without a target: all
/// Pending pods by cause. The files must have the nodes, or nodes asks for made-up ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Explain {
    /// pod/NAME, or a workload such as deployment/NAME: its first Pending pod, else its first. Without one, all Pending
    /// pods are listed by cause.
    target: Option<String>,
    /// A dump of a cluster, or manifests with nodes.
    #[serde(default)]
    files: Vec<File>,
    /// Files and folders below the folder of --root, in addition to the texts.
    #[serde(default)]
    paths: Vec<String>,
    /// The namespace of the target, or of the pods to list.
    namespace: Option<String>,
    /// Without a target: list only pods of workloads with these labels, such as app=web.
    selector: Option<String>,
    /// Made-up nodes in addition to those of the files.
    nodes: Option<u32>,
    /// Zones of the made-up nodes.
    zones: Option<u32>,
    /// Allocatable CPU of each made-up node, such as 8.
    node_cpu: Option<String>,
    /// Allocatable memory of each made-up node, such as 32Gi.
    node_memory: Option<String>,
    /// Play for this long first, such as 90s.
    at: Option<String>,
    /// For a Scenario: the variant.
    variant: Option<String>,
    /// The seed.
    seed: Option<u64>,
    #[schemars(description = what_if::help())]
    #[serde(default)]
    what_if: Vec<String>,
}

/// Finds errors and probable mistakes in manifests, with the place of each finding: what the API server refuses, spread
/// constraints that count none of their pods or have a key that no node has, budgets that select nothing or allow no
/// eviction, rollouts that never end or leave pods uneven, pods that find no node, autoscalers without a target,
/// WorkloadSpreads of OpenKruise, Placements of Open Cluster Management. Most findings have a fix that was tried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Lint {
    /// Manifests or a dump: workloads with their budgets, and nodes, if they are known; Placements with their clusters.
    #[serde(default)]
    files: Vec<File>,
    /// Files and folders below the folder of --root, in addition to the texts.
    #[serde(default)]
    paths: Vec<String>,
}

/// Takes each zone away from a cluster in a simulation, by loss, zonal shift and drain, and says for every workload what is
/// left at once, whether and when it comes back, why, and which change would prevent it: LOST, OUTAGE, DEGRADED, SURVIVES
/// or UNKNOWN. Changes were played, and are merge patches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Audit {
    /// A dump of a cluster, or manifests of workloads with their budgets, and nodes, if they are known.
    #[serde(default)]
    files: Vec<File>,
    /// Files and folders below the folder of --root, in addition to the texts.
    #[serde(default)]
    paths: Vec<String>,
    /// The topology key whose domains are taken away; zones by default.
    by: Option<String>,
    /// How many domains are taken away at once, at most 3.
    losing: Option<u32>,
    /// The events to play: loss, shift, drain; all by default.
    #[serde(default)]
    events: Vec<String>,
    /// Made-up nodes in addition to those of the files; 12 if the files have none.
    nodes: Option<u32>,
    /// Zones of the made-up nodes.
    zones: Option<u32>,
    /// Allocatable CPU of each made-up node, such as 8.
    node_cpu: Option<String>,
    /// Allocatable memory of each made-up node, such as 32Gi.
    node_memory: Option<String>,
    /// Show only the workloads of this namespace.
    namespace: Option<String>,
    /// Show only workloads with these labels, such as app=web.
    selector: Option<String>,
    /// The seed.
    seed: Option<u64>,
}

/// Decides which clusters Placements of Open Cluster Management select, how they spread over regions and zones, and
/// why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Place {
    /// Placements, ManagedClusters, ManagedClusterSets and their bindings, AddOnPlacementScores, PlacementDecisions.
    #[serde(default)]
    files: Vec<File>,
    /// Files and folders below the folder of --root, in addition to the texts.
    #[serde(default)]
    paths: Vec<String>,
    /// Show only the Placements of this namespace.
    namespace: Option<String>,
    #[schemars(description = place::what_if_help())]
    #[serde(default)]
    what_if: Vec<String>,
    /// The time at which tolerations and scores are judged, such as 2026-03-01T12:00:00Z; now by default.
    at: Option<String>,
}

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Simulate,
    Explain,
    Lint,
    Audit,
    Place,
}

const TOOLS: [Tool; 5] = [
    Tool::Simulate,
    Tool::Explain,
    Tool::Lint,
    Tool::Audit,
    Tool::Place,
];

impl Tool {
    /// The name of the command.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Simulate => "simulate",
            Self::Explain => "explain",
            Self::Lint => "lint",
            Self::Audit => "audit",
            Self::Place => "place",
        }
    }

    /// True if its command estimates its memory.
    pub(super) fn bounds_memory(self) -> bool {
        matches!(self, Self::Simulate | Self::Explain | Self::Audit)
    }

    fn input(self) -> Value {
        let schema = match self {
            Self::Simulate => schemars::schema_for!(Simulate),
            Self::Explain => schemars::schema_for!(Explain),
            Self::Lint => schemars::schema_for!(Lint),
            Self::Audit => schemars::schema_for!(Audit),
            Self::Place => schemars::schema_for!(Place),
        };
        schema.to_value()
    }

    fn output(self) -> Value {
        match self {
            Self::Simulate => SchemaKind::Report.schema(),
            Self::Explain => one_of([
                SchemaKind::Explanation.schema(),
                SchemaKind::Pending.schema(),
            ]),
            Self::Lint => SchemaKind::Diagnostics.schema(),
            Self::Audit => SchemaKind::Audit.schema(),
            Self::Place => json!({
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"const": "PlacementDecisionList"},
                    "items": {"type": "array", "items": SchemaKind::Placementdecision.schema()},
                    "changes": {"type": "array"},
                    "findings": {"type": "array"},
                },
                "required": ["apiVersion", "kind", "items"],
            }),
        }
    }

    fn describe(self) -> Value {
        let mut input = self.input();
        if let Some(properties) = input["properties"].as_object_mut() {
            // Formats of Rust, which validators warn of; the bounds say the same.
            let properties = properties.values_mut().filter_map(Value::as_object_mut);
            properties.for_each(|property| drop(property.remove("format")));
        }
        // The description of the tool is beside its arguments.
        let description = input.as_object_mut().and_then(|schema| {
            schema.remove("title");
            schema.remove("description")
        });
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": input,
            "outputSchema": self.output(),
            "annotations": {
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }
}

/// An object of one of these types; their definitions are at the top, where references look for them.
fn one_of<const N: usize>(mut types: [Value; N]) -> Value {
    let mut definitions = Map::new();
    for schema in &mut types {
        if let Some(Value::Object(own)) = schema.as_object_mut().and_then(|s| s.remove("$defs")) {
            definitions.extend(own);
        }
    }
    json!({"type": "object", "oneOf": types.to_vec(), "$defs": definitions})
}

/// All tools, as the answer to `tools/list`.
pub(super) fn list() -> Value {
    TOOLS.map(Tool::describe).to_vec().into()
}

/// A call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) tool: Tool,
    pub(super) files: Vec<File>,
    pub(super) paths: Vec<String>,
    /// Options of the command, one word each: `--seeds=3`.
    pub(super) options: Vec<String>,
    /// The words before the files.
    pub(super) target: Option<String>,
}

/// Why a call is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no such tool: an error of the protocol.
    NoTool(String),
    /// The arguments are wrong, which the client can correct: a result.
    Arguments(String),
}

/// Reads the parameters of `tools/call`.
pub(super) fn parse(params: &Map<String, Value>) -> Result<Asked, Refusal> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let tool = TOOLS.into_iter().find(|tool| tool.name() == name);
    let tool = tool.ok_or_else(|| {
        let names = TOOLS.map(Tool::name).join(", ");
        Refusal::NoTool(format!("no tool {name:?}: tools are {names}"))
    })?;
    let arguments = params
        .get("arguments")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let asked = match tool {
        Tool::Simulate => simulate(read(arguments)?)?,
        Tool::Explain => explain(read(arguments)?)?,
        Tool::Lint => {
            let Lint { files, paths } = read(arguments)?;
            asked(tool, files, paths, Options::default())
        }
        Tool::Audit => {
            let audit: Audit = read(arguments)?;
            let mut options = Options::default();
            options.add("by", audit.by);
            options.add("losing", audit.losing);
            options.all("event", audit.events);
            options.nodes(
                [audit.nodes, audit.zones],
                [audit.node_cpu, audit.node_memory],
            );
            options.add("namespace", audit.namespace);
            options.add("selector", audit.selector);
            options.add("seed", audit.seed);
            asked(tool, audit.files, audit.paths, options)
        }
        Tool::Place => {
            let place: Place = read(arguments)?;
            let mut options = Options::default();
            options.add("namespace", place.namespace);
            options.all("what-if", place.what_if);
            options.add("at", place.at);
            asked(tool, place.files, place.paths, options)
        }
    };
    // Without files, the command would read the cluster of the kubeconfig.
    match asked.files.is_empty() && asked.paths.is_empty() {
        true => Err(Refusal::Arguments(
            "no file: give files, a list of {name, content}, or with --root paths".to_owned(),
        )),
        false => Ok(asked),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Refusal> {
    serde_json::from_value(arguments).map_err(|error| Refusal::Arguments(error.to_string()))
}

fn asked(tool: Tool, files: Vec<File>, paths: Vec<String>, options: Options) -> Asked {
    Asked {
        tool,
        files,
        paths,
        options: options.0,
        target: None,
    }
}

fn simulate(call: Simulate) -> Result<Asked, Refusal> {
    if let Some(seeds) = call.seeds.filter(|seeds| seeds.get() > SEEDS_MAX) {
        return Err(Refusal::Arguments(format!(
            "seeds: {seeds} are more than {SEEDS_MAX} in one call; strew simulate --seeds plays more at a desk"
        )));
    }
    let mut options = Options::default();
    options.nodes([call.nodes, call.zones], [call.node_cpu, call.node_memory]);
    options.add("until", call.until);
    options.add("namespace", call.namespace);
    options.add("selector", call.selector);
    options.all("by", call.by);
    options.all("variant", call.variants);
    options.add("seeds", call.seeds);
    options.add("seed", call.seed);
    // A Scenario has its own number of seeds.
    options.add("max-seeds", Some(SEEDS_MAX));
    Ok(asked(Tool::Simulate, call.files, call.paths, options))
}

/// Kinds whose explanation has another type.
const OTHER_KINDS: [&str; 6] = [
    "node",
    "nodes",
    "workloadspread",
    "ws",
    "placement",
    "placements",
];

fn explain(call: Explain) -> Result<Asked, Refusal> {
    let wrong = |what: String| Err(Refusal::Arguments(format!("target: {what}")));
    if let Some(target) = &call.target {
        let no_name = || wrong(format!("{target:?} is not TYPE/NAME, such as pod/web-7"));
        let Some((kind, name)) = target.split_once('/') else {
            return no_name();
        };
        if kind.is_empty() || name.is_empty() || target.starts_with('-') {
            return no_name();
        }
        let kind = kind.split('.').next().unwrap_or_default().to_lowercase();
        if OTHER_KINDS.contains(&kind.as_str()) {
            return wrong(format!(
                "{kind} is no pod and no workload: place answers for Placements, lint for WorkloadSpreads"
            ));
        }
    }
    let mut options = Options::default();
    options.add("namespace", call.namespace);
    options.add("selector", call.selector);
    options.nodes([call.nodes, call.zones], [call.node_cpu, call.node_memory]);
    options.add("at", call.at);
    options.add("variant", call.variant);
    options.add("seed", call.seed);
    options.all("what-if", call.what_if);
    Ok(Asked {
        target: call.target,
        ..asked(Tool::Explain, call.files, call.paths, options)
    })
}

/// The words of a command. A value is in the word of its option, so that it is never taken for another option.
#[derive(Default)]
struct Options(Vec<String>);

impl Options {
    fn add(&mut self, name: &str, value: Option<impl ToString>) {
        self.all(name, value);
    }

    fn all(&mut self, name: &str, values: impl IntoIterator<Item = impl ToString>) {
        let values = values.into_iter();
        self.0
            .extend(values.map(|value| format!("--{name}={}", value.to_string())));
    }

    fn nodes(&mut self, [nodes, zones]: [Option<u32>; 2], [cpu, memory]: [Option<String>; 2]) {
        self.add("nodes", nodes);
        self.add("zones", zones);
        self.add("node-cpu", cpu);
        self.add("node-memory", memory);
    }
}

/// The result of a call that failed.
pub(super) fn error(what: &str) -> Value {
    json!({"content": [{"type": "text", "text": what}], "isError": true})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, arguments: Value) -> Result<Asked, Refusal> {
        let params = json!({"name": name, "arguments": arguments});
        parse(params.as_object().unwrap())
    }

    fn refused(name: &str, arguments: Value) -> String {
        match parsed(name, arguments) {
            Err(Refusal::Arguments(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_value_is_never_an_option() {
        let files = json!([{"name": "a.yaml", "content": ""}]);
        let asked = parsed("simulate", json!({"files": files, "namespace": "--html=x"})).unwrap();
        assert_eq!(asked.options[0], "--namespace=--html=x");
        let what = refused("explain", json!({"files": files, "target": "--out=x/y"}));
        assert!(what.contains("is not TYPE/NAME"), "{what}");
    }

    #[test]
    fn a_call_without_files_reads_no_cluster() {
        for tool in TOOLS {
            let arguments = match tool {
                Tool::Explain => json!({"target": "pod/a"}),
                _ => json!({}),
            };
            let what = refused(tool.name(), arguments);
            assert!(what.starts_with("no file"), "{what}");
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        let what = refused("simulate", json!({"flies": []}));
        assert!(what.contains("unknown field `flies`"), "{what}");
        let what = refused("simulate", json!({"seeds": 101}));
        assert!(what.contains("more than 100"), "{what}");
        assert_eq!(
            parsed("delete", json!({})),
            Err(Refusal::NoTool(
                "no tool \"delete\": tools are simulate, explain, lint, audit, place".to_owned()
            ))
        );
    }

    #[test]
    fn each_tool_says_what_it_takes_and_gives() {
        for tool in list().as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
            // A format that no client knows.
            assert!(!tool.to_string().contains("\"uint"), "{tool}");
            assert!(tool["description"].as_str().unwrap().len() > 50, "{tool}");
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
        }
    }
}
