//! Checks the permissions of a process at its start.

use anyhow::anyhow;
use strew_kube::Client;
use strew_kube::permission::{NamedPermission, Permission, missing, missing_of};

use crate::failure::Failure;

/// Permissions needed in a namespace; `None`: in the whole cluster.
pub(crate) type Needed<'a> = (&'a [Permission], Option<&'a str>);

/// The same for named objects.
pub(crate) type NeededOf<'a> = (&'a [NamedPermission<'a>], Option<&'a str>);

/// Checks all permissions at once: a forbidden watch would be retried without end, and nothing would be decided. `part`
/// is the component of `strew install`.
///
/// # Errors
/// A permission is missing, or the API server cannot be asked.
pub(crate) async fn check(
    client: &Client,
    needed: &[Needed<'_>],
    needed_of: &[NeededOf<'_>],
    part: &str,
) -> Result<(), Failure> {
    let mut denied = Vec::new();
    for (permissions, namespace) in needed {
        let missing = missing(client, permissions, *namespace).await;
        denied.extend(missing.map_err(Failure::outside)?);
    }
    for (permissions, namespace) in needed_of {
        let missing = missing_of(client, permissions, *namespace).await;
        denied.extend(missing.map_err(Failure::outside)?);
    }
    none_denied(&denied, part)
}

/// The failure that names all missing permissions, if there are any.
///
/// # Errors
/// A permission is missing.
pub(crate) fn none_denied(denied: &[String], part: &str) -> Result<(), Failure> {
    if denied.is_empty() {
        return Ok(());
    }
    let error = anyhow!("the API server does not allow: {}", denied.join(", "));
    let hint = format!("`strew install {part}` prints the roles that it needs");
    Err(Failure::outside(error).with_hint(hint))
}
