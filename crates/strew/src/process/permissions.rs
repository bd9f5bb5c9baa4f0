//! What a process may do, asked at the start.

use anyhow::anyhow;
use strew_kube::Client;
use strew_kube::permission::{NamedPermission, Permission, missing, missing_of};

use crate::failure::Failure;

/// Permissions that are needed in a namespace; `None`: in the whole cluster.
pub(crate) type Needed<'a> = (&'a [Permission], Option<&'a str>);

/// The same of objects by their names.
pub(crate) type NeededOf<'a> = (&'a [NamedPermission<'a>], Option<&'a str>);

/// All that is missing, at once: a watch that is forbidden would be tried for ever, and nothing would be decided.
/// `part`: what `strew install` calls the process.
///
/// # Errors
/// Something is missing, or the API server cannot be asked.
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

/// The failure that names all that is denied, if anything is.
///
/// # Errors
/// Something is.
pub(crate) fn none_denied(denied: &[String], part: &str) -> Result<(), Failure> {
    if denied.is_empty() {
        return Ok(());
    }
    let error = anyhow!("the API server does not allow: {}", denied.join(", "));
    let hint = format!("`strew install {part}` prints the roles that it needs");
    Err(Failure::outside(error).with_hint(hint))
}
