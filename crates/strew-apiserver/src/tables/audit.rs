//! Compares the indexes of the tables with a recount.

use super::{OwnedPods, Tables};

impl OwnedPods {
    fn counts(&self) -> [usize; 4] {
        [self.len(), self.n_active, self.n_ready, self.n_terminating]
    }
}

impl Tables {
    /// Recounts what is maintained incrementally.
    ///
    /// # Errors
    /// The first index that differs from a recount, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut fresh = Self::default();
        for object in self.all() {
            fresh.set(object);
        }
        let same = |what: &str, is_same: bool| match is_same {
            true => Ok(()),
            false => Err(format!("the index of {what} is not as a recount has it")),
        };
        same("orphans", self.orphans == fresh.orphans)?;
        same("dependents", self.dependents == fresh.dependents)?;
        same("pods by node", self.by_node == fresh.by_node)?;
        same("owners", self.by_owner.len() == fresh.by_owner.len())?;
        for owned in self.of::<crate::object::Pod>().iter() {
            let Some(owner) = owned.meta.controller() else {
                continue;
            };
            let (Some(kept), Some(recount)) = (self.pods_of(&owner.uid), fresh.pods_of(&owner.uid))
            else {
                return Err(format!("{} {} owns no pods", owner.kind, owner.name));
            };
            same("pods by owner", kept.pods == recount.pods)?;
            if kept.counts() != recount.counts() {
                return Err(format!(
                    "of {} {} are counted (all, active, ready, terminating) {:?}, recounted {:?}",
                    owner.kind,
                    owner.name,
                    kept.counts(),
                    recount.counts()
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Meta, Name, Object, Owner, Pod, PodStatus, Truth, pod::READY};
    use std::sync::Arc;
    use strew_model::time::Instant;

    fn pod_of(owner_uid: &str, name: &str) -> Pod {
        let mut meta = Meta::new(Name::new("default", name));
        meta.uid = format!("uid-of-{name}").into();
        meta.owners = Arc::new([Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: owner_uid.into(),
            uid: owner_uid.into(),
            is_controller: true,
            blocks_deletion: true,
        }]);
        Pod {
            meta,
            spec: Arc::default(),
            node: None,
            status: PodStatus::default(),
        }
    }

    #[test]
    fn an_audit_notices_a_counter_that_is_wrong() {
        let mut tables = Tables::default();
        let mut pod = pod_of("owner", "a");
        tables.set(Object::from(pod.clone()));
        pod.status
            .set_condition(READY, Truth::True, "", "", Instant::default());
        tables.set(Object::from(pod));
        assert_eq!(tables.audit(), Ok(()));
        let uid = tables.by_owner.keys().next().cloned().unwrap();
        tables.by_owner.get_mut(&uid).unwrap().n_ready += 1;
        assert!(tables.audit().is_err_and(|text| text.contains("recounted")));
    }

    #[test]
    fn an_audit_notices_a_pod_that_an_index_forgot() {
        let mut tables = Tables::default();
        tables.set(Object::from(pod_of("owner", "a")));
        tables.by_owner.clear();
        assert!(tables.audit().is_err());
    }
}
