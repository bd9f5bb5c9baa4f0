//! The pods that workloads miss.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use strew_api::admission::{self, AdmissionContext, Admitted};
use strew_api::facts;
use strew_api::field::{FieldError, FieldPath};
use strew_api::read::{Diagnostic, KubeObject, Origin};
use strew_api::workloads::{self, NameSource, PodOf, Workload as Expandable, WorkloadRef};
use strew_model::Interner;

use super::{LoadedPod, Loader};
use crate::workload::WorkloadName;

impl Loader<'_> {
    /// Makes the pods that workloads miss, and puts all in order of arrival.
    pub(super) fn expand(&mut self, context: &AdmissionContext<'_>, names: &mut NameSource) {
        let (places, pods): (Vec<_>, Vec<Pod>) = std::mem::take(&mut self.file_pods)
            .into_iter()
            .map(|(index, pod, origin)| ((index, origin), pod))
            .unzip();
        let objects = std::mem::take(&mut self.expandable);
        let nodes: Vec<Node> = self
            .loaded
            .nodes
            .iter()
            .map(|(node, _)| node.clone())
            .collect();
        let each: Vec<Expandable<'_>> = objects
            .iter()
            .filter_map(|(_, o, _)| expandable(o))
            .collect();
        let expansion = match workloads::expand(&each, &pods, &nodes, names) {
            Ok(expansion) => expansion,
            Err(error) => {
                return self
                    .diagnostics
                    .push(Diagnostic::error("workloads", error.to_string()));
            }
        };
        let notes = expansion
            .notes
            .iter()
            .map(|note| format!("{}: {}", note.workload, note.text));
        self.loaded.notes.extend(notes);
        let mut arrivals: Vec<(usize, LoadedPod)> = Vec::new();
        for ((index, origin), pod) in places.into_iter().zip(pods) {
            let workload = self.loaded.workloads.of_pod(&pod);
            arrivals.push((
                index,
                LoadedPod {
                    pod,
                    workload,
                    origin,
                },
            ));
        }
        let made = self.admit_made(expansion.pods, &objects, context);
        arrivals.extend(made);
        arrivals.sort_by_key(|(index, _)| *index);
        self.loaded.pods = arrivals.into_iter().map(|(_, pod)| pod).collect();
        let sets = expansion.replica_sets.into_iter();
        self.loaded
            .others
            .extend(sets.map(|set| (KubeObject::from(set), None)));
        let objects = objects.into_iter();
        self.loaded
            .others
            .extend(objects.map(|(_, object, origin)| (object, Some(origin))));
    }

    fn admit_made(
        &mut self,
        made: Vec<PodOf>,
        objects: &[(usize, KubeObject, Origin)],
        context: &AdmissionContext<'_>,
    ) -> Vec<(usize, LoadedPod)> {
        let by_name: HashMap<WorkloadName, (usize, &Origin)> = objects
            .iter()
            .filter_map(|(index, object, origin)| {
                let name = expandable(object)?.reference();
                Some((workload_name(&name), (*index, origin)))
            })
            .collect();
        let mut arrivals = Vec::with_capacity(made.len());
        let mut refused: Option<WorkloadRef> = None;
        let mut last: Option<WorkloadName> = None;
        for PodOf { pod, workload } in made {
            let name = workload_name(&workload);
            let (Some(&(index, origin)), Some(of)) =
                (by_name.get(&name), self.loaded.workloads.find(&name))
            else {
                continue;
            };
            let is_first = last.replace(name.clone()).as_ref() != Some(&name);
            match admit_made_pod(pod, context, is_first) {
                Ok(pod) => {
                    let origin = origin.clone();
                    arrivals.push((
                        index,
                        LoadedPod {
                            pod,
                            workload: of,
                            origin,
                        },
                    ));
                }
                // Each pod of a template is refused for the same.
                Err(_) if refused.as_ref() == Some(&workload) => {}
                Err(mut errors) => {
                    let template = FieldPath::root().child("spec.template");
                    errors
                        .iter_mut()
                        .for_each(|error| error.path = template.join(&error.path));
                    self.refuse(errors, &workload.to_string(), origin);
                    refused = Some(workload);
                }
            }
        }
        arrivals
    }
}

/// Admits a pod; the first of a template must be one that decisions can be made of, too.
fn admit_made_pod(
    pod: Pod,
    context: &AdmissionContext<'_>,
    is_first: bool,
) -> Result<Pod, Vec<FieldError>> {
    let Admitted { object: pod, .. } = admission::admit_pod(pod, context)?;
    if is_first {
        facts::pod(&pod, &mut Interner::new())?;
    }
    Ok(pod)
}

fn workload_name(reference: &WorkloadRef) -> WorkloadName {
    WorkloadName {
        kind: reference.kind.as_str().to_owned(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
    }
}

/// The object as something that makes pods.
pub(super) fn expandable(object: &KubeObject) -> Option<Expandable<'_>> {
    Some(match object {
        KubeObject::Deployment(object) => Expandable::Deployment(object),
        KubeObject::ReplicaSet(object) => Expandable::ReplicaSet(object),
        KubeObject::ReplicationController(object) => Expandable::ReplicationController(object),
        KubeObject::StatefulSet(object) => Expandable::StatefulSet(object),
        KubeObject::DaemonSet(object) => Expandable::DaemonSet(object),
        KubeObject::Job(object) => Expandable::Job(object),
        KubeObject::CronJob(object) => Expandable::CronJob(object),
        _ => return None,
    })
}
