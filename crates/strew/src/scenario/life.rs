//! One run of a Scenario, played for the sake of one look at it.

use std::ops::ControlFlow;

use anyhow::anyhow;
use strew_scenario::format::Step;
use strew_scenario::run::{Watcher, play};
use strew_sim::Simulation;

use super::clock::clock;
use super::suite::{self, Cast, Suite};
use super::{Question, frame, say, stuck};
use crate::arguments::Context;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::life::{Life, Look, When};
use crate::progress::Progress;

/// A variant of a Scenario with a seed.
pub(crate) struct ScenarioLife {
    name: String,
    cast: Cast,
    seed: u64,
}

/// The one run that a question names; `None` if the files are wrong, which has been told.
///
/// # Errors
/// There are several Scenarios.
pub(crate) fn life(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<ScenarioLife>, Failure> {
    let staged = suite::stage(question, inputs)?;
    let Some(suites) = say(staged, question, context)? else {
        return Ok(None);
    };
    let files: Vec<String> = suites.iter().map(|suite| suite.file.clone()).collect();
    let Ok([suite]) = <[Suite; 1]>::try_from(suites) else {
        let error = anyhow!("{} files hold a Scenario each", files.len());
        let hint = format!("name one of them: {}", files.join(", "));
        return Err(Failure::input(error).with_hint(hint));
    };
    let cast = suite.variants.into_iter().next();
    Ok(cast.and_then(|cast| {
        let seed = *cast.seeds.first()?;
        Some(ScenarioLife {
            name: format!(
                "{} (variant {}, seed {seed})",
                suite.file, cast.variant.name
            ),
            cast,
            seed,
        })
    }))
}

impl Life for ScenarioLife {
    fn look(&self, when: When, progress: &Progress, look: Look<'_>) -> Result<(), Failure> {
        let mut frame = frame(&self.cast);
        if when == When::Start {
            look(&self.cast.plan.simulation(self.seed), &mut frame);
            return Ok(());
        }
        let end = self.cast.variant.scenario.end();
        let until = match when {
            When::At(at) if at > end => {
                let error = anyhow!("{} ends after {}", self.name, clock(end));
                let hint =
                    "--at is a time within the run; spec.until of the Scenario makes it longer";
                return Err(Failure::input(error).with_hint(hint));
            }
            When::At(at) => Some(at),
            _ => None,
        };
        let mut looker = Looker {
            progress,
            look: &mut |simulation| look(simulation, &mut frame),
        };
        play(&self.cast.plan, self.seed, until, &mut looker)
            .map(drop)
            .map_err(|error| stuck(&self.name, error))
    }
}

struct Looker<'a> {
    progress: &'a Progress,
    look: &'a mut dyn FnMut(&Simulation),
}

impl Watcher for Looker<'_> {
    fn step(&mut self, _number: usize, step: &Step, _simulation: &Simulation) -> ControlFlow<()> {
        self.progress.show("playing", step.at);
        ControlFlow::Continue(())
    }

    fn end(&mut self, simulation: &Simulation) {
        (self.look)(simulation);
    }
}
