//! Memory is freed: a webhook and a controller that have seen many Jobs come and go are as large and as fast as ones
//! that have seen few. The allocator counts for the whole process, so this is a program with one test.

mod life;

use life::Churn;
use peak_alloc::PeakAlloc;
use strew_workloadspread::{Adaptive, Strategy};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The cost of the last pods of a run.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// The largest memory use on the way, of both machines.
    bytes: usize,
    /// How often a class was compared for a census.
    weighed: u64,
}

/// Runs until this number of pods has come, and measures the last 4,000.
fn until(churn: &mut Churn, pods: usize) -> Taken {
    const WINDOW: usize = 4_000;
    (churn.pods()..pods - WINDOW).for_each(|_| churn.step());
    ALLOCATOR.reset_peak_usage();
    let weighed = |churn: &Churn| churn.admission.room().cluster().weighed();
    let before = weighed(churn);
    (0..WINDOW).for_each(|_| churn.step());
    Taken {
        bytes: ALLOCATOR.peak_usage(),
        weighed: weighed(churn) - before,
    }
}

#[test]
fn jobs_that_are_gone_cost_neither_memory_nor_work() {
    come_and_go(Strategy::Adaptive(Adaptive::default()), 10_000);
    // Fixed simulates no scheduling. Its first sweep comes after 10,000 pods.
    come_and_go(Strategy::Fixed, 14_000);
}

/// Compares the cost after `few` pods with the one after 30,000.
fn come_and_go(strategy: Strategy, few: usize) {
    let mut churn = Churn::new(strategy);
    let early = until(&mut churn, few);
    let late = until(&mut churn, 30_000);
    assert!(late.bytes * 10 <= early.bytes * 12, "{early:?}, {late:?}");
    assert!(
        late.weighed * 10 <= early.weighed * 12,
        "{early:?}, {late:?}"
    );
    assert!(churn.admission.room().queued() < 200);
    assert_eq!(churn.admission.room().cluster().audit(), Ok(()));
    assert!(churn.controller.spreads().iter().count() < 200);
}
