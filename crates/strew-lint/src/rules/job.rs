//! Jobs and CronJobs.

use strew_manifest::field::FieldPath;
use strew_manifest::read::KubeObject;

use crate::Found;
use crate::files::Files;

/// Jobs and CronJobs that are suspended: they make no pods, so that nothing of them is judged. Nothing is said of those
/// of a dump, which is not applied.
///
/// Source: spec/controllers §5
pub(crate) fn suspended(files: &Files<'_>) -> Vec<Found> {
    let objects = files.objects.iter().enumerate();
    let suspended = objects.filter_map(|(object, wire)| {
        if wire.metadata()?.uid.is_some() {
            return None;
        }
        let (is_suspended, makes) = match wire {
            KubeObject::Job(job) => (job.spec.as_ref()?.suspend, "pods"),
            KubeObject::CronJob(cron) => (cron.spec.suspend, "Jobs"),
            _ => return None,
        };
        let message = format!(
            "the {} is suspended: it makes no {makes}, and where they would go is not judged",
            wire.kind()
        );
        let path = FieldPath::root().child("spec.suspend");
        is_suspended?.then(|| Found::note(object, path, message))
    });
    suspended.collect()
}
