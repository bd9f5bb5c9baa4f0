//! The text of an expression, looked at before the parser sees it.
//!
//! What the parser must not be given is refused here, or written so that it reads it rightly (cel 0.13):
//! it reads an even run of `!` or `-` as a single one and visits its operand twice, its recursion follows operators
//! as well as brackets, and it knows neither three quotes nor raw bytes.

use crate::error::CompileError;
use crate::limits::{BYTES_MAX, COMPARISONS_MAX, NESTING_MAX, TERNARIES_MAX, TOKENS_MAX};

/// A text that the parser may be given, and where its names are.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    /// As long as `text`, with signs in front of an operand reduced to at most one.
    pub(crate) reduced: String,
    names: Vec<Name<'a>>,
    /// Signs with their places.
    signs: Vec<(&'a str, usize)>,
}

struct Name<'a> {
    text: &'a str,
    offset: usize,
    after_dot: bool,
    is_called: bool,
}

/// Operators of two signs; known by the second, of which none is `!` or `-`.
const PAIRS: [&str; 6] = ["&&", "||", "==", "!=", "<=", ">="];

/// A token, as far as bounds and names need it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Name,
    /// A number or a literal.
    Operand,
    Symbol(u8),
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, CompileError> {
        if text.len() > BYTES_MAX {
            let message = format!("the expression has more than {BYTES_MAX} bytes");
            return Err(CompileError::new(text, BYTES_MAX, message));
        }
        let tokens = tokens(text)?;
        check_bounds(text, &tokens)?;
        Ok(Self {
            text,
            reduced: reduce_signs(text, &tokens),
            names: names(text, &tokens),
            signs: signs(text, &tokens),
        })
    }

    /// Where a sign, or `in`, stands for the (`nth` + 1)-th time; a minus only between two operands.
    pub(crate) fn sign(&self, sign: &str, nth: usize) -> usize {
        let mut found = self.signs.iter().filter(|(text, _)| *text == sign);
        found.nth(nth).map_or(0, |&(_, offset)| offset)
    }

    /// The point before the field `name`, where it is selected first.
    pub(crate) fn field(&self, name: &str) -> usize {
        let is_it = |n: &&Name<'_>| n.text == name && n.after_dot && !n.is_called;
        self.offset_of(0, is_it).saturating_sub(1)
    }

    /// Where the variable `name` is named for the (`nth` + 1)-th time.
    pub(crate) fn variable(&self, name: &str, nth: usize) -> usize {
        let is_it = |n: &&Name<'_>| n.text == name && !n.after_dot && !n.is_called;
        self.offset_of(nth, is_it)
    }

    /// Where the function `name` is called for the (`nth` + 1)-th time.
    pub(crate) fn call(&self, name: &str, nth: usize) -> usize {
        self.offset_of(nth, |n| n.text == name && n.is_called)
    }

    fn offset_of(&self, nth: usize, is_it: impl Fn(&&Name<'a>) -> bool) -> usize {
        let mut found = self.names.iter().filter(is_it);
        found.nth(nth).map_or(0, |name| name.offset)
    }
}

fn tokens(text: &str) -> Result<Vec<(Token, usize, usize)>, CompileError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let rest = &text[at..];
        let token = match bytes[at] {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                at += length_while(rest, |b| b.is_ascii_alphanumeric() || b == b'_');
                let is_prefix =
                    at - start <= 2 && rest[..at - start].bytes().all(is_literal_prefix);
                match bytes.get(at) {
                    Some(b'"' | b'\'') if is_prefix => {
                        at = literal_end(text, start, at)?;
                        Token::Operand
                    }
                    _ => Token::Name,
                }
            }
            b'"' | b'\'' => {
                at = literal_end(text, start, at)?;
                Token::Operand
            }
            b if b.is_ascii_digit() => {
                at += length_while(rest, |b| b.is_ascii_alphanumeric());
                Token::Operand
            }
            _ if PAIRS.iter().any(|pair| rest.starts_with(pair)) => {
                at += 2;
                Token::Symbol(bytes[start + 1])
            }
            symbol => {
                // A character of several bytes is for the parser to refuse.
                at += rest.chars().next().map_or(1, char::len_utf8);
                Token::Symbol(symbol)
            }
        };
        tokens.push((token, start, at));
    }
    Ok(tokens)
}

fn length_while(text: &str, is_part: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|b| !is_part(b)).unwrap_or(text.len())
}

fn is_literal_prefix(byte: u8) -> bool {
    matches!(byte, b'r' | b'R' | b'b' | b'B')
}

/// Where the literal ends whose prefix begins at `start` and whose quotes begin at `quote`.
fn literal_end(text: &str, start: usize, quote: usize) -> Result<usize, CompileError> {
    let prefix = &text[start..quote];
    let is_raw = prefix.contains(['r', 'R']);
    let is_bytes = prefix.contains(['b', 'B']);
    let one = &text[quote..=quote];
    let quotes = match text[quote..].starts_with(&one.repeat(3)) {
        true => one.repeat(3),
        false => one.to_owned(),
    };
    if quotes.len() == 3 {
        let message =
            "literals with three quotes are not known here: write \\n and \\' between single ones";
        return Err(CompileError::new(text, start, message));
    }
    if is_bytes && is_raw {
        let message = "a literal of bytes can't be raw here: write b'…' or b\"…\"";
        return Err(CompileError::new(text, start, message));
    }
    let mut at = quote + quotes.len();
    loop {
        let rest = &text[at..];
        match rest.chars().next() {
            Some('\\') if !is_raw => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            Some(_) if rest.starts_with(&quotes) => return Ok(at + quotes.len()),
            Some('\n') => break,
            Some(c) => at += c.len_utf8(),
            None => break,
        }
    }
    Err(CompileError::new(
        text,
        start,
        "Syntax error: the literal has no end",
    ))
}

fn check_bounds(text: &str, tokens: &[(Token, usize, usize)]) -> Result<(), CompileError> {
    let too = |offset, what: String| Err(CompileError::new(text, offset, what));
    let (mut depth, mut ternaries, mut comparisons) = (0_usize, 0_usize, 0_usize);
    for (i, (token, offset, end)) in tokens.iter().enumerate() {
        match token {
            Token::Symbol(b'=' | b'<' | b'>') => comparisons += 1,
            Token::Name if &text[*offset..*end] == "in" => comparisons += 1,
            Token::Symbol(b'(' | b'[' | b'{') => depth += 1,
            Token::Symbol(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            Token::Symbol(b'?') => ternaries += 1,
            _ => {}
        }
        if i >= TOKENS_MAX {
            return too(
                *offset,
                format!("the expression has more than {TOKENS_MAX} words and signs"),
            );
        }
        if depth > NESTING_MAX {
            return too(
                *offset,
                format!("brackets are more than {NESTING_MAX} deep"),
            );
        }
        if comparisons > COMPARISONS_MAX {
            let message = format!("there are more than {COMPARISONS_MAX} comparisons");
            return too(*offset, message);
        }
        if ternaries > TERNARIES_MAX {
            return too(
                *offset,
                format!("there are more than {TERNARIES_MAX} question marks"),
            );
        }
    }
    Ok(())
}

/// `!!x` is `x`, `!!!x` is `!x`, `--x` is `x`: blanks in the place of pairs, so that all places stay.
fn reduce_signs(text: &str, tokens: &[(Token, usize, usize)]) -> String {
    let mut reduced = text.as_bytes().to_vec();
    let mut ends_operand = false;
    let mut run: Vec<usize> = Vec::new();
    let mut sign = 0;
    for (token, offset, end) in tokens {
        match *token {
            Token::Symbol(s @ (b'!' | b'-')) if !ends_operand => {
                if s != sign {
                    blank_pairs(&mut reduced, &run);
                    run.clear();
                    sign = s;
                }
                run.push(*offset);
                continue;
            }
            _ => {}
        }
        blank_pairs(&mut reduced, &run);
        run.clear();
        ends_operand = match token {
            Token::Name => &text[*offset..*end] != "in",
            Token::Operand => true,
            Token::Symbol(s) => matches!(s, b')' | b']' | b'}'),
        };
    }
    blank_pairs(&mut reduced, &run);
    // Only ASCII signs were replaced, by ASCII.
    String::from_utf8(reduced).unwrap_or_default()
}

fn blank_pairs(text: &mut [u8], run: &[usize]) {
    let kept = run.len() % 2;
    for offset in &run[..run.len() - kept] {
        text[*offset] = b' ';
    }
}

fn signs<'a>(text: &'a str, tokens: &[(Token, usize, usize)]) -> Vec<(&'a str, usize)> {
    let mut ends_operand = false;
    let mut signs = Vec::new();
    for (token, start, end) in tokens {
        let word = &text[*start..*end];
        let is_sign = match token {
            Token::Symbol(b'-' | b'[') => ends_operand,
            Token::Symbol(_) => true,
            Token::Name => word == "in",
            Token::Operand => false,
        };
        if is_sign {
            signs.push((word, *start));
        }
        ends_operand = match token {
            Token::Name => word != "in",
            Token::Operand => true,
            Token::Symbol(s) => matches!(s, b')' | b']' | b'}'),
        };
    }
    signs
}

fn names<'a>(text: &'a str, tokens: &[(Token, usize, usize)]) -> Vec<Name<'a>> {
    let mut names = Vec::new();
    for (i, (token, start, end)) in tokens.iter().enumerate() {
        if *token != Token::Name {
            continue;
        }
        let before = |n: usize| i.checked_sub(n).map(|i| tokens[i].0);
        let after_dot = match before(1) {
            Some(Token::Symbol(b'?')) => before(2) == Some(Token::Symbol(b'.')),
            token => token == Some(Token::Symbol(b'.')),
        };
        names.push(Name {
            text: &text[*start..*end],
            offset: *start,
            after_dot,
            is_called: tokens.get(i + 1).map(|t| t.0) == Some(Token::Symbol(b'(')),
        });
    }
    names
}
