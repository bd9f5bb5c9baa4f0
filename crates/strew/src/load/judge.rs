//! Everything else that is wrong, once something is: a person should have to run strew once, not once an error.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_api::facts;
use strew_api::field::{FieldError, FieldPath};
use strew_api::read::{self, Broken, KubeObject, Located, Place, Sources};
use strew_apiserver::admission::admit_object;
use strew_apiserver::admission::{self, AdmissionContext};
use strew_apiserver::workloads::{NameSource, Workload};
use strew_model::Interner;

use super::{Loader, fact_errors};

impl Loader<'_> {
    /// Looks at every object again, those that cannot be used included, with all that is asked of an object at any
    /// time, and adds what was not said of that place yet. The files are read once more: good ones pay nothing.
    pub(super) fn judge(&mut self, sources: &Sources, context: &AdmissionContext<'_>) {
        let reading = read::read(sources);
        let mut judge = Judge {
            context,
            names: NameSource::new(0),
            said: self.said(),
        };
        for located in &reading.objects {
            self.judge_one(located, &mut judge, |_| false);
        }
        for broken in &reading.broken {
            self.judge_one(&broken.located, &mut judge, |error| {
                Broken::follows(broken, error)
            });
        }
        self.diagnostics
            .sort_by_key(|d| (d.place.is_none(), d.place));
    }

    fn said(&self) -> HashSet<Spot> {
        let all = self.diagnostics.iter();
        all.filter_map(|d| Some((d.place?, d.path.clone()?)))
            .collect()
    }

    fn judge_one(
        &mut self,
        located: &Located,
        judge: &mut Judge<'_>,
        follows: impl Fn(&FieldError) -> bool,
    ) {
        if self.is_full() {
            self.leaves_out = true;
            return;
        }
        let label = located.object.label();
        // What a later step says of a place is mostly what an earlier one said in other words.
        for step in [Judge::admission, Judge::facts, Judge::template] {
            let mut errors = step(judge, located);
            errors.retain(|error| !follows(error));
            let mut spots = Vec::with_capacity(errors.len());
            errors.retain(|error| {
                let spot = (
                    self.locator.place(&located.origin, &error.path),
                    error.path.clone(),
                );
                let is_new = !judge.said.contains(&spot);
                spots.push(spot);
                is_new
            });
            judge.said.extend(spots);
            self.refuse(errors, &label, &located.origin);
        }
    }
}

/// A field of a file.
type Spot = (Place, FieldPath);

struct Judge<'a> {
    context: &'a AdmissionContext<'a>,
    names: NameSource,
    said: HashSet<Spot>,
}

impl Judge<'_> {
    fn admission(&mut self, located: &Located) -> Vec<FieldError> {
        match located.from_dump {
            true => Vec::new(),
            false => admit_object(located.object.clone(), self.context, &mut self.names)
                .err()
                .unwrap_or_default(),
        }
    }

    fn facts(&mut self, located: &Located) -> Vec<FieldError> {
        fact_errors(&located.object)
    }

    fn template(&mut self, located: &Located) -> Vec<FieldError> {
        template_errors(&located.object, located.from_dump, self.context)
    }
}

/// What a pod of the object's template would be refused for.
pub(super) fn template_errors(
    object: &KubeObject,
    from_dump: bool,
    context: &AdmissionContext<'_>,
) -> Vec<FieldError> {
    let workload = expandable(object).filter(|workload| !workload.makes_none());
    let Some((template, path)) = workload.and_then(|workload| workload.template()) else {
        return Vec::new();
    };
    let pod = pod_of(template);
    let mut errors = facts::pod(&pod, &mut Interner::new())
        .err()
        .unwrap_or_default();
    if !from_dump {
        errors.extend(
            admission::admit_pod(pod, context)
                .err()
                .into_iter()
                .flatten(),
        );
    }
    for error in &mut errors {
        error.path = path.join(&error.path);
    }
    errors
}

/// The object as something that makes pods.
fn expandable(object: &KubeObject) -> Option<Workload<'_>> {
    Some(match object {
        KubeObject::Deployment(object) => Workload::Deployment(object),
        KubeObject::ReplicaSet(object) => Workload::ReplicaSet(object),
        KubeObject::ReplicationController(object) => Workload::ReplicationController(object),
        KubeObject::StatefulSet(object) => Workload::StatefulSet(object),
        KubeObject::DaemonSet(object) => Workload::DaemonSet(object),
        KubeObject::Job(object) => Workload::Job(object),
        KubeObject::CronJob(object) => Workload::CronJob(object),
        _ => return None,
    })
}

/// A pod of a name that nothing can be said against.
fn pod_of(template: &PodTemplateSpec) -> Pod {
    let metadata = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            name: Some("pod".to_owned()),
            namespace: Some("default".to_owned()),
            ..metadata
        },
        spec: template.spec.clone(),
        ..Pod::default()
    }
}
