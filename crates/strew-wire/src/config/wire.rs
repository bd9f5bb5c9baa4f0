//! `KubeSchedulerConfiguration` as written. Every field is optional; defaults are set later.
//!
//! Source: `k8s.io/kube-scheduler/config/v1`, v1.36; spec/scheduler §5.1.

use serde::Deserialize;
use serde_json::Value;

/// The file.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "fields that are read but decide nothing in strew")]
pub(super) struct ConfigurationWire {
    pub(super) api_version: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) parallelism: Option<i32>,
    pub(super) leader_election: Option<LeaderElectionWire>,
    pub(super) client_connection: Option<ClientConnectionWire>,
    pub(super) enable_profiling: Option<bool>,
    pub(super) enable_contention_profiling: Option<bool>,
    pub(super) percentage_of_nodes_to_score: Option<i32>,
    pub(super) pod_initial_backoff_seconds: Option<i64>,
    pub(super) pod_max_backoff_seconds: Option<i64>,
    pub(super) profiles: Option<Vec<ProfileWire>>,
    pub(super) extenders: Option<Vec<ExtenderWire>>,
    pub(super) delay_cache_until_active: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaderElectionWire {
    pub(super) leader_elect: Option<bool>,
    pub(super) lease_duration: Option<String>,
    pub(super) renew_deadline: Option<String>,
    pub(super) retry_period: Option<String>,
    pub(super) resource_lock: Option<String>,
    pub(super) resource_name: Option<String>,
    pub(super) resource_namespace: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientConnectionWire {
    pub(super) kubeconfig: Option<String>,
    pub(super) accept_content_types: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) qps: Option<f32>,
    pub(super) burst: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileWire {
    pub(super) scheduler_name: Option<String>,
    pub(super) percentage_of_nodes_to_score: Option<i32>,
    pub(super) plugins: Option<PluginsWire>,
    pub(super) plugin_config: Option<Vec<PluginConfigWire>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginsWire {
    pub(super) pre_enqueue: Option<PluginSetWire>,
    pub(super) queue_sort: Option<PluginSetWire>,
    pub(super) pre_filter: Option<PluginSetWire>,
    pub(super) filter: Option<PluginSetWire>,
    pub(super) post_filter: Option<PluginSetWire>,
    pub(super) pre_score: Option<PluginSetWire>,
    pub(super) score: Option<PluginSetWire>,
    pub(super) reserve: Option<PluginSetWire>,
    pub(super) permit: Option<PluginSetWire>,
    pub(super) pre_bind: Option<PluginSetWire>,
    pub(super) bind: Option<PluginSetWire>,
    pub(super) post_bind: Option<PluginSetWire>,
    pub(super) multi_point: Option<PluginSetWire>,
    pub(super) placement_generate: Option<PluginSetWire>,
    pub(super) placement_score: Option<PluginSetWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginSetWire {
    pub(super) enabled: Option<Vec<PluginWire>>,
    pub(super) disabled: Option<Vec<PluginWire>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginWire {
    pub(super) name: Option<String>,
    pub(super) weight: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginConfigWire {
    pub(super) name: Option<String>,
    /// Checked against the plugin's own schema.
    pub(super) args: Option<Value>,
}

/// An HTTP extender: read to be validated, and refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "fields of a feature that is refused as a whole")]
pub(super) struct ExtenderWire {
    pub(super) url_prefix: Option<String>,
    pub(super) filter_verb: Option<String>,
    pub(super) preempt_verb: Option<String>,
    pub(super) prioritize_verb: Option<String>,
    pub(super) weight: Option<i64>,
    pub(super) bind_verb: Option<String>,
    #[serde(rename = "enableHTTPS")]
    pub(super) enable_https: Option<bool>,
    pub(super) tls_config: Option<Value>,
    #[serde(rename = "httpTimeout")]
    pub(super) http_timeout: Option<String>,
    pub(super) node_cache_capable: Option<bool>,
    pub(super) managed_resources: Option<Vec<ManagedResourceWire>>,
    pub(super) ignorable: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "fields of a feature that is refused as a whole")]
pub(super) struct ManagedResourceWire {
    pub(super) name: Option<String>,
    pub(super) ignored_by_scheduler: Option<bool>,
}

impl PluginWire {
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl PluginSetWire {
    pub(super) fn enabled(&self) -> &[PluginWire] {
        self.enabled.as_deref().unwrap_or_default()
    }

    pub(super) fn disabled(&self) -> &[PluginWire] {
        self.disabled.as_deref().unwrap_or_default()
    }
}
