//! The table of the fields of configurations, so that unknown ones are found.

use serde::de::DeserializeOwned;
use strew_manifest::read::FieldTable;

use super::arguments::{
    DynamicResourcesWire, InterPodAffinityWire, NodeAffinityWire, PreemptionWire, VolumeBindingWire,
};
use super::policy::PolicyWire;
use super::resource_arguments::{BalancedWire, FitWire};
use super::spread_arguments::{BetaSpreadWire, SpreadWire};
use super::wire::ConfigurationWire;

pub(super) static FIELDS: FieldTable = FieldTable::new(include_str!("fields.txt"));

/// A document, or the arguments of a plugin.
pub(super) trait Part: DeserializeOwned + Default {
    /// Its name in the table.
    const NAME: &'static str;
}

macro_rules! parts {
    ($($part:ident,)*) => {
        $(impl Part for $part {
            const NAME: &'static str = stringify!($part);
        })*

        /// The table of fields, as `fields.txt` has it.
        #[cfg(feature = "schemas")]
        pub fn field_table() -> String {
            let mut writer = strew_manifest::read::FieldWriter::default();
            $(writer.add::<$part>($part::NAME);)*
            writer.finish()
        }
    };
}

parts! {
    ConfigurationWire,
    PolicyWire,
    PreemptionWire,
    InterPodAffinityWire,
    NodeAffinityWire,
    VolumeBindingWire,
    DynamicResourcesWire,
    SpreadWire,
    BetaSpreadWire,
    FitWire,
    BalancedWire,
}
