//! Commands of the operator on the registry of feeds, beside a running process or on a store alone;
//! not what a change means.

use super::{
    registry::{self, PlannedChange, RegistryAnswer, RegistryCommand, WantedChange},
    reload::Reloader,
};
use crate::{
    catalog::CatalogSnapshot,
    config::{Config, EntryReader},
    setting::RefusedSetting,
    store::{Store, StoreError},
};
use http::StatusCode;
use std::sync::Arc;

/// The desk for the registry.
pub(super) struct RegistryService {
    pub(super) store: Arc<dyn Store>,
    /// The feeds in force, or those of the configuration.
    pub(super) catalog: Arc<CatalogSnapshot>,
    pub(super) reader: EntryReader,
    pub(super) place: ChangeScope,
}

/// The place in which a change takes effect.
pub(super) enum ChangeScope {
    /// A running process.
    Running(Arc<Reloader>),
    /// A store that nobody serves, beside this configuration.
    Alone(Box<Config>),
}

impl RegistryService {
    /// Carries out a command. A change is in force when it is answered.
    pub(super) async fn run(self, command: RegistryCommand) -> RegistryAnswer {
        let answer = match command {
            RegistryCommand::List { after } => self.list(after.as_deref()),
            RegistryCommand::Show(name) => self.show(&name).await,
            RegistryCommand::Put { name, json } => self.put(&name, &json).await,
            RegistryCommand::Apply(toml) => self.apply(&toml).await,
            RegistryCommand::Remove(name) => {
                let changed = self.change(WantedChange::Remove(name)).await;
                changed.map(|_| RegistryAnswer::Removed)
            }
        };
        answer.unwrap_or_else(|refused| refused)
    }

    fn list(&self, after: Option<&str>) -> Result<RegistryAnswer, RegistryAnswer> {
        let page = registry::list(&self.catalog, after);
        let told = serde_json::to_string(&page).map_err(|error| internal(&error.to_string()))?;
        Ok(RegistryAnswer::Told(told))
    }

    async fn show(&self, name: &str) -> Result<RegistryAnswer, RegistryAnswer> {
        let text = registry::text_of(&*self.store, name).await;
        let Some(text) = text.map_err(registry::away)? else {
            let is_in_file = self.catalog.feed(name).is_some();
            return Err(registry::not_there(name, is_in_file));
        };
        let unread =
            |why: &str| internal(&format!("the entry of feed `{name}` cannot be read: {why}"));
        let text = text.map_err(|why| unread(&why))?;
        let shown = registry::shown(&text).ok_or_else(|| unread("it is no JSON"))?;
        Ok(RegistryAnswer::Told(shown))
    }

    async fn put(&self, name: &str, json: &str) -> Result<RegistryAnswer, RegistryAnswer> {
        let entry = self.reader.of_json(name, json).map_err(mistaken)?;
        let shown = registry::shown(&entry.text).unwrap_or_default();
        let changed = self.change(WantedChange::Put(vec![entry])).await?;
        if changed.adds() {
            return Ok(RegistryAnswer::Added(shown));
        }
        Ok(RegistryAnswer::Told(shown))
    }

    async fn apply(&self, toml: &str) -> Result<RegistryAnswer, RegistryAnswer> {
        let entries = self.reader.of_toml(toml).map_err(mistaken)?;
        let changed = self.change(WantedChange::Put(entries)).await?;
        Ok(RegistryAnswer::Applied(changed.report()))
    }

    async fn change(&self, wanted: WantedChange) -> Result<PlannedChange, RegistryAnswer> {
        match &self.place {
            ChangeScope::Running(reloader) => {
                // Whoever asked may go away: what is kept is put in force all the same.
                let reloader = Arc::clone(reloader);
                let changed = tokio::spawn(async move { reloader.change_registry(wanted).await });
                changed.await.unwrap_or_else(|error| {
                    Err(registry::away(StoreError::Failed(error.to_string())))
                })
            }
            ChangeScope::Alone(config) => {
                let (store, config) = (&*self.store, || (**config).clone());
                let mut planned = registry::plan(store, &config, &self.reader, wanted).await?;
                registry::make(store, &mut planned).await?;
                Ok(planned)
            }
        }
    }
}

fn mistaken(mistakes: Vec<RefusedSetting>) -> RegistryAnswer {
    RegistryAnswer::mistaken(StatusCode::UNPROCESSABLE_ENTITY, mistakes)
}

fn internal(why: &str) -> RegistryAnswer {
    RegistryAnswer::refused(StatusCode::INTERNAL_SERVER_ERROR, why)
}
