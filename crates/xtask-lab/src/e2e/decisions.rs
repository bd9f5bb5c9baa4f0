//! The decisions of a process, from its log with `--v 4 --logging-format json`.

use jiff::Timestamp;
use serde_json::Value;

/// A line of the log about a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    /// The time, as the log writes it.
    pub(super) timestamp: String,
    /// `bind` or `preempt`.
    pub(super) verb: String,
    pub(super) uid: String,
    /// Namespace and name.
    pub(super) pod: String,
    /// The node of a bind.
    pub(super) node: Option<String>,
}

/// The binds and preemptions of a log, in their order. A truncated line counts as none.
pub(super) fn decisions(log: &str) -> Vec<Decision> {
    let lines = log.lines().filter_map(|l| serde_json::from_str(l).ok());
    lines.filter_map(|line: Value| decision(&line)).collect()
}

fn decision(line: &Value) -> Option<Decision> {
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    if line["target"] != "strew::decision" {
        return None;
    }
    let verb = text("message").filter(|verb| ["bind", "preempt"].contains(&verb.as_str()))?;
    Some(Decision {
        timestamp: text("timestamp")?,
        verb,
        uid: text("uid")?,
        pod: text("pod")?,
        node: text("node"),
    })
}

/// A moment as logs and leases write it.
pub(super) fn moment_of(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Whether a line of the log has this message.
pub(super) fn says(log: &str, message: &str) -> bool {
    let mut lines = log
        .lines()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok());
    lines.any(|line| line["message"] == message)
}

#[test]
fn decisions_are_read_from_a_log() {
    let log = r#"
not json
{"timestamp":"t0","level":"INFO","message":"the cluster is known","target":"strew_kube::scheduler"}
{"timestamp":"t1","level":"DEBUG","message":"bind","effect":7,"uid":"u","pod":"ns/p","node":"n","target":"strew::decision"}
{"timestamp":"t2","level":"DEBUG","message":"preempt","effect":8,"uid":"v","pod":"ns/q","target":"strew::decision"}
{"timestamp":"t3","level":"DEBUG","message":"leave pending","effect":9,"uid":"w","pod":"ns/r","target":"strew::decision"}
{"timestamp":"t4","level":"DEB"#;
    let found = decisions(log);
    let verbs: Vec<&str> = found.iter().map(|d| d.verb.as_str()).collect();
    assert_eq!(verbs, ["bind", "preempt"]);
    assert_eq!(found[0].node.as_deref(), Some("n"));
    assert_eq!(found[1].pod, "ns/q");
    assert!(says(log, "the cluster is known"));
    assert!(!says(log, "bound"));
}
