//! Texts that decisions name and never read: subsets as they are written, their patches, templates of pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;
use strew_workloadspread::{FormId, PatchId, TemplateId};

use super::v1beta1::WorkloadSpreadSubset;

/// What a subset puts into a pod, as JSON.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Form {
    /// `requiredNodeSelector`.
    pub required: Option<Value>,
    /// `preferredNodeSelector`.
    pub preferred: Vec<Value>,
    /// `tolerations`.
    pub tolerations: Vec<Value>,
    /// `patch`.
    pub patch: Option<Value>,
}

impl Form {
    /// The form of a subset.
    pub fn of(subset: &WorkloadSpreadSubset) -> Self {
        // Plain data: it always has a JSON form.
        let json = |list: Option<Value>| match list {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        let preferred = subset.preferred_node_selector.as_ref();
        let tolerations = subset.tolerations.as_ref();
        let required = subset.required_node_selector.as_ref();
        Self {
            required: required.and_then(|term| serde_json::to_value(term).ok()),
            preferred: json(preferred.and_then(|terms| serde_json::to_value(terms).ok())),
            tolerations: json(tolerations.and_then(|all| serde_json::to_value(all).ok())),
            patch: subset.patch.clone().filter(|patch| !patch.is_null()),
        }
    }

    fn key(&self) -> String {
        let all = [
            self.required.clone().unwrap_or_default(),
            Value::Array(self.preferred.clone()),
            Value::Array(self.tolerations.clone()),
            self.patch.clone().unwrap_or_default(),
        ];
        Value::from(all.to_vec()).to_string()
    }
}

/// Gives equal texts equal ids. What was once named stays: a form for each edit of a WorkloadSpread.
#[derive(Debug, Default)]
pub struct Forms {
    forms: Vec<Arc<Form>>,
    form_ids: BTreeMap<String, FormId>,
    patches: Vec<Arc<Value>>,
    patch_ids: BTreeMap<String, PatchId>,
    /// By two hashes of the text: templates are large, and only whether they are equal is asked.
    templates: HashMap<(u64, u64), TemplateId>,
    /// Paths of replica counts that filters name.
    paths: BTreeSet<Arc<str>>,
}

impl Forms {
    /// The id of a form. The first is not 0, which names no form.
    pub fn form_id(&mut self, form: Form) -> FormId {
        let next = FormId(self.forms.len() as u64 + 1);
        let id = *self.form_ids.entry(form.key()).or_insert(next);
        if id == next {
            self.forms.push(Arc::new(form));
        }
        id
    }

    /// The form of an id.
    pub fn form(&self, id: FormId) -> Option<&Arc<Form>> {
        let place = usize::try_from(id.0.checked_sub(1)?).ok()?;
        self.forms.get(place)
    }

    /// The id of a patch.
    pub fn patch_id(&mut self, patch: &Value) -> PatchId {
        let next = PatchId(self.patches.len() as u64);
        let id = *self.patch_ids.entry(patch.to_string()).or_insert(next);
        if id == next {
            self.patches.push(Arc::new(patch.clone()));
        }
        id
    }

    /// The patch of an id.
    pub fn patch(&self, id: PatchId) -> Option<&Arc<Value>> {
        self.patches.get(usize::try_from(id.0).ok()?)
    }

    /// The id of a template, its label `pod-template-hash` left out.
    pub fn template_id(&mut self, template: &PodTemplateSpec) -> TemplateId {
        let mut template = serde_json::to_value(template).unwrap_or_default();
        if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
            labels.shift_remove("pod-template-hash");
        }
        plain(&mut template);
        let text = template.to_string();
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            hasher.write(text.as_bytes());
            hasher.finish()
        };
        let next = TemplateId(self.templates.len() as u64);
        *self.templates.entry((hash(0), hash(1))).or_insert(next)
    }

    /// Notes paths of replica counts; whether one of them is new.
    pub(super) fn name_paths<'a>(&mut self, paths: impl Iterator<Item = &'a Arc<str>>) -> bool {
        let mut grew = false;
        for path in paths {
            if !self.paths.contains(path) {
                self.paths.insert(Arc::clone(path));
                grew = true;
            }
        }
        grew
    }

    /// All paths of replica counts that were noted.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.paths.iter()
    }
}

/// Empty lists and maps are the same as none to who compares templates (`apiequality.Semantic`); an empty object is not:
/// `emptyDir: {}`.
fn plain(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_map = |name: &str| matches!(name, "labels" | "annotations" | "nodeSelector");
            map.retain(|name, value| match value {
                Value::Array(list) => !list.is_empty(),
                Value::Object(inner) => !(inner.is_empty() && is_map(name)),
                _ => true,
            });
            map.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        _ => {}
    }
}
