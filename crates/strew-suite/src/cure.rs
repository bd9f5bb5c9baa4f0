//! Tries what would prevent a breach, by playing the story again with the manifests changed.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use strew_manifest::advice::Advice;
use strew_manifest::read::KubeObject;
use strew_scenario::story::target;
use strew_sim::KEEP_LABEL;

use crate::failure::Failure;
use crate::host::{Host, Muted};
use crate::input::Input;
use crate::options::{Keep, Options};
use crate::ready::Ready;
use crate::standing::{Answer, Standings};
use crate::suite;
use crate::summary::{RemarkSum, Summary};
use crate::work::Work;
use strew_view::words::count;

/// A change of a workload that may prevent what a finding tells.
struct Cure {
    /// The advice of the findings that it may prevent.
    advice: Advice,
    change: Change,
    /// The advice where it does not help.
    otherwise: Option<Advice>,
}

const CURES: [Cure; 3] = [
    Cure {
        advice: Advice::MatchLabelKeys,
        change: Change::Constraints(|constraint| {
            let keys = constraint.match_label_keys.get_or_insert_default();
            keys.push("pod-template-hash".to_owned());
        }),
        otherwise: None,
    },
    Cure {
        advice: Advice::HonorTaints,
        change: Change::Constraints(|constraint| {
            constraint.node_taints_policy = Some("Honor".to_owned());
        }),
        otherwise: None,
    },
    Cure {
        advice: Advice::Keep,
        change: Change::Label(KEEP_LABEL, "true"),
        otherwise: Some(Advice::NotMoved),
    },
];

/// What is changed of a workload.
#[derive(Clone, Copy)]
enum Change {
    /// Its hard constraints.
    Constraints(fn(&mut TopologySpreadConstraint)),
    /// A label of a Deployment or a ReplicaSet: key and value.
    Label(&'static str, &'static str),
}

/// Changes of manifests before they are played.
pub struct Edit<'a> {
    /// The workloads: `deployment/web`.
    of: BTreeSet<&'a str>,
    change: Change,
}

impl Edit<'_> {
    /// Changes an object, if it is meant.
    pub fn apply(&self, object: &mut KubeObject) {
        if !self.of.contains(target(object).as_str()) {
            return;
        }
        match self.change {
            Change::Constraints(change) => change_constraints(object, change),
            Change::Label(key, value) => set_label(object, key, value),
        }
    }
}

fn change_constraints(object: &mut KubeObject, change: fn(&mut TopologySpreadConstraint)) {
    let template = object.pod_template_mut();
    let spec = template.and_then(|template| template.spec.as_mut());
    let constraints = spec.and_then(|spec| spec.topology_spread_constraints.as_mut());
    let constraints = constraints.into_iter().flatten();
    constraints
        .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
        .for_each(change);
}

fn set_label(object: &mut KubeObject, key: &str, value: &str) {
    let metadata = match object {
        KubeObject::Deployment(deployment) => &mut deployment.metadata,
        KubeObject::ReplicaSet(set) => &mut set.metadata,
        _ => return,
    };
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(key.to_owned(), value.to_owned());
}

/// Files up to this size are read again for each cure.
const BYTES_MAX: usize = 4 << 20;

/// The files of a story, kept for cures; `None` if they are too large to be read again and again.
pub fn kept(inputs: &[Input]) -> Option<Vec<Input>> {
    let size: usize = inputs.iter().map(|input| input.bytes.len()).sum();
    (size <= BYTES_MAX).then(|| inputs.to_vec())
}

/// Plays the story once more with each cure that a finding names, and says of it whether it helps in all seeds. Help
/// that does not is taken back.
///
/// # Errors
/// The changed story could not be played.
pub fn try_all(
    options: &Options,
    inputs: &[Input],
    ready: &Ready,
    answer: &mut Answer,
    host: &dyn Host,
) -> Result<(), Failure> {
    for cure in &CURES {
        let named = remarks(&answer.summary).filter(|remark| is_of(remark, cure));
        let named = named.filter_map(|remark| remark.finding.object.clone());
        let named: BTreeSet<String> = named.collect();
        if named.is_empty() {
            continue;
        }
        let edit = Edit {
            of: named.iter().map(String::as_str).collect(),
            change: cure.change,
        };
        let cured = play(options, inputs, ready, (&edit, last(answer, cure)), host)?;
        let n_seeds = answer.summary.variants().map(|v| v.n_played()).sum::<u64>();
        let seeds = count(usize::try_from(n_seeds).unwrap_or(usize::MAX), "seed");
        let rows = answer.summary.scenarios.iter_mut();
        let rows = rows.flat_map(|s| &mut s.variants).flat_map(|v| &mut v.rows);
        for row in rows {
            let same = cured.as_ref().and_then(|cured| {
                let mut rows = cured.variants().flat_map(|variant| &variant.rows);
                rows.find(|other| (&other.when, &other.text) == (&row.when, &row.text))
            });
            for remark in row.remarks.iter_mut().filter(|remark| is_of(remark, cure)) {
                let finding = &mut remark.finding;
                let is_left = |left: &RemarkSum| {
                    (&left.finding.code, &left.finding.object) == (&finding.code, &finding.object)
                };
                let helps = same.is_some_and(|row| !row.remarks.iter().any(is_left));
                match helps {
                    true => {
                        let help = cure.advice.help();
                        finding.help = Some(format!("{help} (played: helps in {seeds})"));
                    }
                    false => finding.advise(cure.otherwise),
                }
            }
        }
    }
    Ok(())
}

fn is_of(remark: &RemarkSum, cure: &Cure) -> bool {
    remark.finding.advice == Some(cure.advice)
}

/// The last step of which a cure's remarks tell; `None` if they tell of the whole story.
fn last(answer: &Answer, cure: &Cure) -> Option<String> {
    let rows = answer.summary.variants().flat_map(|variant| &variant.rows);
    let told = rows.filter(|row| row.remarks.iter().any(|remark| is_of(remark, cure)));
    let steps: Option<Vec<&String>> = told.map(|row| row.when.as_ref()).collect();
    steps?.pop().cloned()
}

fn remarks(summary: &Summary) -> impl Iterator<Item = &RemarkSum> {
    let rows = summary.variants().flat_map(|variant| &variant.rows);
    rows.flat_map(|row| &row.remarks)
}

/// The sum of the changed story up to a step, by default to its end; `None` if its manifests are refused, or it was
/// interrupted.
fn play(
    options: &Options,
    inputs: &[Input],
    ready: &Ready,
    (edit, last): (&Edit<'_>, Option<String>),
    host: &dyn Host,
) -> Result<Option<Summary>, Failure> {
    let mut options = Options {
        keep: Keep::default(),
        ..options.clone()
    };
    // No later step changes a remark about this one.
    options.play.until = options.play.until.or(last);
    let staged = suite::stage_edited(&options, inputs.to_vec(), Some(edit))?;
    let suites = staged.suites.into_iter().map(|staged| staged.suite);
    let Some(suites) = suites.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let ready = Ready {
        suites,
        story: None,
        inputs: ready.inputs.clone(),
        first_file: ready.first_file.clone(),
        findings: Vec::new(),
    };
    let host = Muted(host);
    let work = Work::new(&ready.suites, &options, &host)?;
    let answer = work.run(Standings::new(&options, &ready), None)?;
    Ok((!answer.is_interrupted).then_some(answer.summary))
}
