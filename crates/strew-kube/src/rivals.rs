//! Finds out whether another scheduler decides for pods of a profile: both would decide for the same pods.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};

/// A pod that another scheduler has put onto a node, as `namespace/name`: its `schedulerName` is that of the profile, and
/// strew's own scheduler, which would hold the lease `lease` in `namespace`, has never run. `None` if there is no such
/// pod. A profile of kube-scheduler stands in a file that no API server has; its pods are what can be seen of it.
///
/// # Errors
/// The API server does not answer, or does not allow to read leases or pods.
pub async fn placed_by_others(
    client: &Client,
    scheduler_name: &str,
    namespace: &str,
    lease: &str,
) -> Result<Option<String>, kube::Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    if leases.get_metadata_opt(lease).await?.is_some() {
        return Ok(None);
    }
    let pods: Api<Pod> = Api::all(client.clone());
    let on_nodes = format!("spec.schedulerName={scheduler_name},spec.nodeName!=");
    let one = ListParams::default().fields(&on_nodes).limit(1);
    let page = pods.list_metadata(&one).await?;
    Ok(page.items.first().map(|pod| {
        let name = |text: &Option<String>| text.clone().unwrap_or_default();
        let metadata = &pod.metadata;
        format!("{}/{}", name(&metadata.namespace), name(&metadata.name))
    }))
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// The answer where the API server gives these in turn, and the URLs that it was asked for.
    async fn found(answers: Vec<(u16, Value)>) -> (Option<String>, Vec<String>) {
        let (service, mut handle) = tower_test::mock::pair::<http::Request<Body>, _>();
        let served = tokio::spawn(async move {
            let mut urls = Vec::new();
            for (code, body) in answers {
                let Some((request, send)) = handle.next_request().await else {
                    break;
                };
                urls.push(request.uri().to_string());
                let body = Body::from(body.to_string().into_bytes());
                let answer = http::Response::builder().status(code).body(body);
                send.send_response(answer.expect("an answer"));
            }
            urls
        });
        let client = Client::new(service, "default");
        let found = placed_by_others(&client, "batch", "strew-system", "strew-scheduler").await;
        drop(client);
        (
            found.expect("an answer"),
            served.await.expect("the API server"),
        )
    }

    fn no_lease() -> (u16, Value) {
        let status =
            json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
        (404, status)
    }

    fn pods(items: &Value) -> (u16, Value) {
        let list = json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadataList",
            "metadata": {},
            "items": items,
        });
        (200, list)
    }

    #[tokio::test]
    async fn a_pod_on_a_node_tells_of_another_scheduler() {
        let pod = json!([{"metadata": {"namespace": "shop", "name": "web-1"}}]);
        let (answer, urls) = found(vec![no_lease(), pods(&pod)]).await;
        assert_eq!(answer.as_deref(), Some("shop/web-1"));
        assert_eq!(
            urls,
            [
                "/apis/coordination.k8s.io/v1/namespaces/strew-system/leases/strew-scheduler",
                "/api/v1/pods?&fieldSelector=spec.schedulerName%3Dbatch%2Cspec.nodeName%21%3D&limit=1",
            ]
        );
        assert_eq!(found(vec![no_lease(), pods(&json!([]))]).await.0, None);
    }

    #[tokio::test]
    async fn where_strew_has_run_its_own_pods_tell_nothing() {
        let lease = json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": {"namespace": "strew-system", "name": "strew-scheduler"},
        });
        let (answer, urls) = found(vec![(200, lease)]).await;
        assert_eq!((answer, urls.len()), (None, 1));
    }
}
