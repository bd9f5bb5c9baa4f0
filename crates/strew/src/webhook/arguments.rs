//! The flags of `strew webhook`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use strew_manifest::duration::GoDuration;
use strew_wire::workloadspread::validation::GUARDED;

use super::policy::FailurePolicy;
use crate::cluster::access::AccessArgs;
use crate::process::log::LogArgs;
use crate::process::serving::ServingArgs;
use strew_suite::configuration::SchedulingArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM webhook                                    in a pod, behind the Service strew-webhook
  PROGRAM webhook --webhook-url https://10.0.0.7:9443
                                                     outside the cluster, where the API server reaches it
  PROGRAM webhook --webhook-cert-file tls.crt --webhook-key-file tls.key
                                                     with a certificate that somebody else keeps, and trusts

Exit codes: 0 ended by a signal; 2 wrong usage or configuration; 3 the API server cannot be used.";

/// Arguments of `strew webhook`.
#[derive(Args, Debug)]
pub(crate) struct WebhookArgs {
    #[command(flatten)]
    pub(super) hooks: HooksArgs,
    #[command(flatten)]
    pub(super) scheduling: SchedulingArgs,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    #[command(flatten)]
    pub(super) serving: ServingArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// How the API server calls the webhook.
#[derive(Args, Debug)]
#[command(next_help_heading = "How the API server calls it")]
pub(super) struct HooksArgs {
    /// The port that the API server calls
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub(super) webhook_port: u16,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub(super) webhook_bind_address: IpAddr,
    /// The URL with which the API server calls this process, if it does not use the Service: its host goes into the
    /// certificate
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(super) webhook_url: Option<Url>,
    /// The namespace of strew: of the Service, of the Secret with the authority, and of the lease
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "POD_NAMESPACE",
        default_value = "strew-system"
    )]
    pub(super) namespace: String,
    /// A certificate in PEM with its chain; read again when it changes. Then there is no Secret, and caBundle must be
    /// set by its provider [default: one of an authority in Secret strew-webhook-ca]
    #[arg(long, value_name = "FILE", requires = "webhook_key_file")]
    pub(super) webhook_cert_file: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "webhook_cert_file")]
    pub(super) webhook_key_file: Option<PathBuf>,
    /// Answer reviews only for clients with a certificate that an authority of this file (PEM) has signed: API servers
    /// whose --admission-control-config-file names one. Conversions and health are open to all
    #[arg(long, value_name = "FILE")]
    pub(super) client_ca_file: Option<PathBuf>,
    /// The common name of such a certificate; may be repeated [default: any that is signed]
    #[arg(long, value_name = "NAME", requires = "client_ca_file")]
    pub(super) client_name: Vec<String>,
    /// Guarded fields that patches of WorkloadSpreads may change
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = PossibleValuesParser::new(GUARDED))]
    pub(super) allow_patch: Vec<String>,
    /// What happens to pods while this webhook is registered and no replica answers
    #[arg(long, value_name = "POLICY", default_value = "Fail")]
    pub(super) failure_policy: FailurePolicy,
    /// Stay registered when the last replica ends: creations of pods are refused until one is ready again
    #[arg(long)]
    pub(super) strict: bool,
    /// A further namespace whose pods the webhook does not handle; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(super) exclude_namespace: Vec<String>,
    /// Handle pods of DaemonSets, too: if they are listed as targets
    #[arg(long)]
    pub(super) daemon_sets: bool,
    /// Register this webhook for the creation of pods while a replica is ready, and keep caBundle up to date in the
    /// webhook configurations and in the WorkloadSpread definition if it converts with strew; otherwise another program
    /// registers it and copies caBundle from bundle.crt of the Secret
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(super) manage_configurations: bool,
    /// How long an authority is valid, for tests of its rotation
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "87600h", hide = true)]
    pub(super) authority_lifetime: Duration,
    /// How long a serving certificate is valid, for tests of its rotation
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "8760h", hide = true)]
    pub(super) certificate_lifetime: Duration,
    /// How long two authorities are trusted on both sides of their exchange, for tests of it
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "24h", hide = true)]
    pub(super) authority_overlap: Duration,
}

/// A URL that an API server can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// As given, without a slash at its end.
    pub(super) text: String,
    /// The host; an IPv6 address without brackets.
    pub(super) host: String,
}

fn url(text: &str) -> Result<Url, String> {
    const EXPECTED: &str = "not a URL such as https://10.0.0.7:9443";
    let rest = text.strip_prefix("https://").ok_or(EXPECTED)?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(EXPECTED)?;
            let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
            (Some(host).filter(|_| is_address), port)
        }
        None => {
            let at = authority.find(':').unwrap_or(authority.len());
            let (host, port) = authority.split_at(at);
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
            (Some(host).filter(|host| host.bytes().all(is_plain)), port)
        }
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    match host.filter(|host| !host.is_empty() && has_port && !rest.contains(['?', '#'])) {
        None => Err(EXPECTED.to_owned()),
        Some(host) => Ok(Url {
            text: text.trim_end_matches('/').to_owned(),
            host: host.to_owned(),
        }),
    }
}

/// A duration in Go's form.
fn span(text: &str) -> Result<Duration, String> {
    let parsed = GoDuration::parse(text).map(GoDuration::to_std);
    parsed
        .filter(|span| span.as_secs() > 0)
        .ok_or_else(|| "not a duration of a second or more, such as 8760h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_goes_into_the_certificate() {
        for (text, expected) in [
            ("https://10.0.0.7:9443", Some("10.0.0.7")),
            ("https://hooks.example.org", Some("hooks.example.org")),
            (
                "https://hooks.example.org/strew/",
                Some("hooks.example.org"),
            ),
            ("https://[::1]:9443", Some("::1")),
            ("http://10.0.0.7", None),
            ("https://", None),
            ("https://:9443", None),
            ("https://host:", None),
            ("https://host:99999", None),
            ("https://[host]", None),
            ("https://user@host", None),
            ("https://host/?a=b", None),
        ] {
            let host = url(text).ok().map(|url| url.host);
            assert_eq!(host.as_deref(), expected, "{text}");
        }
    }
}
