//! How much a pod of a class counts in a census.

use rustc_hash::FxHashMap;
use strew_model::{Labels, Symbol};

use super::CensusKey;
use crate::class::{ClassTables, PodClass};
use crate::pod_spec::AffinityTerm;

/// The inputs of weighing.
pub(crate) struct Weighing<'a> {
    pub(crate) tables: &'a ClassTables,
    pub(crate) namespaces: &'a FxHashMap<Symbol, Labels>,
}

impl Weighing<'_> {
    /// How much a pod of `class` counts in the census of `key`; `None` if the census does not count such pods.
    pub(crate) fn weigh(&self, key: &CensusKey, class: &PodClass) -> Option<i32> {
        let tables = self.tables;
        let there = &class.key;
        let labels = tables.labels(there.labels);
        let counts_if = |yes: bool| yes.then_some(1);
        match key {
            CensusKey::Spread {
                namespace,
                selector,
            } => counts_if(
                !there.terminating && there.namespace == *namespace && selector.matches(labels),
            ),
            CensusKey::Wanted {
                namespace,
                affinity,
            } => {
                let mut terms = tables.affinity(*affinity).required.iter();
                counts_if(terms.all(|t| self.finds(t, *namespace, there.namespace, labels)))
            }
            CensusKey::Unwanted {
                namespace,
                affinity,
                term,
            } => {
                let term = &tables.affinity(*affinity).required_anti[*term as usize];
                counts_if(self.finds(term, *namespace, there.namespace, labels))
            }
            CensusKey::Unwelcome {
                key,
                namespace,
                labels,
            } => {
                let terms = tables.affinity_of(there.spec).required_anti.iter();
                let incoming = tables.labels(*labels);
                let refusing = terms.filter(|t| {
                    t.key == *key && self.is_met_by(t, there.namespace, *namespace, incoming)
                });
                let count = refusing.count() as i32;
                (count > 0).then_some(count)
            }
            CensusKey::Preference { .. } => self.weigh_preference(key, class),
        }
    }

    fn weigh_preference(&self, census: &CensusKey, class: &PodClass) -> Option<i32> {
        let CensusKey::Preference {
            key,
            namespace,
            labels,
            affinity,
            hard_weight,
            ignore_existing,
        } = census
        else {
            return None;
        };
        let there = &class.key;
        let incoming = self.tables.labels(*labels);
        let theirs = self.tables.affinity_of(there.spec);
        let mut sum = None;
        let mut add = |weight: i32| sum = Some(sum.unwrap_or(0) + weight);
        for (weight, term) in &self.tables.affinity(*affinity).preferred {
            if term.key == *key
                && self.finds(
                    term,
                    *namespace,
                    there.namespace,
                    self.tables.labels(there.labels),
                )
            {
                add(*weight);
            }
        }
        let meets = |term: &AffinityTerm| {
            term.key == *key && self.is_met_by(term, there.namespace, *namespace, incoming)
        };
        if *hard_weight > 0 {
            theirs
                .required
                .iter()
                .filter(|t| meets(t))
                .for_each(|_| add(*hard_weight));
        }
        if !ignore_existing {
            theirs
                .preferred
                .iter()
                .filter(|(_, t)| meets(t))
                .for_each(|(weight, _)| add(*weight));
        }
        sum
    }

    /// True if a term of the incoming pod (in namespace `own`) matches an existing pod.
    ///
    /// Upstream also matches the namespace selector against *empty* labels, so that a selector with `NotIn` or
    /// `DoesNotExist` only matches every namespace (spec/scheduler §3.10, quirk).
    fn finds(&self, term: &AffinityTerm, own: Symbol, there: Symbol, labels: &Labels) -> bool {
        let namespace_matches = self.names_namespace(term, own, there)
            || term.namespace_selector.matches(&Labels::default())
            || self
                .namespaces
                .get(&there)
                .is_some_and(|l| term.namespace_selector.matches(l));
        namespace_matches && term.selector.matches(labels)
    }

    /// True if a term of an existing pod (in namespace `own`) matches the incoming pod.
    fn is_met_by(
        &self,
        term: &AffinityTerm,
        own: Symbol,
        incoming: Symbol,
        labels: &Labels,
    ) -> bool {
        let none = Labels::default();
        let namespace = self.namespaces.get(&incoming).unwrap_or(&none);
        (self.names_namespace(term, own, incoming) || term.namespace_selector.matches(namespace))
            && term.selector.matches(labels)
    }

    fn names_namespace(&self, term: &AffinityTerm, own: Symbol, other: Symbol) -> bool {
        if term.is_own_namespace() {
            return own == other;
        }
        term.namespaces.contains(&other)
    }
}
