//! The kinds that a process reads. Its watches, its rights and docs/rights.md are made from one list.

use k8s_openapi::Resource;
use strew_manifest::kinds::{KindRow, Scope};

use crate::watch::Kind;

/// A kind that a process reads, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// The kind, in the version that is read first.
    pub row: KindRow,
    /// What it is read for, in docs/rights.md.
    pub purpose: &'static str,
    /// When its watch begins, and which objects it shows.
    pub begins: Begins,
}

/// When the watch of a kind begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// At the start.
    First,
    /// At the start, after all others, and without pods that have finished: an object that a pod names is then asked for
    /// already.
    Unfinished,
    /// When the machine starts it.
    Later,
}

impl Reads {
    /// A kind whose watch begins at the start.
    pub const fn of<K>(purpose: &'static str) -> Self
    where
        K: Resource,
        K::Scope: Scope,
    {
        Self {
            row: KindRow::of::<K>(),
            purpose,
            begins: Begins::First,
        }
    }

    /// Of pods: those that have not finished.
    pub const fn unfinished(self) -> Self {
        Self {
            begins: Begins::Unfinished,
            ..self
        }
    }

    /// With a watch that the machine starts.
    pub const fn later(self) -> Self {
        Self {
            begins: Begins::Later,
            ..self
        }
    }

    /// The kind of its watch.
    pub fn kind(&self) -> Kind {
        let row = &self.row;
        Kind::new(row.group, row.version, row.kind, row.plural)
    }
}
