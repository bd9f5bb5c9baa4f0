//! Measures what pods that are long gone cost webhook and controller: memory, and CPU time per pod, as Jobs come and
//! go. Prints JSON lines on stdout.
//!
//! The arguments: the number of pods (a million by default), and `fixed` (the strategy; Adaptive by default).

#[path = "../../../strew-scheduler/benches/decide/clock.rs"]
mod clock;
#[path = "../../tests/churn/life.rs"]
mod life;

use clock::{cpu_ns, rss_mib};
use life::Churn;
use peak_alloc::PeakAlloc;
use strew_workloadspread::{Adaptive, Strategy};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The number of pods over which CPU time is measured.
const WINDOW: usize = 2_000;

fn main() {
    let number = std::env::args().skip(1).find_map(|a| a.parse().ok());
    let pods: usize = number.unwrap_or(1_000_000);
    let strategy = match std::env::args().any(|a| a == "fixed") {
        true => Strategy::Fixed,
        false => Strategy::Adaptive(Adaptive::default()),
    };
    let mut churn = Churn::new(strategy);
    let mut at = 2_000;
    while at <= pods {
        (churn.pods()..at - WINDOW).for_each(|_| churn.step());
        ALLOCATOR.reset_peak_usage();
        let start = cpu_ns();
        (0..WINDOW).for_each(|_| churn.step());
        let us = (cpu_ns() - start) as f64 / 1e3 / WINDOW as f64;
        let peak = ALLOCATOR.peak_usage_as_mb();
        println!(
            "{{\"bench\":\"churn-workloadspread\",\"pods\":{at},\"live_mib\":{:.2},\"peak_mib\":{peak:.2},\"rss_mib\":{:.1},\"cpu_us_per_pod\":{us:.2}}}",
            ALLOCATOR.current_usage_as_mb(),
            rss_mib(),
        );
        at = match at {
            2_000 => 10_000,
            at => at + if at < 100_000 { 10_000 } else { 100_000 },
        };
    }
}
