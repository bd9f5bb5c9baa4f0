//! Texts of templates that were not rendered, where the API server takes any text.

use crate::Found;
use crate::files::Files;

/// How templates begin: of Helm and Go, and of shells.
const MARKS: [&str; 2] = ["{{", "${"];

/// Images that are parts of a template: the API server stores them, and no node can pull them.
pub(crate) fn unrendered(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in &files.workloads {
        let spec = workload.spec;
        let own = spec.containers.iter().enumerate();
        let own = own.map(|(i, container)| ("containers", i, container));
        let init = spec.init_containers.iter().flatten().enumerate();
        let init = init.map(|(i, container)| ("initContainers", i, container));
        for (list, index, container) in own.chain(init) {
            let image = container.image.as_deref().unwrap_or_default();
            if !MARKS.iter().any(|mark| image.contains(mark)) {
                continue;
            }
            let path = workload.spec_path.child(list).index(index).child("image");
            let message = format!("the image {image:?} is a template that was not filled in");
            let help = "render the file first, for example with helm template or envsubst";
            found.push(Found::warning(workload.object, path, message).help(help));
        }
    }
    found
}
