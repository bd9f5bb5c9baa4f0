//! Any two lines as quantities: printing and reading agree, order and sums are those of numbers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use strew_manifest::quantity::Quantity;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (a, b) = text.split_once('\n').unwrap_or((text, ""));
    let (a, b) = (check(a), check(b));
    if let (Some(a), Some(b)) = (a, b) {
        check_pair(a, b);
    }
});

fn check(text: &str) -> Option<Quantity> {
    let Ok(quantity) = Quantity::parse(text) else {
        let exact = plain(text);
        assert!(
            exact.is_none(),
            "{text:?} is refused and is {exact:?} nano units"
        );
        return None;
    };
    let printed = quantity.to_string();
    let again = Quantity::parse(&printed).expect("what is printed can be read");
    assert_eq!(quantity, again, "{text:?} is printed as {printed:?}");
    // 2000 written as 1.953125Ki has no suffix to print, is read again as decimal and then 2k: as upstream.
    if again.format() == quantity.format() {
        assert_eq!(again.to_string(), printed, "printing has one form");
    }
    if let Some(nano) = plain(text) {
        let up = |unit: i128| i64::try_from(nano / unit + (nano % unit).signum());
        assert_eq!(
            quantity.checked_value().ok(),
            up(1_000_000_000).ok(),
            "{text:?}"
        );
        assert_eq!(
            quantity.checked_milli_value().ok(),
            up(1_000_000).ok(),
            "{text:?}"
        );
        assert_eq!(i128::from(quantity.signum()), nano.signum(), "{text:?}");
    }
    let rounded = quantity.round_up_to_milli();
    assert_eq!(rounded.round_up_to_milli(), rounded);
    assert!(rounded.is_whole_milli());
    assert_eq!(rounded.milli_value(), quantity.milli_value(), "{text:?}");
    assert_eq!(
        quantity.is_whole(),
        Quantity::from_units(quantity.value()) == quantity
    );
    Some(quantity)
}

/// A plain re-reading of whole numbers with a suffix, in nano units; `None` for all else and for what is too large.
fn plain(text: &str) -> Option<i128> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let number: i128 = number.parse().ok()?;
    let nano = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => 1_000_000_000,
        "k" => 10_i128.pow(12),
        "M" => 10_i128.pow(15),
        "G" => 10_i128.pow(18),
        "T" => 10_i128.pow(21),
        "Ki" => 1_000_000_000 << 10,
        "Mi" => 1_000_000_000 << 20,
        "Gi" => 1_000_000_000 << 30,
        "Ti" => 1_000_000_000_i128 << 40,
        _ => return None,
    };
    let product = number.checked_mul(nano)?;
    (product <= i128::from(i64::MAX) * 1_000_000_000).then_some(product)
}

fn check_pair(a: Quantity, b: Quantity) {
    assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    assert_eq!(a == b, a.cmp(&b).is_eq());
    assert!(!(a < b && a.value() > b.value()), "{a} and {b}");
    assert!(!(a < b && a.milli_value() > b.milli_value()), "{a} and {b}");
    let sum = a.checked_add(b).ok();
    assert_eq!(sum, b.checked_add(a).ok());
    if let Some(sum) = sum {
        assert_eq!(sum.cmp(&b).is_gt(), a.signum() > 0, "{a} + {b} = {sum}");
        assert_eq!(sum.format(), a.format());
        let text = sum.to_string();
        assert_eq!(Quantity::parse(&text).ok(), Some(sum), "{text}");
    }
}
