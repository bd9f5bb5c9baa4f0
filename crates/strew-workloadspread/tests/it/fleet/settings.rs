//! The settings of the machines of a fleet.

use strew_model::{Prng, Span};
use strew_workloadspread::admission::Limits;
use strew_workloadspread::controller;

use crate::world::alone;

/// The settings of the machines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) admission: Limits,
    pub(super) controller: controller::Limits,
}

impl Settings {
    pub(super) fn production() -> Self {
        Self {
            admission: Limits::production(),
            controller: controller::Limits::production(),
        }
    }

    /// Each request has its own write, and the controller makes no pauses: more writes conflict.
    pub(super) fn hasty() -> Self {
        Self {
            admission: alone(),
            controller: controller::Limits {
                pause: Span::default(),
                ..controller::Limits::production()
            },
        }
    }
}

/// Settings near those of production.
pub(super) fn drawn_settings(dice: &mut Prng) -> Settings {
    let mut ms = |of: &[u64]| Span::from_millis(*dice.pick(of));
    let gather_within = ms(&[0, 20, 80, 300]);
    let (news_within, lost_after) = (ms(&[0, 1_000]), ms(&[1_000, 10_000]));
    let (pause, pause_max) = (ms(&[0, 40, 500]), ms(&[40, 1_000, 5_000]));
    Settings {
        admission: Limits {
            batch_max: *dice.pick(&[1, 3, 1_000]),
            waiting_max: *dice.pick(&[2, 10_000]),
            lost_after,
            gather_within,
            news_within,
            sweep_min: *dice.pick(&[1, 8, 512]),
        },
        controller: controller::Limits {
            pause,
            pause_max,
            sweep_min: *dice.pick(&[1, 8, 512]),
            ..controller::Limits::production()
        },
    }
}
