//! A moment of a cluster: its objects, how they are spread, and which pods stay Pending and why.
//!
//! Reading order: [`moment`] (objects as a [`cluster_state`] with its [`schedulers`] and [`workload`]s), [`facts`] (a moment
//! without a simulation), [`spread`] (each constraint with its counts: the one rule for domains that count, which are [`domains`]), [`loss`]
//! (what the loss of a domain does to a workload), [`away`] (a cluster without some of its nodes), [`blocked`],
//! [`usage`], [`view`] (all of this for one moment), [`values`] (the same as text and numbers), [`ground`] (domains that
//! count, kept current), [`wrong`] (what a person should
//! look at), [`heat`] (a cluster with many nodes as sums), [`skews`] (the largest skews of a run), [`explanation`] (why a pod is where it is, or nowhere),
//! [`placement`] (a Placement and its clusters),
//! [`natural_order`](mod@natural_order), [`time_text`](mod@time_text), [`words`].

pub mod away;
pub mod blocked;
pub mod cluster_state;
pub mod domains;
pub mod explanation;
pub mod facts;
pub mod fleet;
pub mod ground;
pub mod heat;
pub mod lives;
pub mod loss;
pub mod moment;
pub mod natural_order;
pub mod placement;
pub mod schedulers;
pub mod skews;
pub mod spread;
pub mod time_text;
pub mod usage;
pub mod values;
pub mod view;
pub mod words;
pub mod workload;
pub mod wrong;
