//! One run of a cluster, from a plan and a seed.

use std::ops::ControlFlow;

use strew_apiserver::server::Cursor;
use strew_model::time::Span;
use strew_sim::Simulation;
use strew_view::time_text::time_text;

use super::errands::Errands;
use super::plan::Plan;
use super::played::{
    ExpectationOutcome, POD_CREATION, Played, Refused, RunError, StepResult, StepState, Watcher,
};
use super::quiet::slowest_ready;
use super::verbs;
use crate::expect::{Answer, Before, Judge, StepFacts, Verdict};
use crate::format::{Expectation, Rest, Step};

/// An expectation that is not decided yet.
struct Open<'a> {
    step: usize,
    place: usize,
    expectation: &'a Expectation,
    program: usize,
    /// The objects before its step. Claims compare with them also after later steps.
    before: Before,
    /// The claim must become true by this time.
    deadline: Span,
    /// `Some` once the claim is true: it must stay true until this time.
    holds_until: Option<Span>,
    /// `Some`: the claim is judged when the cluster is at rest, after this time.
    rests_after: Option<Span>,
}

impl Open<'_> {
    /// When the cluster is at rest after its step, if nothing more is written; `None` if the claim does not wait for
    /// rest.
    ///
    /// `slowest` is the longest silent wait of a workload ([`slowest_ready`]).
    fn rest(&self, last_change: Span, slowest: Span) -> Option<Span> {
        let after = self.rests_after?;
        let quiet = Rest::default().quiet.max(slowest);
        Some(later(last_change.max(after), quiet))
    }
}

/// Plays a plan with a seed, until the end of the scenario or until `until`, whichever is earlier.
///
/// # Errors
/// [`RunError`].
pub fn play(
    plan: &Plan,
    seed: u64,
    until: Option<Span>,
    watcher: &mut dyn Watcher,
) -> Result<Played, RunError> {
    let mut simulation = plan.simulation(seed);
    watcher.begin(&mut simulation);
    let mut life = Life {
        plan,
        until,
        decided: Span::default(),
        judge: Judge::new(plan, &simulation),
        errands: Errands::new(plan, seed),
        open: Vec::new(),
        always: { plan.scenario.always.iter() }
            .map(|_| Always::Waits(String::new()))
            .collect(),
        seen: None,
        last_change: Span::default(),
        slowest: Span::default(),
        played: Played {
            steps: Vec::new(),
            always: Vec::new(),
            ended: Span::default(),
            is_partial: false,
            is_cut: false,
        },
        n_events: 0,
    };
    let is_partial = life.whole(&mut simulation, watcher)?.is_break();
    if !is_partial && !life.played.is_cut {
        let drains = life.errands.give_up(simulation.elapsed());
        life.refuse(drains, watcher);
    }
    watcher.end(&simulation);
    Ok(life.finish(&simulation, is_partial))
}

/// How a claim of `always` stands.
enum Always {
    /// There was nothing to judge so far; what was there instead.
    Waits(String),
    /// It was judged, and held every time.
    Holds,
    /// It broke.
    Broken(ExpectationOutcome),
}

struct Life<'a> {
    plan: &'a Plan,
    judge: Judge,
    errands: Errands,
    open: Vec<Open<'a>>,
    /// Per claim of `always`, how it stands.
    always: Vec<Always>,
    seen: Option<Cursor>,
    /// The time of the last write.
    last_change: Span,
    /// The longest silent wait of a workload.
    slowest: Span,
    played: Played,
    n_events: usize,
    /// `Some`: the run ends then, whatever the scenario says.
    until: Option<Span>,
    /// When the expectations so far are decided.
    decided: Span,
}

impl<'a> Life<'a> {
    /// Plays step by step until the end.
    fn whole(
        &mut self,
        simulation: &mut Simulation,
        watcher: &mut dyn Watcher,
    ) -> Result<ControlFlow<()>, RunError> {
        let plan = self.plan;
        let mut first_program = plan.scenario.always.len();
        for (number, step) in plan.scenario.timeline.iter().enumerate() {
            let at = step.at.unwrap_or(simulation.elapsed());
            let is_reached = self.until.is_none_or(|until| at <= until) && !self.is_cut();
            if !is_reached {
                break;
            }
            if step.at.is_some() && self.live(simulation, at, watcher)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.end_rest(simulation.elapsed(), "when the next step began");
            let flow = self.step(simulation, number, step, first_program, watcher)?;
            if flow.is_break() {
                return Ok(flow);
            }
            first_program += step.expect.len();
        }
        let n_played = self.played.steps.len();
        let is_whole = n_played == plan.scenario.timeline.len() && !self.is_cut();
        let end = plan.scenario.until.unwrap_or(self.decided);
        self.played.is_cut = !is_whole || self.until.is_some_and(|until| until < end);
        let end = match (is_whole, self.until) {
            (true, until) => until.map_or(end, |until| until.min(end)),
            (false, until) => until.unwrap_or(end),
        };
        if !(is_whole && end <= simulation.elapsed()) {
            let flow = self.live(simulation, end, watcher)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        if !is_whole || plan.scenario.until.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let flow = self.live_until_rest(simulation, watcher)?;
        match flow.is_break() {
            true => Ok(flow),
            false => self.live_until_drained(simulation, watcher),
        }
    }

    /// Runs while an expectation waits for rest.
    fn live_until_rest(
        &mut self,
        simulation: &mut Simulation,
        watcher: &mut dyn Watcher,
    ) -> Result<ControlFlow<()>, RunError> {
        let next = |life: &Self| {
            let rests = life.open.iter().filter_map(|open| {
                let rest = open.rest(life.last_change, life.slowest)?;
                Some(rest.min(open.deadline))
            });
            rests.min()
        };
        while let Some(rest) = next(self) {
            let stop = self.until.map_or(rest, |until| until.min(rest));
            if stop < rest && stop <= simulation.elapsed() {
                self.played.is_cut = true;
                break;
            }
            let flow = self.live(simulation, stop.max(simulation.elapsed()), watcher)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the waiting for rest: an expectation that still waits fails, unless the cluster is at rest now.
    fn end_rest(&mut self, now: Span, when: &str) {
        let (waiting, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| open.rests_after.is_some());
        self.open = others;
        for open in waiting {
            if open
                .rest(self.last_change, self.slowest)
                .is_none_or(|rest| rest > now)
            {
                self.not_at_rest(&open, now, when);
            }
        }
    }

    /// Fails an expectation because the cluster did not come to rest.
    fn not_at_rest(&mut self, open: &Open<'_>, now: Span, when: &str) {
        let step = self.played.steps.get_mut(open.step);
        if let Some(outcome) = step.and_then(|step| step.expectations.get_mut(open.place)) {
            outcome.held = false;
            outcome.at = now;
            let why = std::mem::take(&mut outcome.why);
            let end = match why.as_str() {
                "" => String::new(),
                why => format!(": {why}"),
            };
            outcome.why = format!("the cluster was not at rest {when}{end}");
        }
    }

    /// True if the run ended during the last step.
    fn is_cut(&self) -> bool {
        let last = self.played.steps.last();
        last.is_some_and(|step| step.state == StepState::Cut)
    }

    /// Runs until a moment, with the errands that are due on the way.
    fn live(
        &mut self,
        simulation: &mut Simulation,
        until: Span,
        watcher: &mut dyn Watcher,
    ) -> Result<ControlFlow<()>, RunError> {
        loop {
            let stop = self.next_errand(simulation, until);
            let flow = simulation.run_until(stop, &mut |simulation| {
                self.instant(simulation);
                watcher.instant(simulation)
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
            self.run_errands(simulation, watcher);
            if stop >= until {
                simulation.drain()?;
                self.instant(simulation);
                return Ok(watcher.instant(simulation));
            }
        }
    }

    /// The time of the next errand, or `until` if that is earlier.
    fn next_errand(&self, simulation: &Simulation, until: Span) -> Span {
        let wake = self.errands.next_wake();
        let wake = wake.map(|wake| wake.since(simulation.start()));
        wake.map_or(until, |wake| wake.min(until))
    }

    fn run_errands(&mut self, simulation: &mut Simulation, watcher: &mut dyn Watcher) {
        let done = self.errands.act(simulation);
        self.refuse(done, watcher);
    }

    /// Adds drains that are not done to the steps that began them.
    fn refuse(&mut self, drains: Vec<(usize, Refused)>, watcher: &mut dyn Watcher) {
        for (step, refused) in drains {
            watcher.verb(refused.at, &refused.text, Some(&refused.why));
            if let Some(step) = self.played.steps.get_mut(step) {
                step.refused.push(refused);
            }
        }
    }

    /// Runs until the drains that are under way are done, or no longer come on, for an hour at most.
    fn live_until_drained(
        &mut self,
        simulation: &mut Simulation,
        watcher: &mut dyn Watcher,
    ) -> Result<ControlFlow<()>, RunError> {
        let rest = Rest::default();
        let began = simulation.elapsed();
        while self.errands.is_draining() {
            let end = later(began, rest.within);
            let end = match self.errands.go_on() {
                true => end,
                false => later(self.last_change.max(began), rest.quiet).min(end),
            };
            let end = self.until.map_or(end, |until| until.min(end));
            if end <= simulation.elapsed() {
                break;
            }
            let stop = self.next_errand(simulation, end);
            let flow = self.live(simulation, stop, watcher)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn step(
        &mut self,
        simulation: &mut Simulation,
        number: usize,
        step: &'a Step,
        first_program: usize,
        watcher: &mut dyn Watcher,
    ) -> Result<ControlFlow<()>, RunError> {
        let began = simulation.elapsed();
        watcher.begin_step(number, step, simulation);
        self.decided = self.decided.max(began);
        let mut result = StepResult {
            began,
            ended: began,
            state: StepState::Done,
            chosen: Vec::new(),
            expectations: Vec::new(),
            refused: Vec::new(),
            facts: StepFacts::default(),
        };
        self.judge.begin_step(simulation, step);
        self.errands.step = number;
        let held_before = self.held_before(simulation, step, first_program);
        for located in &step.verbs {
            let done = verbs::act(&located.verb, &located.text, simulation, &mut self.errands);
            let why: Vec<&str> = done.iter().map(|refused| refused.why.as_str()).collect();
            let why = (!why.is_empty()).then(|| why.join("; "));
            watcher.verb(began, &located.text, why.as_deref());
            result.refused.extend(done);
        }
        self.judge.verbs_done(simulation, &self.errands.lost);
        result.chosen = std::mem::take(&mut self.errands.chosen);
        self.played.steps.push(result);
        let flow = match step.rest {
            Some(rest) => {
                let flow = self.rest(simulation, rest, watcher)?;
                if !self.is_cut() {
                    self.judge.judge_all_budgets(simulation);
                    self.judge_always(simulation, simulation.elapsed());
                }
                flow
            }
            None => {
                simulation.drain()?;
                self.instant(simulation);
                ControlFlow::Continue(())
            }
        };
        if flow.is_break() {
            return Ok(flow);
        }
        let mut expectations = Vec::new();
        for (place, expectation) in step.expect.iter().enumerate() {
            let program = first_program + place;
            expectations.push(match self.is_cut() {
                true => ExpectationOutcome::undecided(&expectation.text, simulation.elapsed()),
                false => {
                    let outcome = self.begin(simulation, number, place, expectation, program);
                    ExpectationOutcome {
                        held_at_once: outcome.held && held_before[place],
                        ..outcome
                    }
                }
            });
        }
        let facts = self.judge.facts();
        self.judge.end_step(simulation);
        let Some(result) = self.played.steps.last_mut() else {
            return Ok(flow);
        };
        (result.expectations, result.facts) = (expectations, facts);
        Ok(watcher.step(number, step, result, simulation))
    }

    /// Runs until the cluster is at rest or the time is over, and records in the last step which of the two it was. A drain
    /// that is refused changes nothing for as long as its time limit, and goes on then: until it ends there is no rest.
    fn rest(
        &mut self,
        simulation: &mut Simulation,
        rest: Rest,
        watcher: &mut dyn Watcher,
    ) -> Result<ControlFlow<()>, RunError> {
        let began = simulation.elapsed();
        let mut seen = None;
        let mut last = simulation.elapsed();
        let (state, ended) = loop {
            self.slowest = slowest_ready(simulation.server().tables());
            let quiet = rest.quiet.max(self.slowest);
            // A step that is to be shorter than that stays so.
            let within = match self.slowest > rest.quiet {
                true => rest.within.max(quiet),
                false => rest.within,
            };
            let end = later(began, within);
            let drains = self.errands.go_on();
            let stop = match drains {
                true => end,
                false => later(last, quiet).min(end),
            };
            let stop = self.until.map_or(stop, |until| until.min(stop));
            let stop = self.next_errand(simulation, stop);
            let flow = simulation.run_until(stop, &mut |simulation| {
                if simulation.server().has_changed(&mut seen) {
                    last = simulation.elapsed();
                }
                self.instant(simulation);
                watcher.instant(simulation)
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
            self.run_errands(simulation, watcher);
            if drains {
                last = simulation.elapsed();
            }
            match stop {
                stop if later(last, quiet) <= stop => break (StepState::AtRest, last),
                stop if stop >= end => break (StepState::NotAtRest, end),
                stop if self.until.is_some_and(|until| stop >= until) => {
                    break (StepState::Cut, stop);
                }
                _ => {}
            }
        };
        if let Some(step) = self.played.steps.last_mut() {
            (step.state, step.ended) = (state, ended);
        }
        if state == StepState::NotAtRest {
            self.judge.no_rest(rest.quiet);
        }
        self.decided = self.decided.max(simulation.elapsed());
        Ok(ControlFlow::Continue(()))
    }

    /// Judges an expectation at its own moment. Keeps it open if it may still become true, or must stay true.
    fn begin(
        &mut self,
        simulation: &Simulation,
        step: usize,
        place: usize,
        expectation: &'a Expectation,
        program: usize,
    ) -> ExpectationOutcome {
        let now = simulation.elapsed();
        let before = self.judge.before();
        let verdict = self.judge.judge(simulation, expectation, program, &before);
        let within = expectation.within.unwrap_or_default();
        let lasts = expectation.lasts.unwrap_or_default();
        self.decided = self.decided.max(later(now, expectation.waits()));
        let holds = verdict.holds();
        let rests = expectation.at_rest;
        let step_of = self.plan.scenario.timeline.get(step);
        let rests = rests && step_of.is_some_and(|step| step.rest.is_none());
        let waits = within > Span::default() && !holds || lasts > Span::default() && holds;
        if waits || rests {
            let within = match rests {
                true => Rest::default().within,
                false => within,
            };
            self.open.push(Open {
                step,
                place,
                expectation,
                program,
                before,
                deadline: Span(now.0.saturating_add(within.0)),
                holds_until: (holds && !rests).then(|| later(now, lasts)),
                rests_after: rests.then_some(now),
            });
        }
        ExpectationOutcome::of(&expectation.text, verdict, now)
    }

    /// Per expectation of a step: true if it holds before the verbs, though it has time to become true.
    fn held_before(&mut self, simulation: &Simulation, step: &Step, program: usize) -> Vec<bool> {
        let before = self.judge.before();
        let acts = !step.verbs.is_empty() && step.rest.is_none();
        let held = step.expect.iter().enumerate().map(|(place, expectation)| {
            acts && expectation
                .within
                .is_some_and(|within| within > Span::default())
                && expectation
                    .lasts
                    .is_none_or(|lasts| lasts == Span::default())
                && self
                    .judge
                    .judge(simulation, expectation, program + place, &before)
                    .holds()
        });
        held.collect()
    }

    /// Judges open expectations, and those of `always` if something was written: without a write their result is the
    /// same.
    fn instant(&mut self, simulation: &Simulation) {
        let now = simulation.elapsed();
        let is_changed = simulation.server().has_changed(&mut self.seen);
        if is_changed {
            self.judge.observe(simulation);
        }
        self.judge_open(simulation, now, is_changed);
        if is_changed {
            self.last_change = now;
            self.judge_always(simulation, now);
        }
        self.n_events = simulation.server().events().len();
    }

    fn judge_open(&mut self, simulation: &Simulation, now: Span, is_changed: bool) {
        let mut still_open = Vec::new();
        for mut open in std::mem::take(&mut self.open) {
            let (expectation, program) = (open.expectation, open.program);
            let rest = open.rest(self.last_change, self.slowest);
            if rest.is_some_and(|rest| rest < now || rest == now && !is_changed) {
                // The result after the last write also holds at rest.
                continue;
            }
            if rest.is_some() && now > open.deadline {
                self.not_at_rest(&open, now, "after an hour");
                continue;
            }
            if open.holds_until.is_some_and(|until| now > until) {
                // Nothing changes between instants: the claim held long enough, whatever this instant changes.
                continue;
            }
            if open.holds_until.is_none() && now > open.deadline {
                // Nothing changes between instants: the claim did not become true in time.
                continue;
            }
            let verdict = self
                .judge
                .judge(simulation, expectation, program, &open.before);
            // A claim that must stay true is not broken where there is nothing to judge.
            let is_kept = verdict.answer == Answer::Nothing && open.holds_until.is_some();
            let holds = verdict.holds() || is_kept;
            let decided = open.rests_after.is_none()
                && match (open.holds_until, holds) {
                    (Some(until), true) => now >= until,
                    (Some(_), false) => true,
                    (None, true) => {
                        let lasts = open.expectation.lasts.unwrap_or_default();
                        open.holds_until = Some(Span(now.0.saturating_add(lasts.0)));
                        lasts == Span::default()
                    }
                    (None, false) => now >= open.deadline,
                };
            if let Some(step) = self.played.steps.get_mut(open.step)
                && let Some(place) = step.expectations.get_mut(open.place)
                && !is_kept
            {
                *place = ExpectationOutcome::of(&expectation.text, verdict, now);
            }
            if !decided {
                still_open.push(open);
            }
        }
        self.open = still_open;
    }

    /// Judges the claims of `always`. A moment at which there is nothing to judge, such as pods that are all still on
    /// no node, is passed over.
    fn judge_always(&mut self, simulation: &Simulation, now: Span) {
        let before = self.judge.before();
        for (number, expectation) in self.plan.scenario.always.iter().enumerate() {
            if matches!(self.always[number], Always::Broken(_)) {
                continue;
            }
            let verdict = self.judge.judge(simulation, expectation, number, &before);
            match (verdict.answer, &mut self.always[number]) {
                (Answer::Nothing, Always::Waits(why)) => *why = verdict.why,
                (Answer::Nothing, _) => {}
                (Answer::Yes, standing) => *standing = Always::Holds,
                (Answer::No | Answer::Unknown, standing) => {
                    let mut broken = ExpectationOutcome::of(&expectation.text, verdict, now);
                    let recorded = simulation.server().events().from(self.n_events);
                    let last = recorded.last();
                    broken.cause =
                        last.map(|e| format!("{} {}: {}", e.regarding, e.reason, e.note));
                    *standing = Always::Broken(broken);
                }
            }
        }
    }

    fn finish(mut self, simulation: &Simulation, is_partial: bool) -> Played {
        let now = simulation.elapsed();
        // In a run that was ended early, open claims may still become true.
        let is_cut = self.played.is_cut;
        if !is_cut {
            self.end_rest(now, "when the run ended");
        }
        for open in &self.open {
            let step = self.played.steps.get_mut(open.step);
            let Some(outcome) = step.and_then(|step| step.expectations.get_mut(open.place)) else {
                continue;
            };
            match open.holds_until {
                None => outcome.is_open |= is_cut && open.deadline > now,
                // It held so far, and has to for longer.
                Some(until) if until > now => {
                    let left = time_text(Span(until.0.saturating_sub(now.0)));
                    outcome.held = false;
                    outcome.is_open = is_cut;
                    outcome.why = format!("it held, and the run ended {left} too early to tell");
                    outcome.at = now;
                }
                Some(_) => {}
            }
        }
        self.judge_creation(simulation, now);
        if !is_cut {
            self.judge.judge_all_budgets(simulation);
            self.judge_always(simulation, now);
        }
        let always = self.plan.scenario.always.iter().zip(self.always);
        self.played.always = always
            .map(|(expectation, standing)| match standing {
                Always::Broken(outcome) => outcome,
                Always::Holds => {
                    ExpectationOutcome::of(&expectation.text, Verdict::new(true, ""), now)
                }
                Always::Waits(why) => ExpectationOutcome {
                    is_open: is_cut,
                    ..ExpectationOutcome::of(&expectation.text, never_judged(&why), now)
                },
            })
            .collect();
        self.played.ended = now;
        self.played.is_partial = is_partial;
        self.played
    }

    /// Judges the last step of a Scenario that expects nothing. A claim about every moment would fail for a quota that
    /// holds a rollout up, and a claim about the moment of the step for what its controllers have yet to do.
    fn judge_creation(&mut self, simulation: &Simulation, now: Span) {
        let scenario = &self.plan.scenario;
        let is_whole = self.played.steps.len() == scenario.timeline.len();
        if let Some(last) = self.played.steps.last_mut()
            && is_whole
            && scenario.expects_nothing()
        {
            let verdict = self.judge.created(simulation);
            last.expectations
                .push(ExpectationOutcome::of(POD_CREATION, verdict, now));
        }
    }
}

/// The verdict on a claim of `always` about something that never was there.
fn never_judged(why: &str) -> Verdict {
    Verdict::of(Answer::Nothing, format!("it was never judged: {why}"))
}

fn later(time: Span, by: Span) -> Span {
    Span(time.0.saturating_add(by.0))
}
