//! CronJob: a Job at each scheduled time.
//!
//! Source: spec/controllers §5.2; kubernetes v1.36.3 pkg/controller/cronjob for what it leaves open.

mod missed;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use k8s_openapi::api::batch::v1::CronJobStatus;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use strew_apiserver::object::{CronJob, Job, Key, Kind, Meta, Name, Object, Owner, Resource};
use strew_apiserver::{ApiError, DeleteOptions, Propagation, Tables};
use strew_model::time::{Instant, Span};

use crate::workers;
use missed::Plan;
use strew_manifest::schedule::Schedule;

use crate::api::Event;
use crate::controller::{Change, Context, Controller};
use crate::job::conditions::{COMPLETE, finished, truth};
use crate::queue::Queue;

const NAME: &str = "cronjob-controller";

/// A CronJob is synced this long after its time.
const DELAY: Span = Span::from_millis(100);

/// The annotation of a Job with the time that it was made for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The controller of CronJobs.
#[derive(Debug)]
pub struct CronJobController {
    zones: TimeZoneDatabase,
}

impl Default for CronJobController {
    fn default() -> Self {
        Self::new()
    }
}

impl CronJobController {
    /// A controller that uses the compiled-in time zones.
    pub fn new() -> Self {
        Self {
            zones: TimeZoneDatabase::bundled(),
        }
    }
}

impl Controller for CronJobController {
    fn name(&self) -> &'static str {
        NAME
    }

    fn n_workers(&self) -> usize {
        workers::CRON_JOB
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        if let Some((_, Some(cron_job))) = change.of::<CronJob>() {
            queue.add(&cron_job.meta.name);
        }
        let (old, new) = change.of::<Job>().unwrap_or_default();
        for job in [old, new].into_iter().flatten() {
            let owner = job.meta.controller().filter(|o| &*o.kind == "CronJob");
            if let Some(owner) = owner {
                let namespace = Arc::clone(&job.meta.name.namespace);
                queue.add(&Name::new(namespace, Arc::clone(&owner.name)));
            }
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(cron_job) = cx.cache.get::<CronJob>(name) else {
            return Ok(());
        };
        let mut jobs = Vec::new();
        for dependent in cx.cache.dependents(&cron_job.meta.uid) {
            if let Object::Job(job) = dependent
                && job
                    .meta
                    .controller()
                    .is_some_and(|o| o.uid == cron_job.meta.uid)
            {
                jobs.push(job);
            }
        }
        let mut look = Look {
            zones: &self.zones,
            cx,
            cron_job: Arc::clone(cron_job),
            status: cron_job.status.clone(),
        };
        let result = look.run(&jobs);
        if result == Err(ApiError::Lost) {
            return result;
        }
        look.clean_up(&jobs)?;
        look.write()?;
        result
    }
}

/// One sync of a CronJob.
struct Look<'l, 'c> {
    zones: &'l TimeZoneDatabase,
    cx: &'l mut Context<'c>,
    cron_job: Arc<CronJob>,
    /// The status to write.
    status: CronJobStatus,
}

impl Look<'_, '_> {
    fn run(&mut self, jobs: &[Arc<Job>]) -> Result<(), ApiError> {
        self.see(jobs);
        if self.cron_job.meta.deletion.is_some() {
            return Ok(());
        }
        let Some(plan) = self.plan() else {
            return Ok(());
        };
        let now = timestamp(self.cx.now);
        let result = self.start_due(&plan, now);
        if result.is_ok()
            && let Some(next) = plan.next_look(self.earliest(), now)
        {
            let at = u64::try_from(next.as_nanosecond()).unwrap_or(0);
            let name = &self.cron_job.meta.name;
            self.cx.queue.add_at(name, Instant(at) + DELAY);
        }
        result
    }

    /// Updates the list of active Jobs.
    fn see(&mut self, jobs: &[Arc<Job>]) {
        for job in jobs {
            let name = &job.meta.name.name;
            let Some(end) = finished(&job.status) else {
                if !self.is_active(&job.meta.uid) && !self.reread(&job.meta.uid) {
                    let note = "Saw a job that the controller did not create or forgot";
                    self.warn("UnexpectedJob", format!("{note}: {name}"));
                }
                continue;
            };
            if self.is_active(&job.meta.uid) {
                self.forget(&job.meta.uid);
                let note = format!("Saw completed job: {name}, condition: {}", end.type_);
                self.tell("SawCompletedJob", note);
            }
            let succeeded = truth(&job.status, COMPLETE).is_some();
            let completed = job.status.completion_time.clone().filter(|_| succeeded);
            if completed > self.status.last_successful_time {
                self.status.last_successful_time = completed;
            }
        }
        let known: BTreeSet<&str> = jobs.iter().map(|job| &*job.meta.uid).collect();
        for active in self.status.active.clone().into_iter().flatten() {
            let (name, uid) = (
                active.name.unwrap_or_default(),
                active.uid.unwrap_or_default(),
            );
            if known.contains(uid.as_str()) || self.job(&name).is_some() {
                continue;
            }
            self.forget(&uid);
            self.tell("MissingJob", format!("Active job went missing: {name}"));
        }
    }

    /// Reads the CronJob from the store, since the cache may lag behind own writes. Returns true if this Job is active
    /// there.
    fn reread(&mut self, uid: &str) -> bool {
        let key = Object::CronJob(Arc::clone(&self.cron_job)).key();
        if let Some(Object::CronJob(now)) = self.cx.api.get(&key)
            && now.meta.uid == self.cron_job.meta.uid
            && is_active(&now.status, uid)
        {
            self.status = now.status.clone();
            self.cron_job = now;
            return true;
        }
        false
    }

    /// The schedule of the CronJob; `None` if it cannot run, and then an event says why.
    fn plan(&mut self) -> Option<Plan> {
        let spec = Arc::clone(&self.cron_job.spec);
        let mut zone = TimeZone::UTC;
        if let Some(name) = &spec.time_zone {
            match self.zones.get(name) {
                Ok(found) => zone = found,
                Err(_) => {
                    let note = format!("invalid timeZone: {name:?}: unknown time zone {name}");
                    self.warn("UnknownTimeZone", note);
                    return None;
                }
            }
        }
        if spec.suspend == Some(true) {
            return None;
        }
        let mut text = spec.schedule.as_str();
        if text.contains("TZ") {
            let note = format!(
                "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            );
            self.warn("UnsupportedSchedule", note);
            let given = text.strip_prefix("CRON_TZ=").or(text.strip_prefix("TZ="));
            if let Some((name, rest)) = given.and_then(|given| given.split_once(' '))
                && let Ok(found) = self.zones.get(name)
            {
                (text, zone) = (rest, found);
            }
        }
        match Schedule::parse(text) {
            Ok(schedule) => Some(Plan { schedule, zone }),
            Err(error) => {
                let note = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                self.warn("UnparseableSchedule", note);
                None
            }
        }
    }

    /// The time from which scheduled times count.
    fn earliest(&self) -> Timestamp {
        let last = self.status.last_schedule_time.as_ref();
        last.map_or(timestamp(self.cron_job.meta.created), |time| time.0)
    }

    /// Creates a Job, if its time has come.
    fn start_due(&mut self, plan: &Plan, now: Timestamp) -> Result<(), ApiError> {
        let deadline = self.cron_job.spec.starting_deadline_seconds;
        let deadline = deadline.map(jiff::SignedDuration::from_secs);
        let mut earliest = self.earliest();
        if let Some(deadline) = deadline {
            let too_late = now.checked_sub(deadline).unwrap_or(Timestamp::MIN);
            earliest = earliest.max(too_late);
        }
        if earliest > now {
            return Ok(());
        }
        let Some(due) = plan.due(earliest, now) else {
            let schedule = &self.cron_job.spec.schedule;
            let what = "time difference between two schedules is less than 1 second";
            let note = format!("invalid schedule: {schedule} : {what}");
            self.warn("InvalidSchedule", note);
            return Ok(());
        };
        if due.too_many {
            let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.warn("TooManyMissedTimes", note);
        }
        let Some(time) = due.time else {
            return Ok(());
        };
        if deadline.is_some_and(|deadline| time.checked_add(deadline).is_ok_and(|end| end < now)) {
            let time = time.strftime("%a, %d %b %Y %H:%M:%S +0000");
            let note = format!("Missed scheduled time to start a job: {time}");
            self.warn("MissSchedule", note);
            return Ok(());
        }
        let minutes = time.as_second().div_euclid(60);
        let job = format!("{}-{minutes}", self.cron_job.meta.name.name);
        let mut active = self.status.active.iter().flatten();
        let is_started = active.any(|active| active.name.as_ref() == Some(&job));
        let last = self.status.last_schedule_time.as_ref();
        if is_started || last.is_some_and(|last| last.0 == time) {
            return Ok(());
        }
        match self.cron_job.spec.concurrency_policy.as_deref() {
            Some("Forbid") if self.status.active.iter().flatten().next().is_some() => {
                let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.tell("JobAlreadyActive", note);
                return Ok(());
            }
            Some("Replace") => self.replace()?,
            _ => {}
        }
        self.start(plan, time, &job)
    }

    /// Deletes the active Jobs.
    fn replace(&mut self) -> Result<(), ApiError> {
        for active in self.status.active.clone().into_iter().flatten() {
            let name = active.name.unwrap_or_default();
            let Some(job) = self.job(&name) else {
                let error = ApiError::NotFound(self.job_key(&name));
                self.warn("FailedGet", format!("Get job: {error}"));
                return Err(error);
            };
            self.delete(&job)?;
        }
        Ok(())
    }

    fn start(&mut self, plan: &Plan, time: Timestamp, name: &str) -> Result<(), ApiError> {
        let job = self.new_job(plan, time, name);
        let stored = match self.cx.api.create(job.into()) {
            Ok(stored) => {
                self.tell("SuccessfulCreate", format!("Created job {name}"));
                stored
            }
            Err(ApiError::AlreadyExists(key)) => {
                // The Job is ours if the controller crashed before it wrote the status.
                let found = self.cx.api.get(&key);
                let mine = |job: &Object| {
                    let owner = job.meta().controller();
                    owner.is_some_and(|owner| owner.uid == self.cron_job.meta.uid)
                };
                match found.filter(mine) {
                    Some(found) if !self.is_active(&found.meta().uid) => found,
                    _ => return Ok(()),
                }
            }
            Err(ApiError::Lost) => return Err(ApiError::Lost),
            Err(error) => {
                if !error.to_string().contains("it is being terminated") {
                    self.warn("FailedCreate", format!("Error creating job: {error}"));
                }
                return Err(error);
            }
        };
        let meta = stored.meta();
        let active = self.status.active.get_or_insert_default();
        active.push(ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            namespace: Some(meta.name.namespace.to_string()),
            name: Some(meta.name.name.to_string()),
            uid: Some(meta.uid.to_string()),
            resource_version: Some(meta.version.to_string()),
            field_path: None,
        });
        self.status.last_schedule_time = Some(Time(time));
        Ok(())
    }

    fn new_job(&self, plan: &Plan, time: Timestamp, name: &str) -> Job {
        let cron_job = &self.cron_job;
        let template = cron_job
            .spec
            .job_template
            .metadata
            .clone()
            .unwrap_or_default();
        let namespace = Arc::clone(&cron_job.meta.name.namespace);
        let mut meta = Meta::new(Name::new(namespace, name));
        meta.labels = Arc::new(template.labels.unwrap_or_default());
        meta.annotations = Arc::new(template.annotations.unwrap_or_default());
        let local = time
            .display_with_offset(plan.zone.to_offset(time))
            .to_string();
        // Go writes Z instead of a zero offset.
        let local = match local.strip_suffix("+00:00") {
            Some(utc) => format!("{utc}Z"),
            None => local,
        };
        meta.annotate(SCHEDULED, local);
        let owner = Owner {
            api_version: "batch/v1".into(),
            kind: "CronJob".into(),
            name: Arc::clone(&cron_job.meta.name.name),
            uid: Arc::clone(&cron_job.meta.uid),
            is_controller: true,
            blocks_deletion: true,
        };
        meta.owners = [owner].into();
        Resource {
            meta,
            spec: Arc::new(cron_job.spec.job_template.spec.clone().unwrap_or_default()),
            status: Default::default(),
        }
    }

    /// Deletes the oldest finished Jobs beyond the limits.
    fn clean_up(&mut self, jobs: &[Arc<Job>]) -> Result<(), ApiError> {
        let spec = &self.cron_job.spec;
        let limits = [
            (true, spec.successful_jobs_history_limit.unwrap_or(3)),
            (false, spec.failed_jobs_history_limit.unwrap_or(1)),
        ];
        for (is_success, limit) in limits {
            let is_one = |job: &&Arc<Job>| {
                finished(&job.status).is_some_and(|end| (end.type_ == COMPLETE) == is_success)
            };
            let mut ended: Vec<&Arc<Job>> = jobs.iter().filter(is_one).collect();
            let started = |job: &Job| job.status.start_time.clone();
            ended.sort_by_key(|job| {
                let start = started(job);
                (start.is_none(), start, Arc::clone(&job.meta.name.name))
            });
            let n_kept = usize::try_from(limit).unwrap_or(0);
            for job in ended.iter().take(ended.len().saturating_sub(n_kept)) {
                if job.meta.deletion.is_none() && self.delete(job) == Err(ApiError::Lost) {
                    return Err(ApiError::Lost);
                }
            }
        }
        Ok(())
    }

    fn delete(&mut self, job: &Job) -> Result<(), ApiError> {
        let key = self.job_key(&job.meta.name.name);
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::of_uid(&job.meta.uid)
        };
        if let Err(error) = self.cx.api.delete(&key, &options) {
            if error != ApiError::Lost {
                self.warn("FailedDelete", format!("Deleted job: {error}"));
            }
            return Err(error);
        }
        self.forget(&job.meta.uid);
        let name = &job.meta.name.name;
        self.tell("SuccessfulDelete", format!("Deleted job {name}"));
        Ok(())
    }

    fn write(&mut self) -> Result<(), ApiError> {
        self.status.active = self
            .status
            .active
            .take()
            .filter(|active| !active.is_empty());
        if self.status == self.cron_job.status {
            return Ok(());
        }
        let mut cron_job = CronJob::clone(&self.cron_job);
        cron_job.status = self.status.clone();
        self.cx.api.update_status(cron_job.into())?;
        Ok(())
    }

    fn job_key(&self, name: &str) -> Key {
        let namespace = Arc::clone(&self.cron_job.meta.name.namespace);
        Key {
            kind: Kind::Job,
            name: Name::new(namespace, name),
        }
    }

    fn job(&self, name: &str) -> Option<Arc<Job>> {
        match self.cx.api.get(&self.job_key(name)) {
            Some(Object::Job(job)) => Some(job),
            _ => None,
        }
    }

    fn is_active(&self, uid: &str) -> bool {
        is_active(&self.status, uid)
    }

    fn forget(&mut self, uid: &str) {
        if let Some(active) = &mut self.status.active {
            active.retain(|active| active.uid.as_deref() != Some(uid));
        }
    }

    fn tell(&mut self, reason: &'static str, note: impl Into<Arc<str>>) {
        let object = Object::CronJob(Arc::clone(&self.cron_job));
        self.cx
            .api
            .record(Event::normal(NAME, &object, reason, note));
    }

    fn warn(&mut self, reason: &'static str, note: impl Into<Arc<str>>) {
        let object = Object::CronJob(Arc::clone(&self.cron_job));
        self.cx
            .api
            .record(Event::warning(NAME, &object, reason, note));
    }
}

fn is_active(status: &CronJobStatus, uid: &str) -> bool {
    let mut active = status.active.iter().flatten();
    active.any(|active| active.uid.as_deref() == Some(uid))
}

fn timestamp(moment: Instant) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(moment.0)).unwrap_or(Timestamp::MAX)
}
