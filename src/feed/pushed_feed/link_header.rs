//! Links in the value of a `Link` header (RFC 8288); not what they mean.

/// The targets with this relation in the value of a `Link` header.
pub fn links_with<'v>(value: &'v str, rel: &str) -> Vec<&'v str> {
    let mut found = Vec::new();
    // Every link but the text before the first one begins with its target.
    for link in value.split('<').skip(1) {
        let Some((target, parameters)) = link.split_once('>') else {
            continue;
        };
        let is_rel = |parameter: &str| {
            let Some((name, value)) = parameter.split_once('=') else {
                return false;
            };
            let value = value.trim().trim_end_matches(',').trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && value
                    .split_ascii_whitespace()
                    .any(|word| word.eq_ignore_ascii_case(rel))
        };
        if parameters.split(';').any(is_rel) {
            found.push(target.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_header_are_told_apart_by_their_relations() {
        let check = |value: &str, expect: &[&str]| assert_eq!(links_with(value, "hub"), expect);
        check("<https://h.example/>; rel=\"hub\"", &["https://h.example/"]);
        check(
            "<a>; rel=self, <b>; rel=hub, <c>; rel=\"alternate hub\"",
            &["b", "c"],
        );
        check("<a,b>; title=\"x; y\"; REL=Hub", &["a,b"]);
        check("<a>; rel=\"github\"", &[]);
        check("<a", &[]);
    }
}
