//! Services and controllers, from which the selector of default constraints is deduced.
//!
//! Source: `pkg/scheduler/framework/plugins/helper/spread.go`, v1.36.3; KEP-1258; spec/scheduler §1.5.

use rustc_hash::FxHashMap;
use strew_model::{Holds, Labels, Marks, Requirement, Selector, Symbol};

/// The kinds of controllers whose selector is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerKind {
    /// `v1 ReplicationController`.
    ReplicationController,
    /// `apps/v1 ReplicaSet`.
    ReplicaSet,
    /// `apps/v1 StatefulSet`.
    StatefulSet,
    /// Any other kind, whose selector is not used.
    Other,
}

/// The controller of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerRef {
    /// Its kind, group and version.
    pub kind: OwnerKind,
    /// Its name.
    pub name: Symbol,
}

/// All Services and controllers, by namespace.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    services: FxHashMap<Symbol, Vec<(Symbol, Labels)>>,
    controllers: FxHashMap<(Symbol, OwnerRef), Selector>,
    version: u64,
}

impl Owners {
    /// Increases with every change of a selector, for caches of deduced selectors.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Sets the selector of a Service; `None` if it was deleted, or selects nothing.
    pub fn set_service(&mut self, namespace: Symbol, name: Symbol, selector: Option<Labels>) {
        let services = self.services.get(&namespace);
        let known = services.and_then(|of| of.iter().find(|&&(n, _)| n == name));
        if known.map(|(_, s)| s) == selector.as_ref() {
            return;
        }
        self.version += 1;
        let services = self.services.entry(namespace).or_default();
        services.retain(|&(n, _)| n != name);
        services.extend(selector.map(|s| (name, s)));
        if services.is_empty() {
            self.services.remove(&namespace);
        }
    }

    /// Sets the selector of a controller; `None` if it was deleted.
    pub fn set_controller(
        &mut self,
        namespace: Symbol,
        owner: OwnerRef,
        selector: Option<Selector>,
    ) {
        if self.controllers.get(&(namespace, owner)) == selector.as_ref() {
            return;
        }
        self.version += 1;
        match selector {
            Some(selector) => self.controllers.insert((namespace, owner), selector),
            None => self.controllers.remove(&(namespace, owner)),
        };
    }

    /// All Services with their namespaces and selectors, in no particular order.
    pub fn services(&self) -> impl Iterator<Item = ((Symbol, Symbol), &Labels)> {
        let each = self.services.iter();
        each.flat_map(|(namespace, of)| of.iter().map(|(name, s)| ((*namespace, *name), s)))
    }

    /// The Services of a namespace whose selector matches these labels, by name.
    pub fn services_of(
        &self,
        namespace: Symbol,
        labels: &Labels,
    ) -> impl Iterator<Item = (Symbol, &Labels)> {
        let services = self.services.get(&namespace).into_iter().flatten();
        let labels = labels.clone();
        services
            .filter(move |(_, s)| labels.contains_all(s))
            .map(|(n, s)| (*n, s))
    }

    /// The selector of a controller.
    pub fn controller(&self, namespace: Symbol, owner: OwnerRef) -> Option<&Selector> {
        self.controllers.get(&(namespace, owner))
    }

    /// The selector of default constraints for a pod. If it is empty, the pod gets no default constraints.
    pub fn deduce(&self, namespace: Symbol, labels: &Labels, owner: Option<OwnerRef>) -> Selector {
        let mut requirements: Vec<Requirement> = Vec::new();
        for (_, selector) in self.services_of(namespace, labels) {
            let pairs = selector.iter();
            requirements.extend(pairs.map(|(key, value)| Requirement::is_in(key, vec![value])));
        }
        if let Some(Selector::AllOf(own)) = owner.and_then(|o| self.controller(namespace, o)) {
            requirements.extend(own.iter().cloned());
        }
        Selector::all_of(requirements)
    }
}

impl Holds for Owners {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        for (namespace, services) in &self.services {
            namespace.mark(marks);
            services.as_slice().mark(marks);
        }
        for ((namespace, owner), selector) in &self.controllers {
            namespace.mark(marks);
            owner.name.mark(marks);
            selector.mark(marks);
        }
    }
}
