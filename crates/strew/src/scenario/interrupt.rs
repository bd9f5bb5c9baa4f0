//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_shutdown};

use super::EXIT_INTERRUPTED;
use crate::failure::Failure;

/// Set by the first Ctrl-C; the second one ends the program at once.
pub(super) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    // In this order: the first signal finds the flag unset.
    register_conditional_shutdown(SIGINT, i32::from(EXIT_INTERRUPTED), Arc::clone(&flag))
        .and_then(|_| register(SIGINT, Arc::clone(&flag)))
        .map_err(Failure::outside)?;
    Ok(flag)
}
