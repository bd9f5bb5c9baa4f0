//! kubectl's verbs, through the same server as every other client.

use std::sync::Arc;

use serde_json::Value;
use strew_api::patch::{self, Schema};
use strew_api::read::KubeObject;
use strew_apiserver::object::{Key, Kind, Meta, Name, Object};
use strew_apiserver::{ApiError, DeleteOptions};

use crate::kubelet::Which;
use crate::simulation::Simulation;

impl Simulation {
    /// Creates an object.
    ///
    /// # Errors
    /// What the API server refuses it for.
    pub fn create(&mut self, object: KubeObject) -> Result<Object, ApiError> {
        let namespace = object.namespace().map(str::to_owned);
        let mut object = Object::of_wire(object);
        if let Some(namespace) = namespace {
            object.meta_mut().name.namespace = namespace.into();
        }
        if matches!(object, Object::Node(_)) {
            label_as_kubelet(object.meta_mut());
        }
        self.bounds.changed();
        let created = self.server.create(self.now(), object)?;
        self.begin_spreading();
        Ok(created)
    }

    /// Creates an object, or makes the one that is there like it, as `kubectl apply` does.
    ///
    /// # Errors
    /// What the API server refuses it for.
    pub fn apply(&mut self, manifest: &Value) -> Result<Object, ApiError> {
        // An older version of a kind is compared as it is stored.
        let stored = decode(manifest.clone())?.to_json();
        let is_same_version = stored["apiVersion"] == manifest["apiVersion"];
        let annotated = patch::apply::annotated(if is_same_version { manifest } else { &stored });
        let new = decode(annotated.clone())?;
        let key = Object::of_wire(new.clone()).key();
        if self.server.tables().find(&key).is_none() {
            return self.create(new);
        }
        self.edit(&key, &mut |live| {
            let schema = Schema::of_kind(key.kind.name()).unwrap_or(Schema::Plain);
            let last = patch::apply::last_applied(live);
            *live = patch::apply::apply(schema, last.as_ref(), live, &annotated);
            Ok(())
        })
    }

    /// Changes an object as JSON. Of the status nothing is changed.
    ///
    /// # Errors
    /// No such object; what `change` says; what the API server refuses the result for.
    pub fn edit(
        &mut self,
        key: &Key,
        change: &mut dyn FnMut(&mut Value) -> Result<(), String>,
    ) -> Result<Object, ApiError> {
        let Some(stored) = self.server.tables().find(key) else {
            return Err(ApiError::NotFound(key.clone()));
        };
        let mut json = stored.to_json();
        change(&mut json).map_err(|text| ApiError::Invalid(text.into()))?;
        self.bounds.changed();
        let now = self.now();
        self.server.replace(now, &stored, decode(json)?)
    }

    /// Deletes an object, and what it owns.
    ///
    /// # Errors
    /// No such object.
    pub fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        let now = self.now();
        self.server.delete(now, key, options)
    }

    /// Asks that a pod goes, if its budgets allow it.
    ///
    /// # Errors
    /// They do not; no such pod.
    pub fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        let now = self.now();
        self.server.evict(now, key, options)
    }

    /// No new pods on a node; or new pods again.
    ///
    /// # Errors
    /// No such node.
    pub fn cordon(&mut self, node: &str, unschedulable: bool) -> Result<(), ApiError> {
        let key = Key {
            kind: Kind::Node,
            name: Name::new("", node),
        };
        let edited = self.edit(&key, &mut |value| {
            value["spec"]["unschedulable"] = unschedulable.into();
            Ok(())
        });
        edited.map(drop)
    }

    /// From now on these pods are ready, or are not.
    pub fn set_readiness(&mut self, which: Which, ready: bool) {
        let now = self.now();
        self.kubelets
            .set_readiness(now, which, ready, &mut self.server);
    }

    /// A node falls silent.
    ///
    /// # Errors
    /// No such node.
    pub fn lose(&mut self, node: &str) -> Result<(), ApiError> {
        self.check_node(node)?;
        let now = self.now();
        self.kubelets.lose(now, node);
        Ok(())
    }

    /// A silent node comes back, and reports with its next heartbeat.
    ///
    /// # Errors
    /// No such node.
    pub fn restore(&mut self, node: &str) -> Result<(), ApiError> {
        self.check_node(node)?;
        let now = self.now();
        self.kubelets.restore(now, node);
        Ok(())
    }

    /// From now on a node that comes back reports in the same instant, as the nodes of kwok do.
    pub fn report_at_once(&mut self) {
        self.kubelets.report_at_once();
    }

    fn check_node(&self, node: &str) -> Result<(), ApiError> {
        let key = Key {
            kind: Kind::Node,
            name: Name::new("", node),
        };
        match self.server.tables().find(&key) {
            Some(_) => Ok(()),
            None => Err(ApiError::NotFound(key)),
        }
    }
}

/// A node joins with its kubelet, which registers it under its own hostname.
fn label_as_kubelet(node: &mut Meta) {
    let name = node.name.name.to_string();
    let labels = Arc::make_mut(&mut node.labels);
    labels.entry(HOSTNAME.to_owned()).or_insert(name);
}

const HOSTNAME: &str = "kubernetes.io/hostname";

fn decode(value: Value) -> Result<KubeObject, ApiError> {
    KubeObject::of_json(value).map_err(|error| ApiError::Invalid(error.to_string().into()))
}
