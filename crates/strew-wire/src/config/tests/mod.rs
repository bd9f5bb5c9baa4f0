//! Configurations in, profiles and messages out.

mod arguments;
mod document;
mod legacy;
mod plugins;

use strew_model::Interner;
use strew_scheduler::Profile;

use super::*;

/// The configuration, or each mistake as `line:column: message`.
fn configured_with(text: &str, gates: &str) -> Result<Configuration, Vec<String>> {
    let mut sources = Sources::new();
    sources.add("config.yaml", text);
    let gates = FeatureGates::parse(gates).expect("known gates");
    let read = configure(Given::Files(&sources), &gates, &mut Interner::new());
    read.map_err(|diagnostics| {
        let _ = read::render(&diagnostics, &sources, true);
        let said = diagnostics.iter().map(|diagnostic| {
            let place = diagnostic
                .place
                .map(|p| format!("{}:{}: ", p.line, p.column));
            let message = &diagnostic.message;
            let help = diagnostic
                .help
                .as_ref()
                .map(|help| format!(" (help: {help})"));
            format!(
                "{}{message}{}",
                place.unwrap_or_default(),
                help.unwrap_or_default()
            )
        });
        said.collect()
    })
}

/// A v1 document with this body.
fn v1(body: &str) -> String {
    format!("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{body}")
}

#[track_caller]
fn accepted(body: &str) -> Configuration {
    match configured_with(&v1(body), "") {
        Ok(configuration) => configuration,
        Err(errors) => panic!("{body}\nwas refused: {errors:#?}"),
    }
}

/// The body, which begins in line 3, is refused with these messages and no others.
#[track_caller]
fn refused(body: &str, expected: &[&str]) {
    refused_text(&v1(body), expected);
}

#[track_caller]
fn refused_text(text: &str, expected: &[&str]) {
    match configured_with(text, "") {
        Ok(_) => panic!("{text}\nwas accepted"),
        Err(errors) => assert_eq!(errors, expected, "{text}"),
    }
}

/// Names of the filters, and names and weights of the scores.
fn plugin_lists(profile: &Profile) -> (String, String) {
    let filters: Vec<_> = profile.filters.iter().map(|id| id.name()).collect();
    let scores = profile.scores.iter();
    let scores: Vec<_> = scores
        .map(|(id, weight)| format!("{id}[{weight}]"))
        .collect();
    (filters.join(" "), scores.join(" "))
}
