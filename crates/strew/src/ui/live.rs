//! A live cluster: its objects as they change, a view of them several times a second, and the page.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use serde_json::json;
use strew_apiserver::object::Object;
use strew_kube::Client;
use strew_kube::connect::connect;
use strew_kube::mirror::{Change, Mirror, MirrorState};
use strew_kube::page::{Data, Rows};
use strew_manifest::read::Sources;
use strew_model::Interner;
use strew_scheduler::Profile;
use strew_suite::configuration::{SchedulingArgs, blueprint};
use strew_view::facts::Facts;
use strew_view::moment::Frame;
use strew_view::workload::Workloads;
use strew_wire::config::ClientConnection;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{UiArgs, bind, page, picture, say};
use crate::cluster::access;
use crate::context::Context;
use crate::failure::Failure;
use crate::process::signals::until_signal;
use crate::{configuration, terminal};

/// The least time between two updates: five a second.
const EVERY: Duration = Duration::from_millis(200);

/// Serves the page until a signal.
///
/// # Errors
/// No API server, a wrong configuration, or the port is taken.
pub(super) async fn serve(args: &UiArgs, context: &Context) -> Result<u8, Failure> {
    let (names, profiles) = profiles(&args.world.scheduling)?;
    let access = args.access.of(&ClientConnection::default());
    let connection = connect(&access, "strew").await.map_err(access::failure)?;
    let server = bind(args.port).await?;
    let end = until_signal()?;
    let about = json!({
        "kind": picture::KIND, "title": connection.server, "version": connection.version, "live": true,
    });
    let (rows, data) = watch::channel(Arc::default());
    let page = page(&format!("{{\"report\":{about}}}"), Data::Live(data), args)?;
    say(&server, context)?;
    server
        .run_apart(page.routes(), end.clone())
        .map_err(Failure::outside)?;
    let follower = Follower {
        facts: Facts::empty(&names, &profiles),
        names,
        profiles,
        standing: MirrorState::default(),
        failing_since: None,
        rows,
        quiet: context.quiet,
    };
    follower.follow(connection.client, &end).await;
    Ok(0)
}

/// The profiles of the scheduler's configuration.
fn profiles(scheduling: &SchedulingArgs) -> Result<(Interner, Vec<Profile>), Failure> {
    let file = configuration::read(scheduling)?;
    let (gates, wrong) = scheduling.gates();
    let mut names = Interner::new();
    let configured = scheduling.configure(file.as_ref(), &Sources::new(), &[], &gates, &mut names);
    let mut wrong = wrong.iter().chain(&configured.elsewhere);
    if let Some(first) = wrong.next() {
        return Err(Failure::input(anyhow!("{}", first.message)));
    }
    let Some(configuration) = configured.configuration else {
        return Err(Failure::input(anyhow!("the configuration cannot be used")));
    };
    let blueprint = blueprint(&configuration, configured.is_given, names);
    Ok((blueprint.names, blueprint.profiles))
}

/// Follows a cluster, and shows it.
struct Follower {
    facts: Facts,
    names: Interner,
    profiles: Vec<Profile>,
    standing: MirrorState,
    /// Milliseconds of Unix time.
    failing_since: Option<u64>,
    rows: watch::Sender<Arc<Rows>>,
    quiet: bool,
}

impl Follower {
    async fn follow(mut self, client: Client, end: &CancellationToken) {
        let mut mirror = Mirror::begin(client);
        let mut due = Instant::now();
        while let Some(changes) = end.run_until_cancelled(mirror.next()).await {
            self.apply(changes);
            while Instant::now() < due {
                let Ok(changes) = timeout_at(due, mirror.next()).await else {
                    break;
                };
                self.apply(changes);
            }
            let began = Instant::now();
            self.stand(mirror.standing());
            self.show();
            // Half of the time is left to reading, however large the cluster is.
            due = Instant::now() + EVERY.max(began.elapsed());
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Set(object) => self.facts.set(Object::of_wire(object)),
                Change::Gone(remains) => self.facts.remove(&Object::of_wire(remains).key()),
            }
        }
    }

    /// Takes over how complete the mirror is, and says on the terminal what fails.
    fn stand(&mut self, standing: MirrorState) {
        if standing.failing != self.standing.failing && !self.quiet {
            match standing.failing.first() {
                Some(first) => terminal::say(&format!("warning: {first}; it is tried again\n")),
                None => terminal::say("the API server answers again\n"),
            }
        }
        self.failing_since = match standing.failing.is_empty() {
            true => None,
            false => self.failing_since.or_else(unix_millis),
        };
        self.standing = standing;
    }

    fn show(&self) {
        let standing = &self.standing;
        let mut rows = match standing.is_whole {
            true => {
                // Workloads that are gone do not stay in a list of their own.
                let mut frame = Frame {
                    names: self.names.clone(),
                    profiles: self.profiles.clone(),
                    workloads: Workloads::default(),
                    keys: Vec::new(),
                };
                picture::rows(self.facts.moment(), &mut frame)
            }
            false => Rows::default(),
        };
        let row = json!({
            "whole": standing.is_whole,
            "leftOut": standing.left_out,
            "failing": standing.failing,
            "since": self.failing_since,
            "unreadable": standing.unreadable,
        });
        rows.set("standing", &row);
        self.rows.send_if_modified(|shown| {
            let is_new = **shown != rows;
            if is_new {
                *shown = Arc::new(rows);
            }
            is_new
        });
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a live page tells when its watches broke"
)]
fn unix_millis() -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(now.as_millis()).ok()
}
