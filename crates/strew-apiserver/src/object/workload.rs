//! What objects that make pods have in common.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::kinds::Object;
use crate::selection::Selection;

impl Object {
    /// The template of the pods that it makes; `None` if it makes none, or has none.
    pub fn pod_template(&self) -> Option<&PodTemplateSpec> {
        match self {
            Self::Deployment(o) => Some(&o.spec.template),
            Self::ReplicaSet(o) => o.spec.template.as_ref(),
            Self::ReplicationController(o) => o.spec.template.as_ref(),
            Self::StatefulSet(o) => Some(&o.spec.template),
            Self::DaemonSet(o) => Some(&o.spec.template),
            Self::Job(o) => Some(&o.spec.template),
            Self::CronJob(o) => Some(&o.spec.job_template.spec.as_ref()?.template),
            Self::CloneSet(o) => Some(&o.spec.template),
            _ => None,
        }
    }

    /// The label selector of its pods; `None` if it has none. That of a ReplicationController is a map of labels, and so
    /// `None`.
    pub fn pod_selector(&self) -> Option<&LabelSelector> {
        match self {
            Self::Deployment(o) => Some(&o.spec.selector),
            Self::ReplicaSet(o) => Some(&o.spec.selector),
            Self::StatefulSet(o) => Some(&o.spec.selector),
            Self::DaemonSet(o) => Some(&o.spec.selector),
            Self::Job(o) => o.spec.selector.as_ref(),
            Self::CloneSet(o) => o.spec.selector.as_ref(),
            _ => None,
        }
    }

    /// The selector of its pods, a ReplicationController's as well; `None` if it has none, or an invalid one.
    pub fn pod_selection(&self) -> Option<Selection> {
        match self {
            Self::ReplicationController(o) => o.spec.selector.as_ref().map(Selection::of_pairs),
            object => Selection::of(object.pod_selector()?),
        }
    }
}

macro_rules! scaled {
    ($($kind:ident)*) => {
        impl Object {
            /// `spec.replicas`, 1 if it is not set; `None` if its kind has no scale.
            pub fn replicas(&self) -> Option<i32> {
                let replicas = match self {
                    $(Self::$kind(o) => o.spec.replicas,)*
                    _ => return None,
                };
                Some(replicas.unwrap_or(1))
            }

            /// Sets `spec.replicas`, if its kind has a scale.
            pub fn set_replicas(&mut self, replicas: i32) {
                match self {
                    $(Self::$kind(o) => {
                        Arc::make_mut(&mut Arc::make_mut(o).spec).replicas = Some(replicas);
                    })*
                    _ => {}
                }
            }
        }
    };
}

scaled!(Deployment ReplicaSet ReplicationController StatefulSet CloneSet);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strew_manifest::kinds::{KINDS, Pods};
    use strew_manifest::read::KubeObject;

    use super::*;

    /// The table of kinds says which make pods and which have a scale; each of them is found here.
    #[test]
    fn what_the_table_of_kinds_says_is_found_in_objects() {
        let template = json!({"metadata": {"labels": {"app": "web"}}});
        let spec = json!({
            "replicas": 3, "template": template, "jobTemplate": {"spec": {"template": template}},
        });
        for row in KINDS
            .iter()
            .filter(|row| row.short.is_some() && row.pods == Pods::Make)
        {
            let wire = json!({
                "apiVersion": row.api_version, "kind": row.kind, "metadata": {"name": "web"}, "spec": spec,
            });
            let mut object = Object::of_wire(KubeObject::of_json(wire).unwrap());
            assert_eq!(object.kind().row(), Some(row));
            let labels = object
                .pod_template()
                .and_then(|t| t.metadata.as_ref()?.labels.clone());
            assert_eq!(labels.unwrap_or_default()["app"], "web", "{}", row.kind);
            assert_eq!(object.replicas(), row.scales.then_some(3), "{}", row.kind);
            object.set_replicas(5);
            assert_eq!(object.replicas(), row.scales.then_some(5), "{}", row.kind);
        }
    }
}
