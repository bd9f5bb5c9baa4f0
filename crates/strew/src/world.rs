//! The arguments of commands that read a cluster from files: the files, the scheduler, and more nodes.

use clap::Args;

use crate::configuration::SchedulingArgs;
use crate::inputs::ReadArgs;
use crate::memory::MemoryArgs;
use crate::nodes::NodeArgs;
use crate::storage::StorageArgs;

/// The files, and the nodes besides those in them.
#[derive(Args, Debug, Clone)]
pub(crate) struct WorldArgs {
    /// More files; the same as naming them as arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) filename: Vec<String>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) scheduling: SchedulingArgs,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}
