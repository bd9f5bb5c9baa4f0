//! Measurements over time, as CSV and as SVG.

use std::fmt::Write;

use super::observer::Log;

const WIDTH: f64 = 1200.0;

const PANEL: f64 = 200.0;

const MARGIN: f64 = 60.0;

/// Colours that differ for most eyes, also in grey.
const COLOURS: [&str; 5] = ["#1b6ca8", "#d1495b", "#3c7a3c", "#8a5fbf", "#444444"];

/// One curve: its name and its points; x in seconds, y in the unit of its panel.
type Curve = (String, Vec<(f64, f64)>);

/// A row for each figure: seconds, phase, quantity, process, value.
pub(super) fn csv(log: &Log) -> String {
    let mut rows: Vec<(f64, &str, &str, f64)> = Vec::new();
    for sample in &log.samples {
        let name = log.names[sample.of];
        rows.push((sample.at, "memory_mib", name, sample.taken.resident));
        rows.push((sample.at, "cpu_seconds", name, sample.taken.cpu));
    }
    for probe in &log.probes {
        let seconds = if probe.is_ok { probe.seconds } else { f64::NAN };
        rows.push((probe.at, "probe_seconds", log.names[probe.of], seconds));
    }
    for up in &log.scale_ups {
        rows.push((up.at, "scale_up_seconds", "victim", up.seconds));
        rows.push((up.at, "bound_p99_ms", "victim", up.wait));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = "seconds,phase,figure,of,value\n".to_owned();
    for (at, figure, of, value) in rows {
        let phase = phase_at(log, at);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{at:.1},{phase},{figure},{of},{value:.4}");
    }
    text
}

fn phase_at(log: &Log, at: f64) -> &str {
    let begun = log.phases.iter().rev().find(|(begin, _)| *begin <= at);
    begun.map_or("start", |(_, name)| name)
}

/// Three panels, one above the other: memory, CPU, latencies. A vertical line begins each phase.
pub(super) fn svg(log: &Log) -> String {
    let panels = [
        ("memory, MiB", memory(log)),
        ("CPU, cores", cpu(log)),
        ("100 pods and probes, s", latencies(log)),
    ];
    let end = log.samples.iter().map(|s| s.at).fold(1.0, f64::max);
    let height = (PANEL + MARGIN) * panels.len() as f64 + MARGIN * 2.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        WIDTH + MARGIN * 2.0
    );
    let x = |at: f64| MARGIN + at / end * WIDTH;
    for (begin, name) in log.phases.iter().filter(|(_, name)| name != "quiet") {
        let (at, bottom) = (x(*begin), height - MARGIN * 2.0);
        let _ = writeln!(
            text,
            "<path d=\"M{at:.1} {MARGIN}V{bottom:.1}\" stroke=\"#ddd\"/><text transform=\"translate({at:.1} \
             {:.1}) rotate(60)\">{name}</text>",
            bottom + 10.0
        );
    }
    for (n, (title, curves)) in panels.iter().enumerate() {
        let top = MARGIN + (PANEL + MARGIN) * n as f64;
        panel(&mut text, title, curves, top, x);
    }
    text.push_str("</svg>\n");
    text
}

fn panel(text: &mut String, title: &str, curves: &[Curve], top: f64, x: impl Fn(f64) -> f64) {
    let points = curves.iter().flat_map(|(_, points)| points);
    let most = points
        .map(|(_, value)| *value)
        .fold(0.0, f64::max)
        .max(1e-9);
    let y = |value: f64| top + PANEL * (1.0 - value / most);
    let _ = writeln!(
        text,
        "<text x=\"{MARGIN}\" y=\"{:.1}\" font-weight=\"bold\">{title}</text><text x=\"4\" y=\"{:.1}\">{most:.1}</text>\
         <text x=\"4\" y=\"{:.1}\">0</text><path d=\"M{MARGIN} {top}V{:.1}H{:.1}\" fill=\"none\" stroke=\"#888\"/>",
        top - 8.0,
        top + 8.0,
        top + PANEL,
        top + PANEL,
        MARGIN + WIDTH
    );
    for (n, (name, points)) in curves.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let line: Vec<String> = points
            .iter()
            .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
            .collect();
        let _ = writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" points=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             fill=\"{colour}\">{name}</text>",
            line.join(" "),
            MARGIN + 200.0 + 110.0 * n as f64,
            top - 8.0
        );
    }
}

fn memory(log: &Log) -> Vec<Curve> {
    of_each(log, |log, of| {
        let samples = log.samples.iter().filter(|s| s.of == of);
        samples.map(|s| (s.at, s.taken.resident)).collect()
    })
}

/// Between two samples.
fn cpu(log: &Log) -> Vec<Curve> {
    of_each(log, |log, of| {
        let samples: Vec<_> = log.samples.iter().filter(|s| s.of == of).collect();
        let pairs = samples.windows(2);
        pairs
            .filter(|pair| pair[1].at > pair[0].at)
            .map(|pair| {
                let used = pair[1].taken.cpu - pair[0].taken.cpu;
                (pair[1].at, used / (pair[1].at - pair[0].at))
            })
            .collect()
    })
}

fn latencies(log: &Log) -> Vec<Curve> {
    let mut curves = of_each(log, |log, of| {
        let probes = log.probes.iter().filter(|p| p.of == of);
        probes.map(|p| (p.at, p.seconds)).collect()
    });
    let ups = log.scale_ups.iter().map(|up| (up.at, up.seconds));
    curves.push(("100 pods".to_owned(), ups.collect()));
    curves
}

fn of_each(log: &Log, points: impl Fn(&Log, usize) -> Vec<(f64, f64)>) -> Vec<Curve> {
    let names = log.names.iter().enumerate();
    names
        .map(|(of, name)| ((*name).to_owned(), points(log, of)))
        .collect()
}

#[test]
fn figures_stand_in_their_phases() {
    use super::observer::{Done, Probe, Sample};
    use crate::taken::Taken;
    let sample = |at, cpu| Sample {
        at,
        of: 0,
        taken: Taken {
            cpu,
            resident: 20.0,
            peak: 20.0,
        },
    };
    let log = Log {
        names: vec!["p"],
        samples: vec![sample(0.5, 0.0), sample(2.5, 1.0)],
        probes: vec![Probe {
            at: 1.0,
            of: 0,
            seconds: 1.2,
            is_ok: false,
        }],
        scale_ups: vec![Done {
            at: 3.0,
            seconds: 2.0,
            wait: 7.0,
        }],
        phases: vec![(0.0, "quiet".to_owned()), (2.0, "loud".to_owned())],
    };
    assert_eq!(
        csv(&log),
        "seconds,phase,figure,of,value\n\
         0.5,quiet,memory_mib,p,20.0000\n\
         0.5,quiet,cpu_seconds,p,0.0000\n\
         1.0,quiet,probe_seconds,p,NaN\n\
         2.5,loud,memory_mib,p,20.0000\n\
         2.5,loud,cpu_seconds,p,1.0000\n\
         3.0,loud,scale_up_seconds,victim,2.0000\n\
         3.0,loud,bound_p99_ms,victim,7.0000\n"
    );
    assert_eq!(cpu(&log), [("p".to_owned(), vec![(2.5, 0.5)])]);
    let picture = svg(&log);
    assert!(picture.contains(">loud</text>") && picture.contains("points=\"300.0,"));
}
