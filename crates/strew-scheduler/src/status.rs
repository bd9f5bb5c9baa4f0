//! Reasons why a node, or a pod as a whole, is refused.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use strew_cluster::Unsupported;
use strew_model::{Holds, Interner, Marks, Symbol};

use crate::profile::PluginId;
use crate::refusals::Refusals;

/// Whether evictions can cure a refusal. Source: spec/scheduler §2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Evicting pods from the node might help.
    Unschedulable,
    /// Evicting pods would not help.
    UnschedulableAndUnresolvable,
    /// The attempt failed.
    Error,
}

impl Code {
    /// kube-scheduler's name of the code.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Self::Error => "Error",
        }
    }
}

/// One reason; [`Reason::text`] is kube-scheduler's message to the letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The node is cordoned.
    Cordoned,
    /// `spec.nodeName` names another node.
    OtherNodeName,
    /// A taint that the pod does not tolerate.
    UntoleratedTaint,
    /// Node selector or affinity.
    NodeAffinity,
    /// Affinity that the profile adds to every pod's.
    AddedAffinity,
    /// `metadata.name` terms that no single name can meet.
    ConflictingNames,
    /// The node is not among those to which these plugins narrowed the search.
    NarrowedOut(PluginId),
    /// As `NarrowedOut`, after this plugin had refused the pod's own nominated node (a quirk of v1.36.3: it is listed
    /// too).
    NarrowedOutBeside(PluginId, PluginId),
    /// A host port is in use.
    Ports,
    /// The node has as many pods as it takes.
    TooManyPods,
    /// Not enough CPU left.
    Cpu,
    /// Not enough memory left.
    Memory,
    /// Not enough ephemeral storage left.
    EphemeralStorage,
    /// Not enough of another resource left.
    Scalar(Symbol),
    /// The skew would be too large.
    Skew,
    /// The node lacks a topology label.
    MissingTopologyLabel,
    /// Required affinity to pods.
    PodAffinity,
    /// Required anti-affinity to pods.
    PodAntiAffinity,
    /// Required anti-affinity of existing pods.
    ExistingAntiAffinity,
    /// A claim does not exist.
    ClaimMissing(Symbol),
    /// The claim of a generic ephemeral volume, of this name, does not exist yet.
    EphemeralClaimMissing(Arc<str>),
    /// The claim of a generic ephemeral volume belongs to another pod.
    ClaimOfAnother {
        /// The namespace of both.
        namespace: Symbol,
        /// The claim.
        claim: Symbol,
        /// The pod that needs it.
        pod: Arc<str>,
    },
    /// A claim has lost its volume: the claim, and the volume's name.
    ClaimLost(Symbol, Symbol),
    /// A claim is being deleted.
    ClaimTerminating(Symbol),
    /// Claims with immediate binding are not bound yet.
    UnboundClaims,
    /// A claim's volume does not exist.
    VolumeMissing(Symbol),
    /// A claim's volume does not exist, found node by node.
    VolumesMissing,
    /// A ReadWriteOncePod claim is in use.
    ClaimInUse,
    /// A driver can attach no more volumes to the node.
    VolumeLimit,
    /// The node affinity of a volume.
    VolumeNodeAffinity,
    /// A claim that waits for its pod's node gets no volume there.
    NoVolumeToBind,
    /// A volume is in another zone or region.
    VolumeZone,
    /// A need that strew does not implement.
    Unsupported(Unsupported),
}

impl Reason {
    /// The message.
    pub fn text(&self, names: &Interner) -> String {
        let fixed = match self {
            Self::Cordoned => "node(s) were unschedulable",
            Self::OtherNodeName => "node(s) didn't match the requested node name",
            Self::UntoleratedTaint => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::AddedAffinity => "node(s) didn't match scheduler-enforced node affinity",
            Self::ConflictingNames => "pod affinity terms conflict",
            Self::NarrowedOut(plugin) => {
                return format!("node(s) didn't satisfy plugin(s) [{plugin}]");
            }
            Self::NarrowedOutBeside(a, b) => {
                let mut plugins = [a.name(), b.name()];
                plugins.sort_unstable();
                return format!("node(s) didn't satisfy plugin(s) [{}]", plugins.join(" "));
            }
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Cpu => "Insufficient cpu",
            Self::Memory => "Insufficient memory",
            Self::EphemeralStorage => "Insufficient ephemeral-storage",
            Self::Scalar(name) => return format!("Insufficient {}", names.text(*name)),
            Self::Skew => "node(s) didn't match pod topology spread constraints",
            Self::MissingTopologyLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
            Self::VolumesMissing => {
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            }
            Self::ClaimInUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod"
            }
            Self::VolumeLimit => "node(s) exceed max volume count",
            Self::VolumeNodeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::NoVolumeToBind => "node(s) didn't find available persistent volumes to bind",
            Self::VolumeZone => "node(s) had no available volume zone",
            Self::UnboundClaims => "pod has unbound immediate PersistentVolumeClaims",
            Self::ClaimMissing(_)
            | Self::EphemeralClaimMissing(_)
            | Self::ClaimOfAnother { .. }
            | Self::ClaimLost(..)
            | Self::ClaimTerminating(_)
            | Self::VolumeMissing(_) => return self.claim_text(names),
            Self::Unsupported(need) => return unsupported(need, names),
        };
        fixed.to_owned()
    }

    /// The messages that name a claim or a volume. Source: upstream `volumebinding/volume_binding.go`, v1.36.3.
    fn claim_text(&self, names: &Interner) -> String {
        let claim = |symbol: Symbol| format!("persistentvolumeclaim {:?}", names.text(symbol));
        let volume = |symbol: Symbol| format!("persistentvolume {:?}", names.text(symbol));
        match self {
            Self::ClaimMissing(name) => format!("{} not found", claim(*name)),
            Self::EphemeralClaimMissing(name) => format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
            ),
            Self::ClaimOfAnother {
                namespace,
                claim,
                pod,
            } => {
                let (namespace, claim) = (names.text(*namespace), names.text(*claim));
                format!(
                    "PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)"
                )
            }
            Self::ClaimLost(of, to) => {
                format!("{} bound to non-existent {}", claim(*of), volume(*to))
            }
            Self::ClaimTerminating(name) => format!("{} is being deleted", claim(*name)),
            Self::VolumeMissing(name) => format!("{} not found", volume(*name)),
            _ => String::new(),
        }
    }
}

fn unsupported(need: &Unsupported, names: &Interner) -> String {
    let text = |symbol: Symbol| names.text(symbol);
    let what = match need {
        Unsupported::UnboundClaim(volume, claim, class) => {
            let of_class = class.map(|class| format!(" of storage class {:?}", text(class)));
            format!(
                "volume {:?} uses persistentvolumeclaim {:?}{}, which is not bound before its first pod is placed",
                text(*volume),
                text(*claim),
                of_class.unwrap_or_default()
            )
        }
        Unsupported::UnattendedClaim(volume, claim) => format!(
            "volume {:?} uses persistentvolumeclaim {:?}, which has no volume, and nothing here binds claims",
            text(*volume),
            text(*claim)
        ),
        Unsupported::ExclusiveDisk(volume) => {
            format!(
                "volume {:?} is a disk that one node at a time may use",
                text(*volume)
            )
        }
        Unsupported::CountedDisk(volume) => {
            format!(
                "volume {:?} is a disk of which a node attaches only so many",
                text(*volume)
            )
        }
        Unsupported::ResourceClaim(claim) => format!("it uses resource claim {:?}", text(*claim)),
        Unsupported::PodGroup(group) => format!("it belongs to pod group {:?}", text(*group)),
        Unsupported::BadSelector(place) => return format!("{} is no valid selector", text(*place)),
    };
    format!("strew does not implement what this pod needs: {what}")
}

/// A node's refusal, with all reasons of the first plugin that refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The plugin; for [`Reason::NarrowedOut`], the one that narrowed the search.
    pub plugin: PluginId,
    /// Whether evictions can cure it.
    pub code: Code,
    /// The plugin's reasons, in its order.
    pub reasons: SmallVec<[Reason; 2]>,
}

impl Refusal {
    /// A refusal that evictions might cure.
    pub fn unschedulable(plugin: PluginId, reason: Reason) -> Self {
        Self {
            plugin,
            code: Code::Unschedulable,
            reasons: [reason].into_iter().collect(),
        }
    }

    /// A refusal that evictions would not cure.
    pub fn unresolvable(plugin: PluginId, reason: Reason) -> Self {
        Self {
            plugin,
            code: Code::UnschedulableAndUnresolvable,
            reasons: [reason].into_iter().collect(),
        }
    }
}

/// Why a pod is on no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// There are no nodes.
    NoNodes,
    /// A plugin refused the pod before any node was checked.
    PreFilter(Refusal),
    /// Each node was refused.
    EveryNode(Refusals),
}

impl Unfit {
    /// kube-scheduler's message. Source: spec/scheduler §2.9.
    pub fn message(&self, nodes: usize, names: &Interner) -> String {
        match self {
            Self::NoNodes => "no nodes available to schedule pods".to_owned(),
            Self::PreFilter(refusal) => {
                let reasons: Vec<String> = refusal.reasons.iter().map(|r| r.text(names)).collect();
                format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
            }
            Self::EveryNode(refusals) => {
                let mut counts = Counts::default();
                for (refusal, n) in refusals.counted() {
                    let reasons = refusal.reasons.iter();
                    reasons.for_each(|reason| *counts.entry(reason).or_default() += n);
                }
                format!(
                    "0/{nodes} nodes are available: {}.",
                    written(counts.iter().map(|(r, n)| (r.text(names), *n)))
                )
            }
        }
    }
}

type Counts<T> = indexmap::IndexMap<T, usize, rustc_hash::FxBuildHasher>;

/// `COUNT REASON` for each distinct message, from messages with their counts; those with count 0 are left out.
pub(crate) fn histogram(sentences: impl Iterator<Item = (String, usize)>) -> String {
    let mut counts = Counts::default();
    for (sentence, n) in sentences.filter(|(_, n)| *n > 0) {
        *counts.entry(sentence).or_default() += n;
    }
    written(counts.into_iter())
}

/// Sorted as strings ("10 x" before "2 x"), as upstream does.
fn written(counts: impl Iterator<Item = (String, usize)>) -> String {
    let mut lines: Vec<String> = counts.map(|(text, n)| format!("{n} {text}")).collect();
    lines.sort_unstable();
    lines.join(", ")
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === the symbols in it ===

impl Holds for Unfit {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::NoNodes => {}
            Self::PreFilter(refusal) => refusal.mark(marks),
            Self::EveryNode(refusals) => refusals.mark(marks),
        }
    }
}

impl Holds for Refusal {
    fn mark(&self, marks: &mut Marks) {
        self.reasons.as_slice().mark(marks);
    }
}

impl Holds for Reason {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Scalar(name)
            | Self::ClaimMissing(name)
            | Self::ClaimTerminating(name)
            | Self::VolumeMissing(name) => name.mark(marks),
            Self::ClaimOfAnother {
                namespace,
                claim,
                pod: _,
            } => (*namespace, *claim).mark(marks),
            Self::ClaimLost(claim, volume) => (*claim, *volume).mark(marks),
            Self::Unsupported(need) => need.mark(marks),
            Self::Cordoned
            | Self::OtherNodeName
            | Self::UntoleratedTaint
            | Self::NodeAffinity
            | Self::AddedAffinity
            | Self::ConflictingNames
            | Self::NarrowedOut(_)
            | Self::NarrowedOutBeside(..)
            | Self::Ports
            | Self::TooManyPods
            | Self::Cpu
            | Self::Memory
            | Self::EphemeralStorage
            | Self::Skew
            | Self::MissingTopologyLabel
            | Self::PodAffinity
            | Self::PodAntiAffinity
            | Self::ExistingAntiAffinity
            | Self::EphemeralClaimMissing(_)
            | Self::UnboundClaims
            | Self::VolumesMissing
            | Self::ClaimInUse
            | Self::VolumeLimit
            | Self::VolumeNodeAffinity
            | Self::NoVolumeToBind
            | Self::VolumeZone => {}
        }
    }
}
