//! kubectl's verbs, through the same server as every other client.

use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::object::{Key, Kind, Meta, Name, Object};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_manifest::patch::{self, Schema};
use strew_manifest::read::KubeObject;
use strew_wire::request::{Answer, Request};

use crate::kubelet::Which;
use crate::simulation::Simulation;

impl Simulation {
    /// Creates an object.
    ///
    /// # Errors
    /// The API server's refusal.
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

    /// Creates an object, or changes the existing one to match, as `kubectl apply` does.
    ///
    /// # Errors
    /// The API server's refusal.
    pub fn apply(&mut self, manifest: &Value) -> Result<Object, ApiError> {
        // Decoding converts an older version of a kind into the stored one.
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

    /// Changes an object as JSON; its status stays.
    ///
    /// # Errors
    /// The object does not exist, `change` fails, or the API server refuses the result.
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

    /// Deletes an object, and the objects that it owns.
    ///
    /// # Errors
    /// The object does not exist.
    pub fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        let now = self.now();
        self.server.delete(now, key, options)
    }

    /// Requests the eviction of a pod.
    ///
    /// # Errors
    /// A budget forbids it, or the pod does not exist.
    pub fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        let now = self.now();
        self.server.evict(now, key, options)
    }

    /// Carries out a request of a client outside the simulation.
    pub fn execute(&mut self, request: &Request) -> Answer {
        let now = self.now();
        self.server.execute(now, request)
    }

    /// Cordons or uncordons a node.
    ///
    /// # Errors
    /// The node does not exist.
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

    /// Makes these pods ready, or not ready, from now on.
    pub fn set_readiness(&mut self, which: Which, ready: bool) {
        let now = self.now();
        self.kubelets
            .set_readiness(now, which, ready, &mut self.server);
    }

    /// Stops a node's kubelet.
    ///
    /// # Errors
    /// The node does not exist.
    pub fn lose(&mut self, node: &str) -> Result<(), ApiError> {
        self.check_node(node)?;
        let now = self.now();
        self.kubelets.lose(now, node);
        Ok(())
    }

    /// Starts a silent node's kubelet again; it reports with its next heartbeat.
    ///
    /// # Errors
    /// The node does not exist.
    pub fn restore(&mut self, node: &str) -> Result<(), ApiError> {
        self.check_node(node)?;
        let now = self.now();
        self.kubelets.restore(now, node);
        Ok(())
    }

    /// From now on a node that returns reports in the same instant, as nodes of kwok do.
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

/// Sets the labels that a kubelet sets when it registers its node.
fn label_as_kubelet(node: &mut Meta) {
    let name = node.name.name.to_string();
    let labels = Arc::make_mut(&mut node.labels);
    labels.entry(HOSTNAME.to_owned()).or_insert(name);
}

const HOSTNAME: &str = "kubernetes.io/hostname";

fn decode(value: Value) -> Result<KubeObject, ApiError> {
    KubeObject::of_json(value).map_err(|error| ApiError::Invalid(error.to_string().into()))
}
