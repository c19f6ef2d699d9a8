//! Keeps a session in a store of the program's own: a map in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use a3s_code_core::host::{self, Context, Store, StoreLoaded};
use a3s_code_core::{Agent, Result, SessionOptions};

/// Of each session the latest snapshot, its generation, and the facts of that generation.
#[derive(Clone, Default)]
struct Map(Arc<Mutex<BTreeMap<String, StoreLoaded>>>);

impl Store for Map {
    async fn load(&self, id: &str, from: usize, limit: usize, _: &Context) -> host::Result<Option<StoreLoaded>> {
        let Some(mut kept) = self.0.lock().unwrap().get(id).cloned() else {
            return Ok(None);
        };
        kept.count = Some(kept.facts.len() as i64);
        kept.facts = kept.facts.into_iter().skip(from).take(limit).collect();
        Ok(Some(kept))
    }

    async fn append(
        &self,
        id: &str,
        generation: i64,
        from: usize,
        facts: Vec<String>,
        _: &Context,
    ) -> host::Result<()> {
        let mut all = self.0.lock().unwrap();
        let kept = all.entry(id.into()).or_default();
        if *kept.generation.get_or_insert(generation) == generation {
            kept.facts.truncate(from);
            kept.facts.extend(facts);
        }
        Ok(())
    }

    async fn save(&self, id: &str, generation: i64, snapshot: String, _: &Context) -> host::Result<()> {
        let kept = StoreLoaded { generation: Some(generation), snapshot: Some(snapshot), ..Default::default() };
        self.0.lock().unwrap().insert(id.into(), kept);
        Ok(())
    }

    async fn delete(&self, id: &str, _: &Context) -> host::Result<()> {
        self.0.lock().unwrap().remove(id);
        Ok(())
    }

    async fn list(&self, _: &Context) -> host::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().keys().cloned().collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::new("agent.acl").await?;
    let map = Map::default();
    let store = agent.register_session_store("map", map.clone())?;
    let options = SessionOptions::new().with_session_store(&store).with_session_id("notebook");
    let session = agent.session_builder("workspace").options(options.clone()).build().await?;
    session.send("The door code is 1234.", None).await?;
    session.save().await?;
    session.close().await?;
    for id in map.0.lock().unwrap().keys() {
        println!("kept: {id}");
    }

    let session = agent.resume_session_async("notebook", options).await?;
    for message in session.history().await? {
        println!("{}: {}", message.role, message.text());
    }
    agent.close().await
}
