//! Certificates of our own for a webhook: an authority in a Secret, what a server shows, and `caBundle` of those who
//! ask; all of it exchanged before its end, while requests are served.
//!
//! Whoever first finds no Secret makes it; after that the leader of lease `strew-webhook` takes each step, and the
//! resourceVersion keeps two that both believe to lead apart. Every process shows a certificate that it made itself.
//! Private keys of servers are in memory only, and no key is in a log.
//!
//! Reading order: [`plan`] (what is due when), [`pair`] (certificates), [`stored`] (the Secret), [`bundle`] (who
//! trusts), [`keeper`] (the loop).

pub mod bundle;
pub mod keeper;
pub mod pair;
pub mod plan;
pub mod stored;

pub use bundle::Place;
pub use keeper::Keeper;
pub use plan::Lives;
