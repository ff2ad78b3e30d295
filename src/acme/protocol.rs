//! One order by the protocol (RFC 8555): account, order, challenges, request, certificate. Not when
//! there is one.

use super::{
    AcmeSettings,
    authority::{Authority, ChallengeWay},
    challenge::OpenChallenge,
    fault::{AcmeFault, OrderStep, is_account_unknown},
    held::HeldCertificate,
    kept::AcmeKept,
    transport::Transport,
};
use crate::{layers::Client, secret::public_url};
use futures_util::future::BoxFuture;
use http::HeaderValue;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Identifier, NewAccount,
    NewOrder, Order, OrderStatus,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::{sleep, timeout};

/// Time that an order may take at most, from the account to the certificate.
const ORDER_TIME: Duration = Duration::from_secs(300);
/// Time until the first look at what has become of an order; it doubles with each.
const FIRST_LOOK: Duration = Duration::from_millis(250);
/// Looks at an authorization of an order that was refused, at most.
const REFUSAL_LOOKS_MAX: u32 = 4;
/// The longest time between two looks, unless the authority asks for more.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Everything that an order needs.
pub struct ProtocolParts {
    /// The names, the contact and the directory.
    pub settings: AcmeSettings,
    /// The way to the authority.
    pub client: Client,
    /// Our name, with an address at which we can be reached.
    pub user_agent: HeaderValue,
    /// The place of the account, and of challenges for the other nodes.
    pub kept: AcmeKept,
    /// The place of the challenges for our own listeners.
    pub held: Arc<HeldCertificate>,
}

/// An authority that is asked by the protocol.
pub struct AcmeAuthority {
    settings: AcmeSettings,
    transport: Transport,
    kept: AcmeKept,
    held: Arc<HeldCertificate>,
}

/// The account, as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptAccount {
    contact: Option<String>,
    credentials: AccountCredentials,
}

impl AcmeAuthority {
    /// An authority; `now` is the time.
    pub fn new(parts: ProtocolParts, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        let ProtocolParts {
            settings,
            client,
            user_agent,
            kept,
            held,
        } = parts;
        Self {
            settings,
            transport: Transport::new(client, user_agent, now),
            kept,
            held,
        }
    }

    async fn place(&self, way: ChallengeWay) -> Result<String, AcmeFault> {
        let names = self.settings.names();
        let identifiers: Vec<Identifier> = names.iter().cloned().map(Identifier::Dns).collect();
        let no_order = |fault| AcmeFault {
            step: OrderStep::Account,
            ..fault
        };
        let account = self.account().await.map_err(no_order)?;
        let mut order = match account.new_order(&NewOrder::new(&identifiers)).await {
            // A test server forgets accounts when it is started anew, and others may have closed
            // ours.
            Err(error) if is_account_unknown(&error) => {
                self.kept.forget_account().await.map_err(unkept)?;
                let account = self.account().await?;
                account.new_order(&NewOrder::new(&identifiers)).await?
            }
            ordered => ordered?,
        };
        self.answer_challenges(&mut order, way).await?;
        let decided = |status| status != OrderStatus::Pending;
        if self.settled(&mut order, decided).await? == OrderStatus::Invalid {
            return Err(unproven(&mut order, &names, way).await);
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key)?;
        if order.state().status == OrderStatus::Ready {
            order.finalize_csr(request.der()).await?;
        }
        let ended = |status| matches!(status, OrderStatus::Valid | OrderStatus::Invalid);
        if self.settled(&mut order, ended).await? == OrderStatus::Invalid {
            return Err(refusal(&mut order));
        }
        let chain = order.certificate().await?;
        let chain = chain
            .ok_or_else(|| AcmeFault::of_authority("the order is done, and has no certificate"))?;
        Ok(key.serialize_pem() + &chain)
    }

    /// The account that is kept, or a new one.
    async fn account(&self) -> Result<Account, AcmeFault> {
        let builder = Account::builder_with_http(Box::new(self.transport.clone()));
        let contact = self
            .settings
            .contact
            .as_ref()
            .map(|contact| format!("mailto:{contact}"));
        let contacts: Vec<&str> = contact.as_deref().into_iter().collect();
        let kept = self.kept.account::<KeptAccount>().await.map_err(unkept)?;
        if let Some(mut kept) = kept {
            // Read twice: the library takes it, and it is written again when the contact has
            // changed.
            let credentials = kept.credentials;
            let text = serde_json::to_value(&credentials)
                .map_err(|error| AcmeFault::ours(error.to_string()))?;
            let account = builder.from_credentials(credentials).await?;
            if kept.contact != contact {
                match account.update_contacts(&contacts).await {
                    // The order says the same, and a new account has the contact.
                    Err(error) if is_account_unknown(&error) => return Ok(account),
                    updated => updated?,
                }
                kept.credentials = serde_json::from_value(text)
                    .map_err(|error| AcmeFault::ours(error.to_string()))?;
                kept.contact = contact;
                self.kept.keep_account(&kept).await.map_err(unkept)?;
            }
            return Ok(account);
        }
        let new = NewAccount {
            contact: &contacts,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.settings.directory.to_string();
        let (account, credentials) = builder.create(&new, directory, None).await?;
        tracing::info!(
            "There is an account at the certificate authority {}",
            public_url(&self.settings.directory)
        );
        let kept = KeptAccount {
            contact,
            credentials,
        };
        self.kept.keep_account(&kept).await.map_err(unkept)?;
        Ok(account)
    }

    // Decides: How does an authority see that a name is ours?
    /// Answers the challenges of all names that are not proven yet, at every node, and says so.
    async fn answer_challenges(
        &self,
        order: &mut Order,
        way: ChallengeWay,
    ) -> Result<(), AcmeFault> {
        let kind = || match way {
            ChallengeWay::TlsAlpn => ChallengeType::TlsAlpn01,
            ChallengeWay::Http => ChallengeType::Http01,
        };
        let mut open = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let challenge = authorization.challenge(kind()).ok_or_else(|| AcmeFault {
                step: OrderStep::Proof,
                ..AcmeFault::of_authority(format!("the authority takes no proof by {way}"))
            })?;
            let answer = challenge.key_authorization();
            open.push(match (way, challenge.identifier().identifier) {
                (ChallengeWay::Http, _) => OpenChallenge::Document {
                    token: challenge.token.clone(),
                    document: answer.as_str().to_owned(),
                },
                (ChallengeWay::TlsAlpn, Identifier::Dns(name)) => OpenChallenge::Certificate {
                    name: name.clone(),
                    digest: Sha256::digest(answer.as_str()).into(),
                },
                (ChallengeWay::TlsAlpn, _) => {
                    return Err(AcmeFault::of_authority(
                        "a challenge for an identifier that is not a name",
                    ));
                }
            });
        }
        if open.is_empty() {
            return Ok(());
        }
        self.held.answer(&open)?;
        // The authority may come to any node.
        let opened = self.kept.open_challenges(&open).await;
        opened.map_err(|error| {
            AcmeFault::ours(format!(
                "the other nodes do not know the challenge: {error}"
            ))
        })?;
        // They are known by now: nothing is asked for again.
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Pending
                && let Some(mut challenge) = authorization.challenge(kind())
            {
                challenge.set_ready().await?;
            }
        }
        Ok(())
    }

    async fn close_challenges(&self) {
        self.held.close_challenges();
        if let Err(error) = self.kept.close_challenges().await {
            tracing::debug!("The other nodes go on to answer a challenge: {error}");
        }
    }

    /// Looks at an order until its status is one of those that are waited for.
    async fn settled(
        &self,
        order: &mut Order,
        is_settled: impl Fn(OrderStatus) -> bool,
    ) -> Result<OrderStatus, AcmeFault> {
        let mut look = FIRST_LOOK;
        loop {
            let status = order.state().status;
            if is_settled(status) {
                return Ok(status);
            }
            let asked = self.transport.wait().unwrap_or_default();
            sleep(asked.clamp(look, ORDER_TIME)).await;
            look = (look * 2).min(LOOK_MAX);
            order.refresh().await?;
        }
    }
}

impl Authority for AcmeAuthority {
    fn order(&self, way: ChallengeWay) -> BoxFuture<'_, Result<String, AcmeFault>> {
        Box::pin(async move {
            let placed = timeout(ORDER_TIME, self.place(way)).await;
            self.close_challenges().await;
            let late = || {
                AcmeFault::of_authority(format!("no certificate within {} s", ORDER_TIME.as_secs()))
            };
            let placed = placed.unwrap_or_else(|_| Err(late()));
            placed.map_err(|fault| AcmeFault {
                wait: self.transport.wait(),
                ..fault
            })
        })
    }
}

fn unkept(error: io::Error) -> AcmeFault {
    AcmeFault::ours(format!("the account cannot be kept or read: {error}"))
}

/// The names of an order that were not proven, each with its reason.
async fn unproven(order: &mut Order, names: &[String], way: ChallengeWay) -> AcmeFault {
    let mut found: Option<AcmeFault> = None;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        // What cannot be read is told by the order below.
        let Ok(mut authorization) = authorization else {
            continue;
        };
        // An order may end before its authorizations are seen to.
        let mut looks = 0;
        while authorization.refresh().await.is_err()
            || authorization.status == AuthorizationStatus::Pending
        {
            looks += 1;
            if looks == REFUSAL_LOOKS_MAX {
                break;
            }
            sleep(FIRST_LOOK).await;
        }
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let name = authorization.identifier().to_string();
        let mut challenges = authorization.challenges.iter();
        let Some(problem) = challenges.find_map(|challenge| challenge.error.as_ref()) else {
            continue;
        };
        let before = found
            .map(|found| format!("{}; ", found.text))
            .unwrap_or_default();
        let fault = not_proven(&name, way, AcmeFault::from(problem));
        found = Some(AcmeFault {
            text: before + &fault.text,
            ..fault
        });
    }
    let of_order = |fault| not_proven(&names.join(" or "), way, fault);
    found.unwrap_or_else(|| of_order(refusal(order)))
}

fn not_proven(name: &str, way: ChallengeWay, fault: AcmeFault) -> AcmeFault {
    AcmeFault {
        text: format!("{name} was not proven by {way}: {}", fault.text),
        step: OrderStep::Proof,
        ..fault
    }
}

/// The reason that an invalid order gives itself.
fn refusal(order: &mut Order) -> AcmeFault {
    match &order.state().error {
        Some(problem) => AcmeFault::from(problem),
        None => AcmeFault::of_authority("the order was refused without a reason"),
    }
}
