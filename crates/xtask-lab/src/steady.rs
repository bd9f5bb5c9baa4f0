//! Creates objects at a steady rate, whether earlier ones are done or not.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::Value;
use xtask_lab::lab::now;

/// Calls `make` `n` times, `rate` times a second; returns how long each call took.
pub(crate) async fn at_rate<F>(
    n: usize,
    rate: u32,
    make: impl Fn(usize) -> F,
) -> anyhow::Result<Vec<Duration>>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let mut beat = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut under_way = tokio::task::JoinSet::new();
    for number in 0..n {
        beat.tick().await;
        let begin = now();
        let made = make(number);
        under_way.spawn(async move { made.await.map(|()| begin.elapsed()) });
    }
    let mut took = Vec::with_capacity(n);
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
