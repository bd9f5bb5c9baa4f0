//! Compiled CEL expressions go with the Placements that had them.

use serde_json::json;
use strew_manifest::read::KubeObject;
use strew_placement::machine::Limits;
use strew_runtime::Machine;
use strew_runtime::placement::{Placements, watches};
use strew_runtime::watch::{Kind, Object, Update};
use strew_wire::facts::Named;

use crate::toy::START;

#[test]
fn placements_that_come_and_go_leave_no_compiled_expressions() {
    let mut machine = Placements::new("here".to_owned(), Limits::production(), START);
    let mut watches = watches();
    let mut most = 0;
    for round in 0..10_000 {
        let expression = format!("managedCluster.metadata.labels.round == '{round}'");
        let placement = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"namespace": "shop", "name": format!("p-{round}"), "uid": format!("{round}")},
            "spec": {"predicates": [{"requiredClusterSelector": {
                "celSelector": {"celExpressions": [expression]},
            }}]},
        });
        let object = KubeObject::of_json(placement).expect("a Placement");
        let kind = Kind::of::<strew_manifest::ocm::Placement>();
        let named = Named {
            namespace: "shop".into(),
            name: format!("p-{round}").into(),
            uid: format!("{round}").into(),
        };
        let there = Update::Set(kind.clone(), named.clone(), Box::new(Object::Known(object)));
        machine.take_in(START, there, &mut watches);
        assert!(!machine.selectors().is_empty());
        most = most.max(machine.selectors().len());
        machine.take_in(START, Update::Gone(kind, named), &mut watches);
    }
    assert!(most <= 64, "{most} at a time, of one Placement");
}
