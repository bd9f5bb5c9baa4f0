//! The dump of a cluster that strew reads: one list of resources for all help texts and pages.

/// The resources to list, in the words of kubectl; a cluster without Kruise or Open Cluster Management has them all.
pub const RESOURCES: &str = "nodes,pods,deploy,rs,sts,ds,rc,jobs,cronjobs,controllerrevisions,hpa,pdb,svc,\
                                    namespaces,quota,limits,priorityclasses,runtimeclasses,pvc,pv,sc,csinodes,events";

/// The advice for an input without nodes.
pub fn nodes_hint() -> String {
    format!(
        "add the nodes, for example kubectl get {RESOURCES} -A -o json; or give --nodes 12 for made-up ones"
    )
}
