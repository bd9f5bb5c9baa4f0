//! Clusters, sets, bindings, scores, decisions. Source: spec/placement §1.2 to §1.5.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::ocm::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
    PlacementDecision, Taint,
};
use strew_manifest::quantity::Quantity;
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::{selector, text};
use strew_wire::placement::schema::{
    CLAIM_NAME_MAX, EFFECTS, KEY_MAX, LABEL_KEY, SELECTOR_TYPES, VALUE_MAX,
};

use super::schema::Schema;
use crate::validation::Validate;

fn at(path: &'static str) -> FieldPath {
    FieldPath::root().child(path)
}

impl Validate for ManagedCluster {
    fn validate(&self) -> Vec<FieldError> {
        let mut schema = Schema {
            errors: metadata::validate(&self.metadata, Scope::Cluster, text::dns_subdomain),
        };
        // A hand-written cluster need not say how it joined.
        let taints = self
            .spec
            .iter()
            .flat_map(|spec| spec.taints.iter().flatten());
        for (i, taint) in taints.enumerate() {
            self::taint(taint, &at("spec.taints").index(i), &mut schema);
        }
        if let Some(status) = &self.status {
            let claims = status.cluster_claims.iter().flatten();
            for (i, claim) in claims.enumerate() {
                let path = at("status.clusterClaims").index(i);
                schema.not_empty(&claim.name, &path.child("name"));
                schema.length(&claim.name, CLAIM_NAME_MAX, &path.child("name"));
                schema.not_empty(&claim.value, &path.child("value"));
                schema.length(&claim.value, VALUE_MAX, &path.child("value"));
            }
            amounts(
                status.capacity.as_ref(),
                &at("status.capacity"),
                &mut schema,
            );
            amounts(
                status.allocatable.as_ref(),
                &at("status.allocatable"),
                &mut schema,
            );
        }
        schema.errors
    }
}

fn taint(taint: &Taint, path: &FieldPath, schema: &mut Schema) {
    let key = path.child("key");
    match taint.key.is_empty() {
        true => schema.required(false, &key),
        false => schema.pattern(&taint.key, &LABEL_KEY, &key),
    }
    schema.length(&taint.key, KEY_MAX, &key);
    if let Some(value) = &taint.value {
        schema.length(value, VALUE_MAX, &path.child("value"));
    }
    let effect = path.child("effect");
    match taint.effect.is_empty() {
        true => schema.required(false, &effect),
        false => schema.one_of(&taint.effect, &EFFECTS, &effect),
    }
}

/// Quantities that cannot be parsed, or exceed 63 bits.
fn amounts(list: Option<&BTreeMap<String, WireQuantity>>, path: &FieldPath, schema: &mut Schema) {
    for (name, wire) in list.into_iter().flatten() {
        let read = Quantity::parse(&wire.0).and_then(|quantity| match name.as_str() {
            "cpu" => quantity.checked_milli_value(),
            _ => quantity.checked_value(),
        });
        if let Err(error) = read {
            let error = FieldError::invalid(path.key(name), &wire.0, error.to_string());
            schema.errors.push(error);
        }
    }
}

impl Validate for ManagedClusterSet {
    fn validate(&self) -> Vec<FieldError> {
        let mut schema = Schema {
            errors: metadata::validate(&self.metadata, Scope::Cluster, text::dns_subdomain),
        };
        let wanted = self
            .spec
            .as_ref()
            .and_then(|spec| spec.cluster_selector.as_ref());
        if let Some(wanted) = wanted {
            let path = at("spec.clusterSelector");
            if let Some(kind) = wanted.selector_type.as_deref().filter(|k| !k.is_empty()) {
                schema.one_of(kind, &SELECTOR_TYPES, &path.child("selectorType"));
            }
            let labels = wanted.label_selector.as_ref();
            selector::validate(labels, &path.child("labelSelector"), &mut schema.errors);
        }
        schema.errors
    }
}

impl Validate for ManagedClusterSetBinding {
    fn validate(&self) -> Vec<FieldError> {
        let mut schema = Schema {
            errors: metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain),
        };
        let path = at("spec.clusterSet");
        let set = self
            .spec
            .as_ref()
            .map(|spec| spec.cluster_set.as_str())
            .unwrap_or_default();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        match set {
            "" => schema.required(false, &path),
            // OCM's webhook refuses this; placement reads only the name.
            set if set != name => {
                let detail = format!("must be equal to the name of the binding, {name:?}");
                schema.errors.push(FieldError::invalid(path, set, detail));
            }
            _ => {}
        }
        schema.errors
    }
}

impl Validate for AddOnPlacementScore {
    fn validate(&self) -> Vec<FieldError> {
        let mut schema = Schema {
            errors: metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain),
        };
        let scores = self
            .status
            .as_ref()
            .and_then(|status| status.scores.as_deref());
        let scores = scores.unwrap_or_default();
        let path = at("status.scores");
        for (i, score) in scores.iter().enumerate() {
            schema.required(!score.name.is_empty(), &path.index(i).child("name"));
            schema.range(score.value, -100, 100, &path.index(i).child("value"));
        }
        let names: Vec<&str> = scores.iter().map(|score| score.name.as_str()).collect();
        schema.unique(&names, "name", &path);
        schema.errors
    }
}

impl Validate for PlacementDecision {
    fn validate(&self) -> Vec<FieldError> {
        let mut schema = Schema {
            errors: metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain),
        };
        let decisions = self.status.iter().flat_map(|status| &status.decisions);
        for (i, decision) in decisions.enumerate() {
            let path = at("status.decisions").index(i).child("clusterName");
            schema.required(!decision.cluster_name.is_empty(), &path);
        }
        schema.errors
    }
}
