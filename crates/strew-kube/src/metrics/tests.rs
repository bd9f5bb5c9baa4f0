use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use strew_scheduler::metrics::{Buckets, Family, Histogram, Info, Kind, Unit, Value};
use tower::ServiceExt;

use super::text::Form;
use super::{Leader, Metrics, channel};

static COUNTER: Info = Info {
    name: "x_total",
    kind: Kind::Counter,
    labels: &["what"],
    help: "Things",
};
static GAUGE: Info = Info {
    name: "y",
    kind: Kind::Gauge,
    labels: &[],
    help: "Others",
};
static HISTOGRAM: Info = Info {
    name: "z_seconds",
    kind: Kind::Histogram(Buckets::seconds(0.001, 2.0, 2)),
    labels: &[],
    help: "Durations",
};

fn families() -> Vec<Family> {
    let mut counter = Family::new(&COUNTER);
    counter.push(["a \"quoted\"\nline".into()], Value::Count(3));
    let Kind::Histogram(buckets) = HISTOGRAM.kind else {
        unreachable!()
    };
    let mut histogram = Histogram::new(buckets);
    histogram.observe(1_500_000);
    histogram.observe(9_000_000);
    vec![
        counter,
        Family::of(&GAUGE, Value::Number(0.5)),
        Family::of(&HISTOGRAM, Value::histogram(&histogram)),
    ]
}

const PLAIN: &str = r#"# HELP x_total Things
# TYPE x_total counter
x_total{what="a \"quoted\"\nline"} 3
# HELP y Others
# TYPE y gauge
y 0.5
# HELP z_seconds Durations
# TYPE z_seconds histogram
z_seconds_sum 0.0105
z_seconds_count 2
z_seconds_bucket{le="0.001"} 0
z_seconds_bucket{le="0.002"} 1
z_seconds_bucket{le="+Inf"} 2
"#;

#[test]
fn both_texts_tell_the_same() {
    assert_eq!(Form::Plain.write(families()).unwrap(), PLAIN);
    let open = Form::OpenMetrics.write(families()).unwrap();
    let expected = PLAIN
        .replace("# HELP x_total", "# HELP x")
        .replace("# TYPE x_total", "# TYPE x");
    assert_eq!(open, format!("{expected}# EOF\n"));
}

#[test]
fn the_text_is_the_one_that_is_asked_for() {
    // The third is what Prometheus 3 sends.
    let cases = [
        ("", Form::Plain),
        ("*/*", Form::Plain),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
            Form::OpenMetrics,
        ),
        ("text/plain, application/openmetrics-text; q=0", Form::Plain),
    ];
    for (accept, form) in cases {
        assert_eq!(Form::accepted(accept), form, "{accept}");
    }
}

#[tokio::test]
async fn the_page_tells_the_machines_and_the_others() {
    let (source, mut requests) = channel();
    let leader = Leader::new("strew-scheduler");
    leader.set(true);
    let pages = Metrics::new(source).with(move || leader.families()).pages();
    let answers = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            request.answer(families());
        }
    });
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = pages.oneshot(request).await.unwrap();
    let of_type = &answer.headers()["content-type"];
    assert_eq!(of_type, "text/plain; version=0.0.4; charset=utf-8");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.starts_with(PLAIN), "{text}");
    let leads = "leader_election_master_status{name=\"strew-scheduler\"} 1.0\n";
    assert!(text.contains(leads), "{text}");
    answers.await.unwrap();
}

#[tokio::test]
async fn a_scheduler_that_has_stopped_is_told() {
    let (source, requests) = channel();
    drop(requests);
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = Metrics::new(source).pages().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 503);
}

// === the document ===

/// A kind and its buckets, as the document writes them.
fn kind(info: &Info) -> (&'static str, String) {
    match info.kind {
        Kind::Counter => ("counter", String::new()),
        Kind::Gauge => ("gauge", String::new()),
        Kind::Histogram(buckets) => {
            let unit = if buckets.unit == Unit::Nanos {
                " s"
            } else {
                ""
            };
            let (first, last) = (buckets.start, buckets.bounds().last().unwrap());
            let last = format!("{last:.4}");
            let last = last.trim_end_matches('0').trim_end_matches('.');
            let text = format!(
                "{}, from {first}{unit} by {} to {last}{unit}",
                buckets.len, buckets.factor
            );
            ("histogram", text)
        }
    }
}

fn table(infos: &[&Info]) -> String {
    let mut text =
        String::from("| name | type | labels | buckets | meaning |\n|---|---|---|---|---|\n");
    for info in infos {
        let (kind, buckets) = kind(info);
        let labels: Vec<String> = info.labels.iter().map(|l| format!("`{l}`")).collect();
        text.push_str(&format!(
            "| `{}` | {kind} | {} | {buckets} | {} |\n",
            info.name,
            labels.join(", "),
            info.help
        ));
    }
    text
}

/// `SNAPSHOTS=overwrite cargo test -p strew-kube document` writes it anew.
#[test]
fn the_document_lists_every_metric() {
    let of_machine = strew_scheduler::metrics::catalogue::ALL;
    let text = include_str!("document.md")
        .replace("{machine}\n", &table(of_machine))
        .replace(
            "{workloadspread}\n",
            &table(crate::controller::workloadspread::metrics::ALL),
        )
        .replace(
            "{placement}\n",
            &table(crate::controller::placement::metrics::ALL),
        )
        .replace("{keep}\n", &table(crate::controller::keep::metrics::ALL))
        .replace("{audit}\n", &table(crate::controller::audit::metrics::ALL))
        .replace(
            "{rebalance}\n",
            &table(crate::controller::rebalance::metrics::ALL),
        )
        .replace("{webhook}\n", &table(crate::webhook::metrics::ALL))
        .replace("{process}\n", &table(super::catalogue::ALL));
    snapbox::assert_data_eq!(text, snapbox::file!["../../../../docs/metrics.md"].raw());
}
