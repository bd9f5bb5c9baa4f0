//! The pod template of objects that make pods.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::KubeObject;
use crate::field::FieldPath;

/// Where most kinds have it.
const SPEC_TEMPLATE: &str = "spec.template";

impl KubeObject {
    /// The template of the pods that the object makes, with its path; `None` if it makes none, or has none.
    pub fn pod_template(&self) -> Option<(&PodTemplateSpec, FieldPath)> {
        let (template, path) = match self {
            Self::Deployment(o) => (&o.spec.as_ref()?.template, SPEC_TEMPLATE),
            Self::ReplicaSet(o) => (o.spec.as_ref()?.template.as_ref()?, SPEC_TEMPLATE),
            Self::ReplicationController(o) => (o.spec.as_ref()?.template.as_ref()?, SPEC_TEMPLATE),
            Self::StatefulSet(o) => (&o.spec.as_ref()?.template, SPEC_TEMPLATE),
            Self::DaemonSet(o) => (&o.spec.as_ref()?.template, SPEC_TEMPLATE),
            Self::Job(o) => (&o.spec.as_ref()?.template, SPEC_TEMPLATE),
            Self::CronJob(o) => (
                &o.spec.job_template.spec.as_ref()?.template,
                "spec.jobTemplate.spec.template",
            ),
            Self::CloneSet(o) => (&o.spec.as_ref()?.template, SPEC_TEMPLATE),
            Self::AdvancedStatefulSet(o) => (&o.spec.as_ref()?.template, SPEC_TEMPLATE),
            _ => return None,
        };
        Some((template, FieldPath::root().child(path)))
    }

    /// As [`Self::pod_template`], to change it.
    pub fn pod_template_mut(&mut self) -> Option<&mut PodTemplateSpec> {
        match self {
            Self::Deployment(o) => Some(&mut o.spec.as_mut()?.template),
            Self::ReplicaSet(o) => o.spec.as_mut()?.template.as_mut(),
            Self::ReplicationController(o) => o.spec.as_mut()?.template.as_mut(),
            Self::StatefulSet(o) => Some(&mut o.spec.as_mut()?.template),
            Self::DaemonSet(o) => Some(&mut o.spec.as_mut()?.template),
            Self::Job(o) => Some(&mut o.spec.as_mut()?.template),
            Self::CronJob(o) => Some(&mut o.spec.job_template.spec.as_mut()?.template),
            Self::CloneSet(o) => Some(&mut o.spec.as_mut()?.template),
            Self::AdvancedStatefulSet(o) => Some(&mut o.spec.as_mut()?.template),
            _ => None,
        }
    }

    /// The templates of the claims that each pod of the object gets.
    pub fn claim_templates(&self) -> &[PersistentVolumeClaim] {
        let claims = match self {
            Self::StatefulSet(o) => o.spec.as_ref().map(|s| &s.volume_claim_templates),
            Self::CloneSet(o) => o.spec.as_ref().map(|s| &s.volume_claim_templates),
            Self::AdvancedStatefulSet(o) => o.spec.as_ref().map(|s| &s.volume_claim_templates),
            _ => None,
        };
        claims.and_then(Option::as_deref).unwrap_or_default()
    }

    /// The label selector of an object that makes pods; `None` if it makes none, or has none. That of a
    /// ReplicationController is a map of labels, and so `None`.
    pub fn pod_selector(&self) -> Option<&LabelSelector> {
        match self {
            Self::Deployment(o) => Some(&o.spec.as_ref()?.selector),
            Self::ReplicaSet(o) => Some(&o.spec.as_ref()?.selector),
            Self::StatefulSet(o) => Some(&o.spec.as_ref()?.selector),
            Self::DaemonSet(o) => Some(&o.spec.as_ref()?.selector),
            Self::Job(o) => o.spec.as_ref()?.selector.as_ref(),
            Self::CloneSet(o) => o.spec.as_ref()?.selector.as_ref(),
            Self::AdvancedStatefulSet(o) => o.spec.as_ref()?.selector.as_ref(),
            _ => None,
        }
    }

    /// The number of pods that the object asks for at once; of a CronJob, each of its Jobs. `None` if the nodes decide,
    /// or it makes no pods.
    pub fn replicas(&self) -> Option<i32> {
        self.replicas_field().map(|replicas| replicas.unwrap_or(1))
    }

    /// As [`replicas`](Self::replicas), and `None` too if the object does not say how many it asks for.
    pub fn asked_replicas(&self) -> Option<i32> {
        self.replicas_field().flatten()
    }

    fn replicas_field(&self) -> Option<Option<i32>> {
        Some(match self {
            Self::Deployment(o) => o.spec.as_ref()?.replicas,
            Self::ReplicaSet(o) => o.spec.as_ref()?.replicas,
            Self::ReplicationController(o) => o.spec.as_ref()?.replicas,
            Self::StatefulSet(o) => o.spec.as_ref()?.replicas,
            Self::CloneSet(o) => o.spec.as_ref()?.replicas,
            Self::AdvancedStatefulSet(o) => o.spec.as_ref()?.replicas,
            Self::Job(o) => o.spec.as_ref()?.parallelism,
            Self::CronJob(o) => o.spec.job_template.spec.as_ref()?.parallelism,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::kinds::{KINDS, Pods};
    use crate::read::{Sources, read};

    /// The table of kinds says which make pods; each of them has its template and its number found.
    #[test]
    fn every_kind_that_makes_pods_has_its_template_found() {
        let pod = "{metadata: {labels: {app: a}}, spec: {restartPolicy: Always, containers: [{name: c, image: i}]}}";
        for row in KINDS.iter().filter(|row| row.pods == Pods::Make) {
            let pod = match row.kind {
                "Job" | "CronJob" => pod.replace("Always", "Never"),
                _ => pod.to_owned(),
            };
            let spec = match row.kind {
                "CronJob" => format!(
                    "{{schedule: '0 0 * * *', jobTemplate: {{spec: {{parallelism: 3, template: {pod}}}}}}}"
                ),
                "Job" => format!("{{parallelism: 3, template: {pod}}}"),
                "DaemonSet" => {
                    format!("{{selector: {{matchLabels: {{app: a}}}}, template: {pod}}}")
                }
                "ReplicationController" => {
                    format!("{{replicas: 3, selector: {{app: a}}, template: {pod}}}")
                }
                "StatefulSet" => format!(
                    "{{replicas: 3, serviceName: s, selector: {{matchLabels: {{app: a}}}}, template: {pod}}}"
                ),
                _ => format!(
                    "{{replicas: 3, selector: {{matchLabels: {{app: a}}}}, template: {pod}}}"
                ),
            };
            let (api_version, kind) = (row.api_version, row.kind);
            let mut sources = Sources::new();
            sources.add(
                "in",
                format!(
                    "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}\n"
                ),
            );
            let reading = read(&sources);
            assert_eq!(reading.diagnostics, [], "{kind}");
            let object = &reading.objects[0].object;
            let template = object.pod_template().map(|(template, _)| template.clone());
            assert!(template.is_some(), "{kind}");
            assert_eq!(
                object.clone().pod_template_mut().cloned(),
                template,
                "{kind}"
            );
            let has_selector = !matches!(kind, "ReplicationController" | "Job" | "CronJob");
            assert_eq!(object.pod_selector().is_some(), has_selector, "{kind}");
            let replicas = (kind != "DaemonSet").then_some(3);
            assert_eq!(object.replicas(), replicas, "{kind}");
        }
    }
}
