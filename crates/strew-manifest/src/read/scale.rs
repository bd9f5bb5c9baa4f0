//! What objects of other projects scale.

use serde_json::{Map, Value};

/// The workload that an object of a kind that strew does not know scales, by its `spec.scaleTargetRef`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleTarget {
    /// The kind of the workload; `Deployment` if it is not given.
    pub kind: String,
    /// Its name. It is in the namespace of the object.
    pub name: String,
    /// The smallest number of pods; `None` if strew cannot read it.
    pub least: Option<i64>,
}

impl ScaleTarget {
    /// `None` if the object names no workload to scale.
    pub(super) fn of(group: &str, kind: &str, fields: &Map<String, Value>) -> Option<Self> {
        let spec = fields.get("spec")?;
        let target = spec.get("scaleTargetRef")?;
        let name = target.get("name")?.as_str()?;
        let of_kind = target.get("kind").and_then(Value::as_str);
        let is_keda = (group, kind) == ("keda.sh", "ScaledObject");
        Some(Self {
            kind: of_kind.unwrap_or("Deployment").to_owned(),
            name: name.to_owned(),
            least: is_keda.then(|| least_of(spec)),
        })
    }
}

/// The smallest number of pods of a ScaledObject: that while nothing triggers it, if there is one.
fn least_of(spec: &Value) -> i64 {
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    let least = number("idleReplicaCount").or_else(|| number("minReplicaCount"));
    least.unwrap_or(0).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_object_has_a_least_number_and_others_have_none() {
        let of = |group: &str, kind: &str, spec: Value| {
            let fields = Map::from_iter([("spec".to_owned(), spec)]);
            ScaleTarget::of(group, kind, &fields)
        };
        let target = serde_json::json!({"name": "web"});
        let keda = |spec: Value| of("keda.sh", "ScaledObject", spec).and_then(|t| t.least);
        assert_eq!(keda(serde_json::json!({"scaleTargetRef": target})), Some(0));
        let three = serde_json::json!({"scaleTargetRef": target, "minReplicaCount": 3});
        assert_eq!(keda(three.clone()), Some(3));
        let idle = serde_json::json!({"scaleTargetRef": target, "minReplicaCount": 3, "idleReplicaCount": 0});
        assert_eq!(keda(idle), Some(0));
        let other = of("example.com", "Scaler", three).expect("it scales");
        assert_eq!((&*other.kind, other.least), ("Deployment", None));
        assert_eq!(of("example.com", "Scaler", serde_json::json!({})), None);
    }
}
