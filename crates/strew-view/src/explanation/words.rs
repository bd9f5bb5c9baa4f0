//! Names and amounts in the form that a user would write.

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Interner, NodeExpression, NodeOperator, Taint, well_known};
use strew_scheduler::plugins::node_resources_fit::Lacking;

use strew_manifest::quantity::Quantity;

pub(crate) fn node(cluster: &Cluster, node: NodeIdx) -> String {
    cluster.names.text(cluster.node(node).name()).to_owned()
}

/// `namespace/name`.
pub(crate) fn pod(cluster: &Cluster, pod: PodIdx) -> String {
    let namespace = cluster.names.text(cluster.class_of(pod).key.namespace);
    format!("{namespace}/{}", cluster.pod(pod).name)
}

/// `key=value:effect`, as `kubectl taint` writes it.
pub(crate) fn taint(taint: &Taint, names: &Interner) -> String {
    let (key, effect) = (names.text(taint.key), taint.effect.name());
    match taint.value {
        well_known::EMPTY => format!("{key}:{effect}"),
        value => format!("{key}={}:{effect}", names.text(value)),
    }
}

/// A requirement of node affinity.
pub(crate) fn node_expression(expression: &NodeExpression, names: &Interner) -> String {
    let key = names.text(expression.key);
    match &expression.operator {
        NodeOperator::Label(operator) => operator.text(expression.key, names),
        NodeOperator::Gt(bound) => format!("{key} > {bound}"),
        NodeOperator::Lt(bound) => format!("{key} < {bound}"),
    }
}

/// A resource's name.
pub(crate) fn resource(resource: Lacking, names: &Interner) -> &str {
    match resource {
        Lacking::Pods => "pods",
        Lacking::Cpu => "cpu",
        Lacking::Memory => "memory",
        Lacking::EphemeralStorage => "ephemeral-storage",
        Lacking::Scalar(name) => names.text(name),
    }
}

/// An exact amount, in the form of a manifest.
pub(crate) fn amount(resource: Lacking, amount: i64) -> String {
    match resource {
        Lacking::Cpu => Quantity::from_milli(amount).to_string(),
        Lacking::Memory | Lacking::EphemeralStorage => bytes(amount),
        Lacking::Pods | Lacking::Scalar(_) => amount.to_string(),
    }
}

const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Decimal units, as in `512G`, from the largest.
const DECIMAL_UNITS: [(i64, &str); 3] = [
    (1_000_000_000_000, "T"),
    (1_000_000_000, "G"),
    (1_000_000, "M"),
];

/// Bytes with a decimal unit that divides them; `None` if they are multiples of a mebibyte, which is written in binary.
fn decimal(amount: i64) -> Option<String> {
    if amount % MIB == 0 {
        return None;
    }
    let mut units = DECIMAL_UNITS.iter();
    let (unit, name) = units.find(|(unit, _)| amount % unit == 0)?;
    Some(format!("{}{name}", amount / unit))
}

/// Bytes with the largest unit that divides them.
fn bytes(amount: i64) -> String {
    if let Some(decimal) = decimal(amount) {
        return decimal;
    }
    let (mut number, mut unit) = (amount, 0);
    while number != 0 && number % 1024 == 0 && unit + 1 < UNITS.len() {
        number /= 1024;
        unit += 1;
    }
    format!("{number}{}", UNITS[unit])
}

/// An amount rounded for reading: bytes with one decimal, in the largest unit in which they are at least 1.
pub(crate) fn about(resource: Lacking, amount: i64) -> String {
    match resource {
        Lacking::Memory | Lacking::EphemeralStorage => {
            if let Some(decimal) = decimal(amount) {
                return decimal;
            }
            let (mut number, mut unit) = (amount as f64, 0);
            while number.abs() >= 1024.0 && unit + 1 < UNITS.len() {
                number /= 1024.0;
                unit += 1;
            }
            let text = format!("{number:.1}");
            format!("{}{}", text.trim_end_matches(".0"), UNITS[unit])
        }
        _ => self::amount(resource, amount),
    }
}

/// An exact amount of the wire, rounded for reading.
pub fn reading(amount: &str) -> String {
    let is_bytes = amount.ends_with('i');
    match Quantity::parse(amount) {
        Ok(quantity) if is_bytes => about(Lacking::Memory, quantity.value()),
        _ => amount.to_owned(),
    }
}

/// Bytes in one mebibyte; amounts of memory are not written more finely.
const MIB: i64 = 1 << 20;

/// An amount that is at most (with `up`, at least) this one, short enough for a manifest.
pub(crate) fn round(resource: Lacking, amount: i64, up: bool) -> String {
    let coarse = match resource {
        Lacking::Memory | Lacking::EphemeralStorage if amount >= MIB => {
            let rest = amount % MIB;
            let more = if up && rest > 0 { MIB } else { 0 };
            (amount - rest).saturating_add(more)
        }
        _ => amount,
    };
    self::amount(resource, coarse)
}

/// A number rounded to six decimals, so that its text is the same on all platforms.
pub(crate) fn decimals(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// `1 node`, `2 nodes`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_or_short() {
        let memory = Lacking::Memory;
        for (bytes, exact, short, down, up) in [
            (0, "0", "0", "0", "0"),
            (1000, "1000", "1000", "1000", "1000"),
            (1 << 30, "1Gi", "1Gi", "1Gi", "1Gi"),
            (512_000_000_000, "512G", "512G", "488281Mi", "488282Mi"),
            (
                16_393_212 << 10,
                "16393212Ki",
                "15.6Gi",
                "16008Mi",
                "16009Mi",
            ),
            (-(3 << 20), "-3Mi", "-3Mi", "-3Mi", "-3Mi"),
        ] {
            assert_eq!(amount(memory, bytes), exact);
            assert_eq!(about(memory, bytes), short);
            assert_eq!(round(memory, bytes, false), down);
            assert_eq!(round(memory, bytes, true), up);
        }
        assert_eq!(amount(Lacking::Cpu, 1500), "1500m");
        assert_eq!(about(Lacking::Cpu, 4000), "4");
    }
}
