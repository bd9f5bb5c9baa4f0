//! Domains of nodes: a column per topology key.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use strew_model::{Holds, Labels, Marks, Symbol, index_type, well_known};
use strew_spread::DomainIdx;

use crate::index::NodeIdx;

index_type! {
    /// The id of a topology key that a decision used.
    pub struct KeyId;
}

/// The column of one topology key: each node's domain.
#[derive(Debug, Clone)]
pub struct TopologyColumn {
    key: Symbol,
    /// Values in order of first appearance. The empty value is first; it is also the domain of nodes without the label,
    /// for constraints that count such nodes (spec/scheduler §1.9).
    values: IndexSet<Symbol, FxBuildHasher>,
    /// Per node; [`MISSING`] if the node lacks the label.
    domain_of: Vec<u32>,
    /// Per domain: the number of its nodes.
    nodes_in: Vec<u32>,
    /// The number of domains with a node, and of those with more than one.
    inhabited: usize,
    shared: usize,
    /// The number of nodes with the label.
    labelled: usize,
}

/// In [`TopologyColumn::domains`]: the node lacks the label.
pub const MISSING: u32 = u32::MAX;

/// The domain of the empty value.
pub const EMPTY_DOMAIN: DomainIdx = DomainIdx(0);

impl TopologyColumn {
    fn new(key: Symbol) -> Self {
        let values = [well_known::EMPTY].into_iter().collect();
        Self {
            key,
            values,
            domain_of: Vec::new(),
            nodes_in: vec![0],
            inhabited: 0,
            shared: 0,
            labelled: 0,
        }
    }

    /// The node label.
    pub fn key(&self) -> Symbol {
        self.key
    }

    /// The domain of a node.
    #[inline]
    pub fn domain(&self, node: NodeIdx) -> Option<DomainIdx> {
        match self.domain_of[node.index()] {
            MISSING => None,
            domain => Some(DomainIdx(domain)),
        }
    }

    /// Per node the index of its domain, or [`MISSING`].
    pub fn domains(&self) -> &[u32] {
        &self.domain_of
    }

    /// The label value of a domain.
    pub fn value(&self, domain: DomainIdx) -> Symbol {
        self.values[domain.index()]
    }

    /// The number of known domains, the empty one included.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Always false: the empty domain exists.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of domains with a node.
    pub fn inhabited(&self) -> usize {
        self.inhabited
    }

    /// The number of nodes with the label.
    pub fn labelled(&self) -> usize {
        self.labelled
    }

    /// True if no two nodes share a domain.
    pub fn is_one_to_one(&self) -> bool {
        self.shared == 0
    }

    fn set(&mut self, node: NodeIdx, labels: Option<&Labels>) {
        let domain = match labels.and_then(|l| l.get(self.key)) {
            Some(value) => self.values.insert_full(value).0 as u32,
            None => MISSING,
        };
        if self.domain_of.len() <= node.index() {
            self.domain_of.resize(node.index() + 1, MISSING);
        }
        let before = std::mem::replace(&mut self.domain_of[node.index()], domain);
        if before != MISSING {
            self.labelled -= 1;
            let nodes = &mut self.nodes_in[before as usize];
            *nodes -= 1;
            self.inhabited -= usize::from(*nodes == 0);
            self.shared -= usize::from(*nodes == 1);
        }
        if domain != MISSING {
            self.nodes_in.resize(self.values.len(), 0);
            self.labelled += 1;
            let nodes = &mut self.nodes_in[domain as usize];
            *nodes += 1;
            self.inhabited += usize::from(*nodes == 1);
            self.shared += usize::from(*nodes == 2);
        }
    }
}

/// A column with at least this many domains without nodes is rebuilt when they outnumber the others.
const STALE_DOMAINS_MIN: usize = 64;

impl TopologyColumn {
    /// True if most of its domains have no node any more.
    fn is_stale(&self) -> bool {
        let gone = self.values.len() - 1 - self.inhabited.min(self.values.len() - 1);
        gone > self.inhabited.max(STALE_DOMAINS_MIN)
    }
}

/// The columns of all topology keys in use.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    /// `None` if the row is free.
    columns: Vec<Option<TopologyColumn>>,
}

impl Topology {
    /// The column of a key; `None` if no decision used it.
    pub fn find(&self, key: Symbol) -> Option<KeyId> {
        self.columns
            .iter()
            .position(|c| c.as_ref().is_some_and(|c| c.key == key))
            .map(KeyId::from)
    }

    /// The column of an id of this table.
    ///
    /// # Panics
    /// It was freed.
    #[inline]
    pub fn column(&self, id: KeyId) -> &TopologyColumn {
        self.columns[id.index()]
            .as_ref()
            .expect("a column is used only while a plan holds it")
    }

    /// The column of `key`, filled from the labels of the nodes (`None`: no such node).
    pub(crate) fn ensure<'a>(
        &mut self,
        key: Symbol,
        nodes: impl ExactSizeIterator<Item = Option<&'a Labels>>,
    ) -> KeyId {
        if let Some(id) = self.find(key) {
            return id;
        }
        let mut column = TopologyColumn::new(key);
        for (i, labels) in nodes.enumerate() {
            column.set(NodeIdx::from(i), labels);
        }
        match self.columns.iter().position(Option::is_none) {
            Some(free) => {
                self.columns[free] = Some(column);
                KeyId::from(free)
            }
            None => {
                self.columns.push(Some(column));
                KeyId::from(self.columns.len() - 1)
            }
        }
    }

    /// Sets a node's labels; `None` if it was removed.
    pub(crate) fn set_node(&mut self, node: NodeIdx, labels: Option<&Labels>) {
        for column in self.columns.iter_mut().flatten() {
            column.set(node, labels);
        }
    }

    /// The number of columns.
    pub(crate) fn len(&self) -> usize {
        self.columns.iter().flatten().count()
    }

    /// True if a column has mostly domains without nodes.
    pub(crate) fn is_stale(&self) -> bool {
        let mut columns = self.columns.iter().flatten();
        columns.any(TopologyColumn::is_stale)
    }

    /// Frees the columns for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(KeyId) -> bool) {
        for (i, column) in self.columns.iter_mut().enumerate() {
            if !keep(KeyId::from(i)) {
                *column = None;
            }
        }
    }
}

impl Holds for Topology {
    fn mark(&self, marks: &mut Marks) {
        for column in self.columns.iter().flatten() {
            column.key.mark(marks);
            column.values.iter().for_each(|value| value.mark(marks));
        }
    }
}
