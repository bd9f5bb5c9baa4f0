//! The metric of leadership.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use strew_scheduler::metrics::{Family, Value};

use super::catalogue;

/// Whether this process leads, by the name of its lease.
#[derive(Debug, Clone)]
pub struct Leader {
    lease: Arc<str>,
    leads: Arc<AtomicBool>,
}

impl Leader {
    /// Not leading.
    pub fn new(lease: &str) -> Self {
        Self {
            lease: lease.into(),
            leads: Arc::default(),
        }
    }

    /// It leads from now on, or does not.
    pub fn set(&self, leads: bool) {
        self.leads.store(leads, Ordering::Relaxed);
    }

    /// The metric; empty if there is no lease.
    pub fn families(&self) -> Vec<Family> {
        if self.lease.is_empty() {
            return Vec::new();
        }
        let mut family = Family::new(&catalogue::LEADER);
        let leads = u8::from(self.leads.load(Ordering::Relaxed));
        let lease = self.lease.to_string();
        family.push([lease.into()], Value::Number(leads.into()));
        vec![family]
    }
}
