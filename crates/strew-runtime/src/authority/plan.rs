//! Which step about certificates is due: decisions without keys, clock or API server.
//!
//! A CA is replaced in four steps, so that every certificate in use is trusted by every client at every moment:
//!
//! 1. The CA signs for two thirds of its life.
//! 2. The next CA is added to `caBundle`; the old one still signs.
//! 3. After the overlap, and once all clients are known to trust it, the next CA signs; both are trusted.
//! 4. After another overlap the old CA is removed from `caBundle`.

use strew_model::time::{Instant, Span};

/// Certificates are valid from this long before they are made: clocks of other hosts may be behind.
pub const BACKDATED: Span = Span::from_secs(3600);

/// The validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The first valid moment.
    pub from: Instant,
    /// The first moment at which it is no longer valid.
    pub until: Instant,
}

impl Period {
    /// When it was made.
    fn made(self) -> Instant {
        (self.from + BACKDATED).min(self.until)
    }

    /// When two thirds of its life are over: the time to replace it.
    fn is_old_at(self) -> Instant {
        let made = self.made();
        made + Span(self.until.since(made).0 / 3 * 2)
    }
}

/// The lifetimes of certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of a CA.
    pub authority: Span,
    /// Of a serving certificate.
    pub serving: Span,
    /// How long the next CA is trusted before it signs, and the previous CA after it has signed last.
    pub overlap: Span,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            authority: Span::from_secs(3_650 * DAY),
            serving: Span::from_secs(365 * DAY),
            overlap: Span::from_secs(DAY),
        }
    }
}

/// The known CAs. A CA that cannot sign is neither `signing` nor `coming`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuthorityState {
    /// The CA that signs.
    pub signing: Option<Period>,
    /// Since when it signs; `None`: since it was made.
    pub since: Option<Instant>,
    /// The next CA, which is already trusted.
    pub coming: Option<Period>,
    /// The previous CA, which is still trusted.
    pub leaving: Option<Period>,
}

/// A change of the CAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorityStep {
    /// Makes a CA, which signs at once, because none can sign.
    Make,
    /// Makes the next CA, which is trusted from now on.
    Announce,
    /// Lets the next CA sign from now on; the previous one stays trusted.
    Promote,
    /// Removes the previous CA from the trusted ones.
    Retire,
}

/// The result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The step is due now.
    Do(AuthorityStep),
    /// No step is due before this moment, unless something changes.
    Wait(Instant),
}

/// The next step. `is_published`: true if all clients are known to trust the announced CAs.
pub fn next(
    view: &AuthorityState,
    now: Instant,
    lifetimes: &Lifetimes,
    is_published: bool,
) -> Next {
    let is_good = |period: &Period| now < period.until;
    let coming = view.coming.filter(is_good);
    let Some(signing) = view.signing.filter(is_good) else {
        // Some clients may not trust the next CA yet. But without a signing CA, no certificate is trusted at all.
        return Next::Do(match coming {
            Some(_) => AuthorityStep::Promote,
            None => AuthorityStep::Make,
        });
    };
    let mut again = signing.until;
    if let Some(leaving) = view.leaving {
        let since = view.since.unwrap_or_else(|| signing.made());
        let until = leaving.until.min(since + lifetimes.overlap);
        if now >= until {
            return Next::Do(AuthorityStep::Retire);
        }
        again = again.min(until);
    }
    match coming {
        Some(coming) => {
            let due = coming.made() + lifetimes.overlap;
            if now >= due && is_published {
                return Next::Do(AuthorityStep::Promote);
            }
            // When the overlap is over, the change of `is_published` triggers the next call.
            Next::Wait(if now < due { again.min(due) } else { again })
        }
        None if now >= signing.is_old_at() => Next::Do(AuthorityStep::Announce),
        None => Next::Wait(again.min(signing.is_old_at())),
    }
}

/// Until when the server can keep its certificate; `None`: it needs a new one now. `shown`: the validity of the present
/// certificate, and whether the signing CA has signed it.
pub fn serving_lasts(shown: Option<(Period, bool)>, now: Instant) -> Option<Instant> {
    let (period, is_of_ours) = shown?;
    let until = period.is_old_at();
    (is_of_ours && now < until).then_some(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVES: Lifetimes = Lifetimes {
        authority: Span::from_secs(300),
        serving: Span::from_secs(30),
        overlap: Span::from_secs(10),
    };

    /// Seconds after a moment that is far from both ends of time.
    const fn at(second: u64) -> Instant {
        Instant::from_secs(1_795_000_000 + second)
    }

    /// The validity of a certificate made at a second, with a life of 300 seconds.
    fn made(second: u64) -> Option<Period> {
        Some(Period {
            from: at(second) - BACKDATED,
            until: at(second + 300),
        })
    }

    fn signing(second: u64) -> AuthorityState {
        AuthorityState {
            signing: made(second),
            ..AuthorityState::default()
        }
    }

    #[track_caller]
    fn check(
        view: AuthorityState,
        now: u64,
        is_published: bool,
        expected: Result<AuthorityStep, u64>,
    ) {
        let found = next(&view, at(now), &LIVES, is_published);
        let expected = expected.map_or_else(|until| Next::Wait(at(until)), Next::Do);
        assert_eq!(found, expected, "{view:?} at {now}");
    }

    #[test]
    fn an_authority_is_made_where_none_can_sign() {
        check(AuthorityState::default(), 0, true, Ok(AuthorityStep::Make));
        check(signing(0), 300, true, Ok(AuthorityStep::Make));
        check(signing(0), 9_999, false, Ok(AuthorityStep::Make));
        // A trusted CA is preferred to a new one, unless it has expired too.
        let next = |second| AuthorityState {
            coming: made(second),
            ..signing(0)
        };
        check(next(200), 300, false, Ok(AuthorityStep::Promote));
        check(next(200), 500, false, Ok(AuthorityStep::Make));
        let only_next = AuthorityState {
            signing: None,
            ..next(200)
        };
        check(only_next, 201, false, Ok(AuthorityStep::Promote));
    }

    #[test]
    fn an_authority_goes_through_its_life() {
        check(signing(0), 0, true, Err(200));
        check(signing(0), 199, true, Err(200));
        check(signing(0), 200, true, Ok(AuthorityStep::Announce));
        let both = AuthorityState {
            coming: made(200),
            ..signing(0)
        };
        check(both, 200, true, Err(210));
        check(both, 209, true, Err(210));
        // Some client does not trust it yet.
        check(both, 210, false, Err(300));
        check(both, 210, true, Ok(AuthorityStep::Promote));
        let promoted = AuthorityState {
            since: Some(at(211)),
            leaving: made(0),
            ..signing(200)
        };
        check(promoted, 211, true, Err(221));
        check(promoted, 221, true, Ok(AuthorityStep::Retire));
        let late = AuthorityState {
            since: Some(at(295)),
            ..promoted
        };
        // An expired CA is trusted by no client.
        check(late, 299, true, Err(300));
        check(late, 300, true, Ok(AuthorityStep::Retire));
        check(signing(200), 221, true, Err(400));
    }

    #[test]
    fn two_rotations_may_overlap() {
        let all = AuthorityState {
            coming: made(200),
            leaving: made(0),
            since: Some(at(205)),
            ..signing(0)
        };
        check(all, 206, true, Err(210));
        check(all, 212, false, Err(215));
        check(all, 215, false, Ok(AuthorityStep::Retire));
        // A next CA that expires before it ever signed is replaced.
        let stale = AuthorityState {
            coming: made(0),
            ..signing(100)
        };
        check(stale, 305, true, Ok(AuthorityStep::Announce));
    }

    #[test]
    fn a_server_gets_another_certificate_in_time() {
        let shown = Period {
            from: at(0) - BACKDATED,
            until: at(30),
        };
        for (shown, now, expected) in [
            (None, 0, None),
            (Some((shown, true)), 0, Some(at(20))),
            (Some((shown, true)), 19, Some(at(20))),
            (Some((shown, true)), 20, None),
            (Some((shown, true)), 5_000, None),
            (Some((shown, false)), 1, None),
        ] {
            assert_eq!(serving_lasts(shown, at(now)), expected, "{now}");
        }
    }

    /// A caller that waits as long as the answers allow never finds a moment without a signing CA, nor a certificate
    /// that is not trusted by a client that learns of each CA an overlap late.
    #[test]
    fn there_is_always_one_that_signs_and_is_trusted() {
        let mut view = AuthorityState::default();
        let (mut now, mut announced) = (0, u64::MAX);
        for _ in 0..200 {
            match super::next(&view, at(now), &LIVES, true) {
                Next::Wait(again) => {
                    let next = again.since(at(0)).0 / 1_000_000_000;
                    assert!(next > now, "time stands still at {now}");
                    assert!(view.signing.is_some_and(|p| again < p.until), "too late");
                    now = next;
                }
                Next::Do(AuthorityStep::Make) => {
                    assert_eq!(now, 0, "only the first is made in haste");
                    view.signing = made(now);
                }
                Next::Do(AuthorityStep::Announce) => {
                    view.coming = made(now);
                    announced = now;
                }
                Next::Do(AuthorityStep::Promote) => {
                    assert!(now >= announced + 10);
                    view = AuthorityState {
                        signing: view.coming,
                        since: Some(at(now)),
                        coming: None,
                        leaving: view.signing,
                    };
                }
                Next::Do(AuthorityStep::Retire) => {
                    assert!(
                        view.since
                            .is_some_and(|since| at(now) >= since + LIVES.overlap)
                    );
                    view.leaving = None;
                }
            }
        }
        assert!(now > 5_000, "{now}");
    }
}
