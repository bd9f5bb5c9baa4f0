//! Which volume a claim without one gets.
//!
//! Source: upstream `component-helpers/storage/volume/pv_helpers.go` (`FindMatchingVolume`),
//! `pkg/controller/volume/persistentvolume/index.go`, `plugins/volumebinding/binder.go`, v1.36.3; spec/scheduler §3.12.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use strew_model::{Interner, Labels, NodeSelectorTerm, Symbol, well_known};

use super::{ClaimFact, ClaimKey, StorageClassFact, VolumeFact, Volumes};

/// The access modes of a claim or volume, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct AccessModes(u8);

impl AccessModes {
    /// The names of the modes, in the order of their bits.
    pub const NAMES: [&str; 4] = [
        "ReadWriteOnce",
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOncePod",
    ];

    /// The set of these modes; unknown ones are ignored.
    pub fn of<'a>(modes: impl IntoIterator<Item = &'a str>) -> Self {
        let bit = |mode: &str| Self::NAMES.iter().position(|name| *name == mode);
        let bits = modes.into_iter().filter_map(bit);
        Self(bits.fold(0, |set, bit| set | 1 << bit))
    }

    /// True if every mode of `wanted` is among these.
    pub fn include(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// The number of modes.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// True without a mode.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl StorageClassFact {
    /// True if its provisioner makes volumes that a node with these labels reaches.
    fn provisions_at(&self, labels: &Labels, names: &Interner) -> bool {
        let matches = |term: &NodeSelectorTerm| term.matches(well_known::EMPTY, labels, names);
        self.provisions && (self.topologies.is_empty() || self.topologies.iter().any(matches))
    }
}

/// A volume that a claim may get.
#[derive(Debug, Clone)]
struct Candidate {
    name: Symbol,
    fact: Arc<VolumeFact>,
}

/// A claim that gets its volume when its pod gets a node.
#[derive(Debug, Clone)]
struct Waiting {
    key: ClaimKey,
    size: i64,
    /// The node that a provisioner was already told to make its volume for.
    selected: Option<Symbol>,
    /// The volumes that are kept for it: one of them, or none.
    kept: Vec<Candidate>,
    /// The others, the smallest first.
    free: Vec<Candidate>,
    class: Option<StorageClassFact>,
}

/// The claims of a pod that wait for its node, with the volumes that each may get.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    /// The smallest first: upstream serves them in this order.
    claims: Vec<Waiting>,
}

impl Matching {
    /// True if any node will do: no volume is there to choose, and provisioners make them anywhere.
    pub fn accepts_every_node(&self) -> bool {
        let is_free = |claim: &Waiting| {
            let anywhere =
                |class: &StorageClassFact| class.provisions && class.topologies.is_empty();
            claim.kept.is_empty()
                && claim.selected.is_none()
                && claim.class.as_ref().is_some_and(anywhere)
        };
        self.claims.iter().all(is_free)
    }

    /// The volumes that the claims get on a node with this name and these labels; `None` for a claim whose volume a
    /// provisioner makes.
    ///
    /// # Errors
    /// The first claim that gets no volume there.
    pub fn on(
        &self,
        node: Symbol,
        labels: &Labels,
        names: &Interner,
    ) -> Result<Vec<(ClaimKey, Option<Symbol>)>, ClaimKey> {
        let mut chosen: Vec<(ClaimKey, Option<Symbol>)> = Vec::with_capacity(self.claims.len());
        for claim in &self.claims {
            let is_left = |candidate: &&Candidate| {
                let mut taken = chosen.iter().filter_map(|(_, volume)| *volume);
                taken.all(|name| name != candidate.name)
            };
            let admits = |candidate: &&Candidate| candidate.fact.admits(labels, names);
            let of_claim = match claim.selected {
                // It was matched before, and in vain.
                Some(_) => None,
                None => match claim.kept.iter().find(is_left) {
                    // A volume that is kept for the claim excludes all others.
                    Some(kept) => Some(kept).filter(admits),
                    None => claim.free.iter().filter(is_left).find(admits),
                },
            };
            let provisions = || {
                let is_there = claim.selected.is_none_or(|selected| selected == node);
                let class = claim.class.as_ref();
                is_there && class.is_some_and(|class| class.provisions_at(labels, names))
            };
            match of_claim {
                Some(volume) => chosen.push((claim.key, Some(volume.name))),
                None if provisions() => chosen.push((claim.key, None)),
                None => return Err(claim.key),
            }
        }
        Ok(chosen)
    }
}

impl Volumes {
    /// True if the claim has no volume, and gets one when its first pod gets a node.
    pub fn waits(&self, claim: &ClaimFact) -> bool {
        let class = claim.class.and_then(|class| self.class(class));
        claim.volume.is_none() && class.is_some_and(|class| class.waits)
    }

    /// The volumes that these claims of one pod may get; those that do not wait for a node are left out. Cost: the
    /// volumes without a claim of each claim's class.
    pub fn matching(&self, claims: impl Iterator<Item = ClaimKey>, names: &Interner) -> Matching {
        let waiting = |key: ClaimKey| {
            let claim = self.claim(key).filter(|claim| self.waits(claim))?;
            let of_class = |candidate: &Candidate| candidate.fact.class == claim.class;
            let mut kept = self.kept(key, claim);
            kept.retain(of_class);
            let mut free = self.free(key, claim);
            free.retain(|candidate| candidate.fact.modes.include(claim.modes));
            free.sort_by_key(|c| (c.fact.capacity, names.text(c.name)));
            Some(Waiting {
                key,
                size: claim.size,
                selected: claim.selected,
                kept,
                free,
                class: claim.class.and_then(|class| self.class(class)).cloned(),
            })
        };
        let mut found: Vec<Waiting> = Vec::new();
        for claim in claims.filter_map(waiting) {
            if found.iter().all(|known| known.key != claim.key) {
                found.push(claim);
            }
        }
        found.sort_by_key(|claim| claim.size);
        Matching { claims: found }
    }

    /// The volume that the volume controller gives to a claim, before any pod has a node: the one with the fewest access
    /// modes, then the smallest. A claim that waits for a node gets only a volume that is kept for it.
    pub fn match_at_once(&self, key: ClaimKey, names: &Interner) -> Option<Symbol> {
        let claim = self.claim(key).filter(|claim| claim.volume.is_none())?;
        let kept = self.kept(key, claim).into_iter().map(|c| (true, c));
        let free = match self.waits(claim) {
            true => Vec::new(),
            false => self.free(key, claim),
        };
        let all = kept.chain(free.into_iter().map(|c| (false, c)));
        let of_modes = all.filter(|(_, c)| c.fact.modes.include(claim.modes));
        let best = of_modes.min_by_key(|(is_kept, c)| {
            let fact = &c.fact;
            (
                fact.modes.len(),
                Reverse(*is_kept),
                fact.capacity,
                names.text(c.name),
            )
        });
        best.map(|(_, candidate)| candidate.name)
    }

    /// True if a claim that names this volume may have it.
    pub fn satisfies(&self, key: ClaimKey, claim: &ClaimFact, volume: &VolumeFact) -> bool {
        match &volume.claim {
            Some((owner, uid)) => *owner == key && is_of(uid, claim),
            None => {
                volume.class == claim.class
                    && volume.modes.include(claim.modes)
                    && fits(claim, volume)
            }
        }
    }

    /// How many volumes of a claim's class no claim has, and how many of them the claim may get on some node.
    pub fn count_free(&self, key: ClaimKey) -> (usize, usize) {
        let Some(claim) = self.claim(key) else {
            return (0, 0);
        };
        let of_class = self.free.get(&claim.class).map_or(0, BTreeSet::len);
        let free = self.free(key, claim);
        let fitting = free.iter().filter(|c| c.fact.modes.include(claim.modes));
        (of_class, fitting.count())
    }

    /// The volumes that name this claim, and are large enough.
    fn kept(&self, key: ClaimKey, claim: &ClaimFact) -> Vec<Candidate> {
        let named = self.kept.get(&key).into_iter().flatten();
        let candidates = named.filter_map(|name| self.candidate(*name));
        let is_its = |c: &Candidate| {
            c.fact
                .claim
                .as_ref()
                .is_some_and(|(_, uid)| is_of(uid, claim))
        };
        candidates
            .filter(|c| is_its(c) && fits(claim, &c.fact))
            .collect()
    }

    /// The volumes of the claim's class that no claim has, that are large enough and that its selector selects.
    fn free(&self, key: ClaimKey, claim: &ClaimFact) -> Vec<Candidate> {
        let of_class = self.free.get(&claim.class).into_iter().flatten();
        let candidates = of_class.filter_map(|name| self.candidate(*name));
        let is_left = |c: &Candidate| self.holder(c.name).is_none_or(|holder| holder == key);
        let selects = |c: &Candidate| {
            let selector = claim.selector.as_ref();
            selector.is_none_or(|selector| selector.matches(&c.fact.labels))
        };
        candidates
            .filter(|c| fits(claim, &c.fact) && selects(c) && is_left(c))
            .collect()
    }

    fn candidate(&self, name: Symbol) -> Option<Candidate> {
        let fact = Arc::clone(self.volume(name)?);
        Some(Candidate { name, fact })
    }
}

/// True if a volume that names the claim means this object: its uid, or any.
fn is_of(uid: &str, claim: &ClaimFact) -> bool {
    uid.is_empty() || *uid == *claim.uid
}

fn fits(claim: &ClaimFact, volume: &VolumeFact) -> bool {
    volume.capacity >= claim.size && volume.block == claim.block && !volume.terminating
}
