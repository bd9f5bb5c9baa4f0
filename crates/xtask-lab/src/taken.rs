//! CPU time and memory of a process, from Linux.

use anyhow::Context;

/// What a process has taken since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Taken {
    /// Seconds of CPU time, its own and the kernel's for it.
    pub(crate) cpu: f64,
    /// MiB that it holds now.
    pub(crate) resident: f64,
    /// The most MiB that it ever held.
    pub(crate) peak: f64,
}

impl Taken {
    /// Of the process with this id.
    ///
    /// # Errors
    /// There is no such process, or no `/proc`.
    pub(crate) fn of(id: u32) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{id}/{name}");
            std::fs::read_to_string(&path).context(path)
        };
        Self::read(&read("stat")?, &read("status")?).context("/proc is not as it was")
    }

    fn read(stat: &str, status: &str) -> Option<Self> {
        /// Of `/proc/PID/stat`, in a second: part of Linux' interface.
        const TICKS: f64 = 100.0;
        // The name in parentheses may hold anything; fields are numbered from the state, the third.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let mebibytes = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: f64 = rest.split_whitespace().next()?.parse().ok()?;
            Some(kibibytes / 1024.0)
        };
        Some(Self {
            cpu: (ticks(14)? + ticks(15)?) / TICKS,
            resident: mebibytes("VmRSS:")?,
            peak: mebibytes("VmHWM:")?,
        })
    }
}

#[test]
fn the_kernels_words_are_read() {
    let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 3 0 99";
    let status = "Name:\ta\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\n";
    let taken = Taken::read(stat, status);
    let expected = Taken {
        cpu: 1.75,
        resident: 2.0,
        peak: 4.0,
    };
    assert_eq!(taken, Some(expected));
    assert_eq!(Taken::read("", status), None);
}
