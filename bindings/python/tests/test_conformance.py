"""Plays the scenarios that all languages share, through the public API alone. What a scenario is
made of is said in tests/conformance/README.md."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from a3s_code import (
    Agent, ArtifactStoreLimits, CodeError, ConfirmationPolicy, FileSessionStore, HostEnvConfig, LocalWorkspaceBackend,
    HostSessionStore, HostWorkspaceBackend, MemorySessionStore, PermissionPolicy, Session, SessionOptions,
)

from scenario import VIEWS, Facts, Json, Running, compare, diff, envelope, joined, sections
from scenario_host import Host

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "tests/conformance/scenarios").glob("*.txtar"))


class Refused(Exception):
    """What the option objects of this language refuse by themselves, as the library's error."""

    def __init__(self, field: str, error: Exception) -> None:
        super().__init__(f"{field}: {error}")
        self.error = {"code": "SESSION_CONFIGURATION_ERROR", "message": str(error), "details": {"field": field}}


def as_error(err: BaseException) -> Json:
    return err.to_dict() if isinstance(err, CodeError) else err.error if isinstance(err, Refused) else None


# --- the play ---

class Play:
    """One scenario being played."""

    def __init__(self, file: Path, dir: Path) -> None:
        self.dir, self.workspace = dir, dir / "workspace"
        self.workspace.mkdir()
        self.raw = sections(file)
        self.stores: dict[str, MemorySessionStore] = {}
        self.agents: list[Agent] = []
        self.session: Session | None = None
        self.opened: list[Session] = []  # a session that nobody holds is closed
        self.active: Running | None = None
        self.history: list[Json] | None = None
        self.events: list[Json] = []
        self.results: list[Json] = []
        self.noted: dict[str, Json] = {}
        self.hosts: list[Host] = []

    def section(self, name: str, default: str = "") -> str:
        text = self.raw.get(name, default)
        return text.replace("$WORKSPACE", str(self.workspace)).replace("$DIR", str(self.dir)).replace("$UNIQUE", str(self.dir))

    def json(self, name: str, default: Json) -> Json:
        return json.loads(self.section(name)) if name in self.raw else default

    def run(self) -> None:
        self.lay_out()
        try:
            error = self.steps()
            self.expect_error(error)
            self.expect_rest()
            for host in self.hosts:
                host.settle()
        finally:
            for agent in self.agents:
                agent.close()
        for host in self.hosts:
            host.check()

    def lay_out(self) -> None:
        acl = self.section("agent.acl", 'default_model = "script/main"\n')
        if 'providers "script"' not in acl:
            acl += 'providers "script" { models "main" { script = "turns.txt" } }\n'
        files: dict[str, Json] = {"../agent.acl": acl, "../turns.txt": self.section("script")}
        files |= {name.removeprefix("workspace/"): self.section(name) for name in self.raw if name.startswith("workspace/")}
        files |= self.json("files.json", {})
        for name, content in files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.write_bytes(content.encode())
            elif "link" in content:
                path.symlink_to(content["link"])
            else:
                path.mkdir(exist_ok=True)

    def options(self, wanted: Json) -> SessionOptions:
        made: dict[str, Callable[[Json], Any]] = {
            "permission_policy": lambda v: PermissionPolicy(**v),
            "confirmation_policy": lambda v: ConfirmationPolicy(**v),
            "artifact_store_limits": lambda v: ArtifactStoreLimits(**v),
            "host_env": lambda v: HostEnvConfig(**v),
            "workspace_backend": lambda v: HostWorkspaceBackend(v["name"]) if v["kind"] == "host" else LocalWorkspaceBackend(v["root"]),
            "session_store": self.store,
        }
        options = SessionOptions()
        for name, value in wanted.items():
            try:
                setattr(options, name, made[name](value) if name in made and isinstance(value, dict) else value)
            except CodeError:
                raise
            except (AttributeError, TypeError) as err:
                raise Refused(name, err) from err
        return options

    def store(self, wanted: Json) -> Any:
        if wanted["kind"] == "file":
            return FileSessionStore(wanted["dir"])
        if wanted["kind"] == "host":
            return HostSessionStore(wanted["name"])
        return self.stores.setdefault(wanted["instance_id"], MemorySessionStore())

    def open_agent(self) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "LANG": "C.UTF-8", **self.json("env.json", {})}
        agent = Agent.create("agent.acl", env=env)
        self.agents.append(agent)
        self.hosts.append(Host(self.json("host_tools.json", []), self.json("host.json", []), self.does))
        self.hosts[-1].serve(agent)

    def use(self, session: Session) -> None:
        """Goes on with a session that was just opened."""
        self.session = session
        self.hosts[-1].serve_session(session)

    def does(self, line: str) -> None:
        """A step that something of the host plays while it is asked."""
        verb, _, rest = line.partition(" ")
        assert verb in ("cancel", "check", "tool"), line
        getattr(self, "do_" + verb)(rest)

    def steps(self) -> Json:
        """Plays the steps; gives the error that ended them, if one did."""
        try:
            self.open_agent()
            self.use(self.agents[-1].session(str(self.workspace), self.options(self.json("options.json", {}))))
        except (CodeError, Refused) as err:
            return as_error(err)
        lines = [line.strip() for line in self.section("steps").split("\n")]
        lines = [line for line in lines if line and not line.startswith("#")]
        for i, line in enumerate(lines):
            fails, words = "", line
            if line.startswith("fails "):
                _, fails, words = line.split(" ", 2)
            verb, _, rest = words.partition(" ")
            error = None
            try:
                getattr(self, "do_" + verb.replace("-", "_"))(rest, bool(fails))
            except (CodeError, Refused) as err:
                error = err
            except AssertionError as err:
                raise AssertionError(f"step {line!r}: {err}") from err
            if fails:
                assert error is not None and as_error(error)["code"] == fails, f"step {line!r}: got {error!r}, want {fails}"
            elif error is not None and i == len(lines) - 1:
                return as_error(error)
            elif error is not None:
                raise AssertionError(f"step {line!r}: {error!r}") from error
        self.do_join()
        return None

    def expect_error(self, error: Json) -> None:
        text = self.section("want/error").strip()
        if not text:
            assert error is None, f"failed with {error}"
            return
        assert error is not None, f"nothing failed, want {text}"
        assert Facts("error " + text).fits(error, ["code"]), f"failed with {error}, want {text}"

    def expect_rest(self) -> None:
        if "want/events" in self.raw:
            compare(joined(self.events), self.section("want/events"))
        if "want/result.json" in self.raw:
            want = self.json("want/result.json", None)
            got = self.results if isinstance(want, list) else self.results[-1]
            assert not diff(got, want, "result"), diff(got, want, "result")
        for name in VIEWS:
            if f"want/{name}.json" in self.raw:
                self.do_check(f"{name} " + self.section(f"want/{name}.json"))
        files = {n.removeprefix("want/workspace/"): self.section(n) or None for n in self.raw if n.startswith("want/workspace/")}
        for name, want in {**files, **self.json("want/files.json", {})}.items():
            assert holds(self.workspace / name) == want, f"file {name}"

    # --- steps ---

    @property
    def now(self) -> Session:
        assert self.session is not None, "no session is open"
        return self.session

    def start(self, prompt: str, refused: bool) -> Running:
        if not refused:  # what must fail may be refused because a run is active
            self.do_join()
        history, self.history = self.history, None
        return Running(iter(self.now.stream(prompt, history)))

    def do_start(self, prompt: str, refused: bool) -> None:
        self.active = self.start(prompt, refused)

    def do_stream(self, prompt: str, refused: bool) -> None:
        self.do_start(prompt, refused)
        self.do_join()

    def do_send(self, prompt: str, refused: bool) -> None:
        if not refused:
            self.do_join()
        before = len(self.now.runs())
        history, self.history = self.history, None
        try:
            self.results.append(vars(self.now.send(prompt, history)))
        finally:
            if len(self.now.runs()) > before:
                self.ended(self.view("events"))

    def do_history(self, text: str, *ignored: Any) -> None:
        self.history = json.loads(text)

    def do_join(self, *ignored: Any) -> None:
        if self.active is not None:
            running, self.active = self.active, None
            self.ended(running.whole())

    def do_await(self, line: str, *ignored: Any) -> None:
        assert self.active is not None
        _, self.active.passed = self.active.next(self.active.passed, Facts(line).fits_event)

    def do_confirm(self, rest: str, *ignored: Any) -> None:
        assert self.active is not None
        tool, answer = rest.split(" ", 1)
        question, self.active.asked = self.active.next(self.active.asked, is_question(tool))
        assert self.answer(question, answer), "the answer did not count"

    def do_confirm_late(self, rest: str, *ignored: Any) -> None:
        tool, answer = rest.split(" ", 1)
        seen = self.events + (self.active.events if self.active else [])
        question = next(filter(is_question(tool), reversed(seen)))
        assert not self.answer(question, answer), "the answer counted"

    def answer(self, question: Json, answer: str) -> bool:
        decision, _, reason = answer.partition(" ")
        assert decision in ("allow", "deny")
        return bool(self.now.confirm_tool_use(question["payload"]["tool_id"], decision == "allow", reason or None))

    def do_cancel(self, rest: str, *ignored: Any) -> None:
        assert self.now.cancel() is (rest != "false")

    def do_cancel_run(self, *ignored: Any) -> None:
        run = self.now.current_run()
        assert run is not None and self.now.cancel_run(run["id"]) is True

    def do_cancel_confirmations(self, count: str, *ignored: Any) -> None:
        assert self.now.cancel_confirmations() == int(count)

    def do_save(self, *ignored: Any) -> None:
        self.now.save()

    def do_close(self, *ignored: Any) -> None:
        self.now.close()

    def do_agent(self, *ignored: Any) -> None:
        self.open_agent()

    def do_open(self, options: str, *ignored: Any) -> None:
        self.opened.append(self.now)
        self.use(self.agents[-1].session(str(self.workspace), self.options(json.loads(options or "{}"))))

    def do_resume(self, options: str, *ignored: Any) -> None:
        wanted = json.loads(options) if options else self.json("options.json", {})
        self.use(self.agents[-1].resume_session(self.now.session_id, self.options(wanted)))

    def do_tool(self, rest: str, *ignored: Any) -> None:
        name, _, args = rest.partition(" ")
        self.results.append(vars(self.now.tool(name, json.loads(args or "{}"))))

    def do_artifact(self, uri: str, *ignored: Any) -> None:
        self.results.append(self.now.get_artifact(uri))

    def do_check(self, rest: str, *ignored: Any) -> None:
        name, _, want = rest.partition(" ")
        problem = diff(self.view(name), json.loads(want), name)
        assert not problem, problem

    def do_note(self, name: str, *ignored: Any) -> None:
        self.noted[name] = self.view(name)

    def do_same(self, name: str, *ignored: Any) -> None:
        assert self.view(name) == self.noted[name]

    def view(self, name: str) -> Json:
        s = self.now
        if name == "events":
            runs = s.runs()
            return [envelope(e) for e in s.run_events(runs[-1]["id"])] if runs else []
        if name == "info":
            labels = ("session_id", "workspace", "init_warning", "tenant_id", "principal", "agent_template_id", "correlation_id")
            return {**{k: getattr(s, k) for k in labels}, "closed": bool(s.is_closed)}
        views: dict[str, Callable[[], Json]] = {
            "commands": s.list_commands, "history": s.history, "pending": s.pending_confirmations, "runs": s.runs,
            "sessions": self.agents[-1].list_sessions, "tools": s.tool_names, "traces": s.trace_events,
        }
        return views[name]()

    def ended(self, run: list[Json]) -> None:
        """Checks what holds for every run, and keeps its events."""
        self.events += run
        first, last = run[0]["metadata"], run[-1]
        terminal = {"agent_end": "completed", "error": "failed"}
        before = 0
        for i, e in enumerate(run):
            meta = e["metadata"]
            assert e["version"] == 1 and meta["sequence"] == i and meta["timestamp_ms"] >= before, e
            assert meta["run_id"] == first["run_id"] and meta["session_id"] == self.now.session_id, e
            assert (e["type"] in terminal) == (i == len(run) - 1), f"{e['type']} is number {i} of {len(run)}"
            before = meta["timestamp_ms"]
        kept = [envelope(e) for e in self.now.run_events(first["run_id"])]
        assert kept == run or len(kept) < len(run), "the recorded events differ from those told"  # fewer: retention
        status = "cancelled" if last["payload"].get("code") == "CANCELLED" else terminal[last["type"]]
        snapshot = self.now.run_snapshot(first["run_id"])
        if snapshot is not None:
            assert (snapshot["status"], snapshot["event_count"]) == (status, len(run))
        assert self.now.current_run() is None


def is_question(tool: str) -> Callable[[Json], bool]:
    return lambda e: e["type"] == "confirmation_required" and e["payload"]["tool_name"] == tool


def holds(path: Path) -> Json:
    """What a path holds, in the form of files.json."""
    if path.is_symlink():
        return {"link": os.readlink(path)}
    if path.is_dir():
        return {"folder": True}
    return path.read_bytes().decode() if path.exists() else None


# --- pytest ---

@pytest.fixture(scope="module")
def report() -> Iterator[dict[str, str]]:
    """Writes build/conformance-python.json, and counts descriptors."""
    results: dict[str, str] = {}
    yield results
    out = ROOT / "build"
    out.mkdir(exist_ok=True)
    (out / "conformance-python.json").write_text(json.dumps(dict(sorted(results.items())), indent=2) + "\n")


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_scenario(file: Path, library: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: dict[str, str]) -> None:
    monkeypatch.chdir(tmp_path)
    report[file.stem] = "fail"
    Play(file, tmp_path.resolve()).run()
    report[file.stem] = "pass"


def test_no_descriptor_is_left() -> None:
    """Runs after the scenarios: what they opened is closed again."""
    import gc

    gc.collect()
    left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
    assert not [name for name in left if "test_scenario" in name], left
