//! Which of several equal names in a text an expression stands for.
//!
//! The parser keeps no places, but numbers what it reads from left to right: so the nth name of its tree is the nth
//! in the text. A macro's variable is not in the tree, and counted where it was: right after the macro's range.

use kube_cel::cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr};

/// How often the variable `name` is named in the text before the expression `id`.
pub(crate) fn before(root: &IdedExpr, name: &str, id: u64) -> usize {
    let mut ids: Vec<u64> = Vec::new();
    walk(root, &mut |expr| match &expr.expr {
        Expr::Ident(ident) if ident == name => ids.push(expr.id),
        Expr::Comprehension(c) if c.iter_var == name => {
            // A number between the range's and those of what follows; no other expression has it, or the variable
            // itself, which `filter` keeps.
            ids.push(variable_id(c));
        }
        _ => {}
    });
    ids.retain(|i| *i < id);
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

/// How often the function `name` is called in the text before the call `id`.
pub(crate) fn calls_before(root: &IdedExpr, name: &str, id: u64) -> usize {
    let mut n = 0;
    walk(root, &mut |expr| match &expr.expr {
        Expr::Call(call) if call.func_name == name && expr.id < id => n += 1,
        _ => {}
    });
    n
}

/// The number of a macro's variable: that of its opening bracket comes first, then its own.
fn variable_id(comprehension: &ComprehensionExpr) -> u64 {
    let mut last = 0;
    walk(&comprehension.iter_range, &mut |expr| {
        last = last.max(expr.id)
    });
    last + 2
}

fn walk<'a>(expr: &'a IdedExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    visit(expr);
    match &expr.expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|target| walk(target, visit));
            call.args.iter().for_each(|argument| walk(argument, visit));
        }
        Expr::Comprehension(c) => {
            for part in [
                &c.iter_range,
                &c.accu_init,
                &c.loop_cond,
                &c.loop_step,
                &c.result,
            ] {
                walk(part, visit);
            }
        }
        Expr::List(list) => list
            .elements
            .iter()
            .for_each(|element| walk(element, visit)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    walk(&entry.key, visit);
                    walk(&entry.value, visit);
                }
            }
        }
        Expr::Select(select) => walk(&select.operand, visit),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}
