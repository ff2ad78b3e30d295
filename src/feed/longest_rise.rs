//! Longest rising run of places, in N log N: those that kept their order.

/// The indices of a longest strictly rising subsequence, rising themselves.
pub(super) fn longest_rise<T: Ord>(places: &[T]) -> Vec<usize> {
    // `ends[n]` is the index at which the rise of length n + 1 with the lowest end so far ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        let length = ends.partition_point(|&end| places[end] < *place);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut rise: Vec<usize> =
        std::iter::successors(ends.last().copied(), |&at| before[at]).collect();
    rise.reverse();
    rise
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_bumped_is_not_in_the_rise() {
        assert_eq!(longest_rise::<usize>(&[]), [0; 0]);
        assert_eq!(longest_rise(&[0, 1, 2]), [0, 1, 2]);
        assert_eq!(longest_rise(&[7, 0, 1, 2]), [1, 2, 3], "bumped to the top");
        assert_eq!(
            longest_rise(&[0, 2, 1, 3]).len(),
            3,
            "two that swapped places: one of them"
        );
    }

    proptest! {
        #[test]
        fn it_rises_and_is_as_long_as_the_slow_way_finds(places in prop::collection::vec(0_usize..40, 0..40)) {
            let rise = longest_rise(&places);
            prop_assert!(rise.windows(2).all(|pair| pair[0] < pair[1] && places[pair[0]] < places[pair[1]]));
            let mut longest = vec![1; places.len()];
            for at in 0..places.len() {
                for earlier in 0..at {
                    if places[earlier] < places[at] {
                        longest[at] = longest[at].max(longest[earlier] + 1);
                    }
                }
            }
            prop_assert_eq!(rise.len(), longest.into_iter().max().unwrap_or(0));
        }
    }
}
