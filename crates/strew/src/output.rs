//! The formats of results, and text for programs.

use clap::ValueEnum;
use serde::Serialize;
use strew_manifest::printable::{is_printable, make_all_printable};

use crate::failure::Failure;

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// All domains, all nodes, all reasons
    Wide,
    /// Kind SimulationReport
    Json,
    /// The same as YAML
    Yaml,
    /// Only names: of workloads, or of a scenario's variants
    Name,
    /// For scenarios: a test case for each expectation, for CI systems
    Junit,
    /// For scenarios: a result for each expectation that broke, at its line, for code scanning
    Sarif,
    /// Kind SimulationSummary in one line: the results of all seeds, summed; strew merge adds summaries up
    Summary,
}

impl Format {
    pub(crate) fn is_for_programs(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// Text for programs. Keys, such as those of labels, are the only text of others in it that may not be printable yet.
pub(crate) fn serialized(value: &impl Serialize, format: Format) -> Result<String, Failure> {
    let text = written(value, format)?;
    if is_printable(&text) {
        return Ok(text);
    }
    let mut value = serde_json::to_value(value).map_err(Failure::outside)?;
    make_all_printable(&mut value);
    written(&value, format)
}

fn written(value: &impl Serialize, format: Format) -> Result<String, Failure> {
    let text = match format {
        Format::Yaml => {
            serde_saphyr::to_string(value).map_err(|e| Failure::outside(anyhow::anyhow!("{e}")))?
        }
        _ => serde_json::to_string_pretty(value).map_err(Failure::outside)?,
    };
    Ok(match text.ends_with('\n') {
        true => text,
        false => text + "\n",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Before, keys kept marks of direction and C1 controls, which some terminals act on.
    #[test]
    fn keys_are_printable_and_the_rest_stays() {
        let hostile =
            json!({"labels": {"a\u{202e}b": "\u{9b}31m", "z": 1.0, "c": ["\u{e4}"]}, "b": 0});
        let json = serialized(&hostile, Format::Json).unwrap();
        assert!(is_printable(&json), "{json:?}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let shown =
            json!({"labels": {"a\\u{202e}b": "\\u{9b}31m", "z": 1.0, "c": ["\u{e4}"]}, "b": 0});
        assert_eq!(read, shown);
        assert!(
            json.find("labels") < json.find("\"b\""),
            "the order stays: {json}"
        );
        let yaml = serialized(&hostile, Format::Yaml).unwrap();
        assert!(is_printable(&yaml), "{yaml:?}");
    }
}
