//! The arguments of commands that read a cluster from files: the files, the scheduler, and more nodes.

use clap::Args;
#[cfg(feature = "cluster")]
use serde_json::{Value, json};
use strew_manifest::read::How;

use crate::cluster::{self, access::AccessArgs};
use crate::context::Context;
use crate::failure::Failure;
use crate::inputs::{AsArgs, Input, ReadArgs};
use crate::memory::MemoryArgs;
use strew_suite::assumed::AssumedArgs;
use strew_suite::configuration::SchedulingArgs;
use strew_suite::nodes::NodeArgs;

/// The files, and the nodes besides those in them.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct WorldArgs {
    /// More files; the same as naming them as arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) filename: Vec<String>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) as_: AsArgs,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) scheduling: SchedulingArgs,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    #[command(flatten)]
    pub(crate) assumed: AssumedArgs,
}

impl WorldArgs {
    /// All files of the command line: the arguments, and those of `--filename`.
    pub(crate) fn names(&self, files: &[String]) -> Vec<String> {
        [files, &self.filename].concat()
    }

    /// Reads the files; `piped` is the command that reads manifests from standard input.
    ///
    /// # Errors
    /// All files that cannot or must not be read.
    pub(crate) fn inputs(&self, names: &[String], piped: String) -> Result<Vec<Input>, Failure> {
        self.read.read(names, self.as_.how(piped))
    }

    /// Reads the files; without any, the cluster of the kubeconfig. `command` reads manifests from standard input.
    ///
    /// # Errors
    /// All files that cannot or must not be read, or that the cluster cannot be.
    pub(crate) fn inputs_or_cluster(
        &self,
        names: &[String],
        access: &AccessArgs,
        command: &str,
        context: &Context,
    ) -> Result<Vec<Input>, Failure> {
        if !names.is_empty() {
            return self.inputs(names, format!("{} {command} -", context.program));
        }
        let list = cluster::fetch(access, context.quiet)?;
        Ok(vec![self.made("<cluster>", list.to_string().into_bytes())])
    }

    /// An input that is no file.
    pub(crate) fn made(&self, name: &str, bytes: Vec<u8>) -> Input {
        let how = How::default();
        Input::made(name, bytes, self.as_.how(how.piped))
    }

    /// The objects of a cluster as an input.
    ///
    /// # Errors
    /// They cannot be written.
    #[cfg(feature = "cluster")]
    pub(crate) fn listed(&self, objects: Vec<Value>) -> Result<Vec<Input>, Failure> {
        let mut list = json!({"apiVersion": "v1", "kind": "List"});
        list["items"] = objects.into();
        let bytes = serde_json::to_vec(&list).map_err(Failure::outside)?;
        Ok(vec![self.made("<cluster>", bytes)])
    }

    /// The options that read the same files again.
    pub(crate) fn read_args(&self) -> Vec<String> {
        [self.read.to_args(), self.as_.to_args()].concat()
    }
}
