//! Errors with their causes.

use std::error::Error;

/// The texts of an error and its causes, from the outermost to the innermost, without repeated texts. `words` has a better
/// text for a cause than its own, if it has one.
pub fn causes(
    error: &(dyn Error + 'static),
    words: impl Fn(&(dyn Error + 'static)) -> Option<String>,
) -> Vec<String> {
    let mut all = vec![error];
    let mut next = error.source();
    while let Some(cause) = next {
        all.push(cause);
        next = cause.source();
    }
    let mut texts: Vec<String> = Vec::new();
    for (place, error) in all.iter().enumerate() {
        let mut text = error.to_string();
        // An error may have the text of its cause within its own.
        for cause in &all[place..] {
            if let Some(better) = words(*cause) {
                text = text.replace(&cause.to_string(), &better);
            }
        }
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
    }
    texts
}
