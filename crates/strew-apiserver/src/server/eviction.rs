//! The eviction subresource. Source: spec/controllers §8.2.

use strew_model::time::Instant;

use super::{AdmissionRequest, Server};
use crate::eviction::{self, Eviction};
use crate::object::pod::DISRUPTION_TARGET;
use crate::object::{Key, Object, Part, Pod, Truth};
use crate::{ApiError, DeleteOptions};

impl Server {
    /// Requests the eviction of a pod.
    ///
    /// # Errors
    /// The pod does not exist, or a webhook or its budgets do not allow it.
    pub fn evict(
        &mut self,
        now: Instant,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let Some(pod) = self.tables.get::<Pod>(&key.name) else {
            return Err(ApiError::NotFound(key.clone()));
        };
        let mut pod = Pod::clone(pod);
        self.review(now, AdmissionRequest::Evict(&pod))?;
        let budgets = eviction::budgets_of(&pod, &self.tables);
        match eviction::decide(&pod, &budgets, now) {
            Eviction::Delete => {}
            Eviction::Use(budget) => {
                self.update(Part::Status, Object::Budget(budget))?;
            }
            Eviction::Refuse(error) => return Err(error),
        }
        pod.status.set_condition(
            DISRUPTION_TARGET,
            Truth::True,
            eviction::REASON,
            eviction::MESSAGE,
            now,
        );
        self.update(Part::Status, Object::from(pod))?;
        self.delete_if(now, key, options, false)
    }
}
