//! Service accounts that the files name and do not have. Without its account the API server refuses a pod.

use std::collections::BTreeSet;

use strew_manifest::read::{Diagnostic, KubeObject, Located, Locator};

use super::{Assumed, Mention, pod_spec};

/// The account that every namespace has.
const DEFAULT: &str = "default";

/// Adds a warning about each account that a workload written by hand names. Pods of a dump have passed admission.
pub(super) fn assume(objects: &[Located], locator: &mut Locator<'_>, assumed: &mut Assumed) {
    let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
    for located in objects {
        if let KubeObject::Other(other) = &located.object
            && other.kind == "ServiceAccount"
        {
            known.insert((other.namespace.as_deref().unwrap_or(DEFAULT), &other.name));
        }
    }
    for located in objects.iter().filter(|located| !located.from_dump) {
        let Some((spec, path)) = pod_spec(&located.object) else {
            continue;
        };
        let named = spec.service_account_name.as_deref();
        let named = named.filter(|name| !name.is_empty() && *name != DEFAULT);
        let namespace = located.object.namespace().unwrap_or(DEFAULT);
        let Some(name) = named.filter(|name| known.insert((namespace, name))) else {
            continue;
        };
        let message = format!(
            "service account {namespace}/{name} is not in the files: it is assumed to be there"
        );
        let diagnostic = Diagnostic::warning("assumed-service-account", message)
            .with_help("add the ServiceAccount: without it, the API server refuses the pods");
        let field = path.child("serviceAccountName");
        let mention = Mention { located, field };
        assumed.diagnostics.push(mention.warn(diagnostic, locator));
    }
}
