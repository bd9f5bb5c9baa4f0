//! The JSON of pods, to check whether a patch is already applied to one.
//!
//! This is checked only for pods without a marker, which a WorkloadSpread may adopt. So the JSON is kept only for
//! these, in namespaces where a subset has a patch. Pods that the watch reported earlier are read again.
//!
//! Source: spec/workloadspread §5.4.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use rustc_hash::FxHashMap;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::read::KubeObject;
use strew_wire::workloadspread::pending_reviews::PodSource;

use crate::watch::{Kind, Watches};

/// The JSON of pods without a marker.
#[derive(Debug, Default)]
pub(super) struct Texts {
    namespaces: BTreeMap<Box<str>, State>,
    /// By uid.
    texts: FxHashMap<Box<str>, Box<str>>,
}

/// The state of a namespace with patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Pods reported earlier are missing.
    Stale,
    /// They were requested.
    Asked,
    /// All pods without a marker have their JSON.
    Known,
}

impl Texts {
    /// True if all texts that a WorkloadSpread may need are known; otherwise requests them.
    pub(super) fn are_known(&mut self, wire: &WorkloadSpread, watches: &mut Watches) -> bool {
        let mut subsets = wire.spec.iter().flat_map(|spec| &spec.subsets);
        if subsets.all(|subset| subset.patch.as_ref().is_none_or(Value::is_null)) {
            return true;
        }
        let namespace = wire.metadata.namespace.as_deref().unwrap_or_default();
        let state = self.namespaces.entry(namespace.into());
        let state = state.or_insert(State::Stale);
        if *state == State::Stale {
            watches.read_again(&Kind::of::<Pod>(), namespace);
            *state = State::Asked;
        }
        *state == State::Known
    }

    /// Records the state of a pod; a stranger has no marker of an existing WorkloadSpread.
    pub(super) fn note(&mut self, pod: &Pod, is_stranger: bool) {
        let metadata = &pod.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let uid = metadata.uid.as_deref().unwrap_or_default();
        match is_stranger && self.namespaces.contains_key(namespace) {
            true => {
                self.texts.insert(uid.into(), text(pod).into());
            }
            false => self.forget(uid),
        }
    }

    /// Removes a pod.
    pub(super) fn forget(&mut self, uid: &str) {
        self.texts.remove(uid);
    }

    /// Takes in the pods of a namespace, listed again. Events of the watch since the request are newer.
    pub(super) fn take_in(
        &mut self,
        namespace: &str,
        objects: impl Iterator<Item = KubeObject>,
        is_stranger: impl Fn(&Pod) -> bool,
    ) {
        for object in objects {
            if let KubeObject::Pod(pod) = &object {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                if !self.texts.contains_key(uid) {
                    self.note(pod, is_stranger(pod));
                }
            }
        }
        if let Some(state) = self.namespaces.get_mut(namespace)
            && *state == State::Asked
        {
            *state = State::Known;
        }
    }

    /// A WorkloadSpread was deleted: its pods may be adopted by the next one, and their texts were not kept.
    pub(super) fn spread_gone(&mut self, namespace: &str) {
        if let Some(state) = self.namespaces.get_mut(namespace) {
            *state = State::Stale;
        }
    }
}

/// A pod without the fields that a subset's patch cannot change.
fn text(pod: &Pod) -> String {
    let mut pod = pod.clone();
    pod.metadata.managed_fields = None;
    pod.status = None;
    pod.to_json().to_string()
}

impl PodSource for Texts {
    fn by_uid(&self, uid: &str) -> Option<Value> {
        serde_json::from_str(self.texts.get(uid)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, image: &str) -> Pod {
        let pod = json!({
            "metadata": {"namespace": "shop", "name": uid, "uid": uid},
            "spec": {"containers": [{"name": "c", "image": image}]},
            "status": {"phase": "Running"},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn image(texts: &Texts, uid: &str) -> Option<String> {
        let pod = texts.by_uid(uid)?;
        assert_eq!(pod.get("status"), None);
        Some(pod["spec"]["containers"][0]["image"].as_str()?.to_owned())
    }

    #[test]
    fn texts_are_kept_of_strangers_where_somebody_asks_and_the_newest_wins() {
        let mut texts = Texts::default();
        texts.note(&pod("1", "v1"), true);
        assert_eq!(image(&texts, "1"), None, "nobody asks");
        texts.namespaces.insert("shop".into(), State::Asked);
        texts.note(&pod("2", "v2"), true);
        texts.note(&pod("3", "v2"), false);
        let again = |uid, image| KubeObject::from(pod(uid, image));
        let read = [again("1", "v1"), again("2", "v1"), again("3", "v1")];
        texts.take_in("shop", read.into_iter(), |pod| {
            pod.metadata.uid.as_deref() != Some("3")
        });
        let told = ["1", "2", "3"].map(|uid| image(&texts, uid));
        let text = |image: &str| Some(image.to_owned());
        assert_eq!(told, [text("v1"), text("v2"), None]);
        assert_eq!(texts.namespaces["shop"], State::Known);
        // It was adopted.
        texts.note(&pod("1", "v1"), false);
        assert_eq!(image(&texts, "1"), None);
        texts.spread_gone("shop");
        assert_eq!(texts.namespaces["shop"], State::Stale);
    }
}
