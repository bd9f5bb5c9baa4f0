//! What a story sets up, and what it does to the registration.

use strew_model::time::Span;

/// How the webhook's replicas register themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistrationPlan {
    /// `--strict`: the registration stays while no replica is ready.
    pub is_strict: bool,
    /// The number of controllers, each of which takes out what no replica serves.
    pub n_guards: u8,
    /// The longest time until a watch shows a change of an object.
    pub lag: Span,
    /// The lives of its certificates.
    pub lives: Lives,
}

/// The lives of certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lives {
    /// Of a CA.
    pub authority: Span,
    /// Of a serving certificate.
    pub serving: Span,
    /// How long two CAs are trusted before and after the next one signs.
    pub overlap: Span,
    /// How old the first CA is at second 0.
    pub age: Span,
}

/// An edit of the configuration by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// No webhook is left.
    Empty,
    /// `caBundle` is another one.
    Bundle,
    /// `failurePolicy: Ignore`
    Ignore,
    /// It has no mark of the replica that wrote it.
    Mark,
    /// The Secret with the CAs is deleted.
    Secret,
}

/// A fault of the registration, or an action of a user on it. Replicas are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookDeed {
    /// A replica is asked to end, and another one starts in its place this long after it ended.
    End(u8, Span),
    /// A replica does not reach the API server, which reaches it.
    Cut(u8, Span),
    /// A replica answers its own reviews late.
    Busy(u8, Span),
    /// The port that is registered is closed, for everybody.
    Closed(Span),
    /// Only the API server reaches the registered port: questions of others get no answer.
    Hidden(Span),
    /// The configuration is deleted, and applied again after this long.
    Delete(Span),
    /// The configuration is edited.
    Edit(Edit),
}

impl HookDeed {
    /// The kind under which it counts as a fault.
    pub fn fault(self) -> &'static str {
        match self {
            Self::End(..) => "replica of the webhook ends",
            Self::Cut(..) => "replica of the webhook is cut off",
            Self::Busy(..) => "replica of the webhook is busy",
            Self::Closed(_) => "webhook's port is closed",
            Self::Hidden(_) => "webhook's port is hidden",
            Self::Delete(_) => "webhook's configuration is deleted",
            Self::Edit(_) => "webhook's configuration is edited",
        }
    }
}
