//! One scenario being played.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use a3s_code_core::{
    Agent, AgentSession, Call, CodeError, ContentBlock, FileSessionStore, HostSessionStore, HostWorkspaceBackend, MemorySessionStore,
    Message, PermissionDecision, PermissionPolicy, SessionOptions,
};
use serde_json::Value;

use crate::compare::{object, short, Facts};
use crate::expect::flat;
use crate::fail::{Fail, Mode};
use crate::host::{Host, Owner};
use crate::look::{Look, Stage};
use crate::run::Running;
use crate::scenario::{cut, put, Scenario, Step};

pub struct Play<'a> {
    pub scenario: &'a Scenario,
    pub dir: PathBuf,
    pub workspace: PathBuf,
    pub mode: Mode,
    pub stores: BTreeMap<String, MemorySessionStore>,
    pub agents: Vec<Agent>,
    pub sessions: Vec<AgentSession>, // the last one is used; one that nobody holds is closed
    pub active: Option<Running>,
    pub history: Option<Vec<Message>>,
    pub events: Vec<Value>,
    pub noted: BTreeMap<String, Value>,
    pub stage: Arc<Stage>,
    pub hosts: Vec<Arc<Host>>,
}

impl<'a> Play<'a> {
    pub fn new(scenario: &'a Scenario, dir: &Path, mode: Mode) -> Result<Self, Fail> {
        let play = Self {
            scenario,
            dir: dir.to_owned(),
            workspace: dir.join("workspace"),
            stage: Stage::new(mode.clone()),
            mode,
            stores: BTreeMap::new(),
            agents: vec![],
            sessions: vec![],
            active: None,
            history: None,
            events: vec![],
            noted: BTreeMap::new(),
            hosts: vec![],
        };
        std::fs::create_dir(&play.workspace)?;
        let mut acl = play.section("agent.acl").unwrap_or_else(|| "default_model = \"script/main\"\n".to_owned());
        if !acl.contains("providers \"script\"") {
            acl.push_str("providers \"script\" { models \"main\" { script = \"turns.txt\" } }\n");
        }
        put(&dir.join("agent.acl"), &acl.into())?;
        put(&dir.join("turns.txt"), &play.section("script").unwrap_or_default().into())?;
        for name in scenario.sections.keys() {
            if let Some(path) = name.strip_prefix("workspace/") {
                put(&play.workspace.join(path), &play.section(name).unwrap_or_default().into())?;
            }
        }
        for (name, content) in object(&play.json("files.json")?) {
            put(&play.workspace.join(name), &content)?;
        }
        Ok(play)
    }

    pub fn run(mut self) -> Result<(), Fail> {
        let ended = self.steps();
        let ended = self.expect_error(ended).and_then(|()| self.expect_rest());
        let ended = ended.and_then(|()| self.hosts.iter().try_for_each(|host| host.settle()));
        *self.stage.look.lock().expect("no panic") = None;
        for agent in std::mem::take(&mut self.agents) {
            self.go(agent.close())?;
        }
        ended?;
        self.stage.verdict()
    }

    /// Waits for a call in the way of this play.
    pub fn go<T: Send + 'static>(&self, call: Call<T>) -> Result<T, CodeError> {
        self.mode.go(call)
    }

    pub fn look(&self) -> Look {
        Look { mode: self.mode.clone(), agent: self.agent().clone(), session: self.session().clone() }
    }

    fn fill(&self, text: &str) -> String {
        let dir = self.dir.to_string_lossy();
        text.replace("$WORKSPACE", &self.workspace.to_string_lossy()).replace("$DIR", &dir).replace("$UNIQUE", &dir)
    }

    pub fn section(&self, name: &str) -> Option<String> {
        self.scenario.sections.get(name).map(|text| self.fill(text))
    }

    pub fn json(&self, name: &str) -> Result<Value, Fail> {
        self.section(name).map_or(Ok(Value::Null), |text| serde_json::from_str(&text).map_err(|e| Fail::Words(format!("{name}: {e}"))))
    }

    fn options(&mut self, wanted: &Value) -> Result<SessionOptions, Fail> {
        let mut options = SessionOptions::new();
        for (name, value) in object(wanted) {
            options = match (name.as_str(), value["kind"].as_str()) {
                ("session_store", Some("file")) => options.with_session_store(FileSessionStore::new(value["dir"].as_str().unwrap_or(""))),
                ("session_store", Some("memory")) => {
                    let store = self.stores.entry(value["instance_id"].as_str().unwrap_or("").to_owned()).or_default();
                    options.with_session_store(&*store)
                }
                ("session_store", Some("host")) => options.with_session_store(HostSessionStore::new(value["name"].as_str().unwrap_or(""))),
                ("workspace_backend", Some("host")) => {
                    options.with_workspace_backend(HostWorkspaceBackend::new(value["name"].as_str().unwrap_or("")))
                }
                ("permission_policy", _) => match policy(&value) {
                    Some(policy) => options.with_permission_policy(policy),
                    None => options.with_option(name, value),
                },
                ("max_tool_rounds", _) if value.is_u64() => options.with_max_tool_rounds(value.as_u64().unwrap_or(0)),
                ("auto_save", _) if value.is_boolean() => options.with_auto_save(value == true),
                _ => options.with_option(name, value),
            };
        }
        Ok(options)
    }

    fn open_agent(&mut self) -> Result<(), Fail> {
        let mut env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())]);
        env.insert("HOME".to_owned(), self.dir.to_string_lossy().into_owned());
        env.insert("LANG".to_owned(), "C.UTF-8".to_owned());
        env.extend(object(&self.json("env.json")?).into_iter().map(|(k, v)| (k, v.as_str().unwrap_or("").to_owned())));
        let agent = self.go(Agent::builder("agent.acl").env(env).open())?;
        let host = Host::new(&self.stage, &agent);
        self.agents.push(agent);
        self.hosts.push(Arc::clone(&host));
        let _inside = self.mode.enter();
        for spec in self.json("host_tools.json")?.as_array().into_iter().flatten() {
            host.tool(self.agent(), spec)?;
        }
        self.extend(Owner::Agent(self.agent()))
    }

    /// Registers the extensions of host.json that belong to this owner.
    fn extend(&self, owner: Owner<'_>) -> Result<(), Fail> {
        let host = self.hosts.last().expect("an agent is open");
        let _inside = self.mode.enter();
        for entry in self.json("host.json")?.as_array().into_iter().flatten() {
            if entry["on"].as_str().unwrap_or("agent") == owner.word() {
                host.extension(owner, entry)?;
            }
        }
        Ok(())
    }

    /// Makes a session the one in use.
    fn enter(&mut self, session: AgentSession) -> Result<(), Fail> {
        self.sessions.push(session);
        *self.stage.look.lock().expect("no panic") = Some(self.look());
        self.extend(Owner::Session(self.session()))
    }

    pub fn agent(&self) -> &Agent {
        self.agents.last().expect("an agent is open")
    }

    pub fn session(&self) -> &AgentSession {
        self.sessions.last().expect("a session is open")
    }

    fn open_session(&mut self, options: &Value) -> Result<(), Fail> {
        let options = self.options(options)?;
        let session = self.go(self.agent().session_builder(&self.workspace).options(options).build())?;
        self.enter(session)
    }

    fn steps(&mut self) -> Result<(), Fail> {
        self.open_agent()?;
        self.open_session(&self.json("options.json")?)?;
        let last = self.scenario.steps.len();
        for (i, step) in self.scenario.steps.iter().enumerate() {
            let step = Step { rest: self.fill(&step.rest), ..step.clone() };
            let result = self.step(&step);
            let words = |got: &dyn fmt::Display| Fail::Words(format!("step {:?}: {got}", step.line));
            match result {
                Err(Fail::Code(err)) if step.fails == err.code() => {}
                Err(Fail::Code(err)) if step.fails.is_empty() && i + 1 == last => return Err(Fail::Code(err)),
                Err(Fail::Lacking(lacking)) => return Err(Fail::Lacking(lacking)),
                Err(err) => return Err(words(&err)),
                Ok(()) if !step.fails.is_empty() => return Err(words(&format!("nothing failed, want {}", step.fails))),
                Ok(()) => {}
            }
        }
        self.join()
    }

    fn step(&mut self, step: &Step) -> Result<(), Fail> {
        let rest = step.rest.as_str();
        match step.verb.as_str() {
            "stream" | "start" => {
                if step.fails.is_empty() {
                    self.join()?; // what must fail may be refused because a run is active
                }
                let history = self.history.take();
                let (events, _run) = self.go(self.session().stream(rest, history.as_deref()))?;
                self.active = Some(Running::new(events, &self.mode));
                if step.verb == "stream" {
                    self.join()
                } else {
                    Ok(())
                }
            }
            "send" => self.send(step),
            "history" => {
                let messages: Vec<Message> = serde_json::from_str(rest)?;
                // A history that this language's types do not know would arrive as something else.
                if messages.iter().flat_map(|m| &m.content).any(|b| matches!(b, ContentBlock::Other(Value::Null))) {
                    return Err(Fail::Lacking("a block without content".into()));
                }
                self.history = Some(messages);
                Ok(())
            }
            "join" => self.join(),
            "await" => {
                let facts = Facts::parse(rest)?;
                let run = self.active.as_mut().ok_or_else(|| Fail::Words("no run was started".into()))?;
                run.passed = run.next(run.passed, |e| facts.fits_event(e))?.1;
                Ok(())
            }
            "check" => self.check(rest),
            "note" => {
                let view = self.look().view(rest)?;
                self.noted.insert(rest.to_owned(), view);
                Ok(())
            }
            "same" => {
                let (now, was) = (self.look().view(rest)?, self.noted.get(rest).cloned().unwrap_or_default());
                if now == was {
                    Ok(())
                } else {
                    Err(Fail::Words(format!("it is {}, was {}", short(&now), short(&was))))
                }
            }
            "agent" => self.open_agent(),
            "open" => {
                let options = if rest.is_empty() { Value::Null } else { serde_json::from_str(rest)? };
                self.open_session(&options)
            }
            "resume" => {
                let options = if rest.is_empty() { self.json("options.json")? } else { serde_json::from_str(rest)? };
                let options = self.options(&options)?;
                let session = self.go(self.agent().resume_session_async(self.session().session_id(), options))?;
                self.enter(session)
            }
            "artifact" => {
                let artifact = self.go(self.session().get_artifact(rest))?;
                self.result(serde_json::to_value(artifact)?)
            }
            "tool" => {
                let result = self.look().tool(rest)?;
                self.result(result)
            }
            "confirm" | "confirm-late" => self.confirm(step),
            "cancel" => is(self.go(self.session().cancel())?, rest != "false"),
            "cancel_run" => {
                let run = self.go(self.session().current_run())?.ok_or_else(|| Fail::Words("no run is active".into()))?;
                is(self.go(self.session().cancel_run(&run.id))?, true)
            }
            "cancel_confirmations" => is(self.go(self.session().cancel_confirmations())?.to_string(), rest.to_owned()),
            "save" => Ok(self.go(self.session().save())?),
            "close" => Ok(self.go(self.session().close())?),
            verb => Err(Fail::Words(format!("there is no step {verb:?}"))),
        }
    }

    fn confirm(&mut self, step: &Step) -> Result<(), Fail> {
        let (name, rest) = cut(&step.rest);
        let (word, reason) = cut(rest);
        let asks = |e: &Value| e["type"] == "confirmation_required" && e["payload"]["tool_name"] == name;
        let question = match (step.verb.as_str(), &mut self.active) {
            ("confirm", Some(run)) => {
                let (question, behind) = run.next(run.asked, asks)?;
                run.asked = behind;
                question
            }
            (_, run) => {
                let mut seen = self.events.clone();
                seen.extend(run.iter().flat_map(|r| r.so_far()));
                seen.into_iter().rev().find(asks).ok_or_else(|| Fail::Words("there was none".into()))?
            }
        };
        let id = question["payload"]["tool_id"].as_str().unwrap_or("");
        let reason = Some(reason).filter(|r| !r.is_empty());
        is(self.go(self.session().confirm_tool_use(id, word == "allow", reason))?, step.verb == "confirm")
    }

    /// A run whose events are read from the records.
    fn send(&mut self, step: &Step) -> Result<(), Fail> {
        if step.fails.is_empty() {
            self.join()?;
        }
        let before = self.go(self.session().runs())?.len();
        let history = self.history.take();
        let sent = self.go(self.session().send(&step.rest, history.as_deref()));
        let runs = self.go(self.session().runs())?;
        if runs.len() > before {
            let events = self.go(self.session().run_events(&runs[runs.len() - 1].id))?;
            self.ended(&events)?;
        }
        self.result(flat(&sent?)?)
    }

    fn result(&self, result: Value) -> Result<(), Fail> {
        self.stage.results.lock().expect("no panic").push(result);
        Ok(())
    }

    fn join(&mut self) -> Result<(), Fail> {
        let Some(run) = &self.active else { return Ok(()) };
        let (events, _) = run.whole()?;
        self.active = None;
        self.ended(&events)
    }
}

/// A policy whose words this language has; None if they must go as they are.
fn policy(value: &Value) -> Option<PermissionPolicy> {
    let mut policy = PermissionPolicy::new();
    for (name, value) in value.as_object()? {
        let rules = || value.as_array()?.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        match name.as_str() {
            "allow" => policy.allow = rules()?,
            "deny" => policy.deny = rules()?,
            "ask" => policy.ask = rules()?,
            "enabled" => policy.enabled = value.as_bool()?,
            "default_decision" => {
                policy.default_decision = match value.as_str()? {
                    "allow" => PermissionDecision::Allow,
                    "deny" => PermissionDecision::Deny,
                    "ask" => PermissionDecision::Ask,
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some(policy)
}

fn is<T: PartialEq + fmt::Debug>(got: T, want: T) -> Result<(), Fail> {
    if got == want {
        Ok(())
    } else {
        Err(Fail::Words(format!("got {got:?}, want {want:?}")))
    }
}
