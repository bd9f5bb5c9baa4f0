//! `--html`: a result as one page that needs no network.
//!
//! The page's script only displays its data: the report of `-o json`, and of a run the lines of `--events` and the series
//! of counts.

mod columns;

use std::io::Write as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
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

/// The data of runs: the report with one run per variant, the verdicts on all variants, and those runs in full. Long ones
/// are written as columns.
///
/// # Errors
/// A line of a log is no JSON.
pub(crate) fn runs(
    report: &Value,
    verdicts: &[Value],
    tapes: &[Tape],
) -> Result<String, serde_json::Error> {
    let logs = tapes.iter().map(|tape| tape.log.len()).sum::<usize>();
    let listed = |rows: &[Value]| match logs > PLAIN_MAX {
        true => columns::table(rows.iter().filter_map(Value::as_object)),
        false => Value::from(rows),
    };
    let mut runs = Vec::new();
    for tape in tapes {
        let lines = tape.log.lines().map(serde_json::from_str);
        runs.push(listed(&lines.collect::<Result<Vec<Value>, _>>()?));
    }
    let series: Vec<Value> = tapes.iter().map(|tape| listed(&tape.series)).collect();
    let [verdicts, runs, series] = [
        Value::from(verdicts),
        Value::from(runs),
        Value::from(series),
    ];
    Ok(format!(
        "{{\"report\":{report},\"verdicts\":{verdicts},\"runs\":{runs},\"series\":{series}}}"
    ))
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
        let tapes = [Tape {
            log: format!("{}\n{}\n", json!({"key": nasty}), json!({"at": "1s"})),
            series: vec![json!({"of": nasty})],
        }];
        let page = page(&runs(&report, &[json!({"why": nasty})], &tapes).unwrap()).unwrap();
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
    fn long_data_are_packed_whole() {
        let report = json!({"name": "</script>".repeat(PLAIN_MAX / 8)});
        let page = page(&runs(&report, &[], &[]).unwrap()).unwrap();
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
