//! The policies as text.

use strew_wire::default_policy::Defaults;
use strew_wire::default_policy::objects::{self, Reach};

use super::DefaultsFormat;
use crate::failure::Failure;
use crate::manifest::{Manifest, written as manifests};

const ABOUT_CONTROLLERS: &str = "Default constraints for pods of ReplicaSets, StatefulSets and ReplicationControllers, by strew defaults.
They hold for pods that are created from now on and have no constraint of their own.
Label defaults.strew.dev/apply=false on a namespace or a pod, or annotation of a pod: it stays as it is.
To uninstall: kubectl delete -f this file.

What differs from defaultConstraints of kube-scheduler itself:
- Pods have the constraints in their spec. kube-scheduler's own defaults hold for them no longer.
- Counted are pods with the labels of the template. While a rollout changes labels of a StatefulSet, the pods before
  and after it are counted apart.
- Labels that a webhook adds are not counted.";

const ABOUT_SERVICES: &str = "Default constraints for other pods, with the selectors of the Services that select them: the API server evaluates
this policy for each Service of the pod's namespace. Pods of DaemonSets stay as they are. Two bindings, so that pods
of Deployments and StatefulSets are left out before a Service is asked.";

/// The policies with their bindings.
///
/// # Errors
/// The text cannot be written.
pub(super) fn written(
    defaults: &Defaults,
    reach: &Reach,
    output: Option<DefaultsFormat>,
) -> Result<String, Failure> {
    let [
        controllers,
        of_controllers,
        services,
        of_services,
        of_clone_sets,
    ] = objects::all(defaults, reach);
    let all = [
        Manifest::with_comment(ABOUT_CONTROLLERS, controllers),
        of_controllers.into(),
        Manifest::with_comment(ABOUT_SERVICES, services),
        of_services.into(),
        of_clone_sets.into(),
    ];
    let format = match output {
        Some(DefaultsFormat::Json) => "json",
        _ => "yaml",
    };
    manifests(&all, format)
}
