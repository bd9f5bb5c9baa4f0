use super::*;

/// A variant without any run.
fn variant(n_seeds: u64) -> VariantSum {
    let row = json_row();
    VariantSum {
        name: "base".to_owned(),
        must: Must::Hold,
        seeds: Seeds::new(0, n_seeds),
        played: Vec::new(),
        broken: 0,
        cut: false,
        virtual_milliseconds: 0,
        replay: "simulate x.yaml".to_owned(),
        rows: vec![row],
    }
}

fn json_row() -> RowSum {
    let row = serde_json::json!({
        "text": "spread", "decides": true, "held": 0, "open": 0, "broken": 0, "heldAtOnce": 0,
    });
    serde_json::from_value(row).unwrap()
}

/// Adds a run that differs for each seed: two of three break, and most counts occur once.
fn play(variant: &mut VariantSum, seed: u64) {
    let seconds = 1_000_000_000;
    let at = SeedAt {
        seed,
        at: Span((seed * 7 % 11) * seconds),
    };
    let counts: ByDomain = [("a", seed * 31 % 2003), ("b", seed % 17)]
        .map(|(name, n)| (name.to_owned(), u32::try_from(n).unwrap()))
        .into();
    variant.add_played(Seeds::new(seed, 1));
    variant.virtual_milliseconds += seed;
    let row = &mut variant.rows[0];
    row.add_began(at);
    row.add_counts(&counts, 3);
    if seed.is_multiple_of(3) {
        row.held += 1;
        return;
    }
    variant.broken += 1;
    row.broken += 1;
    row.add_broken(at);
    row.add_first(Breach {
        seed,
        at: at.at,
        why: format!("seed {seed}"),
        cause: None,
        counts: Some(counts),
    });
}

/// The seeds from 0 on in another order: 7919 is prime.
fn shuffled(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |i| i * 7919 % n)
}

#[test]
fn a_sum_depends_on_no_order_and_no_division() {
    let n = 5000;
    let mut whole = variant(n);
    (0..n).for_each(|seed| play(&mut whole, seed));
    let row = &whole.rows[0];
    assert_eq!(row.shapes.len(), SHAPES_MAX);
    assert!(row.other_shapes > 0, "some counts are given up");
    assert_eq!(row.seeds_broken.len(), BREACHES_MAX);
    assert_eq!(row.n_more_broken(), row.broken - 1000);
    assert_eq!(row.first.as_ref().unwrap().seed, 1);
    assert_eq!(whole.played, [Seeds::new(0, n)]);

    let mut in_disorder = variant(n);
    shuffled(n).for_each(|seed| play(&mut in_disorder, seed));
    assert_eq!(in_disorder, whole);

    // Parts that are not intervals, the last one first.
    let part = |number: u64| {
        let mut part = variant(n);
        let seeds = shuffled(n).filter(|seed| seed * 13 % 7 == number);
        seeds.for_each(|seed| play(&mut part, seed));
        part
    };
    let mut sum = variant(n);
    for number in (0..7).rev() {
        assert!(!sum.is_whole());
        let part = part(number);
        assert_eq!(sum.in_common(&part), None);
        sum.add(part);
    }
    assert_eq!(sum, whole);
    assert_eq!(sum.missing(), []);
    assert_eq!(sum.in_common(&part(3)), Some(Seeds::new(4, 1)));
}

#[test]
fn what_is_missing_is_told() {
    let mut sum = variant(10);
    assert_eq!(sum.missing(), [Seeds::new(0, 10)]);
    sum.add_played(Seeds::new(3, 2));
    sum.add_played(Seeds::new(8, 2));
    assert_eq!(sum.missing(), [Seeds::new(0, 3), Seeds::new(5, 3)]);
    sum.add_played(Seeds::new(0, 3));
    sum.add_played(Seeds::new(5, 3));
    assert_eq!(sum.missing(), []);
    assert_eq!(sum.played, [Seeds::new(0, 10)]);
}

/// It must break in some seed: a part cannot say that it broke in none.
#[test]
fn nothing_broke_only_if_all_was_played() {
    let mut sum = variant(2);
    sum.must = Must::Fail;
    sum.add_played(Seeds::new(0, 1));
    assert_eq!(sum.result(), Result::Unknown);
    sum.add_played(Seeds::new(1, 1));
    assert_eq!(sum.result(), Result::BrokeNowhere);
    sum.cut = true;
    assert_eq!(sum.result(), Result::Unknown);
}

#[test]
fn times_are_read_as_they_are_written() {
    for nanos in [0, 1, 90_000_000_000, 5_400_000_000_001] {
        let at = SeedAt {
            seed: 7,
            at: Span(nanos),
        };
        let text = serde_json::to_string(&at).unwrap();
        assert_eq!(serde_json::from_str::<SeedAt>(&text).unwrap(), at, "{text}");
    }
    assert!(serde_json::from_str::<SeedAt>(r#"{"seed":1,"at":"-1s"}"#).is_err());
}
