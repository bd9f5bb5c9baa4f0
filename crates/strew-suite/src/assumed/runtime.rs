//! Runtime classes that a dump does not have. The API server refuses a pod whose class is missing; so the class of a pod
//! that an API server has made was there.

use std::collections::BTreeSet;

use k8s_openapi::api::node::v1::RuntimeClass;
use serde_json::json;
use strew_manifest::json::Json;
use strew_manifest::read::{Diagnostic, KubeObject, Located, Locator};

use super::{Assumed, Mention, pod_spec};

/// Adds the classes of pods of a dump, with their overhead, and warnings about them.
pub(super) fn assume(objects: &[Located], locator: &mut Locator<'_>, assumed: &mut Assumed) {
    let of_files = objects.iter().filter_map(|located| match &located.object {
        KubeObject::RuntimeClass(class) => class.metadata.name.as_deref(),
        _ => None,
    });
    let mut known: BTreeSet<&str> = of_files.collect();
    for located in objects.iter().filter(|located| located.from_dump) {
        let (KubeObject::Pod(_), Some((spec, path))) = (&located.object, pod_spec(&located.object))
        else {
            continue;
        };
        let named = spec.runtime_class_name.as_deref();
        let Some(name) = named.filter(|name| known.insert(name)) else {
            continue;
        };
        let class = json!({
            "metadata": {"name": name},
            "handler": name,
            "overhead": spec.overhead.as_ref().map(|fixed| json!({"podFixed": fixed})),
        });
        let class = RuntimeClass::of_json(class).unwrap_or_default();
        assumed.objects.push(class.into());
        let message = format!(
            "runtime class {name:?} is not in the files: it is assumed to have the overhead of its pods, and neither a \
             node selector nor tolerations"
        );
        let help = "add the RuntimeClasses of the cluster to the files";
        let diagnostic = Diagnostic::warning("assumed-runtime-class", message).with_help(help);
        let field = path.child("runtimeClassName");
        let mention = Mention { located, field };
        assumed.diagnostics.push(mention.warn(diagnostic, locator));
    }
}
