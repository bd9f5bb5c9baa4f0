//! Selection without spread constraints. Source: spec/placement §2.6.

use std::cmp::Reverse;

/// The positions of the `n` highest scores, best first; equal scores keep their order.
pub(crate) fn best(scores: &[i64], n: usize) -> Vec<u32> {
    let key = |&place: &u32| (Reverse(scores[place as usize]), place);
    let mut places: Vec<u32> = (0..scores.len() as u32).collect();
    if n < places.len() {
        if n > 0 {
            places.select_nth_unstable_by_key(n - 1, key);
        }
        places.truncate(n);
    }
    places.sort_unstable_by_key(key);
    places
}
