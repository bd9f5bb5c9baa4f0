//! CPU, memory and file descriptors of the process, from `/proc`; without `/proc` there are no such metrics.

use strew_scheduler::metrics::{Family, Value};

use super::catalogue;

/// Ticks of `/proc/PID/stat` per second: a constant of Linux' interface, independent of the kernel's own clock.
const TICKS: u64 = 100;

/// The metrics.
pub fn families() -> Vec<Family> {
    let mut families = Vec::new();
    let stat = read("/proc/self/stat");
    // The name in parentheses may contain any text. Fields are counted from the state, which is the third.
    let fields: Vec<&str> = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.split(' ').collect())
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    if let (Some(user), Some(system)) = (field(14), field(15)) {
        let seconds = Value::Number((user + system) as f64 / TICKS as f64);
        families.push(Family::of(&catalogue::PROCESS_CPU, seconds));
    }
    let status = read("/proc/self/status");
    let mut gauge = |info, number: Option<f64>| {
        if let Some(number) = number {
            families.push(Family::of(info, Value::Number(number)));
        }
    };
    let kilobytes = |name| Some(1024.0 * number_after(&status, name)?);
    gauge(&catalogue::PROCESS_RESIDENT, kilobytes("VmRSS:"));
    gauge(&catalogue::PROCESS_VIRTUAL, kilobytes("VmSize:"));
    let open = std::fs::read_dir("/proc/self/fd").map(Iterator::count);
    gauge(&catalogue::PROCESS_OPEN_FDS, open.ok().map(|n| n as f64));
    let limits = read("/proc/self/limits");
    let limit = number_after(&limits, "Max open files");
    gauge(&catalogue::PROCESS_MAX_FDS, limit);
    let booted = number_after(&read("/proc/stat"), "btime");
    let started = field(22).map(|ticks| ticks as f64 / TICKS as f64);
    let started = booted.zip(started).map(|(booted, after)| booted + after);
    gauge(&catalogue::PROCESS_START, started);
    families
}

/// The version of strew, and of Kubernetes.
pub fn build(version: &str, kubernetes: &str) -> Vec<Family> {
    let mut family = Family::new(&catalogue::BUILD);
    let labels = [version.to_owned().into(), kubernetes.to_owned().into()];
    family.push(labels, Value::Number(1.0));
    vec![family]
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The number after a name at the beginning of a line.
fn number_after(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_all_of_it() {
        let families = families();
        let told: Vec<&str> = families.iter().map(|family| family.info.name).collect();
        let all = catalogue::ALL.iter().map(|info| info.name);
        let all: Vec<&str> = all.filter(|name| name.starts_with("process_")).collect();
        assert_eq!(told, all);
        let number = |info| {
            let mut families = families.iter();
            match families.find(|family| family.info == info)?.samples[0].value {
                Value::Number(number) => Some(number),
                _ => None,
            }
        };
        assert!(number(&catalogue::PROCESS_RESIDENT) > Some(1e6));
        assert!(number(&catalogue::PROCESS_OPEN_FDS) > Some(2.0));
        // After 2020: an absolute time, not a time since boot.
        assert!(number(&catalogue::PROCESS_START) > Some(1.57e9));
    }
}
