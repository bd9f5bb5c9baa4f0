//! A set's pods in the order in which a scale-down deletes them, kept with every change.
//!
//! [`first_to_go`](super::first_to_go) looks at all pods for each choice; a rollout chooses once for each pod that becomes
//! ready. Here a choice looks at the pods that go, and at those whose rules 1 to 6 are the same as of the last of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use super::{Candidate, Foremost, Life, Properties, settle_ties};

/// The active pods of a set, by name. Times that are passed to it never go back.
#[derive(Debug, Clone)]
pub struct Ordered<P> {
    /// Pods by their keys and names. None of the groups is empty.
    groups: BTreeMap<Foremost, BTreeMap<Arc<str>, Member<P>>>,
    /// The key of each pod.
    keys: FxHashMap<Arc<str>, Foremost>,
    /// The nodes on which its pods are.
    nodes: FxHashMap<Arc<str>, OnNode>,
    /// When a pod's age is in the next bucket.
    aging: BTreeSet<(Instant, Arc<str>)>,
}

/// A pod of the set.
#[derive(Debug, Clone)]
pub struct Member<P> {
    /// The pod.
    pub pod: P,
    /// Its uid.
    pub uid: Arc<str>,
    /// Its node.
    pub node: Option<Arc<str>>,
    /// What decides about it.
    pub life: Life,
}

#[derive(Debug, Clone)]
struct OnNode {
    /// The number of related pods there.
    rank: usize,
    /// The set's own pods.
    pods: BTreeSet<Arc<str>>,
}

impl<P> Default for Ordered<P> {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            keys: FxHashMap::default(),
            nodes: FxHashMap::default(),
            aging: BTreeSet::new(),
        }
    }
}

impl<P: Clone> Ordered<P> {
    /// The number of pods.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// True if one of its pods is on the node.
    pub fn is_on(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    /// Adds or replaces a pod. `rank` counts the related pods on its node; it is asked for the first pod on a node, and
    /// [`rerank`](Self::rerank) tells of changes.
    pub fn put(
        &mut self,
        name: &Arc<str>,
        member: Member<P>,
        now: Instant,
        rank: impl FnOnce(&Arc<str>) -> usize,
    ) {
        self.remove(name);
        if let Some(node) = &member.node {
            let on_node = self
                .nodes
                .entry(Arc::clone(node))
                .or_insert_with(|| OnNode {
                    rank: rank(node),
                    pods: BTreeSet::new(),
                });
            on_node.pods.insert(Arc::clone(name));
        }
        self.place(Arc::clone(name), member, now);
    }

    /// Removes a pod, if it is there.
    pub fn remove(&mut self, name: &Arc<str>) {
        let Some(member) = self.take(name) else {
            return;
        };
        if let Some(node) = &member.node
            && let Some(on_node) = self.nodes.get_mut(node)
        {
            on_node.pods.remove(name);
            if on_node.pods.is_empty() {
                self.nodes.remove(node);
            }
        }
    }

    /// Takes in the present number of related pods on a node.
    pub fn rerank(&mut self, node: &str, rank: usize, now: Instant) {
        let Some(on_node) = self.nodes.get_mut(node).filter(|known| known.rank != rank) else {
            return;
        };
        on_node.rank = rank;
        for name in on_node.pods.clone() {
            self.place_anew(name, now);
        }
    }

    /// The `n` pods to delete. Where the rules leave a choice, `dice` decides: the same pods in the same order as of
    /// [`first_to_go`](super::first_to_go) with the candidates by name.
    pub fn first_to_go(&mut self, n: usize, now: Instant, dice: &mut Prng) -> Vec<P> {
        while let Some((due, name)) = self.aging.first()
            && *due <= now
        {
            let name = Arc::clone(name);
            self.place_anew(name, now);
        }
        let mut certain: Vec<(&Arc<str>, &P)> = Vec::new();
        for (key, group) in &self.groups {
            let n_left = n - certain.len();
            if group.len() <= n_left {
                certain.extend(group.iter().map(|(name, member)| (name, &member.pod)));
                continue;
            }
            certain.sort_unstable_by_key(|(name, _)| *name);
            let mut chosen: Vec<&P> = certain.into_iter().map(|(_, pod)| pod).collect();
            let tied = group.values().map(|member| member.candidate(key));
            if n_left > 0 {
                settle_ties(tied.collect(), n_left, now, dice, &mut chosen);
            }
            return chosen.into_iter().cloned().collect();
        }
        certain.sort_unstable_by_key(|(name, _)| *name);
        certain.into_iter().map(|(_, pod)| pod.clone()).collect()
    }

    fn place_anew(&mut self, name: Arc<str>, now: Instant) {
        if let Some(member) = self.take(&name) {
            self.place(name, member, now);
        }
    }

    fn place(&mut self, name: Arc<str>, member: Member<P>, now: Instant) {
        let on_node = member.node.as_ref().and_then(|node| self.nodes.get(node));
        let key = member.foremost(on_node.map_or(0, |on_node| on_node.rank), now);
        if let Some(due) = next_bucket(&key, &member.life) {
            self.aging.insert((due, Arc::clone(&name)));
        }
        self.keys.insert(Arc::clone(&name), key);
        self.groups.entry(key).or_default().insert(name, member);
    }

    /// Takes a pod out of the order; its node still knows it.
    fn take(&mut self, name: &Arc<str>) -> Option<Member<P>> {
        let key = self.keys.remove(name)?;
        let group = self.groups.get_mut(&key)?;
        let member = group.remove(name)?;
        if group.is_empty() {
            self.groups.remove(&key);
        }
        if let Some(due) = next_bucket(&key, &member.life) {
            self.aging.remove(&(due, Arc::clone(name)));
        }
        Some(member)
    }
}

impl<P> Member<P> {
    fn properties(&self) -> Properties<'_> {
        Properties {
            uid: &self.uid,
            is_assigned: self.node.is_some(),
            life: self.life,
        }
    }

    fn foremost(&self, rank: usize, now: Instant) -> Foremost {
        self.properties().foremost(rank, now)
    }

    /// Itself as a candidate of the group with this key.
    fn candidate(&self, key: &Foremost) -> Candidate<'_, &P> {
        Candidate {
            pod: &self.pod,
            rank: key.2.0,
            properties: self.properties(),
        }
    }
}

/// When the bucket of a ready pod's age changes.
fn next_bucket(key: &Foremost, life: &Life) -> Option<Instant> {
    let since = life.ready_since?;
    let doublings = u32::try_from(key.3.saturating_add(1)).ok()?;
    Span(1).doubled(doublings).map(|age| since + age)
}

#[cfg(test)]
mod tests {
    use super::super::{Progress, first_to_go};
    use super::*;

    const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

    /// The pods and the ranks of their nodes, without an order.
    #[derive(Default)]
    struct Plain {
        pods: BTreeMap<Arc<str>, Member<&'static str>>,
        ranks: BTreeMap<Arc<str>, usize>,
    }

    impl Plain {
        fn rank(&self, node: Option<&Arc<str>>) -> usize {
            node.and_then(|node| self.ranks.get(node))
                .copied()
                .unwrap_or(0)
        }

        fn first_to_go(&self, n: usize, now: Instant, dice: &mut Prng) -> Vec<&'static str> {
            let candidates = self.pods.values().map(|member| Candidate {
                pod: member.pod,
                rank: self.rank(member.node.as_ref()),
                properties: member.properties(),
            });
            first_to_go(candidates.collect(), n, now, dice)
        }
    }

    fn life(dice: &mut Prng, now: Instant) -> Life {
        let mut ago = |n| now - Span::from_secs(dice.between(0, n));
        let (created, ready) = (ago(9), ago(5));
        Life {
            created,
            progress: match dice.index(8) {
                0 => Progress::Pending,
                1 => Progress::Unknown,
                _ => Progress::Running,
            },
            ready_since: dice.chance(3, 4).then_some(ready),
            cost: i32::from(dice.chance(1, 8)) - i32::from(dice.chance(1, 8)),
            restarts: (u32::from(dice.chance(1, 6)), u32::from(dice.chance(1, 9))),
        }
    }

    #[test]
    fn after_any_changes_it_chooses_as_the_walk_over_all_pods_does() {
        let mut n_choices = 0;
        for seed in 0..400 {
            let mut dice = Prng::new(seed);
            let mut now = Instant::from_secs(1_000_000);
            let (mut plain, mut ordered) = (Plain::default(), Ordered::default());
            for _ in 0..120 {
                now = now + Span::from_millis(dice.between(0, 1500));
                let at = dice.index(NAMES.len());
                let name: Arc<str> = NAMES[at].into();
                match dice.index(6) {
                    0 => {
                        plain.pods.remove(&name);
                        ordered.remove(&name);
                    }
                    1 => {
                        let node = *dice.pick(&NODES);
                        let rank = dice.index(3);
                        plain.ranks.insert(node.into(), rank);
                        ordered.rerank(node, rank, now);
                    }
                    2 | 3 => {
                        let node = dice.chance(5, 6).then(|| Arc::from(*dice.pick(&NODES)));
                        let member = Member {
                            pod: NAMES[at],
                            // Their order is not that of the names.
                            uid: format!("{}", (at * 7) % NAMES.len()).into(),
                            node,
                            life: life(&mut dice, now),
                        };
                        ordered.put(&name, member.clone(), now, |node| plain.rank(Some(node)));
                        plain.pods.insert(name, member);
                    }
                    _ => {
                        let n = dice.index(NAMES.len() + 2);
                        let seed = dice.between(0, 99);
                        let slow = plain.first_to_go(n, now, &mut Prng::new(seed));
                        let fast = ordered.first_to_go(n, now, &mut Prng::new(seed));
                        assert_eq!(fast, slow, "{n} of {}, seed {seed}", plain.pods.len());
                        n_choices += usize::from(!slow.is_empty() && n < plain.pods.len());
                    }
                }
                assert_eq!(ordered.len(), plain.pods.len());
                for node in NODES {
                    let is_on = plain
                        .pods
                        .values()
                        .any(|pod| pod.node.as_deref() == Some(node));
                    assert_eq!(ordered.is_on(node), is_on);
                }
            }
        }
        assert!(n_choices > 5_000, "{n_choices}");
    }
}
