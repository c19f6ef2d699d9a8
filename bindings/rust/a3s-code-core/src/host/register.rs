//! How parts of the runtime are registered.

use std::ops::Deref;

use super::{functions, store, workspace};
use super::{
    Command, CommandSpec, ContextProvider, ContextSpec, LogReceiver, LogSpec, Model, ModelSpec, PermissionChecker, PermissionSpec, Store,
    StoreSpec, Transport, TransportSpec, Workspace, WorkspaceSpec,
};
use crate::agent::Agent;
use crate::error::Result;
use crate::extension::Registration;
use crate::options::{HostSessionStore, HostWorkspaceBackend, SessionStore, WorkspaceBackend};
use crate::session::AgentSession;

/// What agents and sessions both take.
macro_rules! both {
    ($owner:ident: |$it:ident| $control:expr, $scope:expr) => {
        impl $owner {
            /// Has every tool call judged by this program. With a permission policy the strictest
            /// word of both counts; without one this takes the place of the default. A failure, and
            /// no answer within 5 seconds, denies the call.
            ///
            /// # Errors
            /// INVALID_REQUEST for a bad description, ALREADY_EXISTS for a taken name,
            /// SESSION_CLOSED.
            pub fn register_permission_checker<C: PermissionChecker>(
                &self,
                spec: impl Into<PermissionSpec>,
                checker: C,
            ) -> Result<Registration> {
                let mut spec = spec.into();
                spec.check_only = spec.check_only.or((!C::EXPOSES).then_some(true));
                let $it = self;
                $control.register($it.0.handle, $scope, "permission", &spec, functions::checker(checker))
            }

            /// Gives background to prompts, which the system prompt quotes as untrusted data. What
            /// fails or takes more than 5 seconds is left out.
            ///
            /// # Errors
            /// As [`register_permission_checker`](Self::register_permission_checker).
            pub fn register_context_provider(&self, spec: impl Into<ContextSpec>, provider: impl ContextProvider) -> Result<Registration> {
                let $it = self;
                $control.register($it.0.handle, $scope, "context", &spec.into(), functions::provider(provider))
            }

            /// Answers prompts that begin with `/NAME`; no model is asked. A failure, and no answer
            /// within 5 seconds, is told in the place of the answer.
            ///
            /// # Errors
            /// As [`register_permission_checker`](Self::register_permission_checker).
            pub fn register_command(&self, spec: impl Into<CommandSpec>, command: impl Command) -> Result<Registration> {
                let $it = self;
                $control.register($it.0.handle, $scope, "command", &spec.into(), functions::command(command))
            }

            /// Receives the library's log lines, one at a time. Lines that it does not take within
            /// a second are dropped.
            ///
            /// # Errors
            /// As [`register_permission_checker`](Self::register_permission_checker).
            pub fn register_log(&self, spec: impl Into<LogSpec>, receiver: impl LogReceiver) -> Result<Registration> {
                let $it = self;
                $control.register($it.0.handle, $scope, "log", &spec.into(), functions::receiver(receiver))
            }
        }
    };
}

both!(Agent: |it| it.0.control, "");
both!(AgentSession: |it| it.0.agent.control, it.session_id());

impl Agent {
    /// Supplies a model, to be named `host/NAME` in `default_model` or the option `model` of
    /// sessions that are opened later. A failure, and no answer within 10 minutes, is LLM_ERROR;
    /// one that is retryable is retried.
    ///
    /// # Errors
    /// As [`register_permission_checker`](Self::register_permission_checker).
    pub fn register_model<M: Model>(&self, spec: impl Into<ModelSpec>, model: M) -> Result<Registration> {
        let mut spec = spec.into();
        spec.stream = spec.stream.or((!M::STREAMS).then_some(false));
        self.0.control.register(self.0.handle, "", "model", &spec, functions::model(model))
    }

    /// Supplies a session store. What this gives is a value for the option `session_store`. A
    /// store that fails, or takes more than 30 seconds, is SESSION_ERROR.
    ///
    /// # Errors
    /// As [`register_permission_checker`](Self::register_permission_checker).
    pub fn register_session_store<S: Store>(&self, spec: impl Into<StoreSpec>, store: S) -> Result<StoreRegistration> {
        let mut spec = spec.into();
        spec.blobs = spec.blobs.or(S::BLOBS.then_some(true));
        let registered = self.0.control.register(self.0.handle, "", "store", &spec, store::store(store));
        registered.map(StoreRegistration)
    }

    /// Supplies a workspace. What this gives is a value for the option `workspace_backend`. A
    /// failure, and no answer within a minute, is the failed result of a tool.
    ///
    /// # Errors
    /// As [`register_permission_checker`](Self::register_permission_checker).
    pub fn register_workspace<W: Workspace>(&self, spec: impl Into<WorkspaceSpec>, workspace: W) -> Result<WorkspaceRegistration> {
        let mut spec = spec.into();
        spec.run = spec.run.or(W::RUNS.then_some(true));
        spec.search = spec.search.or(W::SEARCHES.then_some(true));
        let registered = self.0.control.register(self.0.handle, "", "workspace", &spec, workspace::workspace(workspace));
        registered.map(WorkspaceRegistration)
    }

    /// Sends the HTTP requests of a provider whose key `transport` is `"host/NAME"`. A failure,
    /// and no answer within 10 minutes, is LLM_ERROR.
    ///
    /// # Errors
    /// As [`register_permission_checker`](Self::register_permission_checker).
    pub fn register_transport(&self, spec: impl Into<TransportSpec>, transport: impl Transport) -> Result<Registration> {
        self.0.control.register(self.0.handle, "", "transport", &spec.into(), functions::transport(transport))
    }
}

/// A registration that is the value of an option, too.
macro_rules! value {
    ($(#[$doc:meta])* $name:ident => $option:ident: $host:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Registration);

        impl Deref for $name {
            type Target = Registration;

            fn deref(&self) -> &Registration {
                &self.0
            }
        }

        impl From<&$name> for $option {
            fn from(registered: &$name) -> Self {
                $host::new(registered.name()).into()
            }
        }

        impl From<$name> for $option {
            fn from(registered: $name) -> Self {
                Self::from(&registered)
            }
        }
    };
}

value! {
    /// A session store that is registered: a value for the option `session_store`. Stays as a
    /// [`Registration`] does.
    StoreRegistration => SessionStore: HostSessionStore
}

value! {
    /// A workspace that is registered: a value for the option `workspace_backend`. Stays as a
    /// [`Registration`] does.
    WorkspaceRegistration => WorkspaceBackend: HostWorkspaceBackend
}
