//! What a play looks at, which a handler of the host may do too.

use std::sync::{Arc, Mutex};

use a3s_code_core::{Agent, AgentSession, Call, CodeError};
use serde_json::{json, Value};

use crate::compare::diff;
use crate::fail::{Fail, Mode};
use crate::scenario::cut;

/// The agent and the session in use.
#[derive(Clone)]
pub struct Look {
    pub mode: Mode,
    pub agent: Agent,
    pub session: AgentSession,
}

impl Look {
    pub fn view(&self, name: &str) -> Result<Value, Fail> {
        let s = &self.session;
        Ok(match name {
            "commands" => serde_json::to_value(self.mode.go(s.list_commands())?)?,
            "history" => serde_json::to_value(self.mode.go(s.history())?)?,
            "info" => serde_json::to_value(self.mode.go(s.info())?)?,
            "pending" => serde_json::to_value(self.mode.go(s.pending_confirmations())?)?,
            "runs" => serde_json::to_value(self.mode.go(s.runs())?)?,
            "sessions" => serde_json::to_value(self.mode.go(self.agent.list_sessions())?)?,
            "tools" => serde_json::to_value(self.mode.go(s.tool_names())?)?,
            "traces" => serde_json::to_value(self.mode.go(s.trace_events())?)?,
            "events" => match self.mode.go(s.runs())?.last() {
                Some(run) => serde_json::to_value(self.mode.go(s.run_events(&run.id))?)?,
                None => json!([]),
            },
            _ => return Err(Fail::Words(format!("there is nothing called {name:?} to look at"))),
        })
    }

    pub fn check(&self, rest: &str) -> Result<(), Fail> {
        let (name, want) = cut(rest);
        equal(&self.view(name)?, &serde_json::from_str(want)?, name)
    }

    /// The result of a direct call.
    pub fn tool(&self, rest: &str) -> Result<Value, Fail> {
        let (name, args) = cut(rest);
        let args = if args.is_empty() { json!({}) } else { serde_json::from_str(args)? };
        Ok(serde_json::to_value(self.mode.go(self.session.tool(name, args))?)?)
    }
}

pub fn equal(got: &Value, want: &Value, at: &str) -> Result<(), Fail> {
    diff(got, want, at).map_or(Ok(()), |words| Err(Fail::Words(words)))
}

impl Mode {
    /// Waits for a call in the way of a play.
    pub fn go<T: Send + 'static>(&self, call: Call<T>) -> Result<T, CodeError> {
        match self {
            Self::Threads => call.wait(),
            Self::Tokio(handle) => handle.block_on(call),
        }
    }
}

/// What a play shares with the handlers of its host.
pub struct Stage {
    pub mode: Mode,
    pub look: Mutex<Option<Look>>,
    pub results: Mutex<Vec<Value>>,
    wrong: Mutex<Vec<String>>,
}

impl Stage {
    pub fn new(mode: Mode) -> Arc<Self> {
        Arc::new(Self { mode, look: Mutex::default(), results: Mutex::default(), wrong: Mutex::default() })
    }

    /// Plays a step from inside of a handler.
    pub fn does(&self, line: &str) -> Result<(), Fail> {
        let look = self.look.lock().expect("no panic").clone().ok_or_else(|| Fail::Words("no session is open".into()))?;
        let (verb, rest) = cut(line);
        match verb {
            "cancel" => {
                look.mode.go(look.session.cancel())?;
                Ok(())
            }
            "check" => look.check(rest),
            "tool" => {
                let result = look.tool(rest)?;
                self.results.lock().expect("no panic").push(result);
                Ok(())
            }
            _ => Err(Fail::Words("a handler cannot do that".into())),
        }
    }

    pub fn blame(&self, words: String) {
        self.wrong.lock().expect("no panic").push(words);
    }

    /// What a handler found wrong first.
    pub fn verdict(&self) -> Result<(), Fail> {
        self.wrong.lock().expect("no panic").first().map_or(Ok(()), |words| Err(Fail::Words(words.clone())))
    }
}
