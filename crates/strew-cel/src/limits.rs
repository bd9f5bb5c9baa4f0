//! Bounds on what is parsed and evaluated. None is CEL's: they keep time, memory and stack bounded whatever the text.

/// Longest text, in bytes.
pub const BYTES_MAX: usize = 8192;

/// Most words, literals and signs of a text. The parser's stack grows with each in a chain.
pub const TOKENS_MAX: usize = 600;

/// Most comparisons (`==`, `!=`, `<`, `<=`, `>`, `>=`, `in`): the parser's stack grows most with a chain of these.
///
/// 250 in a chain fit the two megabytes of a thread in an unoptimised build, 290 do not.
pub const COMPARISONS_MAX: usize = 100;

/// Deepest nesting of brackets.
pub const NESTING_MAX: usize = 24;

/// Most question marks: conditions (each nests in the one before) and optional selections.
pub const TERNARIES_MAX: usize = 24;

/// Deepest nesting of `all`, `exists`, `exists_one`, `map` and `filter`.
pub const COMPREHENSIONS_MAX: usize = 6;

/// Longest text and longest bytes that a function may make.
pub const TEXT_MAX: usize = 1 << 20;

/// Most that a regular expression may weigh: its bytes, times the numbers of its repetitions.
pub const PATTERN_WEIGHT_MAX: u64 = 2_000;
