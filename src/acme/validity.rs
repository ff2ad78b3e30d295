//! The time in which a certificate holds, read from its bytes; not whether anybody should trust it.

use chrono::{DateTime, SecondsFormat};
use yasna::{ASN1Result, BERReader, Tag, tags::TAG_UTCTIME};

/// The time in which a certificate holds, Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: u64,
    /// The second at which it does not hold any more.
    pub until: u64,
}

impl Validity {
    /// Reads it from a certificate (RFC 5280, section 4.1).
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let read = yasna::parse_der(certificate, |reader| {
            reader.read_sequence(|certificate| {
                let validity = certificate.next().read_sequence(|fields| {
                    fields.read_optional(|version| {
                        version.read_tagged(Tag::context(0), |version| version.read_der())
                    })?;
                    for _serial_algorithm_issuer in 0..3 {
                        fields.next().read_der()?;
                    }
                    let validity = fields
                        .next()
                        .read_sequence(|times| Ok((time(times.next())?, time(times.next())?)))?;
                    while fields
                        .read_optional(|extension| extension.read_der())?
                        .is_some()
                    {}
                    Ok(validity)
                })?;
                for _algorithm_signature in 0..2 {
                    certificate.next().read_der()?;
                }
                Ok(validity)
            })
        });
        let (from, until) = read.ok()?;
        Some(Self {
            from: u64::try_from(from).ok()?,
            until: u64::try_from(until).ok()?,
        })
    }

    /// True at a time that it covers.
    pub fn holds_at(self, now: u64) -> bool {
        (self.from..self.until).contains(&now)
    }

    /// True for a certificate that does not hold, not yet or not any more, while the one in use
    /// does.
    pub fn gives_way_to(self, in_use: Option<Self>, now: u64) -> bool {
        !self.holds_at(now) && in_use.is_some_and(|in_use| in_use.holds_at(now))
    }

    /// Tells of a certificate that is in use before its time, for want of another: on a machine
    /// without a clock it may hold. `which` says which one it is.
    pub fn warn_of_early(self, which: &str, now: u64) {
        if self.from > now {
            let from = moment(self.from);
            tracing::warn!(
                "The certificate {which} holds from {from} on, and is in use all the same; is the clock of this machine right?"
            );
        }
    }
}

/// A time in Unix seconds, for people.
pub fn moment(secs: u64) -> String {
    match DateTime::from_timestamp(i64::try_from(secs).unwrap_or(i64::MAX), 0) {
        Some(moment) => moment.to_rfc3339_opts(SecondsFormat::Secs, true),
        None => secs.to_string(),
    }
}

fn time(reader: BERReader<'_, '_>) -> ASN1Result<i64> {
    Ok(if reader.lookahead_tag()? == TAG_UTCTIME {
        reader.read_utctime()?.datetime().unix_timestamp()
    } else {
        reader.read_generalized_time()?.datetime().unix_timestamp()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_dates_are_read() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["h".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 11, 1);
        for (year, until) in [(2027, 1_798_761_600), (2060, 2_840_140_800)] {
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let certificate = params.self_signed(&key).unwrap();
            let read = Validity::of(certificate.der()).unwrap();
            assert_eq!(
                read,
                Validity {
                    from: 1_793_491_200,
                    until
                },
                "{year}"
            );
            let cut = certificate.der().len() - 1;
            assert_eq!(Validity::of(&certificate.der()[..cut]), None);
        }
        assert_eq!(Validity::of(b"no certificate"), None);
    }
}
