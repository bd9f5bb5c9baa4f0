//! A Job's conditions.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use strew_apiserver::object::moment;
use strew_model::time::Instant;

/// `Complete`
pub(crate) const COMPLETE: &str = "Complete";
/// `Failed`
pub(crate) const FAILED: &str = "Failed";
/// `SuccessCriteriaMet`
pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// `FailureTarget`
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
/// `Suspended`
pub(super) const SUSPENDED: &str = "Suspended";

/// Why a Job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) is_success: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl End {
    pub(super) fn failure(reason: &str, message: impl Into<String>) -> Self {
        Self {
            is_success: false,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    pub(super) fn success(reason: &str, message: impl Into<String>) -> Self {
        Self {
            is_success: true,
            ..Self::failure(reason, message)
        }
    }

    /// The end that an earlier sync has announced.
    pub(super) fn announced(status: &JobStatus) -> Option<Self> {
        let read = |kind, is_success| {
            let condition = truth(status, kind)?;
            Some(Self {
                is_success,
                reason: condition.reason.clone().unwrap_or_default(),
                message: condition.message.clone().unwrap_or_default(),
            })
        };
        read(SUCCESS_CRITERIA_MET, true).or_else(|| read(FAILURE_TARGET, false))
    }

    /// The condition that announces the end.
    pub(super) fn announcement(&self) -> &'static str {
        match self.is_success {
            true => SUCCESS_CRITERIA_MET,
            false => FAILURE_TARGET,
        }
    }

    /// The condition of the end itself.
    pub(super) fn terminal(&self) -> &'static str {
        match self.is_success {
            true => COMPLETE,
            false => FAILED,
        }
    }
}

/// A condition with status True.
pub(crate) fn truth<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|c| c.type_ == kind && c.status == "True")
}

/// The condition with the result of a finished Job.
pub(crate) fn finished(status: &JobStatus) -> Option<&JobCondition> {
    truth(status, COMPLETE).or_else(|| truth(status, FAILED))
}

/// Sets a condition; one with status False is not added. Returns false if nothing changed.
pub(super) fn set(
    status: &mut JobStatus,
    kind: &str,
    is_true: bool,
    (reason, message): (&str, &str),
    now: Instant,
) -> bool {
    let new = JobCondition {
        type_: kind.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(moment::to_wire(now)),
        last_transition_time: Some(moment::to_wire(now)),
    };
    let conditions = status.conditions.get_or_insert_default();
    let Some(old) = conditions.iter_mut().find(|c| c.type_ == kind) else {
        if is_true {
            conditions.push(new);
        }
        return is_true;
    };
    let is_same =
        old.status == new.status && old.reason == new.reason && old.message == new.message;
    if !is_same {
        *old = new;
    }
    !is_same
}
