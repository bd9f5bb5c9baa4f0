//! Errors with their causes, in the API server's own words.

use std::error::Error;

use kube::core::Status;

/// The texts of an error and its causes. What the API server answered stands there in its words alone: kube writes them
/// out three times, with all fields of the answer.
pub fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    strew_runtime::causes::causes(error, |cause| answer(cause).map(words))
}

/// All of it in one line.
pub fn in_a_line(error: &(dyn Error + 'static)) -> String {
    causes(error).join(": ")
}

/// The API server's answer, if the error is one.
fn answer<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Status> {
    match unboxed::<kube::Error>(error) {
        Some(kube::Error::Api(status)) => Some(status),
        _ => unboxed(error),
    }
}

/// The error as this type; a source that is kept in a box is of the box's type.
fn unboxed<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let boxed = || error.downcast_ref::<Box<T>>().map(|boxed| &**boxed);
    error.downcast_ref().or_else(boxed)
}

/// The message of an answer; without one, code and reason.
fn words(status: &Status) -> String {
    match status.message.as_str() {
        "" => format!("{} {}", status.code, status.reason)
            .trim()
            .to_owned(),
        message => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "pods is forbidden: User \"u\" cannot list resource \"pods\"";

    fn refused() -> kube::Error {
        let status = Status::failure(MESSAGE, "Forbidden").with_code(403);
        kube::Error::Api(status.boxed())
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot list pods: {0}")]
    struct Outer(#[source] Box<kube::Error>);

    #[test]
    fn an_answer_of_the_api_server_is_said_once() {
        assert_eq!(causes(&refused()), [MESSAGE]);
        let outer = Outer(Box::new(refused()));
        assert_eq!(in_a_line(&outer), format!("cannot list pods: {MESSAGE}"));
        let watch = kube::runtime::watcher::Error::InitialListFailed(refused());
        let said = in_a_line(&watch);
        assert!(
            said.ends_with(MESSAGE) && !said.contains("Status"),
            "{said}"
        );
        let silent = kube::Error::Api(Status::failure("", "Forbidden").with_code(403).boxed());
        assert_eq!(in_a_line(&silent), "403 Forbidden");
    }

    #[test]
    fn other_errors_keep_their_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("no answer")]
        struct Late(#[source] std::io::Error);
        let late = Late(std::io::Error::other("connection refused"));
        assert_eq!(causes(&late), ["no answer", "connection refused"]);
    }
}
