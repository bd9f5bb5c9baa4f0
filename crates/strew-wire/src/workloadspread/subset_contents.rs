//! Ids for texts that decisions refer to without reading them: subsets as written, their patches, pod templates.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;
use strew_manifest::json::{self, Json};
use strew_workloadspread::{FormId, PatchId, Spec, TemplateId};

use super::v1beta1::WorkloadSpreadSubset;

/// What a subset adds to a pod, as JSON.
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
        let preferred = subset.preferred_node_selector.as_deref();
        let tolerations = subset.tolerations.as_deref();
        let required = subset.required_node_selector.as_ref();
        Self {
            required: required.map(Json::to_json),
            preferred: json::list(preferred.unwrap_or_default()),
            tolerations: json::list(tolerations.unwrap_or_default()),
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

/// The number of unused texts kept, because a pending review may still refer to one.
const UNUSED_MAX: usize = 1_000;

/// Equal texts have equal ids; no id is reused.
#[derive(Debug)]
struct Texts<T> {
    by_id: BTreeMap<u64, (Arc<T>, String)>,
    ids: BTreeMap<String, u64>,
    next: u64,
    /// The number of WorkloadSpreads that use each text.
    users: BTreeMap<u64, usize>,
    /// Released texts in the order of their release; some may be in use again.
    unused: VecDeque<u64>,
}

impl<T> Default for Texts<T> {
    fn default() -> Self {
        Self {
            by_id: BTreeMap::new(),
            ids: BTreeMap::new(),
            // The id 0 stands for no text.
            next: 1,
            users: BTreeMap::new(),
            unused: VecDeque::new(),
        }
    }
}

impl<T> Texts<T> {
    fn id(&mut self, key: String, make: impl FnOnce() -> T) -> u64 {
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = self.next;
        self.next += 1;
        self.by_id.insert(id, (Arc::new(make()), key.clone()));
        self.ids.insert(key, id);
        id
    }

    fn get(&self, id: u64) -> Option<&Arc<T>> {
        self.by_id.get(&id).map(|(text, _)| text)
    }

    fn hold(&mut self, id: u64) {
        *self.users.entry(id).or_default() += 1;
    }

    fn let_go(&mut self, id: u64) {
        let Some(users) = self.users.get_mut(&id) else {
            return;
        };
        *users -= 1;
        if *users > 0 {
            return;
        }
        self.users.remove(&id);
        self.unused.push_back(id);
        while self.unused.len() > UNUSED_MAX
            && let Some(oldest) = self.unused.pop_front()
        {
            if !self.users.contains_key(&oldest)
                && let Some((_, key)) = self.by_id.remove(&oldest)
            {
                self.ids.remove(&key);
            }
        }
    }
}

/// The texts of a WorkloadSpread.
#[derive(Debug, Default)]
struct Held {
    forms: Vec<u64>,
    patches: Vec<u64>,
    paths: Vec<Arc<str>>,
}

/// Gives equal texts equal ids. Keeps the texts in use, and the last thousand released ones.
#[derive(Debug, Default)]
pub struct SubsetContents {
    forms: Texts<Form>,
    patches: Texts<Value>,
    /// Paths of replica counts in filters, with the number of filters.
    paths: BTreeMap<Arc<str>, usize>,
    /// By namespace and name.
    held: BTreeMap<[String; 2], Held>,
}

impl SubsetContents {
    /// The id of a form; never 0.
    pub fn form_id(&mut self, form: Form) -> FormId {
        FormId(self.forms.id(form.key(), || form))
    }

    /// The form with an id.
    pub fn form(&self, id: FormId) -> Option<&Arc<Form>> {
        self.forms.get(id.0)
    }

    /// The id of a patch.
    pub fn patch_id(&mut self, patch: &Value) -> PatchId {
        PatchId(self.patches.id(patch.to_string(), || patch.clone()))
    }

    /// The patch with an id.
    pub fn patch(&self, id: PatchId) -> Option<&Arc<Value>> {
        self.patches.get(id.0)
    }

    /// The id of a template without its label `pod-template-hash`. Templates are large, and only their equality
    /// matters.
    pub fn template_id(template: &PodTemplateSpec) -> TemplateId {
        let mut template = template.to_json();
        if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
            labels.shift_remove("pod-template-hash");
        }
        plain(&mut template);
        let text = template.to_string();
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            hasher.write(text.as_bytes());
            u128::from(hasher.finish())
        };
        TemplateId(hash(0) << 64 | hash(1))
    }

    /// Records the texts of a WorkloadSpread. Returns true if it names a path of replica counts that no other one
    /// named.
    pub(super) fn hold(&mut self, spread: [String; 2], spec: &Spec) -> bool {
        let paths = spec.filter.iter().flat_map(|f| f.replicas_paths.iter());
        let subsets = spec.subsets.iter();
        let held = Held {
            forms: subsets.clone().map(|s| s.form.0).collect(),
            patches: subsets.filter_map(|s| Some(s.patch?.0)).collect(),
            paths: paths.cloned().collect(),
        };
        let grew = held.paths.iter().any(|path| !self.paths.contains_key(path));
        held.forms.iter().for_each(|&id| self.forms.hold(id));
        held.patches.iter().for_each(|&id| self.patches.hold(id));
        for path in &held.paths {
            *self.paths.entry(Arc::clone(path)).or_default() += 1;
        }
        let before = self.held.insert(spread, held);
        self.let_go(before);
        grew
    }

    /// Removes a WorkloadSpread.
    pub(super) fn forget(&mut self, spread: &[String; 2]) {
        let before = self.held.remove(spread);
        self.let_go(before);
    }

    fn let_go(&mut self, before: Option<Held>) {
        let before = before.unwrap_or_default();
        before
            .forms
            .into_iter()
            .for_each(|id| self.forms.let_go(id));
        let patches = before.patches.into_iter();
        patches.for_each(|id| self.patches.let_go(id));
        for path in before.paths {
            if let Some(users) = self.paths.get_mut(&path) {
                *users -= 1;
                if *users == 0 {
                    self.paths.remove(&path);
                }
            }
        }
    }

    /// All paths of replica counts in filters.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.paths.keys()
    }
}

/// Comparing templates, empty lists and maps equal absent ones (`apiequality.Semantic`); an empty object does not:
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloadspread::Translator;
    use serde_json::json;
    use strew_model::Interner;

    fn spread(name: &str, edit: usize) -> strew_manifest::read::KubeObject {
        let subset = |patch: Value| json!({"name": "a", "patch": patch});
        let spec = json!({
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "targetFilter": {"replicasPathList": [format!("spec.of{edit}")]},
            "subsets": [subset(json!({"metadata": {"labels": {"edit": edit.to_string()}}}))],
        });
        let json = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
            "metadata": {"name": name, "namespace": "shop"}, "spec": spec});
        strew_manifest::read::KubeObject::of_json(json).unwrap()
    }

    #[test]
    fn what_was_edited_away_is_forgotten_after_a_while_and_the_rest_never() {
        let (mut translator, mut names) = (Translator::default(), Interner::new());
        let mut tell = |name: &str, edit: usize, is_gone: bool| {
            let object = spread(name, edit);
            match is_gone {
                true => translator.controller_gone(&object, &mut names),
                false => translator.controller(&object, &mut names),
            };
            let contents = &translator.contents;
            let n = [
                contents.forms.by_id.len(),
                contents.patches.by_id.len(),
                contents.paths.len(),
            ];
            (n, contents.form(FormId(1)).is_some())
        };
        tell("stays", 0, false);
        for edit in 1..10 {
            tell("web", edit, false);
        }
        assert_eq!(tell("web", 10, false), ([11, 11, 2], true));
        for edit in 10..5_000 {
            tell("web", edit, false);
        }
        let most = UNUSED_MAX + 2;
        assert_eq!(tell("web", 5_000, false), ([most, most, 2], true));
        assert_eq!(tell("web", 5_000, true), ([most - 1, most - 1, 1], true));
        assert_eq!(tell("stays", 0, true).0[2], 0);
    }
}
