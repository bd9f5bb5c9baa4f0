//! The simulated network between a component's driver and the API server: slow, lossy, reordering.
//!
//! All components use it. A request is executed at some moment, and its answer arrives later; either can be lost. If
//! several are due, the next one is drawn, so requests overtake each other, as in a real network. A driver that needs
//! an order must keep it itself.

use std::sync::Arc;

use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::Ticket;
use strew_wire::request::{Answer, Request, Verb};

use crate::fault::{Faults, Hits};
use crate::timing::Between;

const MILLION: u64 = 1_000_000;

/// Executes a request: the API server, possibly behind a witness.
pub(crate) type Server<'a> = &'a mut dyn FnMut(&Request) -> Answer;

/// The sender of a request; faults differ by component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A scheduler.
    Scheduler,
    /// The controller of Placements.
    PlacementController,
    /// The controller of WorkloadSpreads.
    SpreadController,
    /// The controller that keeps ReplicaSets spread.
    Keeper,
    /// A replica of WorkloadSpread's webhook, with the duration of its writes.
    Webhook(Between),
    /// A replica of the webhook of budgets by zone.
    Zones,
}

/// The faults that one request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Weather {
    /// How long the server takes to execute it.
    pub(crate) takes: Between,
    /// The longest delay of the request, and again of its answer.
    pub(crate) slow: Span,
    /// Of a million, the number that get no answer; half of these are carried out.
    pub(crate) lost_ppm: u32,
    /// Of a million, the number that are refused with a conflict.
    pub(crate) conflict_ppm: u32,
}

impl Weather {
    /// The effect of the active faults on a request.
    pub(crate) fn of(faults: &Faults, sender: Sender, request: &Request) -> Self {
        let write = faults.write().copied().unwrap_or_default();
        match sender {
            Sender::Scheduler if request.subresource == "binding" => {
                let bind = faults.bind().copied().unwrap_or_default();
                Self {
                    slow: bind.slow,
                    lost_ppm: bind.fail_ppm,
                    ..Self::default()
                }
            }
            Sender::Scheduler => Self {
                conflict_ppm: match request.verb {
                    Verb::Patch => write.conflict_ppm,
                    _ => 0,
                },
                ..Self::default()
            },
            Sender::SpreadController => {
                let writes = matches!(request.verb, Verb::Update | Verb::Patch);
                let webhook = faults.webhook().copied().unwrap_or_default();
                let of_writes = |ppm: u32| if writes { ppm } else { 0 };
                Self {
                    lost_ppm: (write.lost_ppm).saturating_add(of_writes(webhook.write_lost_ppm)),
                    conflict_ppm: of_writes(write.conflict_ppm),
                    ..Self::default()
                }
            }
            Sender::Keeper => Self {
                lost_ppm: write.lost_ppm,
                conflict_ppm: write.conflict_ppm,
                ..Self::default()
            },
            Sender::PlacementController => Self {
                lost_ppm: write.lost_ppm,
                // A creation has no version that could be stale.
                conflict_ppm: match request.verb {
                    Verb::Create => 0,
                    _ => write.conflict_ppm,
                },
                ..Self::default()
            },
            Sender::Webhook(takes) if request.verb == Verb::Update => {
                let of_webhook = faults.webhook().copied().unwrap_or_default();
                Self {
                    takes,
                    slow: Span(of_webhook.slower.0 / 2),
                    lost_ppm: of_webhook.write_lost_ppm,
                    conflict_ppm: write.conflict_ppm,
                }
            }
            Sender::Zones if request.verb == Verb::MergePatch => {
                let of_webhook = faults.webhook().copied().unwrap_or_default();
                Self {
                    slow: Span(of_webhook.slower.0 / 2),
                    lost_ppm: of_webhook.write_lost_ppm,
                    conflict_ppm: write.conflict_ppm,
                    ..Self::default()
                }
            }
            Sender::Webhook(_) | Sender::Zones => Self::default(),
        }
    }
}

/// A request or its answer in transit.
#[derive(Debug)]
struct Letter {
    due: Instant,
    ticket: Ticket,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Request(Arc<Request>),
    Answer(Answer),
}

/// The result of one step of the network.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// Nothing is due.
    Nothing,
    /// A request was executed; its answer is in transit.
    Moved,
    /// An answer has arrived.
    Arrived(Ticket, Answer),
}

/// Requests and answers in transit of one component. They are lost when the component crashes.
#[derive(Debug, Default)]
pub(crate) struct Network {
    letters: Vec<Letter>,
    pub(crate) hits: Hits,
}

/// The generators and limits of a step.
pub(crate) struct Draws<'a> {
    /// Draws what faults hit.
    pub(crate) faults: &'a mut Prng,
    /// Draws what comes first.
    pub(crate) order: &'a mut Prng,
    /// The number of further requests until the component crashes; `None`: it does not.
    pub(crate) writes_left: Option<&'a mut u32>,
}

impl Network {
    /// Sends a request.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        ticket: Ticket,
        request: Arc<Request>,
        weather: Weather,
        rng: &mut Prng,
    ) {
        let takes = taking(weather, rng);
        if weather.slow > Span::default() {
            *self.hits.entry("request slow").or_default() += 1;
        }
        self.letters.push(Letter {
            due: now + takes + delay(weather, rng),
            ticket,
            content: Content::Request(request),
        });
    }

    /// When the next request or answer is due.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.letters.iter().map(|letter| letter.due).min()
    }

    /// True if one is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.letters.iter().any(|letter| letter.due <= now)
    }

    /// Delivers one request or answer that is due; which one is drawn.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        weather: impl Fn(&Request) -> Weather,
        server: Server<'_>,
        draws: &mut Draws<'_>,
    ) -> Delivery {
        let due = self.letters.iter().enumerate();
        let due = due.filter(|(_, letter)| letter.due <= now);
        let due: Vec<usize> = due.map(|(index, _)| index).collect();
        if due.is_empty() {
            return Delivery::Nothing;
        }
        let index = due[draws.order.index(due.len())];
        let Letter {
            ticket, content, ..
        } = self.letters.remove(index);
        let request = match content {
            Content::Answer(answer) => return Delivery::Arrived(ticket, answer),
            Content::Request(request) => request,
        };
        let weather = weather(&request);
        let answer = deliver(&request, weather, server, draws, &mut self.hits);
        match delay(weather, draws.faults) {
            Span(0) => Delivery::Arrived(ticket, answer),
            later => {
                self.letters.push(Letter {
                    due: now + later,
                    ticket,
                    content: Content::Answer(answer),
                });
                Delivery::Moved
            }
        }
    }
}

fn taking(weather: Weather, rng: &mut Prng) -> Span {
    match weather.takes.min < weather.takes.max {
        true => weather.takes.draw(rng),
        false => weather.takes.min,
    }
}

fn delay(weather: Weather, rng: &mut Prng) -> Span {
    match weather.slow.0 {
        0 => Span::default(),
        slow => Span(rng.between(0, slow)),
    }
}

/// Delivers a request to the server, subject to the active faults.
fn deliver(
    request: &Request,
    weather: Weather,
    server: Server<'_>,
    draws: &mut Draws<'_>,
    hits: &mut Hits,
) -> Answer {
    if let Some(left) = &mut draws.writes_left {
        if **left == 0 {
            return Answer::Refused("the component has died".into());
        }
        **left -= 1;
    }
    let rng = &mut *draws.faults;
    let mut strikes = |ppm: u32, kind| {
        let strikes = ppm > 0 && rng.chance(u64::from(ppm), MILLION);
        if strikes {
            *hits.entry(kind).or_default() += 1;
        }
        strikes
    };
    if strikes(weather.lost_ppm, "request lost") {
        if rng.chance(1, 2) {
            server(request);
        }
        return Answer::Lost("the connection was cut".into());
    }
    if strikes(weather.conflict_ppm, "request refused as stale") {
        let body = br#"{"kind": "Status", "reason": "Conflict", "message": "the object has been modified"}"#;
        return Answer::of(409, None, body);
    }
    server(request)
}
