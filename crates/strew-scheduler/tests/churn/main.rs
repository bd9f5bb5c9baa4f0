//! What is gone is freed: a scheduler that has seen many Jobs come and go is as large and as quick as one that has seen
//! few. The allocator counts for the whole process, so this is a program of its own with one test.

mod life;

use life::Churn;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What the last pods of a life took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// The largest memory in use on the way.
    bytes: usize,
    /// How often a class was weighed for a census.
    weighed: u64,
}

/// Runs until `pods` have come, and measures the last 5,000.
fn until(churn: &mut Churn, pods: usize) -> Taken {
    const WINDOW: usize = 5_000;
    (churn.pods()..pods - WINDOW).for_each(|_| churn.step());
    ALLOCATOR.reset_peak_usage();
    let before = churn.scheduler.cluster().weighed();
    (0..WINDOW).for_each(|_| churn.step());
    Taken {
        bytes: ALLOCATOR.peak_usage(),
        weighed: churn.scheduler.cluster().weighed() - before,
    }
}

#[test]
fn jobs_that_are_gone_cost_neither_memory_nor_work() {
    let mut churn = Churn::new();
    let early = until(&mut churn, 10_000);
    let late = until(&mut churn, 40_000);
    assert!(late.bytes * 10 <= early.bytes * 12, "{early:?}, {late:?}");
    assert!(
        late.weighed * 10 <= early.weighed * 12,
        "{early:?}, {late:?}"
    );
    assert_eq!(churn.scheduler.audit(), Ok(()));
}
