//! Which pod is to be explained: `TYPE/NAME`, found in a world, or a hint at what was meant.

use std::path::Path;

use anyhow::anyhow;
use strew_manifest::kinds::{self, Pods};
use strew_manifest::read::nearest;
use strew_scenario::format::ObjectTarget;
use strew_view::blocked::PodOutcome;
use strew_view::cluster_state::{ClusterState, FinishedPod};

use super::moment::Moment;
use crate::failure::Failure;
use crate::text::time_text;

/// True if words begin with the name of something, rather than with a file. Of `pods/dump.json` a file counts that is
/// there; of `deploy web` the word that follows, since folders have such names, too.
pub(super) fn is_named(words: &[String]) -> bool {
    let is_file = |word: &str| word == "-" || Path::new(word).exists();
    let is_kind =
        |word: &str| kinds::find(word).is_some() || KINDS.contains(&word.to_lowercase().as_str());
    match words {
        [] => false,
        [kind, name, ..] if is_kind(kind) && !is_file(name) => true,
        [first, ..] if is_file(first) => false,
        [first, rest @ ..] => match first.split_once('/') {
            Some((kind, _)) => is_kind(kind) || !first.contains('.'),
            // A file that is not there is told as such.
            None => is_kind(first) || (!first.contains('.') && !rest.is_empty()),
        },
    }
}

/// Kinds that are explained in other ways than pods and workloads.
const KINDS: [&str; 3] = ["no", "ws", "placement"];

/// What is to be explained.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    kind: &'static str,
    name: String,
}

impl Target {
    /// `TYPE/NAME` or `TYPE NAME`; the rest are files.
    pub(super) fn parse(words: &[String]) -> Result<(Self, &[String]), Failure> {
        let unknown = |word: &str| {
            Failure::input(anyhow!(
                "{word:?} is no TYPE/NAME of a pod, a workload or a node"
            ))
            .with_hint("for example: pod/web-7, deployment/web, statefulset/db, node/n1")
        };
        let first = words[0].as_str();
        let (kind, name, files) = match first.split_once('/') {
            Some((kind, name)) => (kind, name, &words[1..]),
            None => {
                let name = words.get(1).ok_or_else(|| unknown(first))?;
                let path = Path::new(name);
                if path.extension().is_some() && path.is_file() {
                    let files = words[1..].join(" ");
                    let error = anyhow!("after {first} comes a name, and {name} is a file");
                    let hint = format!(
                        "strew explain {files} explains all Pending pods, strew explain {first}/NAME {files} one"
                    );
                    return Err(Failure::input(error).with_hint(hint));
                }
                (first, name.as_str(), &words[2..])
            }
        };
        // The kinds of pods and workloads.
        let known = kinds::find(kind).filter(|row| row.pods != Pods::No && !name.is_empty());
        let kind = known.ok_or_else(|| unknown(first))?.kind;
        let name = name.to_owned();
        Ok((Self { kind, name }, files))
    }

    pub(super) fn text(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }

    /// The workload that is meant, here or in any namespace; `None` for a pod.
    pub(super) fn workload(&self, namespace: Option<&str>) -> Option<ObjectTarget> {
        let type_name = kinds::of_kind(self.kind).filter(|_| self.kind != "Pod")?;
        Some(ObjectTarget {
            type_name,
            namespace: namespace.map(str::to_owned),
            name: self.name.clone(),
        })
    }

    /// The first Pending one of the named pods, else the first.
    pub(super) fn choose(
        &self,
        world: &ClusterState,
        outcomes: &[PodOutcome],
        namespace: Option<&str>,
        moment: Moment,
    ) -> Result<usize, Failure> {
        let entries = self.find(world, namespace, moment)?;
        let is_pending = |entry: &&usize| matches!(outcomes[**entry], PodOutcome::Pending(_));
        let entry = entries.iter().find(is_pending).or(entries.first());
        entry.copied().ok_or_else(|| {
            Failure::input(anyhow!("{} has no pod that has not finished", self.text()))
        })
    }

    /// The named pods, by name.
    pub(super) fn find(
        &self,
        world: &ClusterState,
        namespace: Option<&str>,
        moment: Moment,
    ) -> Result<Vec<usize>, Failure> {
        let candidates = self.candidates(world);
        let of_name = candidates.iter().filter(|c| c.name == self.name);
        let of_name: Vec<&Candidate<'_>> = of_name.collect();
        let in_namespace = |wanted: &str| of_name.iter().find(|c| c.namespace == wanted);
        let found = match namespace {
            Some(namespace) => in_namespace(namespace),
            None => in_namespace("default").or(match of_name.as_slice() {
                [only] => Some(only),
                _ => None,
            }),
        };
        if let Some(found) = found {
            return Ok(found.entries.clone());
        }
        Err(self.not_found(world, &candidates, namespace, moment))
    }

    fn candidates<'a>(&self, world: &'a ClusterState) -> Vec<Candidate<'a>> {
        if self.kind == "Pod" {
            let pods = world.pods.iter().enumerate();
            return pods
                .map(|(entry, pod)| Candidate {
                    namespace: &pod.namespace,
                    name: &pod.name,
                    entries: vec![entry],
                })
                .collect();
        }
        let workloads = world.workloads.iter().zip(&world.members);
        workloads
            .filter(|(workload, _)| workload.name.kind == self.kind)
            .map(|(workload, members)| Candidate {
                namespace: &workload.name.namespace,
                name: &workload.name.name,
                entries: members.clone(),
            })
            .collect()
    }

    fn not_found(
        &self,
        world: &ClusterState,
        candidates: &[Candidate<'_>],
        namespace: Option<&str>,
        moment: Moment,
    ) -> Failure {
        let kind = self.kind.to_lowercase();
        let elsewhere = candidates.iter().filter(|c| c.name == self.name);
        let elsewhere: Vec<&str> = elsewhere.map(|c| c.namespace).collect();
        let place = namespace.map_or(String::new(), |n| format!(" in namespace {n:?}"));
        if elsewhere.len() > 1 && namespace.is_none() {
            return Failure::input(anyhow!("{} is in more than one namespace", self.text()))
                .with_hint(format!("choose with -n: {}", elsewhere.join(", ")));
        }
        let is_ours = |pod: &FinishedPod| {
            *pod.name == *self.name && namespace.is_none_or(|wanted| *pod.namespace == *wanted)
        };
        if self.kind == "Pod" && world.finished.iter().any(is_ours) {
            let error = anyhow!(
                "{}{place} has finished: no scheduler looks at it any more",
                self.text()
            );
            return Failure::input(error);
        }
        let failure = Failure::input(anyhow!(
            "there is no {kind} {:?}{place} {}",
            self.name,
            match moment {
                Moment::At(at) => format!("after {}", time_text(at)),
                _ => "in the files".to_owned(),
            }
        ));
        if let [only] = elsewhere.as_slice() {
            return failure.with_hint(format!("there is one in namespace {only:?}: -n {only}"));
        }
        let names = candidates
            .iter()
            .filter(|c| namespace.is_none_or(|n| n == c.namespace));
        let names: Vec<&str> = names.map(|c| c.name).collect();
        match closest(&self.name, &names) {
            close if close.is_empty() => failure,
            close => failure.with_hint(format!("did you mean {}?", close.join(", "))),
        }
    }
}

/// A pod or workload that may be meant.
struct Candidate<'a> {
    namespace: &'a str,
    name: &'a str,
    entries: Vec<usize>,
}

/// The number of names in a hint.
const NAMES_SHOWN: usize = 3;

/// The least length of a common prefix that is worth a hint.
const BEGINNING_MIN: usize = 3;

/// The nearest names: first those with few differences, then those with a common prefix, the longest first.
pub(super) fn closest<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    let shared = |known: &str| {
        let pairs = name.bytes().zip(known.bytes());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let mut alike: Vec<&str> = names.to_vec();
    alike.retain(|known| shared(known) >= BEGINNING_MIN.min(name.len()).max(1));
    alike.sort_by_key(|known| std::cmp::Reverse(shared(known)));
    let mut close: Vec<&str> = nearest(name, names.iter().copied()).into_iter().collect();
    alike.retain(|known| !close.contains(known));
    close.extend(alike);
    close.truncate(NAMES_SHOWN);
    close
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parse(words: &[&str]) -> Option<(String, usize)> {
        let words: Vec<String> = words.iter().map(|&w| w.to_owned()).collect();
        let parsed = Target::parse(&words).ok();
        parsed.map(|(target, files)| (target.text(), files.len()))
    }

    #[test]
    fn a_name_is_told_from_a_file() {
        let is = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&w| w.to_owned()).collect();
            is_named(&words)
        };
        // Tests run in the folder of the crate, where src and Cargo.toml are.
        for named in [
            &["pod/web-7"][..],
            &["deploy", "web", "Cargo.toml"],
            &["deploymnt/web", "Cargo.toml"],
            &["node", "n1"],
            &["pod"],
        ] {
            assert!(is(named), "{named:?}");
        }
        for files in [
            &[][..],
            &["-"],
            &["Cargo.toml"],
            &["src", "tests"],
            &["nosuch.yaml"],
            &["src/main.rs"],
            &["manifests/nosuch.yaml"],
        ] {
            assert!(!is(files), "{files:?}");
        }
    }

    #[test]
    fn targets_are_written_as_for_kubectl() {
        assert_eq!(
            parse(&["po/web-7", "a.yaml"]),
            Some(("pod/web-7".to_owned(), 1))
        );
        // A folder may have the name of a workload; Cargo.toml is a file of the crate.
        assert_eq!(
            parse(&["deploy", "src"]),
            Some(("deployment/src".to_owned(), 0))
        );
        assert_eq!(parse(&["pod", "Cargo.toml"]), None);
        assert_eq!(
            parse(&["deploy", "web", "a.yaml", "b.yaml"]),
            Some(("deployment/web".to_owned(), 2))
        );
        assert_eq!(
            parse(&["clone/web", "a.yaml"]),
            Some(("cloneset/web".to_owned(), 1))
        );
        assert_eq!(parse(&["svc/web", "a.yaml"]), None);
        assert_eq!(parse(&["node/a", "a.yaml"]), None);
        assert_eq!(parse(&["pod"]), None);
        assert_eq!(parse(&["pod/"]), None);
    }
}
