//! The table of results with bounds.

use std::fmt;

use super::phases::Asks;
use super::victim::PODS;

/// A scale-up may take this many times as long as in quiet times.
const TIMES_MAX: f64 = 1.5;

/// Under attacks of strangers, a scale-up may take this many seconds longer instead.
const LATER_MAX: f64 = 2.0;

/// A process may have this many times the memory of quiet times.
const MEMORY_TIMES_MAX: f64 = 3.0;

/// The phase without an attack that ends each round.
pub(super) const CALM: &str = "calm";

/// At rest, after a round, a process may have this many times the memory that it had after the second one.
const REST_TIMES_MAX: f64 = 1.2;

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Report {
    rows: Vec<Row>,
    broken: Vec<String>,
}

/// The result of a phase; memory and CPU have one figure for each process.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) asks: Asks,
    pub(super) n_scale_ups: usize,
    /// The smallest number of pods that were ready at the end of a scale-up.
    pub(super) ready: usize,
    /// Seconds until 100 pods were ready: the median of the scale-ups.
    pub(super) seconds: f64,
    /// The same in quiet times, or of the control plane alone.
    pub(super) quiet: f64,
    /// The share of probes that may be late.
    pub(super) late_max: f64,
    /// Milliseconds from a pod's creation to its binding, of 99 in 100 pods.
    pub(super) wait: f64,
    pub(super) answered: usize,
    pub(super) asked: usize,
    /// Seconds.
    pub(super) longest_probe: f64,
    pub(super) names: Vec<&'static str>,
    /// MiB in quiet times.
    pub(super) quiet_memory: Vec<f64>,
    /// The most MiB.
    pub(super) peaks: Vec<f64>,
    /// MiB at the end.
    pub(super) finals: Vec<f64>,
    /// Cores.
    pub(super) cpu: Vec<f64>,
    /// The output of the attack.
    pub(super) attacked: String,
}

impl Report {
    /// Takes in a row; one that is tried again is shown, and does not count.
    pub(super) fn push(&mut self, row: Row, counts: bool) {
        if counts {
            let broken = row.broken().into_iter();
            self.broken
                .extend(broken.map(|broken| format!("{}: {broken}", row.name)));
        }
        self.rows.push(row);
    }

    /// The newest row of a phase, if it was played.
    pub(super) fn newest(&self, name: &str) -> Option<&Row> {
        self.rows.iter().rev().find(|row| row.name == name)
    }

    /// Whether no bar is broken.
    pub(super) fn is_met(&self) -> bool {
        self.broken().is_empty()
    }

    /// The bars that are broken.
    fn broken(&self) -> Vec<String> {
        let mut broken = self.broken.clone();
        broken.extend(self.grown());
        broken
    }

    /// The processes that keep more from round to round. The first round fills what is kept for use again.
    fn grown(&self) -> Vec<String> {
        let rests = self.rows.iter().filter(|row| row.name == CALM);
        let rests: Vec<&Row> = rests.collect();
        let (Some(second), Some(last)) = (rests.get(1), rests.last()) else {
            return Vec::new();
        };
        let of = last.names.iter().zip(&last.finals).zip(&second.finals);
        let grown = of.filter_map(|((name, last), second)| {
            let times = last / second;
            (times > REST_TIMES_MAX)
                .then(|| format!("{CALM}: {name} has {times:.1} times the memory of round 2"))
        });
        grown.collect()
    }
}

impl Row {
    /// If the attack slows the control plane itself, the bars for strew are those of the control plane.
    pub(super) fn compare_with(&mut self, control: Option<&Self>) {
        if let Some(control) = control {
            self.quiet = self.quiet.max(control.seconds);
            self.late_max = TIMES_MAX * control.late();
        }
    }

    /// The share of probes that are late.
    fn late(&self) -> f64 {
        (self.asked - self.answered) as f64 / self.asked.max(1) as f64
    }

    fn ratio(&self) -> f64 {
        self.seconds / self.quiet
    }

    /// Whether it breaks no bar.
    pub(super) fn is_met(&self) -> bool {
        self.broken().is_empty()
    }

    /// The bars that it breaks.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.asks == Asks::Nothing {
            return broken;
        }
        if self.ready < PODS {
            broken.push(format!("{} of {PODS} pods are ready", self.ready));
        }
        let is_prompt = self.asks == Asks::Promptness && self.seconds <= self.quiet + LATER_MAX;
        if self.asks != Asks::NoSpeed && self.ratio() > TIMES_MAX && !is_prompt {
            broken.push(format!("pods take {:.2} times as long", self.ratio()));
        }
        if self.late() > self.late_max {
            let late = self.asked - self.answered;
            broken.push(format!("{late} of {} probes are late", self.asked));
        }
        for (n, name) in self.names.iter().enumerate() {
            let times = self.peaks[n] / self.quiet_memory[n];
            if times > MEMORY_TIMES_MAX {
                broken.push(format!("{name} has {times:.1} times the memory"));
            }
        }
        broken
    }
}

/// As it happens.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:18} {} pods in {:.2} s ({:.2} times {:.2} s, {} scale-ups), bound in {:.0} ms; probes {}/{}, longest {:.2} s",
            self.name,
            self.ready,
            self.seconds,
            self.ratio(),
            self.quiet,
            self.n_scale_ups,
            self.wait,
            self.answered,
            self.asked,
            self.longest_probe,
        )?;
        for broken in self.broken() {
            write!(f, "\n  BROKEN {broken}")?;
        }
        if !self.attacked.is_empty() {
            write!(f, "\n  the attack: {}", self.attacked)?;
        }
        Ok(())
    }
}

/// A table of Markdown.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rows.first().map(|row| row.names.join(", "));
        let names = names.unwrap_or_default();
        writeln!(
            f,
            "| phase | {PODS} pods, s | times quiet | bound p99, ms | probes | longest, s | most memory, MiB | at the end | CPU, cores |"
        )?;
        writeln!(f, "|{}", "---|".repeat(9))?;
        for row in &self.rows {
            let ready = match row.ready {
                PODS => String::new(),
                ready => format!(" ({ready})"),
            };
            writeln!(
                f,
                "| {} | {:.2}{ready} | {:.2} | {:.0} | {}/{} | {:.2} | {} | {} | {} |",
                row.name,
                row.seconds,
                row.ratio(),
                row.wait,
                row.answered,
                row.asked,
                row.longest_probe,
                each(&row.peaks, 0),
                each(&row.finals, 0),
                each(&row.cpu, 2),
            )?;
        }
        writeln!(f, "\nMemory and CPU: {names}.")?;
        if let Some(row) = self.rows.first() {
            writeln!(
                f,
                "Memory in quiet times: {} MiB.",
                each(&row.quiet_memory, 0)
            )?;
        }
        writeln!(
            f,
            "Asked: {PODS} pods within {TIMES_MAX} times the quiet time (attacks and calm), every probe within 1 s, \
             memory within {MEMORY_TIMES_MAX} times the quiet one, and after a round within {REST_TIMES_MAX} times that \
             after the second; pods-large beside pods-control, which never reaches strew."
        )?;
        match self.broken().as_slice() {
            [] => writeln!(f, "No bar is broken."),
            broken => broken
                .iter()
                .try_for_each(|broken| writeln!(f, "BROKEN {broken}")),
        }
    }
}

fn each(figures: &[f64], digits: usize) -> String {
    let each: Vec<String> = figures.iter().map(|f| format!("{f:.digits$}")).collect();
    each.join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            name: "a",
            asks: Asks::Speed,
            n_scale_ups: 1,
            ready: PODS,
            seconds: 3.0,
            quiet: 2.0,
            late_max: 0.0,
            wait: 5.0,
            answered: 9,
            asked: 9,
            longest_probe: 0.1,
            names: vec!["p"],
            quiet_memory: vec![10.0],
            peaks: vec![30.0],
            finals: vec![20.0],
            cpu: vec![0.5],
            attacked: String::new(),
        }
    }

    #[test]
    fn each_bar_can_be_broken() {
        assert!(row().is_met());
        let broken: [fn(&mut Row); 4] = [
            |row| row.seconds = 3.1,
            |row| row.ready = 99,
            |row| row.answered = 8,
            |row| row.peaks[0] = 31.0,
        ];
        for change in broken {
            let mut row = row();
            change(&mut row);
            assert_eq!(row.broken().len(), 1, "{:?}", row.broken());
        }
        let mut fault = row();
        (fault.asks, fault.seconds) = (Asks::NoSpeed, 60.0);
        assert!(fault.is_met());
    }

    #[test]
    fn what_the_control_plane_does_by_itself_is_no_fault_of_strews() {
        let mut control = row();
        (control.asks, control.seconds, control.answered) = (Asks::Nothing, 20.0, 6);
        assert!(control.is_met());
        let mut beside = row();
        (beside.seconds, beside.answered) = (29.0, 7);
        assert!(!beside.is_met());
        beside.compare_with(Some(&control));
        assert!(beside.is_met());
        beside.answered = 4;
        assert!(!beside.is_met());
    }

    #[test]
    fn memory_at_rest_that_grows_from_round_to_round_breaks_a_bar() {
        let mut report = Report::default();
        for (mib, is_met) in [
            (10.0, true),
            (20.0, true),
            (24.0, true),
            (24.1, false),
            (20.0, true),
        ] {
            let mut attacked = row();
            attacked.finals[0] = 30.0;
            report.push(attacked, true);
            let mut calm = row();
            (calm.name, calm.finals[0]) = (CALM, mib);
            report.push(calm, true);
            assert_eq!(report.is_met(), is_met, "{mib}");
        }
    }

    #[test]
    fn a_row_that_is_tried_again_does_not_count() {
        let mut late = row();
        late.answered = 0;
        let mut report = Report::default();
        report.push(late.clone(), false);
        assert!(report.is_met());
        report.push(late, true);
        assert!(!report.is_met());
        assert!(
            report
                .to_string()
                .ends_with("BROKEN a: 9 of 9 probes are late\n")
        );
    }
}
