//! The actions of users and clusters in a generated hub.

use serde_json::{Value, json};
use strew_apiserver::object::{Key, Kind, Name, moment};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_manifest::read::KubeObject;
use strew_model::time::Span;

use super::manifests;
use super::story::{HubAction, HubStory};
use crate::simulation::Simulation;

type Done = Result<(), ApiError>;

/// Does the action; an error is the API server's.
pub(super) fn act(sim: &mut Simulation, story: &HubStory, action: &HubAction) -> Done {
    match action {
        HubAction::Join(name) => match story.clusters.iter().find(|c| c.name == *name) {
            Some(plan) => create(sim, manifests::cluster(plan)),
            None => Ok(()),
        },
        HubAction::Leave(name) => sim.delete(&cluster(name), &DeleteOptions::default()),
        HubAction::Relabel(name, region, zone) => edit(sim, &cluster(name), |value| {
            value["metadata"]["labels"]["region"] = manifests::region(*region).into();
            value["metadata"]["labels"]["zone"] = manifests::zone(*zone).into();
        }),
        HubAction::Canary(name, is_one) => edit(sim, &cluster(name), |value| {
            let tier = if *is_one { "canary" } else { "rest" };
            value["metadata"]["labels"]["tier"] = tier.into();
        }),
        HubAction::Taint(name, effect) => edit(sim, &cluster(name), |value| {
            value["spec"]["taints"] = json!([{"key": "storm", "effect": effect}]);
        }),
        HubAction::Untaint(name) => edit(sim, &cluster(name), |value| {
            value["spec"]["taints"] = json!([]);
        }),
        HubAction::Score(name, value, seconds) => score(sim, name, *value, *seconds),
        HubAction::Create(name) => match story.placements.iter().find(|p| p.name == *name) {
            Some(plan) => create(sim, manifests::placement(plan)),
            None => Ok(()),
        },
        HubAction::Delete(name) => sim.delete(&placement(name), &DeleteOptions::default()),
        HubAction::Number(name, number) => edit(sim, &placement(name), |value| {
            value["spec"]["numberOfClusters"] = json!(number);
        }),
        HubAction::GroupSize(name, size) => edit(sim, &placement(name), |value| {
            let groups = &mut value["spec"]["decisionStrategy"]["groupStrategy"];
            groups["clustersPerDecisionGroup"] = json!(size);
        }),
        HubAction::Hard(name, is_hard) => edit(sim, &placement(name), |value| {
            let terms = &mut value["spec"]["spreadPolicy"]["spreadConstraints"];
            for term in terms.as_array_mut().into_iter().flatten() {
                term["whenUnsatisfiable"] = manifests::when(*is_hard).into();
            }
        }),
        HubAction::Fault(fault, lasts) => {
            sim.fault(*fault, *lasts);
            Ok(())
        }
        HubAction::Crash(crash) => {
            sim.crash(*crash);
            Ok(())
        }
    }
}

fn score(sim: &mut Simulation, name: &str, value: i8, seconds: u8) -> Done {
    let key = key("AddOnPlacementScore", name, "table");
    if sim.server().tables().find(&key).is_none() {
        return create(sim, manifests::scores(name, value));
    }
    let until = sim.now() + Span::from_secs(u64::from(seconds));
    edit(sim, &key, |object| {
        let scores = manifests::scores(name, value);
        object["status"] = scores["status"].clone();
        if seconds > 0 {
            object["status"]["validUntil"] = moment::to_wire(until).0.to_string().into();
        }
    })
}

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    Key {
        kind: Kind::of(kind),
        name: Name::new(namespace, name),
    }
}

fn cluster(name: &str) -> Key {
    key("ManagedCluster", "", name)
}

fn placement(name: &str) -> Key {
    key("Placement", "default", name)
}

fn create(sim: &mut Simulation, value: Value) -> Done {
    let object = KubeObject::of_json(value);
    let object = object.map_err(|error| ApiError::Invalid(error.to_string().into()))?;
    sim.create(object).map(drop)
}

fn edit(sim: &mut Simulation, key: &Key, change: impl Fn(&mut Value)) -> Done {
    let edited = sim.edit(key, &mut |value| {
        change(value);
        Ok(())
    });
    edited.map(drop)
}
