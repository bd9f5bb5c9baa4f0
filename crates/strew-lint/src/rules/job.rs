//! What makes no pods for the time being.

use strew_manifest::field::FieldPath;
use strew_manifest::read::KubeObject;

use crate::Found;
use crate::files::Files;

/// Jobs and CronJobs that are suspended, and paused Deployments: they make no pods, so that nothing of them is judged.
/// Nothing is said of those of a dump, which is not applied.
///
/// Source: spec/controllers §2, §5
pub(crate) fn suspended(files: &Files<'_>) -> Vec<Found> {
    let objects = files.objects.iter().enumerate();
    let suspended = objects.filter_map(|(object, wire)| {
        if wire.metadata()?.uid.is_some() {
            return None;
        }
        let (is_idle, word, field, makes) = match wire {
            KubeObject::Job(job) => (job.spec.as_ref()?.suspend, "suspended", "suspend", "pods"),
            KubeObject::CronJob(cron) => (cron.spec.suspend, "suspended", "suspend", "Jobs"),
            KubeObject::Deployment(deployment) => {
                (deployment.spec.as_ref()?.paused, "paused", "paused", "pods")
            }
            _ => return None,
        };
        let end = match word {
            "paused" => "so that no rollout of it ends",
            _ => "and where they would go is not judged",
        };
        let message = format!("the {} is {word}: it makes no {makes}, {end}", wire.kind());
        let path = FieldPath::root().child("spec").child(field);
        is_idle?.then(|| Found::note(object, path, message))
    });
    suspended.collect()
}
