//! The context of a command: what holds for every one of them, whatever its own arguments are.

use crate::terminal::Terminal;

/// The context of a command, apart from its own arguments.
pub(crate) struct Context {
    pub(crate) terminal: Terminal,
    /// The program's name as it was called: `strew` or `kubectl strew`.
    pub(crate) program: &'static str,
    /// True if only the result is printed.
    pub(crate) quiet: bool,
    /// How much more than usual is printed.
    pub(crate) verbose: u8,
}

impl Context {
    /// Without a person: only results, in ASCII.
    pub(crate) fn quiet() -> Self {
        Self {
            terminal: Terminal::new(true),
            program: "strew",
            quiet: true,
            verbose: 0,
        }
    }
}
