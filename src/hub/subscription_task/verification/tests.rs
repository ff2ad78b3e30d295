//! The position from which a confirmed request starts.

use super::*;

#[test]
fn a_renewal_keeps_the_position_unless_it_names_one() {
    let check = |acked: Option<&str>, from: Start, expect: Option<&str>| {
        let progress = Progress {
            acked: acked.map(str::to_owned),
            ..Progress::default()
        };
        assert_eq!(start(&progress, &from).as_deref(), expect);
    };
    check(None, Start::Head(None), None);
    check(None, Start::Head(Some("2".into())), Some("2"));
    check(Some("1"), Start::Head(Some("2".into())), Some("1"));
    check(Some("1"), Start::Given("0".into()), Some("0"));
}
