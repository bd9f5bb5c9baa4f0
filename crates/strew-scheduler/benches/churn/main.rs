//! What pods that are long gone cost: memory and CPU time a pod, as Jobs come and go. JSON lines on stdout.
//!
//! An argument says how many pods there shall be; a million without one.

#[path = "../decide/clock.rs"]
mod clock;
#[path = "../../tests/churn/life.rs"]
mod life;

use clock::{cpu_ns, rss_mib};
use life::Churn;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The number of pods over which CPU time is measured.
const WINDOW: usize = 2_000;

fn main() {
    let number = std::env::args().skip(1).find_map(|a| a.parse().ok());
    let pods: usize = number.unwrap_or(1_000_000);
    let mut churn = Churn::new();
    let mut at = 2_000;
    while at <= pods {
        (churn.pods()..at - WINDOW).for_each(|_| churn.step());
        ALLOCATOR.reset_peak_usage();
        let start = cpu_ns();
        (0..WINDOW).for_each(|_| churn.step());
        let us = (cpu_ns() - start) as f64 / 1e3 / WINDOW as f64;
        let peak = ALLOCATOR.peak_usage_as_mb();
        println!(
            "{{\"bench\":\"churn\",\"pods\":{at},\"live_mib\":{:.2},\"peak_mib\":{peak:.2},\"rss_mib\":{:.1},\"cpu_us_per_pod\":{us:.2}}}",
            ALLOCATOR.current_usage_as_mb(),
            rss_mib(),
        );
        at = match at {
            2_000 => 10_000,
            at => at + if at < 100_000 { 10_000 } else { 100_000 },
        };
    }
}
