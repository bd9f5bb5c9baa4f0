//! The eviction subresource. Source: spec/controllers §8.2.

use strew_controllers::object::pod::DISRUPTION_TARGET;
use strew_controllers::object::{Key, Object, Pod, Truth};
use strew_controllers::{ApiError, DeleteOptions};
use strew_model::time::Instant;

use super::Server;
use super::write::Part;

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
        let mut pod = (**pod).clone();
        let (reason, message) = ("EvictionByEvictionAPI", "Eviction API: evicting");
        pod.status
            .set_condition(DISRUPTION_TARGET, Truth::True, reason, message, now);
        self.update(Part::Status, Object::from(pod))?;
        self.delete(now, key, options)
    }
}
