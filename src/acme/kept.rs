//! The things that are kept of an authority: the account, the certificate with its key, the times of
//! orders, the way in which names were proven, and the challenges that are open. A process that is
//! alone has them in files; those that share a database have them there. Not their use.

use super::{
    authority::ChallengeWay,
    challenge::OpenChallenge,
    folder::{AcmeFolder, folder_name},
};
use crate::store::SealedRows;
use serde::{Serialize, de::DeserializeOwned};
use std::{io, time::Duration};
use tokio::{task::spawn_blocking, time::sleep};
use url::Url;

const ACCOUNT: &str = "account.json";
/// Key and certificate in one, so that no crash parts the pair.
const CERTIFICATE: &str = "certificate.pem";
const ORDERS: &str = "orders.json";
/// The name of the challenge that was good last.
const WAY: &str = "challenge.txt";
/// The challenges that every node answers; in no file, since a process that is alone knows them.
const CHALLENGES: &str = "challenges.json";

// Limit: where a node is slower than this and the authority comes to it, the order fails, and is tried
// again as any other.
/// Time that the other nodes have to answer challenges, before the authority may look. They are told
/// in milliseconds, or look each second.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(3);

/// The place of all that is kept of one authority.
#[derive(Clone, Debug)]
pub enum AcmeKept {
    /// Files of a process that is alone.
    Folder(AcmeFolder),
    /// Rows that several processes share.
    Rows(AcmeRows),
}

/// The rows of one authority.
#[derive(Clone, Debug)]
pub struct AcmeRows {
    rows: SealedRows,
    /// Part of the names of rows: another directory has another account, and other certificates.
    authority: String,
}

impl AcmeRows {
    /// The rows of the authority with this directory.
    pub fn new(rows: SealedRows, directory: &Url) -> Self {
        let authority = folder_name(directory);
        Self { rows, authority }
    }

    fn name(&self, name: &str) -> String {
        format!("acme/{}/{name}", self.authority)
    }
}

impl AcmeKept {
    /// Fails where nothing can be read: what another key sealed, too. The times of orders are
    /// written before anything else.
    pub async fn check(&self) -> io::Result<()> {
        self.read(ORDERS).await.map(drop)
    }

    /// The place of the certificate, for people.
    pub(super) fn certificate_place(&self) -> String {
        match self {
            Self::Folder(folder) => folder.path(CERTIFICATE).display().to_string(),
            Self::Rows(rows) => format!("{} in the database", rows.name(CERTIFICATE)),
        }
    }

    /// The key and the certificate (PEM), if there are any.
    pub(super) async fn certificate(&self) -> io::Result<Option<String>> {
        self.read(CERTIFICATE).await
    }

    pub(super) async fn keep_certificate(&self, pem: &str) -> io::Result<()> {
        self.write(CERTIFICATE, pem.into()).await
    }

    /// The account, if there is one.
    pub(super) async fn account<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let text = self.read(ACCOUNT).await?;
        text.map(|text| serde_json::from_str(&text).map_err(io::Error::other))
            .transpose()
    }

    pub(super) async fn keep_account(&self, account: &(impl Serialize + Sync)) -> io::Result<()> {
        self.write(ACCOUNT, serde_json::to_vec(account)?).await
    }

    pub(super) async fn forget_account(&self) -> io::Result<()> {
        self.remove(ACCOUNT).await
    }

    /// The times of orders, Unix seconds; none where they cannot be understood.
    pub(super) async fn orders(&self) -> io::Result<Vec<u64>> {
        let text = self.read(ORDERS).await?;
        Ok(text
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default())
    }

    pub(super) async fn keep_orders(&self, times: &[u64]) -> io::Result<()> {
        self.write(ORDERS, serde_json::to_vec(times)?).await
    }

    /// The way in which names were proven last; `None` where that is not known.
    pub(super) async fn way(&self) -> Option<ChallengeWay> {
        let name = self.read(WAY).await.ok()??;
        [ChallengeWay::TlsAlpn, ChallengeWay::Http]
            .into_iter()
            .find(|way| way.name() == name.trim())
    }

    pub(super) async fn keep_way(&self, way: ChallengeWay) -> io::Result<()> {
        self.write(WAY, format!("{}\n", way.name()).into()).await
    }

    /// The challenges that the nodes answer together.
    pub(super) async fn challenges(&self) -> io::Result<Vec<OpenChallenge>> {
        let text = match self {
            Self::Folder(_) => None,
            Self::Rows(_) => self.read(CHALLENGES).await?,
        };
        text.map_or(Ok(Vec::new()), |text| {
            serde_json::from_str(&text).map_err(io::Error::other)
        })
    }

    /// Has the other nodes answer challenges, and waits until they do.
    pub(super) async fn open_challenges(&self, open: &[OpenChallenge]) -> io::Result<()> {
        if let Self::Rows(_) = self {
            self.write(CHALLENGES, serde_json::to_vec(open)?).await?;
            sleep(TAKEN_UP_WITHIN).await;
        }
        Ok(())
    }

    /// Has the other nodes answer no challenge any more.
    pub(super) async fn close_challenges(&self) -> io::Result<()> {
        if self.challenges().await?.is_empty() {
            return Ok(());
        }
        self.remove(CHALLENGES).await
    }

    async fn read(&self, name: &'static str) -> io::Result<Option<String>> {
        match self {
            Self::Folder(folder) => {
                let folder = folder.clone();
                in_background(move || folder.read(name)).await
            }
            Self::Rows(rows) => {
                let value = rows.rows.read(&rows.name(name)).await;
                let text = value.map_err(io::Error::other)?.map(String::from_utf8);
                text.transpose().map_err(io::Error::other)
            }
        }
    }

    async fn write(&self, name: &'static str, value: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Folder(folder) => {
                let folder = folder.clone();
                in_background(move || folder.write(name, &value)).await
            }
            Self::Rows(rows) => {
                let written = rows.rows.write(&rows.name(name), &value).await;
                written.map_err(io::Error::other)
            }
        }
    }

    async fn remove(&self, name: &'static str) -> io::Result<()> {
        match self {
            Self::Folder(folder) => {
                let folder = folder.clone();
                in_background(move || folder.remove(name)).await
            }
            Self::Rows(rows) => {
                let removed = rows.rows.remove(&rows.name(name)).await;
                removed.map_err(io::Error::other)
            }
        }
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let worked = spawn_blocking(work).await;
    worked.map_err(io::Error::other).flatten()
}

#[cfg(test)]
pub(super) mod tests;
