"""Session stores and workspaces that this program supplies."""

from __future__ import annotations

import asyncio
import subprocess
import time
from typing import Any, AsyncIterator, Iterator

import pytest

from a3s_code import (
    Agent, CodeError, Context, EventType, ExtensionError, HostSessionStore, HostWorkspaceBackend, PermissionPolicy,
    SessionConfigurationError, SessionError, SessionInitializationError, SessionOptions, SessionStore, Workspace,
)
from conftest import Place, limit, opened

ALL = PermissionPolicy(default_decision="allow")


class Shelf:
    """A store as a program may write one."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.fails = ""

    def load(self, id: str, start: int, limit: int) -> Any:
        self.may("load")
        kept = self.kept.get(id)
        if kept is None:
            return None
        found = {"generation": kept["generation"], "count": len(kept["facts"]), "facts": kept["facts"][start:start + limit]}
        return found if kept["snapshot"] is None else {**found, "snapshot": kept["snapshot"]}

    def append(self, id: str, generation: int, start: int, facts: list[str]) -> None:
        self.may("append")
        kept = self.kept.setdefault(id, {"generation": generation, "facts": [], "snapshot": None})
        assert (kept["generation"], len(kept["facts"])) == (generation, start)
        kept["facts"] += facts

    def save(self, id: str, generation: int, snapshot: str) -> None:
        self.may("save")
        self.kept[id] = {"generation": generation, "facts": [], "snapshot": snapshot}

    def delete(self, id: str) -> None:
        self.kept.pop(id, None)

    def list(self) -> list[str]:
        return sorted(self.kept)

    def may(self, op: str) -> None:
        if self.fails == op:
            raise OSError("the database is gone")
        if self.fails == f"{op} hangs":
            Context.current().wait_cancelled(10)


class Archive(Shelf):
    """One that keeps blobs too."""

    def __init__(self) -> None:
        super().__init__()
        self.blobs: dict[tuple[str, str], bytes] = {}

    def load_blob(self, id: str, blob: str) -> bytes | None:
        return self.blobs.get((id, blob))

    def save_blob(self, id: str, blob: str, data: bytes) -> None:
        self.blobs[id, blob] = data

    def delete_blob(self, id: str, blob: str) -> None:
        self.blobs.pop((id, blob), None)


class AsyncShelf:
    def __init__(self) -> None:
        self.shelf = Shelf()

    async def load(self, id: str, start: int, limit: int) -> Any:
        await asyncio.sleep(0)
        return self.shelf.load(id, start, limit)

    async def append(self, id: str, generation: int, start: int, facts: list[str]) -> None:
        self.shelf.append(id, generation, start, facts)

    async def save(self, id: str, generation: int, snapshot: str) -> None:
        self.shelf.save(id, generation, snapshot)

    async def delete(self, id: str) -> None:
        self.shelf.delete(id)

    async def list(self) -> AsyncIterator[str]:
        for id in self.shelf.list():
            yield id


@pytest.mark.parametrize("make", [Shelf, Archive, AsyncShelf])
@pytest.mark.parametrize("save", [True, False])
def test_a_session_is_resumed_from_a_store(place: Place, make: Any, save: bool) -> None:
    store = make()
    with place.agent("say one\nend") as agent:
        at = agent.register_session_store("shelf", store)
        session = opened(place, agent, session_id="s1", session_store=at)
        session.send("first")
        if save:
            session.save()
        assert agent.list_stored_sessions(at) == ["s1"]
    with place.agent("say two\nend") as agent:
        agent.register_session_store("shelf", store)
        options = SessionOptions()
        options.session_store = HostSessionStore("shelf")
        session = agent.resume_session("s1", options)
        assert len(session.history()) == 2
        assert session.send("second").text == "two"
        with pytest.raises(SessionError, match="Session not found"):
            agent.resume_session("nobody", options)


def test_a_store_keeps_blobs(place: Place) -> None:
    store = Archive()
    with place.agent('call bash {"command": "seq 1 60000"}\nend\nsay done\nend') as agent:
        at = agent.register_session_store("archive", store)
        session = opened(place, agent, session_id="s1", session_store=at, permission_policy=ALL)
        session.send("count")
        session.save()
        session.close()
        assert [id for id, _ in store.blobs] == ["s1"] and b"\n60000" in next(iter(store.blobs.values()))
        options = SessionOptions()
        options.session_store = at
        assert len(agent.resume_session("s1", options).history()) == 4


@pytest.mark.parametrize("fails, words", [("append", "OSError: the database is gone"), ("append hangs", "did not answer store")])
def test_a_store_that_fails(place: Place, fails: str, words: str) -> None:
    store = Shelf()
    agent = place.agent("say one\nend")
    session = opened(place, agent, session_store=agent.register_session_store("shelf", store, timeout_ms=limit(fails, 500)))
    store.fails = fails
    with pytest.raises(SessionError, match=words):
        session.send("first")


def test_a_store_that_does_not_open(place: Place) -> None:
    store = Shelf()
    store.fails = "load hangs"
    agent = place.agent("say one\nend")
    at = agent.register_session_store("shelf", store, timeout_ms=500)
    with pytest.raises(SessionError, match="within 500ms"):
        opened(place, agent, session_id="s1", session_store=at)
    store.fails = ""
    assert opened(place, agent, session_id="s1", session_store=at).send("hi").text == "one"
    with pytest.raises(SessionConfigurationError, match='registered no store "other"'):
        opened(place, agent, session_store=HostSessionStore("other"))


class Notebook:
    """A workspace as a program may write one."""

    def __init__(self, **files: str) -> None:
        self.files = {name.replace("_", "."): text.encode() for name, text in files.items()}
        self.fails: Any = None

    @staticmethod
    def version(data: bytes | None) -> str:
        return "absent" if data is None else f"v{hash(data)}"

    def stat(self, path: str) -> Any:
        if path == ".":
            return {"type": "dir"}
        if path not in self.files:
            raise FileNotFoundError(path)
        return {"type": "file", "size": len(self.files[path])}

    def list(self, path: str) -> Iterator[Any]:
        for name, data in self.files.items():
            yield {"name": name, "type": "file", "size": len(data)}

    def read(self, path: str, max: int) -> tuple[bytes, str]:
        if self.fails is not None:
            self.fails()
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path], self.version(self.files[path])

    def write(self, path: str, data: bytes, if_version: str | None, if_absent: bool) -> str:
        actual = self.version(self.files.get(path))
        if if_version not in (None, actual) or if_absent and path in self.files:
            raise ExtensionError("it has changed", kind="conflict", details={"expected": if_version or "absent", "actual": actual})
        self.files[path] = data
        return self.version(data)

    def remove(self, path: str) -> None:
        self.files.pop(path, None)


class Machine(Notebook):
    """One with a shell, that can be searched."""

    def run(self, line: str, timeout_ms: int | None, env: dict[str, str]) -> Any:
        yield "$ " + line + "\n"
        with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            yield from child.stdout
            yield child.wait()

    def search(self, request: Any) -> Any:
        if "glob" in request:
            return {"files": [{"path": name} for name in self.files]}
        pattern = request["grep"]["pattern"]
        return {"lines": [{"path": n, "line": 1, "text": d.decode().strip()} for n, d in self.files.items() if pattern in d.decode()]}


class AsyncMachine(Machine):
    async def read(self, path: str, max: int) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().read(path, max)

    async def run(self, line: str, timeout_ms: int | None, env: dict[str, str]) -> AsyncIterator[Any]:
        for piece in super().run(line, timeout_ms, env):
            await asyncio.sleep(0)
            yield piece

    async def list(self, path: str) -> Any:
        for entry in super().list(path):
            yield entry


WORK = """
call read {"file_path": "a.txt"}
end
call edit {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
end
call bash {"command": "echo out; exit 0"}
end
call grep {"pattern": "two"}
end
call glob {"pattern": "*"}
end
call ls {}
end
say done
end
"""


@pytest.mark.parametrize("make", [Machine, AsyncMachine])
def test_a_run_in_a_workspace(place: Place, make: Any) -> None:
    notebook = make(a_txt="one\n", AGENTS_md="be kind")
    agent = place.agent(WORK)
    session = opened(place, agent, workspace_backend=agent.register_workspace("notebook", notebook), permission_policy=ALL)
    assert session.workspace == "host:notebook"
    ended = [e for e in session.stream("work") if e.type == EventType.TOOL_END]
    assert [(e.tool_name, e.exit_code) for e in ended] == [(n, 0) for n in ("read", "edit", "bash", "grep", "glob", "ls")]
    outputs = [e.tool_output or "" for e in ended]
    assert outputs[2].startswith("$ echo out; exit 0\nout\n") and "a.txt" in outputs[3] and "a.txt" in outputs[5]
    assert notebook.files["a.txt"] == b"two\n"


def test_a_command_that_fails_and_one_without_a_code(place: Place) -> None:
    machine = Machine()
    agent = place.agent("say x\nend")
    session = opened(place, agent, workspace_backend=agent.register_workspace("machine", machine))
    assert (session.tool("bash", {"command": "exit 3"}).metadata or {})["exit_code"] == 3
    machine.run = lambda line, timeout_ms, env: iter(["no code"])  # type: ignore[method-assign]
    agent.register_workspace("other", machine)
    broken = opened(place, agent, workspace_backend=HostWorkspaceBackend("other")).tool("bash", {"command": "x"})
    assert broken.exit_code != 0 and "exit code is missing" in broken.output


def test_what_a_workspace_cannot_do_is_not_offered(place: Place) -> None:
    agent = place.agent("say x\nend")
    at = agent.register_workspace("notebook", Notebook(), root="/srv/notes")
    session = opened(place, agent, workspace_backend=at)
    assert not {"bash", "grep", "glob"} & set(session.tool_names()) and session.workspace == "/srv/notes"
    agent.register_workspace("mute", Machine(), run=False, search=False)
    session = opened(place, agent, workspace_backend=HostWorkspaceBackend("mute"))
    assert not {"bash", "grep", "glob"} & set(session.tool_names())
    with pytest.raises(SessionConfigurationError, match='registered no workspace "other"'):
        opened(place, agent, workspace_backend=HostWorkspaceBackend("other"))


def raises(err: Exception) -> Any:
    def fail() -> None:
        raise err
    return fail


FAILURES: dict[str, tuple[Any, str]] = {
    "denied": (raises(PermissionError("no")), "invalid_argument"),
    "named": (raises(ExtensionError("gone", kind="not_found")), "not_found"),
    "hangs": (lambda: Context.current().wait_cancelled(10), "timeout"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_workspace_that_fails(place: Place, name: str) -> None:
    notebook = Notebook(a_txt="one\n")
    agent = place.agent("say x\nend")
    session = opened(place, agent, workspace_backend=agent.register_workspace("notebook", notebook, timeout_ms=limit(name, 500)))
    missing = session.tool("read", {"file_path": "b.txt"})
    assert missing.error_kind is not None and missing.error_kind["type"] == "not_found"
    notebook.fails, kind = FAILURES[name]
    failed = session.tool("read", {"file_path": "a.txt"})
    assert failed.exit_code != 0 and failed.error_kind is not None and kind in str(failed.error_kind), failed


def test_a_file_that_changed_meanwhile(place: Place) -> None:
    notebook = Notebook(a_txt="one\n")

    agent = place.agent("say x\nend")
    real = notebook.write

    def write(path: str, data: bytes, if_version: str | None, if_absent: bool) -> str:
        notebook.files["a.txt"] = b"another\n"
        return real(path, data, if_version, if_absent)

    notebook.write = write  # type: ignore[method-assign]
    at = agent.register_workspace("racy", notebook)
    session = opened(place, agent, workspace_backend=at)
    result = session.tool("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    assert result.error_kind is not None and result.error_kind["type"] == "version_conflict", result
    assert notebook.files["a.txt"] == b"another\n"


def test_a_workspace_that_is_taken_back(place: Place) -> None:
    agent = place.agent("say x\nend")
    with agent.register_workspace("notebook", Notebook(a_txt="one\n")) as at:
        session = opened(place, agent, workspace_backend=at)
        assert session.tool("read", {"file_path": "a.txt"}).ok
    assert not session.tool("read", {"file_path": "a.txt"}).ok
    with pytest.raises(CodeError):
        opened(place, agent, workspace_backend=at)


def test_a_workspace_that_does_not_answer(place: Place) -> None:
    notebook = Notebook()
    notebook.stat = lambda path: time.sleep(0.2)  # type: ignore[method-assign]
    agent = place.agent("say x\nend")
    with pytest.raises(SessionInitializationError, match="within 50ms"):
        opened(place, agent, workspace_backend=agent.register_workspace("notebook", notebook, timeout_ms=50))


def test_the_protocols_fit(place: Place) -> None:
    """What a type checker compares: this file is checked too."""
    stores: list[SessionStore] = [Shelf(), Archive(), AsyncShelf()]
    workspaces: list[Workspace] = [Notebook(), Machine()]
    agent: Agent = place.agent("")
    for n, store in enumerate(stores):
        agent.register_session_store(f"s{n}", store)
    for n, workspace in enumerate(workspaces):
        agent.register_workspace(f"w{n}", workspace)
