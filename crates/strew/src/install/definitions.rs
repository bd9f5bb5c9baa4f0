//! The owners of CustomResourceDefinitions: those of Kruise and OCM are used, and never replaced.
//!
//! The output is applied later, maybe by another person, and applying replaces an object of the same name. So a
//! definition is printed only if it replaces no definition of another project: the cluster is asked, unless `--crds`
//! says it.

use clap::{Args, ValueEnum};
use serde_json::Value;
use strew_kube::connect::connect;
use strew_kube::definitions::{Maker, maker};
use strew_wire::config::ClientConnection;

use crate::cluster::access::{self, AccessArgs};
use crate::cluster::ask;
use crate::context::Context;
use crate::failure::Failure;
use crate::manifest::Manifest;
use crate::terminal;

/// Arguments about definitions.
#[derive(Args, Debug, Clone)]
pub(super) struct DefinitionArgs {
    /// Which CustomResourceDefinitions to print [default: those that the cluster lacks, or has from strew]
    #[arg(long, value_name = "WHEN")]
    crds: Option<Crds>,
    #[command(flatten)]
    access: AccessArgs,
}

/// The values of `--crds`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Crds {
    /// All, without asking the cluster: for a cluster without Kruise or OCM
    Always,
    /// None: they are managed elsewhere
    Never,
}

impl DefinitionArgs {
    /// How the cluster is reached.
    pub(super) fn access(&self) -> &AccessArgs {
        &self.access
    }

    /// The definitions to print; for the other ones a note says why not.
    ///
    /// # Errors
    /// The cluster that the user named cannot be asked.
    pub(super) fn chosen(
        &self,
        definitions: Vec<Value>,
        context: &Context,
    ) -> Result<Vec<Manifest>, Failure> {
        let chosen = match self.crds {
            Some(Crds::Always) => definitions,
            Some(Crds::Never) => Vec::new(),
            None => self.lacking(definitions, context)?,
        };
        Ok(chosen.into_iter().map(Manifest::from).collect())
    }

    fn lacking(&self, definitions: Vec<Value>, context: &Context) -> Result<Vec<Value>, Failure> {
        let say = |text: &str| {
            if !context.quiet {
                terminal::say(&format!("note: {text}\n"));
            }
        };
        let makers = match ask(self.ask(&definitions)) {
            Ok(makers) => makers,
            Err(error) if self.access.is_named() => return Err(error),
            Err(error) => {
                say(&format!(
                    "the CustomResourceDefinitions are left out: whose there are could not be asked ({}); \
                     --crds=always prints them, and what is applied replaces those of others",
                    error.in_a_line()
                ));
                return Ok(Vec::new());
            }
        };
        let each = definitions.into_iter().zip(makers);
        let lacking = each.filter(|(definition, maker)| {
            let is_others = *maker == Maker::Others;
            if is_others {
                let name = name_of(definition);
                say(&format!(
                    "{name} is there and not strew's: it is used as it is, and left out here"
                ));
            }
            !is_others
        });
        Ok(lacking.map(|(definition, _)| definition).collect())
    }

    async fn ask(&self, definitions: &[Value]) -> Result<Vec<Maker>, Failure> {
        let access = self.access.of(&ClientConnection::default());
        let connection = connect(&access, "strew").await.map_err(access::failure)?;
        let mut makers = Vec::with_capacity(definitions.len());
        for definition in definitions {
            let found = maker(&connection.client, name_of(definition)).await;
            makers.push(found.map_err(Failure::outside)?);
        }
        Ok(makers)
    }
}

fn name_of(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}
