//! A component's slot, empty while the component is crashed.

use strew_apiserver::server::{Change, Cursor, Server};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::component::Surroundings;
use crate::fault::Faults;
use crate::network::Draws;

/// The first change of the store that asks for a component.
pub(crate) struct Awaited(Option<Cursor>);

impl Awaited {
    /// Waits from now on.
    pub(crate) fn new(server: &Server) -> Self {
        Self(Some(server.listen()))
    }

    /// True if it has come since the last call; once.
    pub(crate) fn comes(&mut self, server: &Server, asks: fn(&Change) -> bool) -> bool {
        let Some(cursor) = &mut self.0 else {
            return false;
        };
        let mut changes = std::iter::from_fn(|| server.next_change(cursor));
        let comes = changes.any(asks);
        if comes {
            self.0 = None;
        }
        comes
    }
}

/// A component, alive or dead.
pub(crate) struct Slot<T> {
    pub(crate) alive: Option<T>,
    /// When it is restarted.
    pub(crate) restart: Option<Instant>,
    /// The number of requests until it crashes, and how long it is down then.
    pub(crate) doomed: Option<(u32, Span)>,
}

impl<T> Slot<T> {
    pub(crate) fn new(component: T) -> Self {
        Self {
            alive: Some(component),
            restart: None,
            doomed: None,
        }
    }

    pub(crate) fn die(&mut self, restart: Instant) {
        self.alive = None;
        self.doomed = None;
        self.restart = Some(restart);
    }

    /// Crashes it at once, or instead of a later request.
    pub(crate) fn crash(&mut self, now: Instant, after_writes: u32, down: Span) {
        match after_writes {
            0 => self.die(now + down),
            n => self.doomed = Some((n, down)),
        }
    }

    /// Crashes it if it has sent its last request.
    pub(crate) fn meet_doom(&mut self, now: Instant) {
        if let Some((0, down)) = self.doomed {
            self.die(now + down);
        }
    }

    /// Lets it take one step, and crashes it if that was its last request. `dice` are those of faults and of its requests.
    /// Returns false if it is down or had nothing to do.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        (server, faults): (&mut Server, &Faults),
        dice: [&mut Prng; 2],
        step: impl FnOnce(&mut T, &mut Surroundings<'_>) -> bool,
    ) -> bool {
        let acted = self.act(now, (server, faults), dice, step);
        self.meet_doom(now);
        acted
    }

    /// Lets it take one step at this time of its own clock. Returns false if it is down or had nothing to do.
    pub(crate) fn act(
        &mut self,
        now: Instant,
        (server, faults): (&mut Server, &Faults),
        dice: [&mut Prng; 2],
        step: impl FnOnce(&mut T, &mut Surroundings<'_>) -> bool,
    ) -> bool {
        let Some(component) = &mut self.alive else {
            return false;
        };
        let [of_faults, order] = dice;
        let mut around = Surroundings {
            now,
            server,
            faults,
            draws: Draws {
                faults: of_faults,
                order,
                writes_left: self.doomed.as_mut().map(|(writes_left, _)| writes_left),
            },
        };
        step(component, &mut around)
    }

    /// True if its restart is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.restart.is_some_and(|at| at <= now)
    }

    /// Cancels planned crashes, and restarts it at once if it is down.
    pub(crate) fn calm(&mut self, now: Instant) {
        self.doomed = None;
        self.restart = self.restart.map(|_| now);
    }
}
