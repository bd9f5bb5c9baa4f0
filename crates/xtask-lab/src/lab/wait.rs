//! Waits for conditions with deadlines: the only module of the lab that reads the clock.

use std::time::{Duration, Instant};

use anyhow::bail;

/// The moment that it is.
#[expect(
    clippy::disallowed_methods,
    reason = "real processes live in real time"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Asks again and again, with a pause between, until there is an answer.
///
/// # Errors
/// What `ask` returns as an error, at once; and a sentence with `what` if no answer came until `deadline` has passed.
pub fn until<T>(
    what: &str,
    deadline: Duration,
    pause: Duration,
    mut ask: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let begin = now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if begin.elapsed() >= deadline {
            bail!("{what}: not within {} s", deadline.as_secs());
        }
        rest(pause);
    }
}

/// Waits a moment.
#[expect(
    clippy::disallowed_methods,
    reason = "a condition of another process can only be asked for again"
)]
pub(super) fn rest(pause: Duration) {
    std::thread::sleep(pause);
}

#[test]
fn what_comes_is_waited_for_and_what_does_not_is_named() {
    let pause = Duration::from_millis(1);
    let mut asked = 0;
    let answer = until("the third", Duration::from_secs(60), pause, || {
        asked += 1;
        Ok((asked == 3).then_some(asked))
    });
    assert_eq!(answer.unwrap(), 3);
    let never = until::<()>("what never comes", Duration::ZERO, pause, || Ok(None));
    assert_eq!(
        never.unwrap_err().to_string(),
        "what never comes: not within 0 s"
    );
    let broken = until::<()>("x", Duration::from_secs(60), pause, || bail!("broken"));
    assert_eq!(broken.unwrap_err().to_string(), "broken");
}
