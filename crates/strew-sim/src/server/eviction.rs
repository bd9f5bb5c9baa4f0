//! The eviction subresource. Source: spec/controllers §8.2.

use strew_controllers::disruption::eviction::{self, Eviction};
use strew_controllers::object::pod::DISRUPTION_TARGET;
use strew_controllers::object::{Key, Object, Pod, Truth};
use strew_controllers::{ApiError, DeleteOptions};
use strew_model::time::Instant;

use super::write::Part;
use super::{AdmissionRequest, Server};

impl Server {
    /// Asks that a pod goes.
    ///
    /// # Errors
    /// No such pod; its budgets do not allow it.
    pub fn evict(
        &mut self,
        now: Instant,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let Some(pod) = self.tables.get::<Pod>(&key.name) else {
            return Err(ApiError::NotFound(key.clone()));
        };
        let pod = std::sync::Arc::clone(pod);
        self.review(now, AdmissionRequest::Evict(&key.name))?;
        let mut pod = (*pod).clone();
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
