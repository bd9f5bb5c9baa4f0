//! Settings of the machines that differ from production. They are drawn from a seed, printed with a story, and reset
//! one by one when a story is reduced.

use std::fmt::{self, Display, Formatter};

use strew_model::Prng;
use strew_model::time::Span;

use crate::limits::MachineLimits;

/// One story in this many changes a given setting.
const DRAWN_IN: u64 = 4;

/// A setting that may be drawn.
struct Setting {
    /// Its machine, and its path there.
    name: &'static str,
    draw: fn(&mut MachineLimits, &mut Prng),
    restore: fn(&mut MachineLimits),
    text: fn(&MachineLimits) -> String,
}

macro_rules! settings {
    ($($machine:ident $(. $field:ident)+ : [$($value:expr),+];)+) => {
        &[$(Setting {
            name: concat!(stringify!($machine), $(".", stringify!($field)),+),
            draw: |limits, dice| limits.$machine $(.$field)+ = *dice.pick(&[$($value),+]),
            restore: |limits| {
                limits.$machine $(.$field)+ = MachineLimits::production().$machine $(.$field)+;
            },
            text: |limits| limits.$machine $(.$field)+ .to_string(),
        }),+]
    };
}

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// All settings that are drawn, with their values. Waits after errors stay shorter than the quiet time that counts as
/// rest.
const SETTINGS: &[Setting] = settings! {
    scheduler.queue.backoff.initial: [ms(2_000), ms(5_000)];
    scheduler.queue.backoff.max: [ms(5_000), ms(60_000)];
    scheduler.queue.unschedulable_max: [ms(30_000), ms(480_000)];
    scheduler.queue.early_every: [ms(50), ms(1_000)];
    admission.batch_max: [1, 3, 16];
    admission.waiting_max: [1, 3, 16];
    admission.lost_after: [ms(2_000), ms(30_000)];
    admission.gather_within: [ms(0), ms(20), ms(500)];
    admission.news_within: [ms(0), ms(200), ms(3_000)];
    spreads.workers: [1, 8];
    spreads.backoff: [ms(1), ms(1_000)];
    spreads.backoff_max: [ms(1_000), ms(60_000)];
    spreads.retries_qps: [0, 1];
    spreads.retries_burst: [1, 10];
    spreads.pause: [ms(0), ms(5), ms(500)];
    spreads.pause_max: [ms(40), ms(5_000)];
    spreads.lost_after: [ms(10_000), ms(60_000)];
    placement.retry_first: [ms(1), ms(1_000)];
    placement.retry_max: [ms(5_000), ms(60_000)];
    placement.lost_after: [ms(60_000)];
    scheduler.sweep_min: [1, 8, 64];
    admission.sweep_min: [1, 8, 64];
    spreads.sweep_min: [1, 8, 64];
    placement.sweep_min: [1, 8, 64];
    reviews.turns.in_hand_max: [1, 4];
    reviews.turns.budget: [ms(0), ms(20)];
    reviews.turns.credit: [ms(0), ms(100)];
    reviews.cost: [ms(1), ms(30), ms(600)];
    keep.settle: [ms(0), ms(5_000)];
    keep.settle_max: [ms(5_000), ms(30_000)];
    keep.unready_after: [ms(0), ms(10_000)];
    keep.backoff: [ms(100), ms(5_000)];
    keep.backoff_max: [ms(5_000), ms(30_000)];
    keep.sweep_min: [1, 8, 64];
};

/// Draws settings for the machines of these names, from a generator of their own: the rest of a story does not depend
/// on the number of settings.
pub(super) fn draw(seed: u64, machines: &[&str]) -> MachineLimits {
    let mut dice = Prng::new(seed ^ 0x5e77_1465_0000_0001);
    let mut limits = MachineLimits::production();
    for setting in SETTINGS {
        let machine = setting.name.split('.').next().unwrap_or_default();
        if machines.contains(&machine) && dice.chance(1, DRAWN_IN) {
            (setting.draw)(&mut limits, &mut dice);
        }
    }
    limits
}

/// Functions that each set one setting back to production's value.
pub(super) fn restorers() -> impl Iterator<Item = impl Fn(&mut MachineLimits)> {
    let all = SETTINGS.iter();
    all.map(|setting| |limits: &mut MachineLimits| (setting.restore)(limits))
}

/// Settings as a story prints them: one line with those that differ from production, or nothing.
pub(super) struct Written<'a>(pub(super) &'a MachineLimits);

impl Display for Written<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let production = MachineLimits::production();
        let told: Vec<String> = SETTINGS
            .iter()
            .map(|setting| {
                (
                    setting.name,
                    (setting.text)(self.0),
                    (setting.text)(&production),
                )
            })
            .filter(|(_, text, usual)| text != usual)
            .map(|(name, text, _)| format!("{name}: {text}"))
            .collect();
        match told.is_empty() {
            true => Ok(()),
            false => writeln!(f, "settings: {{{}}}", told.join(", ")),
        }
    }
}
