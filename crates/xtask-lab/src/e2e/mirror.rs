//! A real cluster as it was last listed, as the embedded API server stores it: the claims of scenarios are judged on it
//! as on a simulated one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::Value;
use strew_apiserver::object::{Key, Kind, Name, Object};
use strew_apiserver::server::{Recorded, Server};
use strew_manifest::read::KubeObject;
use strew_model::time::{Instant, Span};
use strew_model::{Interner, Prng};
use strew_scenario::expect::Present;
use strew_scheduler::Profile;
use strew_scheduler::queue::PluginSet;
use strew_wire::config::AdmissionOptions;

/// The objects of a real cluster.
pub(super) struct Mirror {
    server: Server,
    names: Interner,
    profiles: Vec<Profile>,
    /// The version of each object as it was last listed.
    versions: BTreeMap<Key, String>,
    /// The uids of the recorded events.
    events: BTreeSet<String>,
    now: Instant,
    elapsed: Span,
}

impl Mirror {
    /// A cluster without objects; a scheduler with these profiles places its pods. `names` is their interner.
    pub(super) fn new(names: Interner, profiles: Vec<Profile>) -> Self {
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(0));
        server.leave_registration_out();
        Self {
            server,
            names,
            profiles,
            versions: BTreeMap::new(),
            events: BTreeSet::new(),
            now: Instant::default(),
            elapsed: Span::default(),
        }
    }

    /// Takes in what was listed: all objects that there are, events among them. `now` is the time since 1970, `elapsed`
    /// the time since the begin.
    ///
    /// # Errors
    /// If an object is of an unknown kind, or has a field of another type.
    pub(super) fn take_in(
        &mut self,
        listed: &[Value],
        now: Duration,
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        (self.now, self.elapsed) = (Instant(nanos(now)), Span(nanos(elapsed)));
        let mut versions = BTreeMap::new();
        for value in listed {
            if value["kind"] == "Event" {
                self.event(value);
                continue;
            }
            let object = KubeObject::of_json(value.clone());
            let object = object.with_context(|| format!("{} was listed", value["kind"]))?;
            let object = Object::of_wire(object);
            let key = object.key();
            let version = text(&value["metadata"]["resourceVersion"]).to_owned();
            if self.versions.get(&key) != Some(&version) {
                self.server.preload(self.now, object);
            }
            versions.insert(key, version);
        }
        for gone in self
            .versions
            .keys()
            .filter(|key| !versions.contains_key(*key))
        {
            self.server.forget(gone);
        }
        self.versions = versions;
        Ok(())
    }

    /// In the form of events.k8s.io. A later count of a known event is no other event.
    fn event(&mut self, event: &Value) {
        if !self
            .events
            .insert(text(&event["metadata"]["uid"]).to_owned())
        {
            return;
        }
        let regarding = &event["regarding"];
        let name = Name::new(text(&regarding["namespace"]), text(&regarding["name"]));
        let kind = Kind::of(text(&regarding["kind"]));
        let count = event["series"]["count"].as_u64().unwrap_or(1);
        self.server.events_mut().push(Recorded {
            at: self.now,
            regarding: Key { kind, name },
            uid: text(&regarding["uid"]).into(),
            is_warning: event["type"] == "Warning",
            reason: text(&event["reason"]).into(),
            note: text(&event["note"]).into(),
            source: text(&event["reportingController"]).into(),
            count: u32::try_from(count).unwrap_or(u32::MAX),
        });
    }
}

impl Present for Mirror {
    fn server(&self) -> &Server {
        &self.server
    }

    fn names(&self) -> &Interner {
        &self.names
    }

    fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn elapsed(&self) -> Span {
        self.elapsed
    }

    fn rejected_by(&self, _: &str) -> PluginSet {
        PluginSet::default()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The time since 1970.
pub(super) fn since_1970() -> anyhow::Result<Duration> {
    let nanos = jiff::Timestamp::now().as_nanosecond();
    let nanos = u64::try_from(nanos).map_err(|_| anyhow!("the clock is before 1970"))?;
    Ok(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strew_apiserver::object::Pod;

    use super::*;

    fn pod(name: &str, version: &str, node: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": version},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        })
    }

    #[test]
    fn what_is_listed_is_there_once_and_what_is_not_is_gone() {
        let mut mirror = Mirror::new(Interner::new(), Vec::new());
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"uid": "e"}, "reason": "Scheduled",
            "regarding": {"kind": "Pod", "namespace": "default", "name": "a"}, "note": "n",
        });
        let second = Duration::from_secs(1);
        let first = [
            pod("a", "1", Value::Null),
            pod("b", "2", Value::Null),
            event.clone(),
        ];
        mirror.take_in(&first, second, second).unwrap();
        let log = mirror.server.listen();
        mirror.take_in(&first, second, second).unwrap();
        assert!(!mirror.server.is_behind(&log), "nothing has changed");
        assert_eq!(mirror.server.events().len(), 1);

        let later = [pod("a", "3", json!("n-1")), event];
        mirror.take_in(&later, second, second).unwrap();
        let pods = mirror.server.tables().of::<Pod>().iter();
        let found: Vec<_> = pods
            .map(|p| (&*p.meta.name.name, p.node.as_deref()))
            .collect();
        assert_eq!(found, [("a", Some("n-1"))]);
        assert!(mirror.server.is_behind(&log));
    }
}
