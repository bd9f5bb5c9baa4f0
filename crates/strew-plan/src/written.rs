//! Changes as they are written: the one vocabulary of `--what-if`, `place --what-if` and the steps of scenarios.
//!
//! A change is `VERB=SUBJECT[:ARGUMENT]` or, as for kubectl, `VERB SUBJECT [ARGUMENT]`. Taints and labels are written as
//! for kubectl; what a verb is about is a [`Part`], a pod, or a topology key.

use std::fmt;

use strew_model::Effect;

use crate::part::Part;

/// A change of nodes, or of the clusters of a fleet; `E` are the effects of taints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberVerb<E> {
    /// They are gone.
    Lose,
    /// They take no new pods, and theirs are evicted.
    Drain,
    /// They take no new pods.
    Cordon,
    /// They take new pods again.
    Uncordon,
    /// They take no new pods, and theirs get no requests while they run on.
    Shift,
    /// Their taints change.
    Taint(TaintEdit<E>),
    /// Their labels change.
    Label(LabelEdit),
}

/// A change of taints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaintEdit<E> {
    /// `KEY=VALUE:EFFECT` or `KEY:EFFECT`
    Add {
        /// Its key.
        key: String,
        /// Its value, often empty.
        value: String,
        /// What it does.
        effect: E,
    },
    /// `KEY:EFFECT-`, or `KEY-` for all effects.
    Remove {
        /// Its key.
        key: String,
        /// Only the taint with this effect.
        effect: Option<E>,
    },
}

/// A change of labels or annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelEdit {
    /// `KEY=VALUE`
    Set(String, String),
    /// `KEY-`
    Remove(String),
}

/// The effects of taints by name.
#[derive(Debug, Clone, Copy)]
pub struct Effects<E: 'static> {
    /// All of them.
    pub all: &'static [(&'static str, E)],
    /// That of a taint without one; `None`: each must have one.
    pub default: Option<E>,
}

/// The effects of nodes' taints.
pub const NODE_EFFECTS: Effects<Effect> = Effects {
    all: &[
        ("NoSchedule", Effect::NoSchedule),
        ("PreferNoSchedule", Effect::PreferNoSchedule),
        ("NoExecute", Effect::NoExecute),
    ],
    default: None,
};

/// Why a text is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEdit {
    /// It is no taint.
    Taint,
    /// This is no effect; these are.
    Effect(String, Vec<&'static str>),
    /// It is no label.
    Label,
}

impl fmt::Display for NoEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taint => f.write_str("a taint is KEY[=VALUE]:EFFECT"),
            Self::Effect(text, names) => {
                write!(f, "{text:?} is no effect: {}", names.join(", "))
            }
            Self::Label => f.write_str("a label is KEY=VALUE"),
        }
    }
}

impl<E: Copy> Effects<E> {
    fn find(&self, text: &str) -> Result<E, NoEdit> {
        let found = self.all.iter().find(|(name, _)| *name == text);
        let names = || self.all.iter().map(|(name, _)| *name).collect();
        found
            .map(|(_, effect)| *effect)
            .ok_or_else(|| NoEdit::Effect(text.to_owned(), names()))
    }
}

impl<E: Copy> TaintEdit<E> {
    /// Source: `parseTaint` of `k8s.io/kubectl/pkg/cmd/taint`, v1.36.
    ///
    /// # Errors
    /// The text is neither a taint nor the removal of one.
    pub fn parse(text: &str, effects: &Effects<E>) -> Result<Self, NoEdit> {
        let (spec, is_removal) = match text.strip_suffix('-') {
            Some(spec) => (spec, true),
            None => (text, false),
        };
        let (pair, effect) = match spec.split_once(':') {
            Some((pair, name)) => (pair, Some(effects.find(name)?)),
            None => (spec, None),
        };
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key.is_empty() || value.contains(['=', ':']) {
            return Err(NoEdit::Taint);
        }
        let key = key.to_owned();
        match (is_removal, effect, effects.default) {
            (true, effect, _) => Ok(Self::Remove { key, effect }),
            (false, Some(effect), _) | (false, None, Some(effect)) => Ok(Self::Add {
                key,
                value: value.to_owned(),
                effect,
            }),
            (false, None, None) => Err(NoEdit::Taint),
        }
    }

    /// The key of the taint.
    pub fn key(&self) -> &str {
        let (Self::Add { key, .. } | Self::Remove { key, .. }) = self;
        key
    }
}

impl LabelEdit {
    /// Reads a label as for kubectl.
    ///
    /// # Errors
    /// The text is neither a label nor the removal of one.
    pub fn parse(text: &str) -> Result<Self, NoEdit> {
        match (text.split_once('='), text.strip_suffix('-')) {
            (Some((key, value)), _) => Ok(Self::Set(key.to_owned(), value.to_owned())),
            (None, Some(key)) => Ok(Self::Remove(key.to_owned())),
            (None, None) => Err(NoEdit::Label),
        }
    }

    /// The key of the label.
    pub fn key(&self) -> &str {
        let (Self::Set(key, _) | Self::Remove(key)) = self;
        key
    }
}

/// A written change, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    /// The verb.
    pub verb: &'a str,
    /// What it is about; empty if nothing follows the verb.
    pub subject: &'a str,
    /// What becomes of it.
    pub argument: Option<&'a str>,
}

impl<'a> Written<'a> {
    /// Takes a text apart at the first blank or `=`, whichever comes first.
    pub fn of(text: &'a str) -> Self {
        let text = text.trim();
        let blank = text.split_once(char::is_whitespace);
        let blank = blank.filter(|(verb, _)| !verb.contains('='));
        let (verb, subject, argument) = match blank {
            // A step of a scenario has a colon after its verb.
            Some((verb, rest)) => {
                let rest = rest.trim();
                let (subject, argument) = match rest.split_once(char::is_whitespace) {
                    Some((subject, argument)) => (subject, Some(argument.trim())),
                    None => (rest, None),
                };
                (verb.trim_end_matches(':'), subject, argument)
            }
            None => {
                let (verb, rest) = text.split_once('=').unwrap_or((text, ""));
                match rest.split_once(':') {
                    Some((subject, argument)) => (verb, subject, Some(argument)),
                    None => (verb, rest, None),
                }
            }
        };
        Self {
            verb,
            subject,
            argument,
        }
    }

    /// The change of members, and which; `None` if it is none.
    ///
    /// # Errors
    /// A sentence about the word that is wrong.
    pub fn members<E: Copy>(&self, effects: &Effects<E>) -> Option<Result<OfMembers<E>, String>> {
        let removal = |argument: &str| format!("{}-", argument.trim_end_matches('-'));
        let verb = match (self.verb, self.argument) {
            ("lose", None) => Ok(MemberVerb::Lose),
            ("drain", None) => Ok(MemberVerb::Drain),
            ("cordon", None) => Ok(MemberVerb::Cordon),
            ("uncordon", None) => Ok(MemberVerb::Uncordon),
            ("shift", None) => Ok(MemberVerb::Shift),
            ("taint", Some(taint)) => TaintEdit::parse(taint, effects).map(MemberVerb::Taint),
            ("untaint", Some(taint)) => {
                TaintEdit::parse(&removal(taint), effects).map(MemberVerb::Taint)
            }
            ("label", Some(label)) => LabelEdit::parse(label).map(MemberVerb::Label),
            ("unlabel", Some(key)) => LabelEdit::parse(&removal(key)).map(MemberVerb::Label),
            _ => return None,
        };
        let verb = verb.and_then(|verb| match &verb {
            MemberVerb::Label(edit) if edit.key().is_empty() => Err(NoEdit::Label),
            _ => Ok(verb),
        });
        let parts = Part::parse_list(self.subject);
        Some(
            verb.map_err(|e| e.to_string())
                .and_then(|v| Ok((v, parts?))),
        )
    }
}

/// A change of members, and which they are.
pub type OfMembers<E> = (MemberVerb<E>, Vec<Part>);

/// `[NAMESPACE/]NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Its namespace; `None`: the present one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// A change of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterVerb {
    /// Nodes change.
    Nodes(MemberVerb<Effect>, Vec<Part>),
    /// Pods are deleted.
    Delete(Vec<ObjectName>),
    /// A pod goes to a node.
    Move(ObjectName, String),
    /// The constraint on a topology key changes.
    Constraint(String, ConstraintEdit),
    /// The workload gets this number of pods.
    Scale(usize),
    /// A budget allows this number of disruptions.
    Budget(ObjectName, i32),
}

/// The change of a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstraintEdit {
    /// Its maxSkew is another.
    MaxSkew(i32),
    /// Its minDomains is another.
    MinDomains(i32),
    /// It becomes `ScheduleAnyway`.
    Soften,
    /// It goes.
    Drop,
    /// A hard one is added, with this maxSkew.
    Add(i32),
}

impl ClusterVerb {
    /// All verbs with their arguments.
    pub const HELP: &'static str = "lose=, drain=, cordon=, uncordon=, shift=NODES, taint=NODES:KEY[=VALUE]:EFFECT, untaint=NODES:KEY[:EFFECT], label=NODES:KEY=VALUE, unlabel=NODES:KEY, delete=PODS, move=POD:NODE, scale=N, maxSkew=KEY:N, minDomains=KEY:N, soften=KEY, drop=KEY, spread=KEY:N, budget=NAME:N";

    /// Reads a change.
    ///
    /// # Errors
    /// A sentence about the word that is wrong; `None` if the verb is unknown.
    pub fn parse(text: &str) -> Result<Self, Option<String>> {
        let written = Written::of(text);
        if let Some(members) = written.members(&NODE_EFFECTS) {
            let (verb, parts) = members.map_err(Some)?;
            return Ok(Self::Nodes(verb, parts));
        }
        let subject = written.subject;
        let key = || match subject.is_empty() {
            true => Err("a topology key is missing".to_owned()),
            false => Ok(subject.to_owned()),
        };
        let constraint = |edit: ConstraintEdit| Ok(Self::Constraint(key()?, edit));
        let numbered = |edit: fn(i32) -> ConstraintEdit, n: &str| constraint(edit(positive(n)?));
        let verb = match (written.verb, written.argument) {
            ("delete", None) => subject
                .split(',')
                .map(ObjectName::parse)
                .collect::<Result<_, _>>()
                .map(Self::Delete),
            ("move", Some(node)) => {
                ObjectName::parse(subject).map(|pod| Self::Move(pod, node.to_owned()))
            }
            ("maxSkew", Some(n)) => numbered(ConstraintEdit::MaxSkew, n),
            ("minDomains", Some(n)) => numbered(ConstraintEdit::MinDomains, n),
            ("spread", Some(n)) => numbered(ConstraintEdit::Add, n),
            ("soften", None) => constraint(ConstraintEdit::Soften),
            ("drop", None) => constraint(ConstraintEdit::Drop),
            ("scale", None) => match subject.parse() {
                Ok(n) if n <= SCALE_MAX => Ok(Self::Scale(n)),
                _ => Err(format!("{subject:?} is no number up to {SCALE_MAX}")),
            },
            ("budget", Some(n)) => match n.parse() {
                Ok(n) if n >= 0 => ObjectName::parse(subject).map(|name| Self::Budget(name, n)),
                _ => Err(format!("{n:?} is no number of disruptions")),
            },
            _ => return Err(None),
        };
        verb.map_err(Some)
    }
}

/// A change of a fleet of clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetVerb {
    /// Clusters change.
    Clusters(MemberVerb<&'static str>, Vec<Part>),
    /// The clusters of each value of this key are lost in turn.
    LoseEach(String),
    /// Clusters of these names join, each with these labels.
    Add(Vec<String>, Vec<(String, String)>),
    /// The objects of a file are added, or replace those of the same name.
    File(String),
}

impl FleetVerb {
    /// All verbs with their arguments.
    pub const HELP: &'static str = "lose=CLUSTERS, lose-each=KEY, add=NAME[,NAME...][:KEY=VALUE,...], add=FILE, taint=CLUSTERS:KEY[=VALUE][:EFFECT], untaint=CLUSTERS:KEY[:EFFECT], label=CLUSTERS:KEY=VALUE, unlabel=CLUSTERS:KEY, edit=FILE";

    /// Reads a change; `effects` are those of clusters' taints.
    ///
    /// # Errors
    /// A sentence about the word that is wrong; `None` if the verb is unknown.
    pub fn parse(text: &str, effects: &Effects<&'static str>) -> Result<Self, Option<String>> {
        let written = Written::of(text);
        if written.subject.is_empty() {
            return Err(None);
        }
        // A file's name may have colons and blanks.
        let rest = text.trim()[written.verb.len()..].trim_start_matches(['=', ':', ' ']);
        match (written.verb, written.argument) {
            ("lose-each", None) => Ok(Self::LoseEach(written.subject.to_owned())),
            ("add", _) if is_file(rest) => Ok(Self::File(rest.to_owned())),
            ("add", argument) => {
                let names = written.subject.split(',').map(str::to_owned).collect();
                let labels = argument.into_iter().flat_map(|list| list.split(','));
                let labels = labels.map(pair).collect::<Result<_, _>>();
                Ok(Self::Add(names, labels.map_err(Some)?))
            }
            ("edit", _) => Ok(Self::File(rest.to_owned())),
            _ => match written.members(effects).ok_or(None)?.map_err(Some)? {
                (MemberVerb::Drain | MemberVerb::Cordon, _)
                | (MemberVerb::Uncordon | MemberVerb::Shift, _) => Err(None),
                (verb, parts) => Ok(Self::Clusters(verb, parts)),
            },
        }
    }
}

/// A cluster's name is a subdomain: it has no slash, and rarely such an ending.
fn is_file(text: &str) -> bool {
    let endings = [".yaml", ".yml", ".json"];
    text.contains('/') || endings.iter().any(|end| text.ends_with(end))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The largest number of pods of a workload that is scaled.
const SCALE_MAX: usize = 100_000;

fn positive(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|&n| n > 0);
    number.ok_or_else(|| format!("{text:?} is no number above 0"))
}

impl ObjectName {
    fn parse(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        match name.is_empty() {
            true => Err("a pod is [NAMESPACE/]NAME".to_owned()),
            false => Ok(Self {
                namespace,
                name: name.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(verb: MemberVerb<Effect>, part: Part) -> Option<ClusterVerb> {
        Some(ClusterVerb::Nodes(verb, vec![part]))
    }

    #[test]
    fn a_change_is_written_as_an_option_or_as_for_kubectl() {
        let named = |name: &str| Part::Named(name.to_owned());
        let zone = || Part::Domain {
            key: "topology.kubernetes.io/zone".to_owned(),
            value: "b".to_owned(),
        };
        let taint = || {
            MemberVerb::Taint(TaintEdit::Add {
                key: "example.com/dedicated".to_owned(),
                value: "db".to_owned(),
                effect: Effect::NoExecute,
            })
        };
        let untaint = |effect| {
            MemberVerb::Taint(TaintEdit::Remove {
                key: "dedicated".to_owned(),
                effect,
            })
        };
        let label = || MemberVerb::Label(LabelEdit::Set("a".to_owned(), "b".to_owned()));
        let unlabel = || MemberVerb::Label(LabelEdit::Remove("a".to_owned()));
        let pod = || ObjectName {
            namespace: Some("shop".to_owned()),
            name: "web-1".to_owned(),
        };
        let key = || "zone".to_owned();
        for (texts, expected) in [
            (
                &[
                    "lose=topology.kubernetes.io/zone/b",
                    "lose=topology.kubernetes.io/zone=b",
                    "lose topology.kubernetes.io/zone=b",
                    "lose: topology.kubernetes.io/zone=b",
                    " lose  topology.kubernetes.io/zone/b ",
                ][..],
                nodes(MemberVerb::Lose, zone()),
            ),
            (
                &["shift=n1", "shift n1"],
                nodes(MemberVerb::Shift, named("n1")),
            ),
            (&["drain=n1"], nodes(MemberVerb::Drain, named("n1"))),
            (
                &[
                    "taint=n1:example.com/dedicated=db:NoExecute",
                    "taint n1 example.com/dedicated=db:NoExecute",
                ],
                nodes(taint(), named("n1")),
            ),
            (
                &[
                    "untaint=n1:dedicated",
                    "taint n1 dedicated-",
                    "taint=n1:dedicated-",
                ],
                nodes(untaint(None), named("n1")),
            ),
            (
                &[
                    "untaint=n1:dedicated:NoSchedule",
                    "taint n1 dedicated:NoSchedule-",
                ],
                nodes(untaint(Some(Effect::NoSchedule)), named("n1")),
            ),
            (
                &["label=n1:a=b", "label n1 a=b"],
                nodes(label(), named("n1")),
            ),
            (
                &["unlabel=n1:a", "label n1 a-"],
                nodes(unlabel(), named("n1")),
            ),
            (
                &["move=shop/web-1:n2", "move shop/web-1 n2"],
                Some(ClusterVerb::Move(pod(), "n2".to_owned())),
            ),
            (
                &["delete=shop/web-1", "delete shop/web-1"],
                Some(ClusterVerb::Delete(vec![pod()])),
            ),
            (&["scale=5", "scale 5"], Some(ClusterVerb::Scale(5))),
            (
                &["spread=zone:1", "spread zone 1"],
                Some(ClusterVerb::Constraint(key(), ConstraintEdit::Add(1))),
            ),
            (
                &["soften=zone"],
                Some(ClusterVerb::Constraint(key(), ConstraintEdit::Soften)),
            ),
            (
                &["budget=shop/web-1:0"],
                Some(ClusterVerb::Budget(pod(), 0)),
            ),
        ] {
            for text in texts {
                assert_eq!(ClusterVerb::parse(text).ok(), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_change_of_a_fleet_is_read_with_the_same_verbs() {
        const EFFECTS: Effects<&str> = Effects {
            all: &[("NoSelect", "NoSelect")],
            default: Some("NoSelect"),
        };
        let file = |name: &str| FleetVerb::File(name.to_owned());
        let named = |name: &str| vec![Part::Named(name.to_owned())];
        let taint = MemberVerb::Taint(TaintEdit::Add {
            key: "full".to_owned(),
            value: String::new(),
            effect: "NoSelect",
        });
        for (text, expected) in [
            (
                "lose=c1",
                FleetVerb::Clusters(MemberVerb::Lose, named("c1")),
            ),
            ("lose-each=region", FleetVerb::LoseEach("region".to_owned())),
            ("taint=c1:full", FleetVerb::Clusters(taint, named("c1"))),
            (
                "add=c1,c2:zone=a",
                FleetVerb::Add(
                    vec!["c1".to_owned(), "c2".to_owned()],
                    vec![("zone".to_owned(), "a".to_owned())],
                ),
            ),
            ("add=my fleet/new.yaml", file("my fleet/new.yaml")),
            ("edit=web.json", file("web.json")),
        ] {
            assert_eq!(FleetVerb::parse(text, &EFFECTS), Ok(expected), "{text}");
        }
        // Clusters are neither drained nor cordoned, and have no pods.
        for unknown in ["", "lose", "drain=c1", "shift=c1", "scale=3", "gain=c1"] {
            assert_eq!(FleetVerb::parse(unknown, &EFFECTS), Err(None), "{unknown}");
        }
        for wrong in ["add=c1:zone", "taint=c1:full:Never", "lose=a,,b"] {
            let read = FleetVerb::parse(wrong, &EFFECTS);
            assert!(matches!(read, Err(Some(_))), "{wrong}");
        }
    }

    #[test]
    fn a_name_after_an_equals_sign_may_have_blanks() {
        let written = Written::of("add=my fleet/new.yaml");
        assert_eq!(
            (written.verb, written.subject),
            ("add", "my fleet/new.yaml")
        );
    }

    #[test]
    fn what_is_no_change_is_refused() {
        for wrong in [
            "",
            "lose",
            "lose=",
            "lose=a,,b",
            "taint=n1",
            "taint=n1:a:Never",
            "taint=n1:a",
            "taint=n1::NoSchedule",
            "explode=n1",
            "delete=",
            "label=n1:a",
            "label=n1:=a",
            "unlabel=n1:",
            "maxSkew=zone:0",
            "maxSkew=:1",
            "scale=",
            "scale=-1",
            "scale=1000000",
            "budget=web:-1",
            "lose=n1:n2",
            "drop=",
        ] {
            assert!(ClusterVerb::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn taints_are_written_as_for_kubectl() {
        let add = |key: &str, value: &str, effect| {
            Some(TaintEdit::Add {
                key: key.to_owned(),
                value: value.to_owned(),
                effect,
            })
        };
        let remove = |key: &str, effect| {
            Some(TaintEdit::Remove {
                key: key.to_owned(),
                effect,
            })
        };
        let cases = [
            ("a=b:NoSchedule", add("a", "b", Effect::NoSchedule)),
            ("a:NoExecute", add("a", "", Effect::NoExecute)),
            (
                "x.io/a=:PreferNoSchedule",
                add("x.io/a", "", Effect::PreferNoSchedule),
            ),
            ("a-", remove("a", None)),
            ("a:NoSchedule-", remove("a", Some(Effect::NoSchedule))),
            ("a=b:NoSchedule-", remove("a", Some(Effect::NoSchedule))),
            ("a=b", None),
            ("a", None),
            (":NoSchedule", None),
            ("a=b:noschedule", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                TaintEdit::parse(text, &NODE_EFFECTS).ok(),
                expected,
                "{text}"
            );
        }
    }
}
