//! What played steps tell beside their failures, over all seeds.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;

use crate::summary::RowSum;

/// A finding about a step, over the seeds that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemarkSum {
    /// The number of seeds that have it.
    pub seeds: u64,
    /// The smallest of them.
    pub first: u64,
    /// The finding of that seed.
    pub finding: Finding,
}

/// What distinguishes a remark from the others of its row.
type RemarkKey<'a> = (Severity, &'a str, Option<&'a str>);

impl RemarkSum {
    fn key(&self) -> RemarkKey<'_> {
        let finding = &self.finding;
        (finding.severity, &finding.code, finding.object.as_deref())
    }
}

/// The largest number of remarks of a row.
const REMARKS_MAX: usize = 1000;

impl RowSum {
    /// What warns of it although it holds.
    pub fn warnings(&self) -> impl Iterator<Item = &RemarkSum> {
        let remarks = self.remarks.iter();
        remarks.filter(|remark| remark.finding.severity == Severity::Warning)
    }

    /// Adds what a run tells of it, each finding once.
    pub fn add_findings(&mut self, seed: u64, findings: &[Finding]) {
        let mut known = BTreeSet::new();
        for finding in findings {
            let remark = RemarkSum {
                seeds: 1,
                first: seed,
                finding: finding.clone(),
            };
            if known.insert((finding.severity, &finding.code, &finding.object)) {
                self.add_remark(remark);
            }
        }
    }

    /// Adds a remark to the equal one of other seeds.
    pub fn add_remark(&mut self, remark: RemarkSum) {
        match self
            .remarks
            .binary_search_by(|known| known.key().cmp(&remark.key()))
        {
            Ok(at) => {
                if let Some(known) = self.remarks.get_mut(at) {
                    let seeds = known.seeds.saturating_add(remark.seeds);
                    if remark.first < known.first {
                        *known = remark;
                    }
                    known.seeds = seeds;
                }
            }
            Err(at) => self.remarks.insert(at, remark),
        }
        self.remarks.truncate(REMARKS_MAX);
    }
}
