//! `--html`: a result as one page that needs no network.
//!
//! The page's script only displays its data: the report of `-o json`, and of a run the lines of `--events` that it shows
//! and the series of counts.

mod columns;
pub(crate) mod sums;

use std::io::Write as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Map, Value};
use strew_suite::work::Tape;

use crate::failure::Failure;

/// The page: `cargo xtask web` makes it from web/src. Its script finds the data in it.
const PAGE: &str = include_str!("../../../../web/dist/page.html");

/// The place of the data.
const MARK: &str = r#"id="data">{{DATA}}"#;

/// Longer data are packed with gzip, in base64: JSON of a log gets ten times shorter.
const PLAIN_MAX: usize = 512 * 1024;

/// Writes the page of these data, which are JSON.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &str, data: &str) -> Result<(), Failure> {
    page(data)
        .and_then(|page| std::fs::write(path, page))
        .with_context(|| format!("cannot write {path}"))
        .map_err(Failure::outside)
}

/// The runs of a page as JSON, one after another, so that only one is held in full.
#[derive(Default)]
pub(crate) struct Runs {
    logs: Vec<String>,
    series: Vec<String>,
    sums: Vec<String>,
    explain: Vec<String>,
}

impl Runs {
    /// Adds a run, without the lines of its log that the page does not show. A long one is written as columns.
    ///
    /// # Errors
    /// A line of its log is no JSON.
    pub(crate) fn add(&mut self, tape: &Tape) -> Result<(), serde_json::Error> {
        let written = |lines: &str, of: fn(Row) -> Option<Row>| match tape.log.len() > PLAIN_MAX {
            true => serde_json::to_string(&columns::table(|take| walk(lines, of, take))?),
            false => listed(lines, of),
        };
        self.logs.push(written(&tape.log, shown)?);
        self.series.push(written(&tape.series, Some)?);
        let sums = tape.sums.clone();
        self.sums.push(sums.unwrap_or_else(|| "null".to_owned()));
        self.explain.push(tape.explain.clone());
        Ok(())
    }

    /// The data of the page: the report with these runs, without what the page has from elsewhere or does not show, and
    /// the verdicts on all variants.
    ///
    /// # Errors
    /// None that memory does not have.
    pub(crate) fn finish(
        self,
        report: &impl Serialize,
        verdicts: &[Value],
    ) -> Result<String, serde_json::Error> {
        let mut report = serde_json::to_value(report)?;
        sums::shorten(&mut report);
        let verdicts = serde_json::to_string(verdicts)?;
        let explain = serde_json::to_string(&self.explain)?;
        let [logs, series, sums] = [self.logs, self.series, self.sums].map(|each| each.join(","));
        Ok(format!(
            "{{\"report\":{report},\"verdicts\":{verdicts},\"runs\":[{logs}],\"series\":[{series}],\"sums\":[{sums}],\"explain\":{explain}}}"
        ))
    }
}

/// A line of JSON.
type Row = Map<String, Value>;

/// The counts in the status of a workload: the page has them from the series, and from the pods.
const COUNTS: [&str; 4] = ["found", "updated", "readyReplicas", "available"];

/// A line of a log without what the page does not show: versions; `None` if nothing else has changed, or counts alone.
fn shown(mut row: Row) -> Option<Row> {
    row.remove("resourceVersion");
    let changed = row.get_mut("changed").and_then(Value::as_object_mut);
    let tells = changed.is_some_and(|changed| {
        changed.remove("generation");
        changed.keys().any(|field| !COUNTS.contains(&&**field))
    });
    let is_update = row.get("type").is_some_and(|kind| kind == "updated");
    (tells || !is_update).then_some(row)
}

/// The rows that `of` makes of lines of JSON.
fn walk(
    lines: &str,
    of: fn(Row) -> Option<Row>,
    take: &mut dyn FnMut(&Row),
) -> Result<(), serde_json::Error> {
    lines.lines().try_for_each(|line| {
        of(serde_json::from_str(line)?).iter().for_each(&mut *take);
        Ok(())
    })
}

/// The rows that `of` makes of lines of JSON, as a list.
fn listed(lines: &str, of: fn(Row) -> Option<Row>) -> Result<String, serde_json::Error> {
    let mut rows = Vec::new();
    walk(lines, of, &mut |row| rows.push(row.clone()))?;
    serde_json::to_string(&rows)
}

/// The page in parts, for a server whose policy allows no script in the document.
#[cfg(feature = "cluster")]
pub(crate) struct Served {
    /// The HTML with the data in it. It names `script.js` and `style.css`.
    pub(crate) document: String,
    /// `script.js`.
    pub(crate) script: &'static str,
    /// `style.css`.
    pub(crate) style: &'static str,
}

/// The page of these data, which are JSON, in parts.
///
/// # Errors
/// None that memory does not have.
#[cfg(feature = "cluster")]
pub(crate) fn served(data: &str) -> std::io::Result<Served> {
    let part = |begin: &str, end: &str| {
        let rest = PAGE.split_once(begin).map_or("", |(_, rest)| rest);
        rest.split_once(end).map_or("", |(part, _)| part)
    };
    Ok(Served {
        document: DOCUMENT.replace(MARK, &element(data)?),
        script: part(r#"<script type="module">"#, "</script>"),
        style: part("<style>", "</style>"),
    })
}

/// The document of the page in parts.
#[cfg(feature = "cluster")]
const DOCUMENT: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>strew</title>
<link rel="stylesheet" href="style.css">
<body>
<div id="page"></div>
<noscript>This page draws itself with a script.</noscript>
<script type="application/json" id="data">{{DATA}}</script>
<script type="module" src="script.js"></script>
"#;

fn page(data: &str) -> std::io::Result<String> {
    let (head, tail) = PAGE.split_once(MARK).unwrap_or((PAGE, ""));
    Ok([head, &element(data)?, tail].concat())
}

/// What stands in the place of the mark.
fn element(data: &str) -> std::io::Result<String> {
    Ok(match data.len() > PLAIN_MAX {
        true => format!(r#"id="data" data-packed>{}"#, packed(data)?),
        false => format!(r#"id="data">{}"#, escaped(data)),
    })
}

/// The data with gzip, in base64.
fn packed(data: &str) -> std::io::Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data.as_bytes())?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// JSON without characters that could end the HTML element: they only occur in strings.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_text_ends_the_element_that_holds_the_data() {
        let nasty = "</script><script>alert(1)</script><!-- & \u{2028}";
        let report = json!({"name": nasty});
        let tape = Tape {
            log: format!("{}\n{}\n", json!({"key": nasty}), json!({"at": "1s"})),
            series: format!("{}\n", json!({"of": nasty})),
            sums: Some(json!([{"own": {nasty: {}}}]).to_string()),
            explain: nasty.to_owned(),
        };
        let mut runs = Runs::default();
        runs.add(&tape).unwrap();
        let page = page(&runs.finish(&report, &[json!({"why": nasty})]).unwrap()).unwrap();
        let plain = PAGE.matches("</script>").count();
        assert_eq!(page.matches("</script>").count(), plain);
        assert!(!page.contains("alert(1)</"), "{page}");
        let (head, tail) = PAGE.split_once(MARK).unwrap();
        let data = page
            .strip_prefix(head)
            .and_then(|p| p.strip_prefix(r#"id="data">"#))
            .and_then(|p| p.strip_suffix(tail))
            .unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["report"]["name"], nasty);
        assert_eq!(data["runs"], json!([[{"key": nasty}, {"at": "1s"}]]));
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn a_page_in_parts_has_no_script_in_its_document() {
        let served = served(r#"{"name":"</script><script>alert(1)</script>"}"#).unwrap();
        assert_eq!(served.document.matches("</script>").count(), 2);
        assert!(!served.document.contains("alert(1)</"));
        assert!(served.document.contains(r#"src="script.js""#));
        assert!(PAGE.contains(served.script) && served.script.len() > 10_000);
        assert!(PAGE.contains(served.style) && served.style.len() > 1_000);
    }

    #[test]
    fn lines_that_the_page_does_not_show_are_left_out() {
        let lines = [
            json!({"type": "updated", "key": "Pod a", "resourceVersion": 3}),
            json!({"type": "updated", "key": "ReplicaSet a", "changed": {"found": [1, 2], "generation": [1, 2]}}),
            json!({"type": "updated", "key": "Pod a", "resourceVersion": 4, "changed": {"node": [null, "n"], "found": 1}}),
            json!({"type": "deleted", "key": "Pod a", "resourceVersion": 5}),
        ];
        let log: Vec<String> = lines.iter().map(Value::to_string).collect();
        let shown: Value = serde_json::from_str(&listed(&log.join("\n"), shown).unwrap()).unwrap();
        assert_eq!(
            shown,
            json!([
                {"type": "updated", "key": "Pod a", "changed": {"node": [null, "n"], "found": 1}},
                {"type": "deleted", "key": "Pod a"},
            ])
        );
    }

    #[test]
    fn long_data_are_packed_whole() {
        let report = json!({"name": "</script>".repeat(PLAIN_MAX / 8)});
        let page = page(&Runs::default().finish(&report, &[]).unwrap()).unwrap();
        assert!(page.len() < PLAIN_MAX, "{} bytes", page.len());
        let (_, rest) = page.split_once(r#"id="data" data-packed>"#).unwrap();
        let packed = STANDARD
            .decode(rest.split_once("</script>").unwrap().0)
            .unwrap();
        let data: Value =
            serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap();
        assert_eq!(data["report"], report);
    }

    #[test]
    fn the_page_asks_for_nothing_from_outside() {
        for word in [
            "http:",
            "https:",
            "src=",
            "href=",
            "url(",
            "@import",
            "fetch(",
            "innerHTML",
            "eval(",
        ] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert_eq!(PAGE.matches(MARK).count(), 1);
        assert!(PAGE.contains("Content-Security-Policy\" content=\"default-src 'none';"));
    }
}
