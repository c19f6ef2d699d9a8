"""A configuration with its models; it opens sessions."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Mapping

from . import _ffi, _wait
from ._desk import Desk
from ._errors import CodeError, bad_type
from ._live import Live
from ._options import SessionOptions
from ._owner import AgentExtensions
from ._session import ClosedFlag, Session
from ._unbuilt import UnbuiltAgent
from ._values import FileSessionStore, HostSessionStore, MemorySessionStore
from ._wire import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from types import TracebackType
    from typing import Any, Sequence

    from ._context import Supplied

# Closed before the interpreter goes; weak, so that a forgotten agent is collected as usual.
_agents: weakref.WeakSet[Agent] = weakref.WeakSet()
# Stores in memory that the library knows.
_stores: weakref.WeakSet[MemorySessionStore] = weakref.WeakSet()


class Agent(AgentExtensions, UnbuiltAgent, Live):
    """A configuration that was read, with the models, tools and stores it names.

    Made by :meth:`create`. Its sessions share it. Use it as a context manager (``with`` or
    ``async with``) to close it; an agent that is still open is closed when the interpreter ends.
    """

    def __init__(self, handle: _ffi.Handle) -> None:
        self._handle = handle
        self._desk = Desk(handle)
        self._supplied: dict[tuple[str, str], Supplied] = {}
        self._finalizer = weakref.finalize(self, _ffi.close_quietly, handle)
        self._finalizer.atexit = False
        _agents.add(self)

    @classmethod
    def create(cls, config_source: str | os.PathLike[str], *, env: Mapping[str, str] | None = None) -> Agent:
        """Opens an agent; loads the native library if this is the first.

        Args:
            config_source: ACL text, or the path of a file: a line that ends in ``.acl``, or any path object.
            env: what ``env("NAME")`` in the configuration may see; default a copy of
                ``os.environ`` as it is now. Entries that are not text are left out. Commands of
                tools get only the likes of PATH, HOME, LANG and TMPDIR of it, and no key.

        Raises:
            CodeError: CONFIG_ERROR with file, line and column in ``details``;
                LIBRARY_NOT_FOUND; FORKED.

        Relative paths in it are relative to the folder that is current now. Calls a3s_agent_open.
        """
        request = dumps(_agent_request(config_source, env), "agent.open")
        _ffi.library()
        return cls(_wait.interruptible(lambda: _ffi.agent_open(request), _ffi.close_quietly))

    @classmethod
    def create_async(cls, config_source: str | os.PathLike[str], *, env: Mapping[str, str] | None = None) -> asyncio.Future[Agent]:
        """:meth:`create` for asyncio: a future for the running loop. Opening has no started form
        in the library, so this uses a thread of the loop's default executor."""
        from . import _async

        return _async.in_executor(lambda: cls.create(config_source, env=env))

    # --- sessions ---

    def session(
        self,
        workspace: str | os.PathLike[str],
        options: SessionOptions | None = None,
        *,
        model: str | None = None,
        builtin_skills: bool | None = None,
        skill_dirs: Sequence[str] | None = None,
        agent_dirs: Sequence[str] | None = None,
        queue_config: Mapping[str, Any] | None = None,
        planning_mode: str | None = None,
        planning: bool | None = None,
        goal_tracking: bool | None = None,
        max_parse_retries: int | None = None,
        tool_timeout_ms: int | None = None,
        llm_api_timeout_ms: int | None = None,
        circuit_breaker_threshold: int | None = None,
        duplicate_tool_call_threshold: int | None = None,
        max_parallel_tasks: int | None = None,
        auto_parallel: bool | None = None,
        manual_delegation_enabled: bool | None = None,
    ) -> Session:
        """Opens a session. No model is called and nothing is saved.

        Args:
            workspace: folder the session works in; relative to the folder that is current now.
            options: see :class:`SessionOptions`; read now, not changed.
            model, builtin_skills, skill_dirs, agent_dirs, queue_config: options by name. Together
                with ``options`` they are ignored, with a warning: set them there.
            planning_mode ... manual_delegation_enabled: options by name; they win over ``options``.
                ``goal_tracking=False`` does not turn it off.

        Raises:
            CodeError: SESSION_CONFIGURATION_ERROR for a bad workspace or option (also a
                ``ValueError`` or ``TypeError`` for a bad value), SESSION_CLOSED, SESSION_BUSY
                for an id that another process holds.

        Calls a3s_session_open.
        """
        first = {"model": model, "builtin_skills": builtin_skills, "skill_dirs": skill_dirs, "agent_dirs": agent_dirs, "queue_config": queue_config}
        then = {
            "planning_mode": planning_mode, "planning": planning, "goal_tracking": goal_tracking,
            "max_parse_retries": max_parse_retries, "tool_timeout_ms": tool_timeout_ms,
            "llm_api_timeout_ms": llm_api_timeout_ms, "circuit_breaker_threshold": circuit_breaker_threshold,
            "duplicate_tool_call_threshold": duplicate_tool_call_threshold, "max_parallel_tasks": max_parallel_tasks,
            "auto_parallel": auto_parallel, "manual_delegation_enabled": manual_delegation_enabled,
        }
        return self._open_session(workspace, _merge(options, first, then))

    async def session_async(self, workspace: str | os.PathLike[str], options: SessionOptions | None = None) -> Session:
        """:meth:`session` for asyncio, in a thread of the loop's default executor."""
        from . import _async

        merged = _merge(options, {}, {})
        return await _async.in_executor(lambda: self._open_session(workspace, merged))

    def resume_session(self, session_id: str, options: SessionOptions) -> Session:
        """Opens a saved session again. Nothing is executed: what was under way when its process
        died is told as interrupted.

        Args:
            session_id: id of the session.
            options: must carry the session's store. What is unset comes from the snapshot where
                it is kept there; planning, compaction, time-outs and prompt slots are not.

        Raises:
            CodeError: SESSION_ERROR if there is no such session or its snapshot is damaged,
                SESSION_BUSY if it is open elsewhere.

        Calls a3s_session_open.
        """
        spec = _session_request({"resume": session_id}, options)
        handle = _wait.interruptible(lambda: _ffi.session_open(self._handle, spec), _ffi.close_quietly)
        return self._keep(handle, options)

    async def resume_session_async(self, session_id: str, options: SessionOptions) -> Session:
        """:meth:`resume_session` for asyncio, in a thread of the loop's default executor."""
        from . import _async

        copy = _merge(options, {}, {})
        return await _async.in_executor(lambda: self.resume_session(session_id, copy))

    def list_sessions(self) -> list[str]:
        """Ids of the sessions that are open, sorted. Operation agent.list_sessions."""
        ids: list[str] = self._now(b"agent.list_sessions")["session_ids"]
        return ids

    def list_stored_sessions(self, session_store: FileSessionStore | MemorySessionStore | HostSessionStore | None = None) -> list[str]:
        """Ids of the sessions kept in a store, open or not, sorted; a session that was never
        saved is among them. Operation agent.list_stored_sessions.

        Args:
            session_store: the store to look into; None is that of the configuration.

        Raises:
            ValueError: neither says which store.
            TypeError: it is no store.
        """
        request: dict[str, Any] = {"cwd": os.getcwd()}
        if session_store is not None:
            options = SessionOptions()
            options.session_store = session_store
            request |= options.to_wire()
        params = dumps(request, "agent.list_stored_sessions")
        ids: list[str] = loads(_wait.call(self._handle, b"agent.list_stored_sessions", params))["session_ids"]
        return ids

    def close_session(self, session_id: str) -> bool:
        """Closes one session by its id; False if it is not open. Ctrl-C does not wait for it.
        Operation agent.close_session."""
        params = dumps({"session_id": session_id}, "agent.close_session")
        return bool(loads(_wait.call(self._handle, b"agent.close_session", params))["closed"])

    # --- the end ---

    def close(self) -> None:
        """Closes every session and the agent. Saves nothing. May be called twice. Each step is
        bounded, all together by about 10 seconds; Ctrl-C does not wait for them.

        Afterwards nothing can be opened or sent: SESSION_CLOSED. Records of its sessions stay
        readable. Operation agent.close.
        """
        _wait.call(self._handle, b"agent.close", b"{}")
        self._desk.stop()

    async def close_async(self) -> None:
        """:meth:`close` for asyncio."""
        from . import _async

        await _async.call_async(self._handle, self._handle, b"agent.close", b"{}")
        self._desk.stop(0)

    @property
    def is_closed(self) -> ClosedFlag:
        """Whether the agent is closed. May be called as well."""
        return ClosedFlag(_ffi.dead() or bool(self._now(b"agent.info")["closed"]))

    # --- inside ---

    def _scope(self) -> str:
        return ""

    def _open_session(self, workspace: str | os.PathLike[str], options: SessionOptions) -> Session:
        spec = _session_request({"workspace": _path("workspace", workspace, "session.open")}, options)
        return self._keep(_ffi.session_open(self._handle, spec), options)

    def _keep(self, handle: _ffi.Handle, options: SessionOptions) -> Session:
        store = options.session_store
        if isinstance(store, MemorySessionStore) and store not in _stores:
            _stores.add(store)
            weakref.finalize(store, _drop_store, store.instance_id).atexit = False
        try:
            return Session(self, handle, store)
        except BaseException:
            _ffi.close_quietly(handle)
            raise

    def _now(self, method: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = loads(_ffi.call(self._handle, method, b"{}"))
        return answer

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _ffi.unless_forked(self.close)

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close_async()


def _agent_request(config_source: str | os.PathLike[str], env: Mapping[str, str] | None) -> dict[str, Any]:
    seen = os.environ if env is None else env
    if not isinstance(seen, Mapping):
        raise bad_type(f"env must map str to str, not {type(seen).__name__}", op="agent.open")
    return {
        "source" if isinstance(config_source, str) else "acl_path": _path("config_source", config_source, "agent.open"),
        "env": {k: v for k, v in seen.items() if _is_text(k) and _is_text(v)},
        "cwd": os.getcwd(),
    }


def _path(name: str, value: str | os.PathLike[str], op: str) -> str:
    """A path as text."""
    path = value if isinstance(value, str) else value.__fspath__() if isinstance(value, os.PathLike) else None
    if not isinstance(path, str):
        raise bad_type(f"{name} must be a str or a path object, not {type(value).__name__}", op=op)
    return path


def _is_text(value: str) -> bool:
    if not isinstance(value, str):
        raise bad_type(f"env must map str to str, found {value!r}", op="agent.open")
    # os.environ carries bytes that are not UTF-8 as lone surrogates.
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _session_request(start: dict[str, Any], options: SessionOptions) -> bytes:
    if not isinstance(options, SessionOptions):
        raise bad_type(f"options must be a SessionOptions instance, not {type(options).__name__}")
    return dumps({**start, "options": options.to_wire(), "cwd": os.getcwd()}, "session.open")


def _merge(options: SessionOptions | None, first: dict[str, Any], then: dict[str, Any]) -> SessionOptions:
    if options is not None and not isinstance(options, SessionOptions):
        raise bad_type(f"options must be a SessionOptions instance, not {type(options).__name__}")
    merged = SessionOptions() if options is None else options.copy()
    given = {k: v for k, v in first.items() if v is not None}
    if options is not None and given:
        import warnings

        warnings.warn(f"{', '.join(given)} is ignored next to options: set it there", stacklevel=3)
        given = {}
    for name, value in {**given, **then}.items():
        if value is not None and not (name == "goal_tracking" and not value):
            setattr(merged, name, list(value) if name in ("skill_dirs", "agent_dirs") else value)
    return merged


def _close_all() -> None:
    """Closes what is still open before the interpreter goes, within 5 seconds altogether."""
    if not _ffi.loaded():
        return
    _ffi.exiting = True
    until = time.monotonic() + 5
    for agent in list(_agents):
        if agent._finalizer.detach() is None:
            continue
        _ffi.close_quietly(agent._handle, max(0, int((until - time.monotonic()) * 1000)))
        agent._desk.stop()


def _drop_store(instance_id: str) -> None:
    """Tells the library that nobody can reach a store in memory any more."""
    for agent in list(_agents):
        if _ffi.loaded() and agent._finalizer.alive:
            try:
                _ffi.call(agent._handle, b"agent.drop_memory_store", dumps({"instance_id": instance_id}, "agent.drop_memory_store"))
            except CodeError:
                continue
            return


atexit.register(_close_all)
