//! The certificates of the webhook: a simulated CA is a number with a validity, and its certificate in PEM is a line with
//! that number.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::Moment;
use strew_runtime::authority::Lifetimes;
use strew_runtime::authority::bundle::{Holder, Place};
use strew_runtime::authority::plan::{AuthorityState, AuthorityStep, BACKDATED, Period};
use strew_runtime::authority::rotator::{Rotator, SecretState, Settings, Target, Task};
use strew_wire::config::LeaderElection;
use strew_wire::lease::{self, Election};
use strew_wire::request::{Answer, Request, Resource, Verb};
use strew_wire::workloadspread::registration::NAME;

use super::follow::Follow;
use super::transit::{Arrived, Transit, Weather};

/// The Secret with the CAs.
pub(super) const SECRET: &str = "strew-webhook-ca";

/// A CA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Authority {
    number: u64,
    period: Period,
}

impl Authority {
    fn make(number: u64, now: Instant, lives: &Lifetimes) -> Self {
        let period = Period {
            from: now - BACKDATED,
            until: now + lives.authority,
        };
        Self { number, period }
    }

    fn pem(self) -> String {
        format!("CA-{}\n", self.number)
    }

    fn to_json(self) -> Value {
        json!([self.number, self.period.from.0, self.period.until.0])
    }

    fn of_json(value: &Value) -> Option<Self> {
        let number = |index: usize| value.get(index)?.as_u64();
        Some(Self {
            number: number(0)?,
            period: Period {
                from: Instant(number(1)?),
                until: Instant(number(2)?),
            },
        })
    }
}

/// The CAs of the Secret.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    signing: Option<Authority>,
    since: Option<Instant>,
    coming: Option<Authority>,
    leaving: Option<Authority>,
}

impl Stored {
    fn read(secret: &Value) -> Self {
        let data = &secret["data"];
        Self {
            signing: Authority::of_json(&data["signing"]),
            since: data["since"].as_u64().map(Instant),
            coming: Authority::of_json(&data["coming"]),
            leaving: Authority::of_json(&data["leaving"]),
        }
    }

    fn to_json(self) -> Value {
        let json = |authority: Option<Authority>| authority.map(Authority::to_json);
        json!({
            "signing": json(self.signing),
            "since": self.since.map(|since| since.0),
            "coming": json(self.coming),
            "leaving": json(self.leaving),
        })
    }

    fn after(self, step: AuthorityStep, made: Authority, now: Instant) -> Self {
        let since = Some(now);
        let leaving = self.signing.or(self.leaving);
        match step {
            AuthorityStep::Make => Self {
                signing: Some(made),
                since,
                coming: None,
                leaving,
            },
            AuthorityStep::Announce => Self {
                coming: Some(made),
                ..self
            },
            AuthorityStep::Promote => Self {
                signing: self.coming,
                since,
                coming: None,
                leaving,
            },
            AuthorityStep::Retire => Self {
                leaving: None,
                ..self
            },
        }
    }

    fn bundle(self, is_replaced: bool) -> String {
        let all = [self.leaving, self.signing, self.coming];
        let all = all.into_iter().flatten();
        let is_signing = |authority: &Authority| Some(*authority) == self.signing;
        all.filter(|authority| !is_replaced || is_signing(authority))
            .map(Authority::pem)
            .collect()
    }

    fn state(self) -> AuthorityState {
        let period = |authority: Option<Authority>| authority.map(|authority| authority.period);
        AuthorityState {
            signing: period(self.signing),
            since: self.since,
            coming: period(self.coming),
            leaving: period(self.leaving),
        }
    }
}

/// How certificates are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keeping {
    pub(super) lives: Lifetimes,
    /// A defect that a test adds: only the CA that signs is trusted.
    pub(super) is_replaced: bool,
    /// The longest time until a watch shows a change.
    pub(super) lag: Span,
}

/// The Secret with a CA that was made at this moment.
pub(super) fn install(now: Instant, made: Instant, lives: &Lifetimes, server: &mut Server) {
    let first = Stored {
        signing: Some(Authority::make(0, made, lives)),
        since: Some(made),
        ..Stored::default()
    };
    server.execute(now, &write(Verb::Create, &Value::Null, first));
}

fn write(verb: Verb, before: &Value, stored: Stored) -> Request {
    let mut body = match before {
        Value::Null => json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}),
        before => before.clone(),
    };
    body["data"] = stored.to_json();
    Request::of(verb, Resource::SECRETS, (super::NAMESPACE, SECRET), body)
}

fn resource(holder: Holder) -> Option<Resource> {
    match holder {
        Holder::Mutating => Some(Resource::MUTATING_WEBHOOKS),
        Holder::Validating => Some(Resource::VALIDATING_WEBHOOKS),
        // The simulated API server converts by itself.
        Holder::Definition => None,
    }
}

/// A write without an answer.
#[derive(Debug)]
enum Pending {
    Secret,
    Holder(Holder),
}

/// What a step gave back: numbers of new CAs, and generators.
pub(super) struct Draws<'a> {
    pub(super) rng: &'a mut Prng,
    pub(super) n_authorities: &'a mut u64,
}

/// A replica's part in the certificates.
#[derive(Debug)]
pub(super) struct Rotating {
    machine: Rotator,
    election: Election,
    keeping: Keeping,
    transit: Transit,
    pending: Option<Pending>,
    wake: Option<Instant>,
    /// True if it does not reach the API server, so that its watches show nothing.
    is_cut: bool,
    /// The Secret as last seen.
    secret: Value,
    of_secret: Follow,
    of_holders: [(Holder, Follow); 2],
    /// The serving certificate: its CA in PEM, and until when it is valid.
    pub(super) serving: Option<(Arc<str>, Instant)>,
}

impl Rotating {
    pub(super) fn new(keeping: Keeping, replica: &str, now: Instant) -> Self {
        let election = LeaderElection {
            resource_name: NAME.to_owned(),
            resource_namespace: super::NAMESPACE.to_owned(),
            ..LeaderElection::default()
        };
        let settings = Settings {
            place: Place {
                namespace: super::NAMESPACE.to_owned(),
                service: NAME.to_owned(),
                url: None,
            },
            lifetimes: keeping.lives,
            manages: true,
        };
        let mut machine = Rotator::new(settings);
        machine.see_holder(Holder::Definition, None);
        Self {
            machine,
            election: Election::new(lease::Settings::of(&election, replica.to_owned()), now),
            keeping,
            transit: Transit::default(),
            pending: None,
            wake: None,
            is_cut: false,
            secret: Value::Null,
            of_secret: Follow::default(),
            of_holders: [Holder::Mutating, Holder::Validating]
                .map(|holder| (holder, Follow::default())),
            serving: None,
        }
    }

    /// The CAs to trust; empty until there is a certificate.
    pub(super) fn bundle(&self) -> Arc<str> {
        let bundle = self.machine.bundle().cloned();
        bundle.unwrap_or_else(|| Arc::from(""))
    }

    /// The next time at which it has something to do.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let work = self.transit.due().or(self.wake);
        let holders = self.of_holders.iter().map(|(_, follow)| follow);
        let watches = holders.chain([&self.of_secret]);
        let watches = watches.filter_map(Follow::next_wake);
        let watches = watches.filter(|_| !self.is_cut);
        let others = [work, self.election.next_wake()];
        others.into_iter().flatten().chain(watches).min()
    }

    /// Takes a step. Returns false if there was nothing to do.
    pub(super) fn step(
        &mut self,
        now: Instant,
        server: &mut Server,
        weather: Weather,
        draws: &mut Draws<'_>,
    ) -> bool {
        self.is_cut = weather.is_cut;
        let elected = self.elect(now, server, weather, draws.rng);
        let heard = !weather.is_cut && self.listen(now, server, draws.rng);
        // Whether something is due is not asked again before something changes.
        let is_due = self.wake.is_none_or(|wake| wake <= now);
        let works = elected || heard || is_due || !self.transit.is_empty();
        works && (self.work(now, server, weather, draws) || elected || heard)
    }

    fn elect(
        &mut self,
        now: Instant,
        server: &mut Server,
        weather: Weather,
        rng: &mut Prng,
    ) -> bool {
        let mut at = lease::Moment {
            now,
            wall: now,
            dice: 0,
        };
        if self.election.next_wake().is_some_and(|wake| wake <= now) {
            at.dice = rng.next_u64();
            self.election.handle(at, lease::Input::Tick);
        }
        let Some(ask) = self.election.poll_effect() else {
            return false;
        };
        let answer = match weather.is_cut {
            true => Answer::Lost("no answer in time".into()),
            false => server.execute(now, &ask.request),
        };
        at.dice = rng.next_u64();
        let answered = lease::Input::Answered(ask.ticket, answer);
        self.election.handle(at, answered);
        true
    }

    fn listen(&mut self, now: Instant, server: &Server, rng: &mut Prng) -> bool {
        let lag = self.keeping.lag;
        let secret = server.document(Resource::SECRETS, super::NAMESPACE, SECRET);
        let secret = self.of_secret.next(now, secret, lag, rng);
        let mut heard = secret.is_some();
        if let Some(secret) = secret {
            self.see(secret);
        }
        for (holder, follow) in &mut self.of_holders {
            let stored = resource(*holder).and_then(|kind| server.document(kind, "", NAME));
            if let Some(object) = follow.next(now, stored, lag, rng) {
                let object = Some(object).filter(|object| !object.is_null());
                self.machine.see_holder(*holder, object);
                heard = true;
            }
        }
        heard
    }

    /// The Secret's current state. A watch may show an older one than the last write.
    fn see(&mut self, secret: Value) {
        let version = |secret: &Value| {
            let version = secret["metadata"]["resourceVersion"].as_str();
            version.and_then(|text| text.parse::<u64>().ok())
        };
        if !secret.is_null() && version(&secret) < version(&self.secret) {
            return;
        }
        self.secret = secret;
        self.machine.see_secret(self.state());
    }

    fn state(&self) -> SecretState {
        let stored = Stored::read(&self.secret);
        SecretState {
            is_stored: !self.secret.is_null(),
            state: stored.state(),
            signing: stored.signing.map(|signing| signing.pem().into()),
            bundle: stored.bundle(self.keeping.is_replaced).into(),
        }
    }

    fn work(
        &mut self,
        now: Instant,
        server: &mut Server,
        weather: Weather,
        draws: &mut Draws<'_>,
    ) -> bool {
        if !self.transit.is_empty() {
            return match self.transit.step(now, server, weather, draws.rng) {
                Err(()) => false,
                Ok(arrived) => {
                    if let Some(Arrived::Answer { answer, .. }) = arrived {
                        self.answered(now, &answer);
                    }
                    true
                }
            };
        }
        self.machine.lead(self.election.leads(now));
        match self.machine.next(Moment { now, wall: now }) {
            Task::Step(step) => {
                *draws.n_authorities += 1;
                let made = Authority::make(*draws.n_authorities, now, &self.keeping.lives);
                let after = Stored::read(&self.secret).after(step, made, now);
                let verb = match self.secret {
                    Value::Null => Verb::Create,
                    _ => Verb::Update,
                };
                self.pending = Some(Pending::Secret);
                let request = write(verb, &self.secret, after);
                self.transit.send(now, request, draws.rng);
            }
            Task::Issue => self.issue(now),
            Task::Mend(holder, patch) => {
                let Some(kind) = resource(holder) else {
                    return false;
                };
                self.pending = Some(Pending::Holder(holder));
                let request = Request::of(Verb::JsonPatch, kind, ("", NAME), patch);
                self.transit.send(now, request, draws.rng);
            }
            Task::Wait(span) => {
                self.wake = Some(now + span);
                return false;
            }
        }
        true
    }

    fn issue(&mut self, now: Instant) {
        let Some(signing) = Stored::read(&self.secret).signing else {
            return;
        };
        let until = (now + self.keeping.lives.serving).min(signing.period.until);
        self.serving = Some((signing.pem().into(), until));
        self.machine.issued(Period {
            from: now - BACKDATED,
            until,
        });
    }

    fn answered(&mut self, now: Instant, answer: &Answer) {
        self.wake = None;
        let Some(pending) = self.pending.take() else {
            return;
        };
        let target = match pending {
            Pending::Secret => Target::Secret,
            Pending::Holder(holder) => Target::Holder(holder),
        };
        match (answer.object(), pending) {
            (Some(secret), Pending::Secret) => {
                self.see(secret.clone());
                self.machine.wrote(self.state());
            }
            (Some(object), Pending::Holder(holder)) => self.machine.mended(holder, object.clone()),
            (None, _) => {
                let _logged = self.machine.failed(now, target, answer.is_race());
            }
        }
    }
}
