//! Kruise's kinds as written: group `apps.kruise.io`.
//!
//! Reading order: [`v1beta1`] (the stored version of a WorkloadSpread), [`v1alpha1`], [`spec`] (what both share),
//! [`conversion`]; [`workloads`] (CloneSet, StatefulSet). Source: spec/workloadspread §2.

pub mod conversion;
mod object;
pub mod spec;
pub mod v1alpha1;
pub mod v1beta1;
pub mod workloads;

use serde_json::Value;

use crate::read::{RawFault, RawSchema};
pub use object::GROUP;

/// A stored WorkloadSpread of either version, as v1beta1. Fields with values of another type are left out and returned
/// as faults. `None` if the object is no WorkloadSpread.
pub fn read_back(mut value: Value) -> Option<(v1beta1::WorkloadSpread, Vec<RawFault>)> {
    use k8s_openapi::Resource;
    if value["kind"] != v1beta1::WorkloadSpread::KIND {
        return None;
    }
    let is_old = value["apiVersion"] == v1alpha1::WorkloadSpread::API_VERSION;
    let version = if is_old { "v1alpha1" } else { "v1beta1" };
    let schema = RawSchema::of(&format!("{GROUP}/{version} WorkloadSpread"));
    let faults = schema.check(&mut value);
    let object = match is_old {
        true => conversion::up(serde_json::from_value(value).ok()?),
        false if value["apiVersion"] == v1beta1::WorkloadSpread::API_VERSION => {
            serde_json::from_value(value).ok()?
        }
        false => return None,
    };
    Some((object, faults))
}
