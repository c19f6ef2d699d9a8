//! Stores that keep sessions.

use std::future::Future;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::functions::Nothing;
use super::{Context, ExtensionError, Result, StoreAppend, StoreDelete, StoreListed, StoreLoad, StoreLoaded, StoreSave};
use crate::extension::Handlers;

/// Keeps sessions: for each a snapshot and the facts that follow it, texts that are given back
/// as they were. It is asked while a session writes, so it must not wait for that session.
pub trait Store: Send + Sync + 'static {
    /// Whether the methods block, and so must have threads of their own.
    const BLOCKS: bool = false;
    /// Whether named blobs of sessions, long outputs of tools, are kept too, by the last three
    /// methods; otherwise they are kept in memory until the session is closed or saved.
    const BLOBS: bool = false;

    /// The snapshot of a session, its generation (none, or 1, before the first save), and its facts
    /// from number `from` on, at most `limit`; None for a session that is not kept. With fewer
    /// facts than there are, `count` says how many there are.
    fn load(&self, id: &str, from: usize, limit: usize, context: &Context) -> impl Future<Output = Result<Option<StoreLoaded>>> + Send;

    /// Keeps more facts, the first with number `from`. Those of a generation other than the
    /// snapshot's are obsolete. When it is answered the facts must survive the end of this process.
    fn append(
        &self,
        id: &str,
        generation: i64,
        from: usize,
        facts: Vec<String>,
        context: &Context,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Puts a snapshot in the place of the former one and of all facts, at once or not at all.
    /// Blobs stay.
    fn save(&self, id: &str, generation: i64, snapshot: String, context: &Context) -> impl Future<Output = Result<()>> + Send;

    /// Removes a session with all that is kept of it. What is not there is no failure.
    fn delete(&self, id: &str, context: &Context) -> impl Future<Output = Result<()>> + Send;

    /// Ids of the sessions with a snapshot or a fact.
    fn list(&self, context: &Context) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// A blob, or None.
    fn load_blob(&self, id: &str, blob: &str, context: &Context) -> impl Future<Output = Result<Option<Vec<u8>>>> + Send {
        let _ = (id, blob, context);
        async { Err(ExtensionError::unsupported("load_blob")) }
    }

    /// Keeps a blob, once and for all.
    fn save_blob(&self, id: &str, blob: &str, data: Vec<u8>, context: &Context) -> impl Future<Output = Result<()>> + Send {
        let _ = (id, blob, data, context);
        async { Err(ExtensionError::unsupported("save_blob")) }
    }

    /// Removes a blob. What is not there is no failure.
    fn delete_blob(&self, id: &str, blob: &str, context: &Context) -> impl Future<Output = Result<()>> + Send {
        let _ = (id, blob, context);
        async { Err(ExtensionError::unsupported("delete_blob")) }
    }
}

pub(super) fn store<S: Store>(store: S) -> Handlers {
    let store = Arc::new(store);
    let it = || Arc::clone(&store);
    let (loads, appends, saves, deletes, lists) = (it(), it(), it(), it(), it());
    Handlers::new()
        .serve("load", S::BLOCKS, move |p: StoreLoad, context| {
            let store = Arc::clone(&loads);
            async move {
                match &p.blob {
                    Some(blob) => store.load_blob(&p.id, blob, &context).await.map(|data| StoreLoaded { data, ..StoreLoaded::default() }),
                    None => Ok(store.load(&p.id, index(p.from), index(p.limit), &context).await?.unwrap_or_default()),
                }
            }
        })
        .serve("append", S::BLOCKS, move |p: StoreAppend, context| {
            let store = Arc::clone(&appends);
            async move {
                match &p.blob {
                    Some(blob) => store.save_blob(&p.id, blob, p.data.unwrap_or_default(), &context).await?,
                    None => store.append(&p.id, p.generation, index(p.from), p.facts, &context).await?,
                }
                Ok(Nothing {})
            }
        })
        .serve("save", S::BLOCKS, move |p: StoreSave, context| {
            let store = Arc::clone(&saves);
            async move { store.save(&p.id, p.generation, p.snapshot, &context).await.map(|()| Nothing {}) }
        })
        .serve("delete", S::BLOCKS, move |p: StoreDelete, context| {
            let store = Arc::clone(&deletes);
            async move {
                match &p.blob {
                    Some(blob) => store.delete_blob(&p.id, blob, &context).await?,
                    None => store.delete(&p.id, &context).await?,
                }
                Ok(Nothing {})
            }
        })
        .serve("list", S::BLOCKS, move |_: IgnoredAny, context| {
            let store = Arc::clone(&lists);
            async move { Ok(StoreListed { ids: store.list(&context).await? }) }
        })
}

fn index(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}
