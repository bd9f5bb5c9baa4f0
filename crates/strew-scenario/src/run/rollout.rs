//! The verbs of `kubectl rollout`, and `kubectl create job --from`.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::Tables;
use strew_apiserver::object::{
    ControllerRevision, CronJob, DaemonSet, Deployment, Job, Key, Kind, Meta, Name, ReplicaSet,
    StatefulSet, Stored, moment,
};
use strew_controllers::rollout::{
    RESTARTED_AT, RolloutError, Undo, template_of, undo_deployment, undo_revision,
};
use strew_manifest::read::KubeObject;
use strew_sim::Simulation;

use super::verbs::edit;
use crate::format::RolloutAction;

/// Does one of them to a workload.
///
/// # Errors
/// The message of kubectl or the API server.
pub(super) fn act(
    simulation: &mut Simulation,
    action: RolloutAction,
    key: &Key,
) -> Result<(), String> {
    match action {
        RolloutAction::Pause => edit(simulation, key, |value| {
            value["spec"]["paused"] = true.into();
            Ok(())
        }),
        RolloutAction::Resume => edit(simulation, key, |value| {
            if let Some(spec) = value["spec"].as_object_mut() {
                spec.shift_remove("paused");
            }
            Ok(())
        }),
        RolloutAction::Restart => restart(simulation, key),
        RolloutAction::Undo => undo(simulation, key),
    }
}

fn restart(simulation: &mut Simulation, key: &Key) -> Result<(), String> {
    let now = moment::to_wire(simulation.now()).0.to_string();
    edit(simulation, key, |value| {
        if value["spec"]["paused"] == true {
            return Err(RolloutError::PausedRestart.to_string());
        }
        value["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT] = now.as_str().into();
        Ok(())
    })
}

/// Makes a Job of a CronJob, as `kubectl create job --from` does, unless the CronJob has made one already.
///
/// # Errors
/// The message of the API server.
pub(super) fn run_once(simulation: &mut Simulation, key: &Key) -> Result<(), String> {
    let tables = simulation.server().tables();
    let Some(cron_job) = tables.get::<CronJob>(&key.name) else {
        return Err(format!("{key} not found"));
    };
    if owned::<Job>(tables, &cron_job.meta).next().is_some() {
        return Ok(());
    }
    let template = &cron_job.spec.job_template;
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.insert(INSTANTIATED.to_owned(), "manual".to_owned());
    let Name { namespace, name } = &key.name;
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": &**namespace,
            "name": format!("{name}-once"),
            "labels": metadata.labels.unwrap_or_default(),
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "name": &**name,
                "uid": &*cron_job.meta.uid,
                "controller": true,
            }],
        },
        "spec": template.spec,
    });
    let job = KubeObject::of_json(job).map_err(|error| error.to_string())?;
    let created = simulation.create(job).map(drop);
    created.map_err(|error| error.to_string())
}

/// Marks Jobs that no schedule made.
const INSTANTIATED: &str = "cronjob.kubernetes.io/instantiate";

/// What an undo restores.
enum Target {
    /// A template, and all annotations of a Deployment.
    Template(Value, Option<Value>),
    /// Nothing.
    Nothing,
}

fn undo(simulation: &mut Simulation, key: &Key) -> Result<(), String> {
    let tables = simulation.server().tables();
    let target = match key.kind {
        Kind::Deployment => deployment_target(tables, key),
        Kind::StatefulSet => {
            let set = tables.get::<StatefulSet>(&key.name);
            set.map(|set| revision_target(tables, &set.meta, json!(set.spec.template)))
        }
        Kind::DaemonSet => {
            let set = tables.get::<DaemonSet>(&key.name);
            set.map(|set| revision_target(tables, &set.meta, json!(set.spec.template)))
        }
        _ => {
            return Err(format!(
                "no rollbacker has been implemented for {:?}",
                key.kind.name()
            ));
        }
    };
    let target = target.ok_or_else(|| format!("{key} not found"))?;
    let (template, annotations) = match target.map_err(|error| error.to_string())? {
        Target::Nothing => return Ok(()),
        Target::Template(template, annotations) => (template, annotations),
    };
    edit(simulation, key, |value| {
        value["spec"]["template"] = template.clone();
        if let Some(annotations) = &annotations {
            value["metadata"]["annotations"] = annotations.clone();
        }
        Ok(())
    })
}

fn owned<'a, T: Stored>(tables: &'a Tables, owner: &'a Meta) -> impl Iterator<Item = &'a Arc<T>> {
    let all = tables.of::<T>().in_namespace(&owner.name.namespace);
    all.filter(|object| {
        object
            .meta()
            .controller()
            .is_some_and(|o| o.uid == owner.uid)
    })
}

fn deployment_target(tables: &Tables, key: &Key) -> Option<Result<Target, RolloutError>> {
    let deployment = tables.get::<Deployment>(&key.name)?;
    let sets: Vec<Arc<ReplicaSet>> = owned(tables, &deployment.meta).cloned().collect();
    let undone = undo_deployment(deployment, &sets, 0);
    Some(undone.map(|undo| match undo {
        Undo::Skipped(_) => Target::Nothing,
        Undo::To(to) => Target::Template(json!(to.template), Some(json!(to.annotations))),
    }))
}

fn revision_target(tables: &Tables, owner: &Meta, template: Value) -> Result<Target, RolloutError> {
    let revisions: Vec<Arc<ControllerRevision>> = owned(tables, owner).cloned().collect();
    let kept = |revision: &ControllerRevision| template_of(revision).map(|kept| json!(kept));
    let undone = undo_revision(&revisions, 0, |revision| {
        kept(revision).is_some_and(|kept| kept == template)
    })?;
    Ok(match undone {
        Undo::Skipped(_) => Target::Nothing,
        Undo::To(revision) => match kept(&revision) {
            Some(template) => Target::Template(template, None),
            None => Target::Nothing,
        },
    })
}
