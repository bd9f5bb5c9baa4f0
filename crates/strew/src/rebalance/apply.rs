//! `strew rebalance --apply`: asks the API server for the evictions of a plan, one after the other.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use strew_kube::clock::Clock;
use strew_kube::connect::{Client, connect};
use strew_kube::send::{once, read};
use strew_model::Span;
use strew_scenario::rebalance::carry::{
    Carrying, Next, NodeLabels, PodSeen, differs, eviction, name, words,
};
use strew_scenario::rebalance::values::{KIND, RebalancePlan};
use strew_wire::config::ClientConnection;
use strew_wire::request::Answer;

use crate::cluster::access::{self, AccessArgs};
use crate::cluster::runtime;
use crate::context::Context;
use crate::failure::{EXIT_NO, Failure};
use crate::terminal;
use crate::text::count;

/// How it is carried out.
pub(super) struct How<'a> {
    pub(super) access: &'a AccessArgs,
    /// True if it evicts without a question.
    pub(super) yes: bool,
    /// True if the API server only checks.
    pub(super) dry_run: bool,
    /// How long a step may wait.
    pub(super) patience: Span,
}

/// The time limit for one answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Carries out the plan of a file; returns the exit code.
///
/// # Errors
/// The file is no plan, there is no terminal for the question, or the API server cannot be used.
pub(super) fn run(path: &Path, how: &How<'_>, context: &Context) -> Result<u8, Failure> {
    let plan = plan_of(path)?;
    if plan.steps.is_empty() {
        terminal::print("the plan has no eviction: nothing to do\n")?;
        return Ok(0);
    }
    if !how.dry_run && !how.yes {
        let namespaces: BTreeSet<&str> = plan.steps.iter().map(|s| s.namespace.as_str()).collect();
        let question = format!(
            "evict {} in {}, one after the other? [y/N] ",
            count(plan.steps.len(), "pod"),
            count(namespaces.len(), "namespace")
        );
        if !is_agreed(&question)? {
            terminal::print("nothing was evicted\n")?;
            return Ok(EXIT_NO);
        }
    }
    runtime()?.block_on(async {
        let access = how.access.of(&ClientConnection::default());
        let connection = connect(&access, "strew").await.map_err(access::failure)?;
        match how.dry_run {
            true => check(&connection.client, &plan).await,
            false => carry_out(&connection.client, &plan, how, context).await,
        }
    })
}

fn plan_of(path: &Path) -> Result<RebalancePlan, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()));
    let text = text.map_err(Failure::outside)?;
    let hint = "strew rebalance -o yaml --out plan.yaml writes one";
    let plan: RebalancePlan = serde_saphyr::from_str(&text).map_err(|error| {
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default();
        let error = error.strip_prefix("error: ").unwrap_or(error);
        let error = anyhow!("{} is no RebalancePlan: {error}", path.display());
        Failure::input(error).with_hint(hint)
    })?;
    if plan.kind != KIND {
        let error = anyhow!("{} has kind {:?}, not {KIND}", path.display(), plan.kind);
        return Err(Failure::input(error).with_hint(hint));
    }
    // A namespace is part of a path.
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match plan.steps.iter().find(|step| !is_name(&step.namespace)) {
        None => Ok(plan),
        Some(step) => {
            let error = anyhow!("{:?} in {} is no namespace", step.namespace, path.display());
            Err(Failure::input(error).with_hint(hint))
        }
    }
}

/// Asks a person.
fn is_agreed(question: &str) -> Result<bool, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let error = anyhow!("--apply asks a question, and standard input is no terminal");
        return Err(
            Failure::input(error).with_hint("--yes carries the plan out without a question")
        );
    }
    terminal::say(question);
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .map_err(Failure::outside)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The objects of a path.
async fn list(client: &Client, path: &str) -> Result<Value, Failure> {
    match read(client, path, Span::from_secs(60)).await {
        Answer::Status {
            code: 200, body, ..
        } => Ok(body),
        other => Err(Failure::outside(anyhow!(
            "cannot list {path}: {}",
            words(&other)
        ))),
    }
}

async fn pods(client: &Client, namespace: &str) -> Result<Vec<PodSeen>, Failure> {
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    Ok(PodSeen::of_list(&list(client, &path).await?))
}

async fn node_labels(client: &Client) -> Result<NodeLabels, Failure> {
    let nodes = list(client, "/api/v1/nodes").await?;
    let items = nodes["items"].as_array().into_iter().flatten();
    let labels = |node: &Value| {
        let pairs = node["metadata"]["labels"].as_object().into_iter().flatten();
        let pair =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        (name.to_owned(), pairs.filter_map(pair).collect())
    };
    Ok(items.map(labels).collect())
}

/// Lets the API server check each eviction alone.
async fn check(client: &Client, plan: &RebalancePlan) -> Result<u8, Failure> {
    let mut n_refused = 0;
    for (number, step) in plan.steps.iter().enumerate() {
        let found = pods(client, &step.namespace).await?;
        let refused = match differs(step, &found) {
            Some(why) => Some(why),
            None => {
                let answer = once(client, &eviction(step, true), ANSWERS_WITHIN).await;
                answer.object().is_none().then(|| words(&answer))
            }
        };
        n_refused += usize::from(refused.is_some());
        let verdict = refused.map_or("would be evicted".to_owned(), |why| {
            format!("refused: {why}")
        });
        terminal::print(&format!("  {} {}   {verdict}\n", number + 1, name(step)))?;
    }
    let n_steps = count(plan.steps.len(), "eviction");
    terminal::print(&format!(
        "{n_refused} of {n_steps} refused; nothing was evicted\n"
    ))?;
    Ok(if n_refused == 0 { 0 } else { EXIT_NO })
}

async fn carry_out(
    client: &Client,
    plan: &RebalancePlan,
    how: &How<'_>,
    context: &Context,
) -> Result<u8, Failure> {
    let labels = node_labels(client).await?;
    let mut carrying = Carrying::new(plan, labels, how.patience);
    let clock = Clock::new();
    let start = clock.now();
    let now = || clock.now().since(start);
    loop {
        let Some(step) = plan.steps.get(carrying.n_done()) else {
            let n = count(plan.steps.len(), "eviction");
            terminal::print(&format!("✓ {n} carried out\n"))?;
            return Ok(0);
        };
        let found = pods(client, &step.namespace).await?;
        let n_done = carrying.n_done();
        let mut next = carrying.look(now(), &found);
        if let Next::Evict(request) = &next {
            let answer = once(client, request, ANSWERS_WITHIN).await;
            next = carrying.answered(now(), &answer);
        }
        if carrying.n_done() > n_done {
            let number = carrying.n_done();
            terminal::print(&format!("  {number} {}   done\n", name(step)))?;
        }
        match next {
            Next::Look(after) => {
                tokio::time::sleep(Duration::from_nanos(after.0)).await;
            }
            Next::Stop(why) => {
                let n = carrying.n_done();
                let program = context.program;
                let text = format!(
                    "✗ stopped after {n} of {}: {why}\nthe rest was planned for another cluster: {program} rebalance makes a new plan\n",
                    count(plan.steps.len(), "eviction")
                );
                terminal::print(&text)?;
                return Ok(EXIT_NO);
            }
            Next::Evict(_) | Next::Done => {}
        }
    }
}
