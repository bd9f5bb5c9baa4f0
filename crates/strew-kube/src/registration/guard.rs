//! The loop of the controller around [`strew_runtime::registration::guard`]: requests, questions, waits.

use kube::Client;
use strew_runtime::registration::guard::{Guard as Machine, Task};
use strew_workloadspread::facts::status::Webhook;
use tokio::sync::watch;

use super::{answer_within, way};
use crate::clock::Clock;
use crate::leading::Leads;
use crate::send;

pub use strew_runtime::registration::guard::Settings;

/// Watches replicas and registration; reports while this process leads.
pub struct Guard {
    machine: Machine,
    client: Client,
    clock: Clock,
    leads: Leads,
    to: watch::Sender<Webhook>,
}

impl Guard {
    /// A guard, and the channel of its findings. `namespace`: strew's own.
    pub fn new(
        settings: Settings,
        client: Client,
        namespace: &str,
        clock: Clock,
        leads: Leads,
    ) -> (Self, watch::Receiver<Webhook>) {
        let (to, said) = watch::channel(Webhook::Unknown);
        let guard = Self {
            machine: Machine::new(settings, namespace),
            client,
            clock,
            leads,
            to,
        };
        (guard, said)
    }

    /// Runs until the receiver is dropped.
    pub async fn run(mut self) {
        while !self.to.is_closed() {
            self.machine.lead(self.leads.now());
            match self.machine.next(self.clock.now()) {
                Task::Send(request) => {
                    let answer = send::once(&self.client, &request, answer_within()).await;
                    self.machine.answered(self.clock.now(), &answer);
                }
                Task::Ask(way, bundle) => {
                    let answer = way::ask(&way, &bundle).await;
                    self.machine.asked(self.clock.now(), answer);
                }
                Task::Say(webhook) => drop(self.to.send_replace(webhook)),
                Task::Wait(until) => {
                    tokio::select! {
                        () = self.to.closed() => return,
                        () = tokio::time::sleep(self.clock.until(until)) => {}
                    }
                }
            }
        }
    }
}
