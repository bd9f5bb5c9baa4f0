//! How the scheduler is configured: `--config`, `--feature-gates`, `--compat`, `--tie`, `--seed`, and a configuration
//! among the manifests.

use strew_manifest::field::FieldPath;
use strew_manifest::read::{Diagnostic, Locator, Origin, Sources};
use strew_model::Interner;
use strew_scheduler::{Compat, TieRule};
use strew_sim::Blueprint;
use strew_wire::config::{Configuration, FeatureGates, Given, configure};

/// The compatibility mode, and the configuration.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(next_help_heading = "How to schedule")
)]
pub struct SchedulingArgs {
    /// A KubeSchedulerConfiguration, or an old Policy, as for kube-scheduler; - for standard input. One among the
    /// manifests is used as well
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub config: Option<String>,
    /// Gates to turn on or off, for example MinDomainsInPodTopologySpread=false
    #[cfg_attr(feature = "clap", arg(long, value_name = "A=true,B=false"))]
    pub feature_gates: Vec<String>,
    /// Whose decisions: those of kube-scheduler 1.36 with its quirks, or strew's own
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "WHOSE", default_value = "1.36")
    )]
    pub compat: CompatArg,
    /// Which of several equally good nodes [default: upstream-1.36; with --compat strew: first-name]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RULE"))]
    pub tie: Option<TieArg>,
    /// The seed of all random numbers, also of --tie random: the same seed gives the same result [default: 0]; for a
    /// Scenario: play only this seed
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub seed: Option<u64>,
}

/// The values of `--compat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum CompatArg {
    /// kube-scheduler v1.36.3, ties included
    #[default]
    #[cfg_attr(feature = "clap", value(name = "1.36"))]
    V1_36,
    /// strew's own decisions; the docs list each difference
    Strew,
}

/// The values of `--tie`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum TieArg {
    /// The node that kube-scheduler 1.36 meets first
    #[cfg_attr(feature = "clap", value(name = "upstream-1.36"))]
    Upstream136,
    /// The node whose name comes first
    FirstName,
    /// Any of them, drawn from --seed
    Random,
}

impl CompatArg {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_36 => "1.36",
            Self::Strew => "strew",
        }
    }
}

impl TieArg {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upstream136 => "upstream-1.36",
            Self::FirstName => "first-name",
            Self::Random => "random",
        }
    }
}

/// The configuration, with diagnostics.
pub struct Configured {
    /// `None` if it is invalid.
    pub configuration: Option<Configuration>,
    /// True if there was a configuration; the default one is strew's own.
    pub is_given: bool,
    /// Errors in the file of `--config`, or without a place.
    pub elsewhere: Vec<Diagnostic>,
    /// Errors in the manifests.
    pub in_manifests: Vec<Diagnostic>,
}

impl SchedulingArgs {
    /// The gates, with the errors: invalid ones keep their defaults.
    pub fn gates(&self) -> (FeatureGates, Vec<Diagnostic>) {
        match FeatureGates::parse(&self.feature_gates.join(",")) {
            Ok(gates) => (gates, Vec::new()),
            Err(errors) => {
                let each = errors.iter();
                let each = each
                    .map(|e| Diagnostic::error("feature-gate", format!("--feature-gates: {e}")));
                (FeatureGates::default(), each.collect())
            }
        }
    }

    /// The configuration of a file, or of one of the manifests' documents, or the default one.
    pub fn configure(
        &self,
        file: Option<&Sources>,
        manifests: &Sources,
        documents: &[Origin],
        gates: &FeatureGates,
        names: &mut Interner,
    ) -> Configured {
        let mut in_manifests = self.surplus(manifests, documents);
        let mut elsewhere = Vec::new();
        let given = match (file, documents) {
            (Some(file), _) => Given::Files(file),
            (None, [document, ..]) => Given::Document(manifests, document),
            (None, []) => Given::Nothing,
        };
        let mut configuration = match configure(given, gates, names) {
            Ok(configuration) => Some(configuration),
            Err(errors) => {
                match given {
                    Given::Document(..) => in_manifests.extend(errors),
                    _ => elsewhere.extend(errors),
                }
                None
            }
        };
        if let Some(configuration) = &mut configuration {
            let (compat, ties) = self.choices();
            configuration.set_choices(compat, ties);
        }
        Configured {
            configuration: configuration.filter(|_| in_manifests.is_empty()),
            is_given: !matches!(given, Given::Nothing),
            elsewhere,
            in_manifests,
        }
    }

    /// Further configurations, which are ignored.
    fn surplus(&self, manifests: &Sources, documents: &[Origin]) -> Vec<Diagnostic> {
        let mut locator = Locator::new(manifests);
        let mut places = documents.iter();
        let mut place = |origin| locator.place(origin, &FieldPath::root());
        if let Some(file) = &self.config {
            let each = places.map(|origin| {
                let message =
                    format!("a configuration among the manifests, and another in --config {file}");
                let error = Diagnostic::error("surplus-document", message).at(place(origin));
                error.with_help("leave one of them out")
            });
            return each.collect();
        }
        let Some(first) = places.next() else {
            return Vec::new();
        };
        let first = place(first);
        let each = places.map(|origin| {
            let message = "a second configuration among the manifests";
            let error = Diagnostic::error("surplus-document", message).at(place(origin));
            error.with_related(first, "the first stands here")
        });
        each.collect()
    }

    fn choices(&self) -> (Compat, TieRule) {
        let (compat, ties) = match self.compat {
            CompatArg::V1_36 => (Compat::V1_36, TieRule::Upstream136),
            CompatArg::Strew => (Compat::Strew, TieRule::FirstName),
        };
        let ties = match self.tie {
            None => ties,
            Some(TieArg::Upstream136) => TieRule::Upstream136,
            Some(TieArg::FirstName) => TieRule::FirstName,
            Some(TieArg::Random) => TieRule::Random(self.seed.unwrap_or(0)),
        };
        (compat, ties)
    }

    /// The flags that repeat these arguments.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Vec::new();
        let mut add = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        if let Some(config) = &self.config {
            add("--config", config);
        }
        if !self.feature_gates.is_empty() {
            add("--feature-gates", &self.feature_gates.join(","));
        }
        if self.compat != CompatArg::V1_36 {
            add("--compat", self.compat.name());
        }
        if let Some(tie) = self.tie {
            add("--tie", tie.name());
        }
        if let Some(seed) = self.seed {
            add("--seed", &seed.to_string());
        }
        args
    }
}

/// Without a configuration, the default profile also answers to strew's own name.
const OWN_NAME: &str = "strew";

/// Builds the scheduler of a configuration, which is given or the default one.
pub fn blueprint(configuration: &Configuration, is_given: bool, names: Interner) -> Blueprint {
    let mut blueprint = Blueprint::of(configuration, names);
    if let Some(first) = blueprint.profiles.first().filter(|_| !is_given) {
        let mut own = first.clone();
        own.scheduler_name = OWN_NAME.to_owned();
        blueprint.profiles.push(own);
    }
    blueprint
}
