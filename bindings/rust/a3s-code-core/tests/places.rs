//! Session stores and workspaces of this program.

mod kit;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use a3s_code_core::host::{
    self, Chunks, Context, ExtensionError, Store, StoreLoaded, Workspace, WorkspaceCommand, WorkspaceEntry, WorkspaceExit, WorkspaceFile,
    WorkspaceFound, WorkspaceLine, WorkspaceMatch, WorkspaceOutput, WorkspaceSearch, WorkspaceSpec, WorkspaceWrite, WorkspaceWritten,
};
use a3s_code_core::{
    codes, Agent, AgentEvent, AgentSession, HostSessionStore, HostWorkspaceBackend, PermissionPolicy, Result, SessionOptions,
};
use kit::Place;
use serde_json::json;

#[derive(Clone, Default)]
struct Kept {
    generation: i64,
    snapshot: Option<String>,
    facts: Vec<String>,
    blobs: BTreeMap<String, Vec<u8>>,
}

/// Sessions in memory; what a flag names fails.
#[derive(Clone, Default)]
struct Shelf<const BLOBS: bool, const BLOCKS: bool>(Arc<Mutex<BTreeMap<String, Kept>>>, Arc<Mutex<&'static str>>);

impl<const BLOBS: bool, const BLOCKS: bool> Shelf<BLOBS, BLOCKS> {
    fn kept<T>(&self, op: &str, id: &str, with: impl FnOnce(&mut Kept) -> T) -> host::Result<T> {
        let failing = *self.1.lock().unwrap();
        match failing {
            failing if failing == op => Err(ExtensionError::new("Full", format!("no {op} today"))),
            "panics" => panic!("no shelf"),
            _ => Ok(with(self.0.lock().unwrap().entry(id.to_owned()).or_default())),
        }
    }
}

impl<const BLOBS: bool, const BLOCKS: bool> Store for Shelf<BLOBS, BLOCKS> {
    const BLOBS: bool = BLOBS;
    const BLOCKS: bool = BLOCKS;

    async fn load(&self, id: &str, from: usize, limit: usize, context: &Context) -> host::Result<Option<StoreLoaded>> {
        assert_eq!((context.kind(), context.op(), context.name()), ("store", "load", "shelf"));
        if !self.0.lock().unwrap().contains_key(id) {
            return Ok(None);
        }
        self.kept("load", id, |kept| {
            let count = i64::try_from(kept.facts.len()).ok();
            let facts = kept.facts.iter().skip(from).take(limit.min(3)).cloned().collect(); // the rest is asked for again
            Some(StoreLoaded { generation: Some(kept.generation), snapshot: kept.snapshot.clone(), count, facts, ..StoreLoaded::default() })
        })
    }

    async fn append(&self, id: &str, generation: i64, from: usize, facts: Vec<String>, _: &Context) -> host::Result<()> {
        self.kept("append", id, |kept| {
            kept.generation = generation;
            kept.facts.truncate(from);
            kept.facts.extend(facts);
        })
    }

    async fn save(&self, id: &str, generation: i64, snapshot: String, _: &Context) -> host::Result<()> {
        self.kept("save", id, |kept| (kept.generation, kept.snapshot, kept.facts) = (generation, Some(snapshot), vec![]))
    }

    async fn delete(&self, id: &str, _: &Context) -> host::Result<()> {
        self.0.lock().unwrap().remove(id);
        Ok(())
    }

    async fn list(&self, _: &Context) -> host::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().keys().cloned().collect())
    }

    async fn load_blob(&self, id: &str, blob: &str, _: &Context) -> host::Result<Option<Vec<u8>>> {
        self.kept("load_blob", id, |kept| kept.blobs.get(blob).cloned())
    }

    async fn save_blob(&self, id: &str, blob: &str, data: Vec<u8>, _: &Context) -> host::Result<()> {
        self.kept("save_blob", id, |kept| drop(kept.blobs.insert(blob.to_owned(), data)))
    }

    async fn delete_blob(&self, id: &str, blob: &str, _: &Context) -> host::Result<()> {
        self.kept("delete_blob", id, |kept| drop(kept.blobs.remove(blob)))
    }
}

const LONG: &str = "call bash {\"command\":\"seq 1 40000\"}\nend\nsay done\n";

fn keeps<const BLOBS: bool, const BLOCKS: bool>() -> Result<()> {
    let place = Place::new(LONG);
    let shelf = Shelf::<BLOBS, BLOCKS>::default();
    let agent = place.agent();
    let store = agent.register_session_store("shelf", shelf.clone())?;
    let options = SessionOptions::new().with_permission_policy(PermissionPolicy::permissive()).with_session_store(&store);
    let session = agent.session(place.workspace(), Some(options.clone().with_session_id("one")))?;
    session.send("go", None).wait()?;
    let kept = shelf.0.lock().unwrap()["one"].clone();
    assert!(kept.snapshot.is_none() && kept.facts.len() > 5, "{:?}", kept.facts);
    assert_eq!(kept.blobs.len(), usize::from(BLOBS));
    let history = session.history().wait()?;
    drop(session); // as after the end of a process: nothing was saved
    let session = agent.resume_session("one", options.clone())?;
    assert_eq!(session.history().wait()?, history);
    session.save().wait()?;
    let kept = shelf.0.lock().unwrap()["one"].clone();
    assert!(kept.snapshot.is_some() && kept.facts.is_empty());
    session.close().wait()?;
    assert_eq!(agent.list_stored_sessions(Some(HostSessionStore::new("shelf").into())).wait()?, ["one"]);
    let session = agent.resume_session("one", options)?;
    assert_eq!(session.history().wait()?, history);
    assert!(store.close());
    Ok(())
}

#[test]
fn a_store_keeps_sessions() -> Result<()> {
    keeps::<false, false>()?;
    keeps::<true, false>()?;
    keeps::<true, true>()
}

#[test]
fn a_store_that_fails_is_a_session_error() -> Result<()> {
    for failing in ["append", "panics", "save"] {
        let place = Place::new("say done\n");
        let shelf = Shelf::<false, true>::default();
        let agent = place.agent();
        let store = agent.register_session_store("shelf", shelf.clone())?;
        let session = agent.session(place.workspace(), Some(SessionOptions::new().with_session_store(store)))?;
        *shelf.1.lock().unwrap() = failing;
        let err = match session.send("go", None).wait() {
            Err(err) => err,
            Ok(_) => session.save().wait().unwrap_err(),
        };
        let words = if failing == "panics" { "no shelf" } else { "Full: no" };
        assert!(err.code() == codes::SESSION_ERROR && err.message().contains(words), "{failing}: {err:?}");
        *shelf.1.lock().unwrap() = "";
    }
    let place = Place::new("say .\n");
    let options = SessionOptions::new().with_session_store(HostSessionStore::new("nobody"));
    let err = place.agent().session(place.workspace(), Some(options)).unwrap_err();
    assert_eq!(err.code(), codes::SESSION_CONFIGURATION_ERROR, "{err:?}");
    Ok(())
}

/// Files in memory, by path; folders are what paths begin with.
#[derive(Clone, Default)]
struct Notes<const MORE: bool>(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

fn version(data: Option<&Vec<u8>>) -> String {
    data.map_or_else(|| "absent".to_owned(), |data| format!("v{}-{}", data.len(), data.iter().map(|b| u64::from(*b)).sum::<u64>()))
}

fn entry(kind: &str, name: Option<&str>, size: Option<usize>) -> WorkspaceEntry {
    let size = size.and_then(|size| i64::try_from(size).ok());
    WorkspaceEntry { kind: kind.to_owned(), name: name.map(str::to_owned), size, ..WorkspaceEntry::default() }
}

fn missing() -> ExtensionError {
    std::io::Error::from(std::io::ErrorKind::NotFound).into()
}

impl<const MORE: bool> Workspace for Notes<MORE> {
    const RUNS: bool = MORE;
    const SEARCHES: bool = MORE;

    async fn stat(&self, path: &str, _: &Context) -> host::Result<WorkspaceEntry> {
        let files = self.0.lock().unwrap();
        if path == "." || files.keys().any(|file| file.starts_with(&format!("{path}/"))) {
            return Ok(entry("dir", None, None));
        }
        files.get(path).map(|data| entry("file", None, Some(data.len()))).ok_or_else(missing)
    }

    async fn list(&self, path: &str, _: &Context) -> host::Result<Vec<WorkspaceEntry>> {
        let prefix = if path == "." { String::new() } else { format!("{path}/") };
        let files = self.0.lock().unwrap();
        let mut entries = BTreeMap::new();
        for (file, data) in files.iter() {
            let Some(rest) = file.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((dir, _)) => entries.insert(dir.to_owned(), entry("dir", Some(dir), None)),
                None => entries.insert(rest.to_owned(), entry("file", Some(rest), Some(data.len()))),
            };
        }
        Ok(entries.into_values().collect())
    }

    async fn read(&self, path: &str, max: u64, context: &Context) -> host::Result<WorkspaceFile> {
        assert!(max > 0 && context.op() == "read");
        let mut files = self.0.lock().unwrap();
        let data = files.get(path).ok_or_else(missing)?.clone();
        if path == "shifty.txt" {
            files.insert(path.to_owned(), b"changed meanwhile\n".to_vec());
        }
        Ok(WorkspaceFile { version: version(Some(&data)), data, ..WorkspaceFile::default() })
    }

    async fn write(&self, file: WorkspaceWrite, _: &Context) -> host::Result<WorkspaceWritten> {
        let mut files = self.0.lock().unwrap();
        let actual = version(files.get(&file.path));
        let expected = file.if_version.clone().or_else(|| file.if_absent.then(|| "absent".to_owned()));
        if let Some(expected) = expected.filter(|expected| *expected != actual) {
            let conflict = ExtensionError::new("Changed", "it was changed meanwhile").with_kind("conflict");
            return Err(conflict.with_detail("expected", expected).with_detail("actual", actual));
        }
        let version = version(Some(&file.data));
        files.insert(file.path, file.data);
        Ok(WorkspaceWritten { version, ..WorkspaceWritten::default() })
    }

    async fn remove(&self, path: &str, _: &Context) -> host::Result<()> {
        self.0.lock().unwrap().remove(path);
        Ok(())
    }

    async fn run(&self, command: WorkspaceCommand, out: Chunks<WorkspaceOutput>) -> host::Result<WorkspaceExit> {
        out.send(format!("ran {}\n", command.line))?;
        out.send(vec![b'o', b'k', b'\n', 0xff])?;
        Ok(WorkspaceExit { exit_code: 3, text: Some("end\n".into()), ..WorkspaceExit::default() })
    }

    async fn search(&self, search: WorkspaceSearch, _: &Context) -> host::Result<WorkspaceFound> {
        let files = self.0.lock().unwrap();
        if let Some(grep) = search.grep {
            let lines = files.iter().flat_map(|(path, data)| {
                let text = String::from_utf8_lossy(data).into_owned();
                let hits = text.lines().enumerate().filter(|(_, text)| text.contains(&grep.pattern)).map(|(i, text)| WorkspaceLine {
                    path: path.clone(),
                    line: i64::try_from(i + 1).expect("few"),
                    text: text.to_owned(),
                    context: false,
                });
                hits.collect::<Vec<_>>()
            });
            return Ok(WorkspaceFound { lines: lines.collect(), ..WorkspaceFound::default() });
        }
        let files = files.keys().map(|path| WorkspaceMatch { path: path.clone(), ..WorkspaceMatch::default() });
        Ok(WorkspaceFound { files: files.collect(), ..WorkspaceFound::default() })
    }
}

fn notebook<const MORE: bool>(script: &str) -> (Place, Notes<MORE>, Agent, AgentSession) {
    let place = Place::new(script);
    let notes = Notes::default();
    let agent = place.agent();
    let workspace =
        agent.register_workspace(WorkspaceSpec { root: Some("notebook:".into()), ..WorkspaceSpec::from("notes") }, notes.clone());
    let options = SessionOptions::new().with_permission_policy(PermissionPolicy::permissive()).with_workspace_backend(workspace.unwrap());
    let session = agent.session(place.workspace(), Some(options)).unwrap();
    (place, notes, agent, session)
}

#[test]
fn a_workspace_holds_files() -> Result<()> {
    let (_place, notes, _agent, session) = notebook::<false>("say .\n");
    assert_eq!(session.workspace(), "notebook:");
    assert!(session.write_file("a/b.txt", "one\ntwo\n").wait()?.is_ok());
    assert_eq!(notes.0.lock().unwrap()["a/b.txt"], b"one\ntwo\n");
    assert!(session.edit_file("a/b.txt", "two", "three", false).wait()?.is_ok());
    assert!(session.read_file("a/b.txt").wait()?.contains("three"));
    assert!(session.ls(Some("a")).wait()?.output.contains("b.txt"));
    let names = session.tool_names().wait()?;
    assert!(names.iter().all(|n| !["bash", "grep", "glob"].contains(&n.as_str())), "{names:?}");
    let read = session.tool("read", json!({ "file_path": "no.txt" })).wait()?;
    assert!(!read.is_ok() && read.error_kind.unwrap().kind == "not_found");
    Ok(())
}

#[test]
fn a_workspace_runs_and_searches() -> Result<()> {
    let (_place, notes, _agent, session) = notebook::<true>("call bash {\"command\":\"make\"}\nend\nsay done\n");
    notes.0.lock().unwrap().insert("x.txt".to_owned(), b"the words\n".to_vec());
    assert!(session.grep("words").wait()?.contains("x.txt:1: the words"));
    assert_eq!(session.glob("*").wait()?, ["x.txt"]);
    let events: Vec<AgentEvent> = session.stream("go", None).wait()?.0.into_iter().collect();
    let ended = events.iter().find_map(|e| match e {
        AgentEvent::ToolEnd { output, exit_code, .. } => Some((output.as_str(), *exit_code)),
        _ => None,
    });
    let (output, exit_code) = ended.expect("an end");
    assert!(output.contains("ran make\nok\n") && output.contains("end\n") && exit_code != 0, "{exit_code} {output}");
    Ok(())
}

/// A file that was changed meanwhile is a conflict.
#[test]
fn a_conflict_is_told() -> Result<()> {
    let (_place, notes, _agent, session) = notebook::<false>("say .\n");
    notes.0.lock().unwrap().insert("shifty.txt".to_owned(), b"one\n".to_vec());
    let edited = session.edit_file("shifty.txt", "one", "two", false).wait()?;
    let kind = edited.error_kind.as_ref().map(|e| (e.kind.as_str(), e.expected.is_some(), e.actual.is_some()));
    assert_eq!(kind, Some(("version_conflict", true, true)), "{edited:?}");
    let place = Place::new("say .\n");
    let options = SessionOptions::new().with_workspace_backend(HostWorkspaceBackend::new("nobody"));
    let err = place.agent().session(place.workspace(), Some(options)).unwrap_err();
    assert_eq!(err.code(), codes::SESSION_CONFIGURATION_ERROR, "{err:?}");
    Ok(())
}
