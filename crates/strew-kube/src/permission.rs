//! The rights of a process at the API server, checked together at the start so that one error lists all that are
//! missing.

use std::borrow::Cow;

use futures::FutureExt;
use futures::stream::{self, StreamExt};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use strew_runtime::reads::Reads;

/// A right that a process needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The plural name, with `/subresource` for a subresource.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: Cow<'static, [&'static str]>,
    /// What the process uses it for, in docs/rights.md.
    pub purpose: Cow<'static, str>,
}

/// A right, for the tables of processes.
pub(crate) const fn permission(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    purpose: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs: Cow::Borrowed(verbs),
        purpose: Cow::Borrowed(purpose),
    }
}

/// The verbs of a watch.
pub(crate) const WATCH: &[&str] = &["get", "list", "watch"];

/// The rights of a process: those on the kinds that it reads, and those to write. A right to write a kind that is read
/// becomes one with the right to read it; rights on its subresources follow.
pub(crate) fn rights(
    reads: &[Reads],
    verbs: &'static [&'static str],
    writes: &[Permission],
) -> Vec<Permission> {
    let mut rights = Vec::new();
    let is_of = |write: &&Permission, read: &Reads| {
        let resource = write.resource.split('/').next();
        write.group == read.row.group && resource == Some(read.row.plural)
    };
    for read in reads {
        let row = &read.row;
        let mut right = permission(row.group, row.plural, verbs, read.purpose);
        let (same, below): (Vec<_>, Vec<_>) = writes
            .iter()
            .filter(|write| is_of(write, read))
            .partition(|write| write.resource == row.plural);
        for write in same {
            right.verbs.to_mut().extend_from_slice(&write.verbs);
            let purpose = right.purpose.to_mut();
            *purpose = format!("{purpose}; {}", write.purpose);
        }
        rights.push(right);
        rights.extend(below.into_iter().cloned());
    }
    let is_other = |write: &&Permission| !reads.iter().any(|read| is_of(write, read));
    rights.extend(writes.iter().filter(is_other).cloned());
    rights
}

/// A right on the objects of these names, and on no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPermission<'a> {
    /// The right. Its `list` and `watch` use a field selector with the name.
    pub permission: Permission,
    /// The names.
    pub names: &'a [&'a str],
}

/// The API server did not answer a question about rights.
#[derive(Debug, thiserror::Error)]
#[error("cannot check permissions at the API server: {0}")]
pub struct AskError(#[from] kube::Error);

/// The number of concurrent questions.
const AT_ONCE: usize = 8;

/// The denied rights, each as `verb resource.group`, in the order of the table.
///
/// # Errors
/// The API server does not answer.
pub async fn missing(
    client: &Client,
    needed: &[Permission],
    namespace: Option<&str>,
) -> Result<Vec<String>, AskError> {
    let each = needed.iter().map(|needed| (needed, None));
    denied(client, each, namespace).await
}

/// As [`missing`], for rights on named objects.
///
/// # Errors
/// The API server does not answer.
pub async fn missing_of(
    client: &Client,
    needed: &[NamedPermission<'_>],
    namespace: Option<&str>,
) -> Result<Vec<String>, AskError> {
    let each = needed.iter().flat_map(|needed| {
        let names = needed.names.iter();
        names.map(|name| (&needed.permission, Some(*name)))
    });
    denied(client, each, namespace).await
}

/// A right, on any object or on the named one.
type Asked<'a> = (&'a Permission, Option<&'a str>);

async fn denied<'a>(
    client: &Client,
    needed: impl Iterator<Item = Asked<'a>>,
    namespace: Option<&str>,
) -> Result<Vec<String>, AskError> {
    let each = needed.flat_map(|asked| asked.0.verbs.iter().map(move |verb| (asked, *verb)));
    let each: Vec<(Asked<'a>, &'static str)> = each.collect();
    let questions = each.into_iter().map(|(asked, verb)| {
        let (client, namespace) = (client.clone(), namespace.map(str::to_owned));
        async move {
            let namespace = namespace.as_deref();
            let is_allowed = is_allowed(&client, asked, verb, namespace).await?;
            Ok((!is_allowed).then(|| named(asked, verb, namespace)))
        }
        .boxed()
    });
    let answers = stream::iter(questions).buffered(AT_ONCE);
    let answers: Vec<Result<Option<String>, AskError>> = answers.collect().await;
    let answers: Result<Vec<Option<String>>, AskError> = answers.into_iter().collect();
    Ok(answers?.into_iter().flatten().collect())
}

async fn is_allowed(
    client: &Client,
    (needed, name): Asked<'_>,
    verb: &str,
    namespace: Option<&str>,
) -> Result<bool, AskError> {
    let (resource, subresource) = match needed.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (needed.resource, None),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(needed.group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(verb.to_owned()),
                namespace: namespace.map(str::to_owned),
                name: name.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: None,
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn named((needed, name): Asked<'_>, verb: &str, namespace: Option<&str>) -> String {
    let dot = if needed.group.is_empty() { "" } else { "." };
    let of = name.map_or(String::new(), |name| format!(" {name}"));
    let place = namespace.map_or(String::new(), |namespace| format!(" in {namespace}"));
    let Permission {
        group, resource, ..
    } = needed;
    format!("{verb} {resource}{dot}{group}{of}{place}")
}
