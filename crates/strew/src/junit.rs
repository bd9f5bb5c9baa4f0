//! JUnit XML, which CI systems read.

use std::fmt::Write;

use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;

/// A test case.
pub(crate) struct Case {
    pub(crate) class: String,
    pub(crate) name: String,
    /// The error in a line, and the complete text.
    pub(crate) failure: Option<(String, String)>,
    pub(crate) is_skipped: bool,
    /// Further information on a case that is not a failure.
    pub(crate) note: Option<String>,
}

/// A suite of cases.
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) file: String,
    /// Virtual seconds: real times would differ from run to run.
    pub(crate) time: f64,
    pub(crate) cases: Vec<Case>,
}

/// One file with these suites; `name` is the command.
pub(crate) fn write(name: &str, suites: &[Suite]) -> String {
    let tests: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let failures: usize = suites.iter().map(Suite::n_failed).sum();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{tests}\" failures=\"{failures}\">\n",
        escaped(name)
    );
    for suite in suites {
        suite.write(&mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

/// The findings as a suite: a case each, or one case that says that nothing was found. Errors fail; warnings fail if
/// `fails_on_warnings`.
pub(crate) fn of_findings(findings: &[Finding], file: &str, fails_on_warnings: bool) -> Suite {
    let fails = |severity: Severity| match severity {
        Severity::Error => true,
        Severity::Warning => fails_on_warnings,
        Severity::Note => false,
    };
    let case = |finding: &Finding| {
        let line = finding.line();
        let help = finding.help.as_ref();
        let text = help.map_or(line.clone(), |help| format!("{line}\nhelp: {help}"));
        let fails = fails(finding.severity);
        let object = finding.object.as_deref().unwrap_or("input");
        Case {
            class: finding.code.clone(),
            name: format!("{object}: {}", finding.message),
            failure: fails.then(|| (finding.message.clone(), text.clone())),
            is_skipped: false,
            note: (!fails).then_some(text),
        }
    };
    let mut cases: Vec<Case> = findings.iter().map(case).collect();
    if cases.is_empty() {
        cases.push(Case {
            class: "findings".to_owned(),
            name: "nothing found".to_owned(),
            failure: None,
            is_skipped: false,
            note: None,
        });
    }
    Suite {
        name: "findings".to_owned(),
        file: file.to_owned(),
        time: 0.0,
        cases,
    }
}

/// The errors of the input, one case each: otherwise a reader of test results would see no tests.
pub(crate) fn wrong_input(command: &str, errors: &[String]) -> String {
    let n = errors.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"strew {command}\" tests=\"{n}\" errors=\"{n}\">\n  \
         <testsuite name=\"input\" tests=\"{n}\" errors=\"{n}\">\n"
    );
    for error in errors {
        let first = escaped(error.lines().next().unwrap_or_default());
        let _ = writeln!(
            out,
            "    <testcase classname=\"input\" name=\"{first}\"><error message=\"{first}\">{}</error></testcase>",
            escaped(error)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

impl Suite {
    fn n_failed(&self) -> usize {
        let failed = |case: &&Case| case.failure.is_some();
        self.cases.iter().filter(failed).count()
    }

    fn write(&self, out: &mut String) {
        let (name, file) = (escaped(&self.name), escaped(&self.file));
        let skipped = self.cases.iter().filter(|case| case.is_skipped).count();
        let (n, failed, time) = (self.cases.len(), self.n_failed(), self.time);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{n}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{time:.3}\" file=\"{file}\">"
        );
        for case in &self.cases {
            case.write(out);
        }
        out.push_str("  </testsuite>\n");
    }
}

impl Case {
    fn write(&self, out: &mut String) {
        let (class, name) = (escaped(&self.class), escaped(&self.name));
        let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{name}\"");
        let mut inner = String::new();
        if let Some((message, story)) = &self.failure {
            let (message, story) = (escaped(message), escaped(story));
            let _ = write!(inner, "<failure message=\"{message}\">{story}</failure>");
        } else if self.is_skipped {
            inner.push_str("<skipped/>");
        }
        if let Some(note) = &self.note {
            let _ = write!(inner, "<system-out>{}</system-out>", escaped(note));
        }
        match inner.as_str() {
            "" => out.push_str("/>\n"),
            inner => {
                let _ = writeln!(out, ">{inner}</testcase>");
            }
        }
    }
}

/// Text for XML; characters that XML 1.0 cannot represent become question marks.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_takes_every_text() {
        assert_eq!(
            escaped("a<b & \"c\"\n\u{1}"),
            "a&lt;b &amp; &quot;c&quot;&#10;?"
        );
    }

    #[test]
    fn findings_are_cases_and_so_is_their_absence() {
        let suite = |severity, fails_on_warnings| {
            let findings = [Finding::new(severity, "rule", "this is so")];
            of_findings(&findings, "a.yaml", fails_on_warnings)
        };
        let failed = |severity, fails_on_warnings| suite(severity, fails_on_warnings).n_failed();
        assert_eq!(
            [failed(Severity::Error, false), failed(Severity::Note, true)],
            [1, 0]
        );
        let warnings = [false, true].map(|fails| failed(Severity::Warning, fails));
        assert_eq!(warnings, [0, 1]);
        let none = write("strew lint", &[of_findings(&[], "a.yaml", true)]);
        assert!(none.contains("tests=\"1\" failures=\"0\""), "{none}");
        assert!(none.contains("name=\"nothing found\""), "{none}");
    }
}
