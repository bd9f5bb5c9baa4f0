//! Any bytes as a file with WorkloadSpreads and pods: read, linted, converted, turned into facts, synced, injected.
//! Nothing panics, nothing is lost between the versions, and a ledger survives its texts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::kruise::{conversion, read_back};
use strew_manifest::patch::json_patch;
use strew_manifest::read::{KubeObject, Sources, read};
use strew_model::{Instant, Interner};
use strew_wire::workloadspread::facts::Translator;
use strew_wire::workloadspread::pending_reviews::{NoPods, Patcher, PendingReviews};
use strew_wire::workloadspread::review::{Operation, Review};
use strew_wire::workloadspread::{lint, marker, status};
use strew_workloadspread::admission::{self, Admission, Effect, Outcome};
use strew_workloadspread::controller::{self, SpreadController};
use strew_workloadspread::{Marked, WsKey};

/// Effects of one machine, at most: a status that never settles would go on.
const EFFECTS_MAX: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let mut sources = Sources::new();
    sources.add("in", bytes);
    let reading = read(&sources);
    let objects: Vec<&KubeObject> = reading.objects.iter().map(|o| &o.object).collect();
    for finding in lint::lint(&objects) {
        assert!(matches!(
            objects[finding.object],
            KubeObject::WorkloadSpread(_)
        ));
    }
    for object in &objects {
        if let KubeObject::WorkloadSpread(spread) = object {
            check_texts(spread);
        }
    }
    control(&objects);
    admit(&objects);
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_marker(text);
        if let Ok(mut value) = serde_json::from_str::<Value>(text) {
            let _ = read_back(value.clone());
            let _ = Review::read(&mut value);
        }
    }
});

fn check_texts(spread: &WorkloadSpread) {
    let mut plain = spread.clone();
    // The one field that v1alpha1 cannot say.
    if let Some(status) = &mut plain.status {
        let versioned = status.versioned_subset_statuses.iter_mut();
        let versioned = versioned.flat_map(|v| v.values_mut()).flatten();
        let rows = status.subset_statuses.iter_mut().flatten().chain(versioned);
        for condition in rows.flat_map(|row| row.conditions.iter_mut().flatten()) {
            condition.observed_generation = None;
            if condition.reason.is_empty() {
                condition.reason = "Unknown".to_owned();
            }
        }
    }
    let json = serde_json::to_value(&plain).expect("objects are JSON");
    let old = conversion::convert(json, "apps.kruise.io/v1alpha1").expect("a known version");
    let old = serde_json::from_value(old).expect("what was converted can be read");
    assert_eq!(conversion::up(old), plain);
    if let Some(wire) = &spread.status {
        let once = status::wire(&status::fact(wire));
        assert_eq!(status::wire(&status::fact(&once)), once);
    }
}

fn check_marker(text: &str) {
    if let Marked::As(read) = marker::read(Some(text)) {
        let again = marker::read(Some(&marker::write(&read)));
        assert_eq!(again, Marked::As(read));
    }
}

fn control(objects: &[&KubeObject]) {
    let mut translator = Translator::default();
    let mut machine = SpreadController::new(Interner::new(), controller::Limits::production());
    let mut now = Instant::from_secs(1_800_000_000);
    for object in objects {
        for input in translator.controller(object, machine.names_mut()) {
            machine.handle(now, input);
        }
    }
    for _ in 0..EFFECTS_MAX {
        let mut patcher = Patcher {
            contents: &translator.contents,
            reviews: None,
            pods: &NoPods,
        };
        let Some(effect) = machine.poll_effect(&mut patcher) else {
            let Some(wake) = machine.next_wake() else {
                break;
            };
            now = wake;
            machine.handle(now, controller::Input::Tick);
            continue;
        };
        use controller::Effect;
        if let Effect::Adopt { id, .. }
        | Effect::SetCost { id, .. }
        | Effect::WriteStatus { id, .. }
        | Effect::DeletePod { id, .. } = effect
        {
            machine.handle(now, controller::Input::Outcome(id, controller::Outcome::Ok));
        }
    }
    let keys: Vec<WsKey> = machine.spreads().iter().map(|ws| ws.key.clone()).collect();
    let mut patcher = Patcher {
        contents: &translator.contents,
        reviews: None,
        pods: &NoPods,
    };
    for key in &keys {
        let _ = machine.check_ledger(now, key, &mut patcher);
    }
}

fn admit(objects: &[&KubeObject]) {
    let mut translator = Translator::default();
    let limits = admission::Limits::production();
    let mut machine = Admission::new(Interner::new(), Vec::new(), limits, 1);
    let mut now = Instant::from_secs(1_800_000_000);
    let mut reviews = PendingReviews::default();
    for object in objects {
        for input in translator.admission(object, machine.names_mut()) {
            machine.handle(now, input);
        }
    }
    for (i, object) in objects.iter().enumerate() {
        let KubeObject::Pod(_) = object else { continue };
        let pod = object.to_json();
        let operation = if i % 3 == 0 {
            Operation::Delete
        } else {
            Operation::Create
        };
        let review = Review {
            uid: i.to_string(),
            operation,
            namespace: object.namespace().unwrap_or_default().to_owned(),
            name: object.name().to_owned(),
            pod,
            dry_run: false,
            subresource: false,
        };
        if let Ok(request) = reviews.ask(review, "fresh".into(), machine.names_mut()) {
            machine.handle(now, admission::Input::AdmitAsked(Box::new(request)));
        }
    }
    for _ in 0..EFFECTS_MAX {
        let mut patcher = Patcher {
            contents: &translator.contents,
            reviews: Some(&reviews),
            pods: &NoPods,
        };
        match machine.poll_effect(&mut patcher) {
            None => match machine.next_wake() {
                None => break,
                Some(wake) => {
                    now = wake;
                    machine.handle(now, admission::Input::Tick);
                }
            },
            Some(Effect::WriteStatus { id, .. }) => {
                machine.handle(now, admission::Input::Outcome(id, Outcome::Written(7)));
            }
            Some(Effect::ReadSpread { id, .. }) => {
                machine.handle(now, admission::Input::Outcome(id, Outcome::Gone));
            }
            Some(Effect::Answer(answer)) => {
                let names = machine.names();
                let Some(decision) = reviews.answer(&answer, &translator.contents, names) else {
                    continue;
                };
                let asked = decision.uid.parse::<usize>().expect("it is a place");
                if let (Some(pod), Some(patch)) = (&decision.pod, &decision.patch) {
                    let before = objects[asked].to_json();
                    let made = json_patch(&before, patch).expect("the patch fits its pod");
                    assert_eq!(made, *pod);
                }
            }
        }
    }
}
