//! Objects that come at a steady rate, whether the earlier ones are there yet or not.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::Value;
use xtask::lab::now;

/// Creates each in turn, so many a second; how long each took.
pub(crate) async fn create(
    client: &Client,
    path: &str,
    bodies: impl Iterator<Item = Value>,
    rate: u32,
) -> anyhow::Result<Vec<Duration>> {
    let mut beat = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut under_way = tokio::task::JoinSet::new();
    for body in bodies {
        beat.tick().await;
        let (client, path) = (client.clone(), path.to_owned());
        under_way.spawn(async move {
            let begin = now();
            post(&client, &path, &body).await?;
            anyhow::Ok(begin.elapsed())
        });
    }
    let mut took = Vec::with_capacity(under_way.len());
    while let Some(made) = under_way.join_next().await {
        took.push(made??);
    }
    Ok(took)
}

/// Creates one.
pub(crate) async fn post(client: &Client, path: &str, body: &Value) -> anyhow::Result<()> {
    let request = Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())?;
    let _: serde::de::IgnoredAny = client.request(request).await?;
    Ok(())
}
