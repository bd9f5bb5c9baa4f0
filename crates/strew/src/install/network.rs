//! Which peers may connect to which port of a part: a NetworkPolicy for each.
//!
//! Kubelets can always connect to pods of their node, so probes need no rule. There is no peer for API servers that
//! holds in every cluster: they are processes of a host, of another network, or connect through a tunnel, and network
//! plugins disagree on whether `ipBlock` includes nodes. So the port that they call is open to all peers, unless
//! networks are named.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::objects::Part;

/// A port of a part, with its peers.
pub(super) struct Door {
    pub(super) port: u16,
    /// Peers of a NetworkPolicy; empty: all.
    pub(super) from: Vec<Value>,
}

impl Door {
    /// Health and metrics: for pods of these namespaces, or of all if none is named.
    pub(super) fn of_pages(port: u16, namespaces: &[String]) -> Self {
        let selector = match namespaces {
            [] => json!({}),
            names => json!({"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names},
            ]}),
        };
        Self {
            port,
            from: vec![json!({"namespaceSelector": selector})],
        }
    }

    /// The port that API servers call, from these networks. strew's own pods ask there, too: a replica and the
    /// controller try whether the webhook is reached.
    pub(super) fn of_api_servers(port: u16, networks: &[String]) -> Self {
        let from = networks.iter();
        let from = from.map(|cidr| json!({"ipBlock": {"cidr": cidr}}));
        let own = json!({"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "strew"}}});
        let own = (!networks.is_empty()).then_some(own);
        Self {
            port,
            from: from.chain(own).collect(),
        }
    }
}

impl Part<'_> {
    /// No peer may connect to other ports of its pods. Egress is not restricted: an API server has no name in
    /// NetworkPolicies.
    pub(super) fn network_policy(&self, doors: &[Door]) -> Value {
        let rule = |door: &Door| {
            let mut rule = json!({"ports": [{"protocol": "TCP", "port": door.port}]});
            if !door.from.is_empty() {
                rule["from"] = door.from.clone().into();
            }
            rule
        };
        let ingress: Vec<Value> = doors.iter().map(rule).collect();
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self.metadata(""),
            "spec": {
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": self.name}},
                "policyTypes": ["Ingress"],
                "ingress": ingress,
            },
        })
    }
}

/// A network in the API server's form: canonical, without bits beyond the prefix.
pub(super) fn cidr(text: &str) -> Result<String, String> {
    const EXPECTED: &str = "not a network such as 10.0.0.0/24 or 192.0.2.7/32";
    let (address, length) = text.split_once('/').ok_or(EXPECTED)?;
    let parsed: IpAddr = address.parse().map_err(|_| EXPECTED)?;
    let bits: u32 = length.parse().map_err(|_| EXPECTED)?;
    let (value, width) = match parsed {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    };
    if bits > width || length != bits.to_string() || address != parsed.to_string() {
        return Err(EXPECTED.to_owned());
    }
    match value.trailing_zeros() >= width - bits {
        true => Ok(text.to_owned()),
        false => Err(format!("{address} has bits beyond the first {bits}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_that_the_api_server_takes() {
        for (text, is_good) in [
            ("10.0.0.0/24", true),
            ("192.0.2.7/32", true),
            ("0.0.0.0/0", true),
            ("fd00::/8", true),
            ("::/0", true),
            ("fd00::1/128", true),
            ("10.0.0.7/24", false),
            ("fd00::1/64", false),
            ("10.0.0.0", false),
            ("10.0.0.0/33", false),
            ("10.0.0.0/+8", false),
            ("10.0.0.0/08", false),
            ("FD00::/8", false),
            ("kubernetes.default/32", false),
        ] {
            assert_eq!(cidr(text).is_ok(), is_good, "{text}: {:?}", cidr(text));
        }
    }
}
