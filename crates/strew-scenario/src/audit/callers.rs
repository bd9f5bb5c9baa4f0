//! Which workloads call a Service, as far as their containers say: its host in a command, in an argument, or in the value
//! of an environment variable.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Pod};
use strew_view::values::ServiceValues;

use super::play::workload;

/// An environment variable that is named so has a host as its value, though no port follows it.
const NAMES_OF_HOSTS: [&str; 7] = [
    "HOST", "HOSTNAME", "ADDR", "ADDRESS", "SERVER", "ENDPOINT", "URL",
];

/// A pod of each controller: its other pods say the same.
pub(super) struct Representatives<'a> {
    tables: &'a Tables,
    pods: Vec<&'a Arc<Pod>>,
}

impl<'a> Representatives<'a> {
    pub(super) fn of(tables: &'a Tables) -> Self {
        let mut seen: BTreeSet<&Arc<str>> = BTreeSet::new();
        let mut pods = Vec::new();
        for pod in tables.of::<Pod>().iter().filter(|pod| pod.is_active()) {
            let controller = pod.meta.controller();
            if controller.is_some_and(|of| seen.insert(&of.uid)) {
                pods.push(pod);
            }
        }
        Self { tables, pods }
    }

    /// The workloads that call this Service: `deployment/frontend`, with the namespace if it is another one. Those behind
    /// it are none of them.
    pub(super) fn callers(&self, service: &ServiceValues) -> Vec<String> {
        let ready = service.endpoints.iter().map(|of| of.pod.as_str());
        let own = ready.chain(service.not_ready.iter().map(String::as_str));
        let own: BTreeSet<&str> = own.collect();
        let mut found = BTreeSet::new();
        for pod in &self.pods {
            let Name { namespace, name } = &pod.meta.name;
            let is_here = **namespace == *service.namespace;
            let host = Host {
                service: &service.name,
                namespace: &service.namespace,
                is_short: is_here,
            };
            let is_own = is_here && own.contains(&**name);
            if !is_own
                && host.is_called_by(&pod.spec)
                && let Some((kind, name, _)) = workload(self.tables, pod)
            {
                let of = format!("{}/{}", kind.name().to_lowercase(), name.name);
                found.insert(match is_here {
                    true => of,
                    false => format!("{namespace}/{of}"),
                });
            }
        }
        found.into_iter().collect()
    }
}

/// The host of a Service, as a pod may write it.
struct Host<'a> {
    service: &'a str,
    namespace: &'a str,
    /// True for a pod in its namespace, where the name is enough.
    is_short: bool,
}

impl Host<'_> {
    fn is_called_by(&self, spec: &PodSpec) -> bool {
        let init = spec.init_containers.iter().flatten();
        let mut all = init.chain(&spec.containers);
        all.any(|container| self.is_in_container(container))
    }

    fn is_in_container(&self, container: &Container) -> bool {
        let command = container.command.iter().flatten();
        let mut words = command.chain(container.args.iter().flatten());
        let mut variables = container.env.iter().flatten();
        words.any(|word| self.is_in(word))
            || variables.any(|variable| {
                variable.value.as_deref().is_some_and(|value| {
                    self.is_in(value)
                        || (self.is_short && value == self.service && is_of_host(&variable.name))
                })
            })
    }

    /// True if the text names the host where a host must be: with its namespace, after a scheme, or before a port.
    fn is_in(&self, text: &str) -> bool {
        let mut rest = match text.contains(self.service) {
            true => text,
            false => return false,
        };
        while let Some(start) = rest.find(is_of_name) {
            let before = &text[..text.len() - rest.len() + start];
            let word = &rest[start..];
            let end = word.find(|c| !is_of_name(c)).unwrap_or(word.len());
            let (word, after) = word.split_at(end);
            let follows_scheme = before.ends_with("://") || before.ends_with('@');
            if self.is_full(word)
                || (self.is_short && word == self.service && (follows_scheme || is_port(after)))
            {
                return true;
            }
            rest = after;
        }
        false
    }

    /// `cart.shop`, `cart.shop.svc…`, or a pod below it: `cart-0.cart.shop.svc…`.
    fn is_full(&self, word: &str) -> bool {
        let is_it = |word: &str| {
            let rest = word.strip_prefix(self.service);
            let rest = rest.and_then(|rest| rest.strip_prefix('.'));
            let rest = rest.and_then(|rest| rest.strip_prefix(self.namespace));
            rest.is_some_and(|rest| rest.is_empty() || rest == ".svc" || rest.starts_with(".svc."))
        };
        is_it(word) || word.split_once('.').is_some_and(|(_, rest)| is_it(rest))
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.')
}

/// True for `:8080`, and for nothing that could be a version: `:7`, `:1.25`.
fn is_port(after: &str) -> bool {
    let Some(number) = after.strip_prefix(':') else {
        return false;
    };
    let end = number.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = number.split_at(end.unwrap_or(number.len()));
    (2..=5).contains(&digits.len()) && !rest.starts_with(is_of_name)
}

fn is_of_host(variable: &str) -> bool {
    let last = variable.rsplit('_').next().unwrap_or(variable);
    NAMES_OF_HOSTS
        .iter()
        .any(|name| last.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_where_a_host_must_be() {
        let host = |is_short| Host {
            service: "cart",
            namespace: "shop",
            is_short,
        };
        let here = host(true);
        for text in [
            "cart:7070",
            "--upstream=cart:80",
            "http://cart/api",
            "jdbc:postgresql://user:word@cart/db",
            "cart.shop",
            "a,cart.shop.svc.cluster.local:80",
            "cart-0.cart.shop.svc:80",
            "other:80 cart:8080/path",
        ] {
            assert!(here.is_in(text), "{text}");
        }
        for text in [
            "",
            "cart",
            "--name=cart",
            "cart:7",
            "cart:1.25",
            "cart:10-alpine",
            "shopping-cart:80",
            "cart.example.com:80",
            "cart.shop.example.com",
            "cart.shop-2.svc",
        ] {
            assert!(!here.is_in(text), "{text}");
        }
        let elsewhere = host(false);
        assert!(elsewhere.is_in("cart.shop:80"));
        assert!(!elsewhere.is_in("cart:80"));
        assert!(is_of_host("CART_HOST") && is_of_host("addr"));
        assert!(!is_of_host("CART_NAME") && !is_of_host("HOSTS_FILE"));
    }
}
