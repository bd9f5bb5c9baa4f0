//! The rights of service accounts: their roles and the table of `--rights` are made from these lists.

use serde_json::{Value, json};
use strew_kube::permission::{NamedPermission, Permission};

use super::objects::Part;

/// A right for all objects of a resource, or for named ones.
pub(super) struct Right {
    permission: Permission,
    /// Empty: all objects.
    names: Vec<String>,
}

/// Rights in the whole cluster with their purposes, as Markdown.
pub(crate) fn table_of(name: &str, permissions: &[Permission]) -> String {
    let rights = rights(permissions, &[]);
    let rows = rights.iter().map(|right| right.row("cluster"));
    head(name) + &rows.collect::<String>()
}

fn head(name: &str) -> String {
    format!("### {name}\n\n| where | what | verbs | what for |\n|---|---|---|---|\n")
}

/// The service account of a part.
pub(super) struct Account<'a> {
    pub(super) part: &'a Part<'a>,
    /// Rights in the whole cluster.
    pub(super) in_cluster: Vec<Right>,
    /// Rights in its own namespace.
    pub(super) in_namespace: Vec<Right>,
}

/// The rights of a process, in the order of its role.
pub(super) fn rights(all: &[Permission], named: &[NamedPermission<'_>]) -> Vec<Right> {
    let all = all.iter().map(|permission| Right {
        permission: permission.clone(),
        names: Vec::new(),
    });
    let named = named.iter().map(|named| Right {
        permission: named.permission.clone(),
        names: named.names.iter().map(|name| (*name).to_owned()).collect(),
    });
    all.chain(named).collect()
}

impl Account<'_> {
    /// The service account, its roles, and their bindings.
    pub(super) fn objects(&self) -> Vec<Value> {
        let mut objects = vec![self.part.service_account()];
        objects.extend(self.part.cluster_role(rules(&self.in_cluster)));
        objects.extend(self.part.role(rules(&self.in_namespace)));
        objects.push(self.part.reads_authority());
        objects
    }

    /// A right for named objects of a resource in its own namespace.
    pub(super) fn own(&self, resource: &str) -> Vec<&str> {
        let rights = self.in_namespace.iter();
        let of_resource = rights.filter(|right| right.permission.resource == resource);
        of_resource
            .flat_map(|right| &right.names)
            .map(String::as_str)
            .collect()
    }

    /// Each right with its purpose, as Markdown.
    pub(super) fn table(&self) -> String {
        let Part { name, namespace } = self.part;
        let mut text = head(name);
        let scopes = [
            ("cluster", &self.in_cluster),
            (*namespace, &self.in_namespace),
        ];
        for (place, rights) in scopes {
            text.extend(rights.iter().map(|right| right.row(place)));
        }
        text += "| kube-system | `configmaps` `extension-apiserver-authentication` | get, list, watch | metrics and debug \
                 pages: the CA of client certificates (Role `extension-apiserver-authentication-reader`) |\n";
        text
    }
}

impl Right {
    fn row(&self, place: &str) -> String {
        let Permission {
            group,
            resource,
            verbs,
            purpose,
        } = &self.permission;
        let dot = if group.is_empty() { "" } else { "." };
        let names: String = self.names.iter().map(|name| format!(" `{name}`")).collect();
        let verbs = verbs.join(", ");
        format!("| {place} | `{resource}{dot}{group}`{names} | {verbs} | {purpose} |\n")
    }
}

fn rules(rights: &[Right]) -> Vec<Value> {
    let rule = |right: &Right| {
        let mut rule = json!({
            "apiGroups": [right.permission.group],
            "resources": [right.permission.resource],
            "verbs": right.permission.verbs,
        });
        if !right.names.is_empty() {
            rule["resourceNames"] = right.names.clone().into();
        }
        rule
    };
    rights.iter().map(rule).collect()
}
