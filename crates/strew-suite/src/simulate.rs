//! From texts to a report, in one function.

use strew_manifest::finding::Finding;

use crate::cure;
use crate::failure::Failure;
use crate::host::{Host, Teller};
use crate::input::Input;
use crate::options::Options;
use crate::ready::Ready;
use crate::report::{self, Report};
use crate::standing::{Answer, Standings};
use crate::suite;
use crate::work::Work;

/// What came of texts.
pub enum Simulated {
    /// They cannot be played: what is wrong with them.
    Refused(Vec<Finding>),
    /// Every variant was played with every seed.
    Played(Box<Results>),
}

/// What was played, and what came of it.
pub struct Results {
    /// The scenarios.
    pub ready: Ready,
    /// Their results.
    pub answer: Answer,
}

impl Results {
    /// The report, with what a person should know.
    pub fn report(&self) -> Report<'_> {
        report::report(&self.ready.suites, &self.answer)
    }
}

/// Reads texts, plays each variant of each Scenario in them with every seed, or the built-in story of manifests, judges
/// what came of it, and adds it up. It opens no file and asks no clock.
///
/// # Errors
/// The options contradict each other or the texts, a run cannot go on, or `teller` ends it.
pub fn simulate<T: Teller>(
    inputs: Vec<Input>,
    options: &Options,
    host: &dyn Host,
    teller: &mut T,
) -> Result<Simulated, T::Error> {
    let kept = cure::kept(&inputs);
    let staged = suite::stage(options, inputs)?;
    teller.read(&staged)?;
    let findings = staged.findings();
    let Some(ready) = staged.ready(options)? else {
        return Ok(Simulated::Refused(findings));
    };
    let work = Work::new(&ready.suites, options, host)?;
    teller.begin(&ready, &work)?;
    let mut answer = work.run(Standings::new(options, &ready), teller.log())?;
    // A summary is of the files as they are: its parts are added up.
    if let Some(inputs) = kept.filter(|_| ready.story.is_some() && !options.keep.digest) {
        cure::try_all(options, &inputs, &ready, &mut answer, host)?;
    }
    Ok(Simulated::Played(Box::new(Results { ready, answer })))
}

/// The same for a face that shows nothing meanwhile.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_alone(inputs: Vec<Input>, options: &Options) -> Result<Simulated, Failure> {
    simulate(inputs, options, &crate::host::Alone, &mut ())
}
