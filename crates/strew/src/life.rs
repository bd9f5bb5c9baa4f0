//! A life that is played for the sake of one look at it.

use std::ops::ControlFlow;

use anyhow::anyhow;
use strew_model::time::Span;
use strew_sim::Simulation;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::setup::Setup;
use crate::story;
use strew_view::moment::Frame;

/// When to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before anybody has acted.
    Start,
    /// So long after the start.
    At(Span),
    /// When it is over; of the built-in story, when its first step is.
    End,
}

/// What looks.
pub(crate) type Look<'a> = &'a mut dyn FnMut(&Simulation, &mut Frame);

/// What can be played any number of times, alike.
pub(crate) trait Life {
    /// Plays it until then, and looks once.
    ///
    /// # Errors
    /// Some instant never ends.
    fn look(&self, when: When, progress: &Progress, look: Look<'_>) -> Result<(), Failure>;
}

impl Life for Setup {
    fn look(&self, when: When, progress: &Progress, look: Look<'_>) -> Result<(), Failure> {
        let (mut simulation, mut frame) = self.begin();
        match when {
            When::Start => {}
            When::At(at) => {
                let ran = simulation.run_until(at, &mut |_| ControlFlow::Continue(()));
                ran.map(drop)
                    .map_err(|stuck| Failure::outside(anyhow!("{stuck}")))?;
            }
            When::End => story::deploy(&mut simulation, &mut frame, progress)?,
        }
        look(&simulation, &mut frame);
        Ok(())
    }
}
