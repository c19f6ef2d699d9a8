"""Sessions of the real library, played by a scripted model."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from a3s_code import (
    Agent, Cancelled, CodeError, ConfigError, ConfirmationPolicy, EventType, FileSessionStore, HostEnvConfig, LLMError,
    LocalWorkspaceBackend, MemorySessionStore, PermissionPolicy, SessionBusy, SessionClosed, SessionError, SessionOptions,
)
from conftest import SLOW, Place

READ_ONLY = PermissionPolicy(allow=["read*", "ls*", "glob*", "grep*"], default_decision="deny")
ALL = PermissionPolicy(default_decision="allow")


def types(events: Any) -> list[str]:
    """The types in order, neighbouring deltas joined."""
    seen: list[str] = []
    for event in events:
        if not seen or seen[-1] != event.type or not event.type.endswith("_delta"):
            seen.append(event.type)
    return seen


READS = """
    say Looking.
    call read {"file_path": "a.txt"}
    end
    say It says hello.
    end
"""


def test_a_run_told_as_events(place: Place) -> None:
    (place.workspace / "a.txt").write_text("hello\n")
    session = place.session(READS, permission_policy=READ_ONLY)
    events = list(session.stream("What is in a.txt?"))
    assert types(events) == [
        "agent_start", "turn_start", "text_delta", "tool_start", "tool_input_delta", "tool_execution_start", "tool_end",
        "turn_end", "turn_start", "text_delta", "turn_end", "agent_end"]
    assert [e.sequence for e in events] == list(range(len(events)))
    assert events[0].prompt == "What is in a.txt?"
    end = next(e for e in events if e.type == EventType.TOOL_END)
    assert (end.tool_name, end.exit_code, end.tool_output) == ("read", 0, "     1\thello\n")
    assert "".join(e.text or "" for e in events if e.type == EventType.TEXT_DELTA).endswith("It says hello.")
    assert events[-1].text == "It says hello." and events[-1].verification_summary_text

    run, = session.runs()
    assert (run["status"], run["prompt"], run["result_text"], run["event_count"]) == (
        "completed", "What is in a.txt?", "It says hello.", len(events))
    assert session.run_snapshot(run["id"]) == run and session.run_snapshot("nope") is None
    assert session.run_events(run["id"]) == events and session.run_events("nope") == []
    assert [m["role"] for m in session.history()] == ["user", "assistant", "tool", "assistant"]
    assert session.current_run() is None and session.active_tools() == []
    assert [t["name"] for t in session.trace_events()] == ["read"]


def test_pages_of_events(place: Place) -> None:
    session = place.session("say one two three four\nend")
    events = list(session.stream("go"))
    run_id = session.runs()[0]["id"]
    page = session.run_event_page(run_id, limit=2)
    assert page is not None
    assert (page["events"], page["first_available_sequence"], page["next_after_sequence"], page["has_more"], page["retention_gap"]) == (
        events[:2], 0, 1, True, False)
    page = session.run_event_page(run_id, after_sequence=1)
    assert page is not None and page["events"] == events[2:] and not page["has_more"]
    assert page["latest_sequence_exclusive"] == len(events)
    assert session.run_event_page("nope") is None


def test_send(place: Place) -> None:
    session = place.session("think hm\nsay hello there\nend\nsay again\nend")
    result = session.send("hi")
    assert (str(result), result.text, result.tool_calls_count, result.verification_status) == ("hello there", "hello there", 0, "skipped")
    assert session.run({"prompt": "more"}).text == "again"
    assert len(session.runs()) == 2


def test_an_isolated_call_leaves_the_transcript(place: Place) -> None:
    session = place.session("say one\nend\nexpect aside\nsay two\nend")
    session.send("first")
    before = session.history()
    assert session.send("aside", history=[{"role": "user", "content": [{"type": "text", "text": "context"}]}]).text == "two"
    assert session.history() == before and len(session.runs()) == 2


def test_a_failing_run_is_an_event_and_an_exception(place: Place) -> None:
    session = place.session("fail denied no luck\nfail denied no luck\nsay fine\nend")
    events = list(session.stream("go"))
    assert events[-1].type == EventType.ERROR and "no luck" in (events[-1].error or "")
    assert session.runs()[-1]["status"] == "failed" and events[-1].payload["code"]
    with pytest.raises(CodeError, match="no luck") as err:
        session.send("go")
    assert err.value.code == events[-1].payload["code"]
    assert session.send("go").text == "fine"


def test_the_script_at_its_end_is_an_llm_error(place: Place) -> None:
    session = place.session("say one\nend", circuit_breaker_threshold=1)
    session.send("one")
    with pytest.raises(LLMError):
        session.send("two")


def test_one_prompt_at_a_time(place: Place) -> None:
    session = place.session(SLOW)
    next(e for e in session.stream("go") if e.type == EventType.TURN_START)
    for call in (session.stream, session.send):
        with pytest.raises(SessionBusy):
            call("again")
    current = session.current_run()
    assert current is not None and current["status"] == "executing"
    assert session.cancel() and not session.cancel()


def test_cancel_ends_with_one_error_event(place: Place) -> None:
    session = place.session(SLOW)
    seen = []
    for event in session.stream("go"):
        seen.append(event)
        if event.type == EventType.TEXT_DELTA:
            assert session.cancel()
    assert types(seen)[-2:] == ["text_delta", "error"] and seen[-1].payload["code"] == "CANCELLED"
    assert session.runs()[0]["status"] == "cancelled"
    assert session.send("go on").text == "after"  # the lease is free when the loop ends


def test_cancel_reaches_a_waiting_send(place: Place) -> None:
    session = place.session(SLOW)
    threading.Timer(0.1, session.cancel).start()
    with pytest.raises(Cancelled):
        session.send("go")


def test_leaving_the_loop_leaves_the_run(place: Place) -> None:
    session = place.session("say a\nwait 100\nsay b\nend")
    for _ in session.stream("go"):
        break
    until = time.monotonic() + 10
    while session.current_run() is not None and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert session.runs()[0]["status"] == "completed"


def test_a_limit_of_the_run_is_an_error_of_its_own(place: Place) -> None:
    session = place.session(SLOW, max_execution_time_ms=100)
    began = time.monotonic()
    with pytest.raises(CodeError) as err:
        session.send("go")
    assert err.value.code != "CANCELLED" and time.monotonic() - began < 5


def test_a_refused_call_is_told(place: Place) -> None:
    session = place.session('call write {"file_path": "x", "content": "y"}\nend\nsay ok\nend', permission_policy=PermissionPolicy(
        allow=["read*"], deny=["write(x)"], default_decision="allow"))
    denied = [e for e in session.stream("go") if e.type == EventType.PERMISSION_DENIED]
    assert [(e.tool_name, e.payload["args"]) for e in denied] == [("write", {"file_path": "x", "content": "y"})]
    assert not (place.workspace / "x").exists()


ASKS = 'call write {"file_path": "x", "content": "y"}\nend\nsay done\nend'
ASKING = dict(permission_policy=PermissionPolicy(ask=["write"]), confirmation_policy=ConfirmationPolicy(enabled=True, default_timeout_ms=20_000))


@pytest.mark.parametrize("approved", [True, False])
def test_questions(place: Place, approved: bool) -> None:
    session = place.session(ASKS, **ASKING)
    asked = []
    for event in session.stream("go"):
        if event.type == EventType.CONFIRMATION_REQUIRED:
            asked += session.pending_confirmations()
            question = event.tool_id or ""
            assert session.confirm_tool_use(question, approved, None if approved else "not now")
            assert not session.confirm_tool_use(question, approved)
    assert [(q["tool_name"], q["args"]) for q in asked] == [("write", {"file_path": "x", "content": "y"})]
    assert (place.workspace / "x").exists() == approved
    assert session.pending_confirmations() == [] and session.cancel_confirmations() == 0


def test_questions_withdrawn(place: Place) -> None:
    session = place.session(ASKS, **ASKING)
    kinds = []
    for event in session.stream("go"):
        kinds.append(event.type)
        if event.type == EventType.CONFIRMATION_REQUIRED:
            assert session.cancel_confirmations() == 1
    assert kinds[-1] == EventType.AGENT_END and not (place.workspace / "x").exists()


def test_direct_tools(place: Place) -> None:
    session = place.session("say x\nend")
    assert session.write_file("d/a.txt", "one\ntwo\n").ok
    assert session.read_file("d/a.txt") == "     1\tone\n     2\ttwo\n"
    assert session.read_file("d/a.txt", offset=1, limit=1).startswith("     2\ttwo\n")
    assert session.edit_file("d/a.txt", "two", "three").ok
    assert (place.workspace / "d/a.txt").read_text() == "one\nthree\n"
    assert "d/" in str(session.ls()) and "a.txt" in session.ls("d").output
    assert session.glob("**/*.txt") == ["d/a.txt"] and session.glob("*.none") == []
    assert "three" in session.grep("thr.e")
    assert session.bash("echo out; exit 3").startswith("out")
    result = session.tool("read", {"file_path": "missing"})
    assert not result.ok and result.name == "read" and result.error_kind is not None
    with pytest.raises(CodeError) as err:
        session.read_file("missing")
    assert (err.value.code, err.value.op) == ("TOOL_ERROR", "tool.read")
    assert not session.tool("nothing").ok


def test_glob_reads_all_pages(place: Place) -> None:
    for i in range(1205):
        (place.workspace / f"f{i:04}").touch()
    assert sorted(place.session("say x\nend").glob("f*")) == [f"f{i:04}" for i in range(1205)]


def test_tools_and_commands_of_a_session(place: Place) -> None:
    session = place.session("say x\nend", permission_policy=ALL)
    assert {"read", "write", "edit", "grep", "glob", "ls", "bash"} <= set(session.tool_names())
    read = next(t for t in session.tool_definitions() if t["name"] == "read")
    assert read["description"] and read["parameters"]["type"] == "object"
    assert "help" in {c["name"].lstrip("/") for c in session.list_commands()}
    assert session.get_artifact("a3s://tool-output/read/none") is None


def test_identity(place: Place) -> None:
    session = place.session("say x\nend", session_id="mine", tenant_id="t", principal="p", agent_template_id="a", correlation_id="c")
    assert (session.session_id, session.tenant_id, session.principal, session.agent_template_id, session.correlation_id) == ("mine", "t", "p", "a", "c")
    assert Path(session.workspace) == place.workspace.resolve()
    assert repr(session) == f"Session('mine', workspace={session.workspace!r})"


def test_two_equal_sessions_give_equal_events(tmp_path: Path, place: Place) -> None:
    def once() -> list[Any]:
        session = place.session("say hello there\nend", host_env=HostEnvConfig("id", 1_000))
        return [e.to_dict() for e in session.stream("go")]

    assert once() == once()


def test_close_session(place: Place) -> None:
    session = place.session(SLOW)
    stream = session.stream("go")
    next(stream)
    assert session._agent.list_sessions() == [session.session_id] and not session.is_closed
    session.close()
    assert session.is_closed() and list(stream)[-1].type == EventType.ERROR
    session.close()
    for call in (lambda: session.send("x"), lambda: session.stream("x")):
        with pytest.raises(SessionClosed):
            call()
    assert session.runs()[0]["status"] == "cancelled" and session.history()
    assert session._agent.list_sessions() == []


def test_close_by_id_and_by_agent(place: Place) -> None:
    session = place.session("say x\nend")
    agent = session._agent
    assert agent.close_session(session.session_id) and not agent.close_session("nope")
    assert session.is_closed
    other = agent.session(str(place.workspace))
    agent.close()
    agent.close()
    assert other.is_closed and agent.is_closed
    with pytest.raises(SessionClosed):
        agent.session(str(place.workspace))
    assert other.runs() == []


def test_a_session_that_is_dropped_is_gone(place: Place) -> None:
    agent = place.agent("say x\nend")
    session = agent.session(str(place.workspace))
    assert agent.list_sessions() == [session.session_id]
    del session
    gc.collect()
    until = time.monotonic() + 5
    while agent.list_sessions() and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert agent.list_sessions() == []


@pytest.mark.parametrize("name, value, native", [
    ("planning_mode", "sometimes", ValueError), ("max_tool_rounds", "many", TypeError), ("auto_compact_threshold", 7.0, ValueError),
    ("max_tool_rounds", -1, ValueError), ("permission_policy", PermissionPolicy(default_decision="perhaps"), ValueError),
    ("confirmation_policy", ConfirmationPolicy(timeout_action="explode"), ValueError), ("queue_config", {"timeout_ms": 1}, ValueError),
    ("budget_guard", object(), ValueError), ("workspace_backend", "local", TypeError)])
def test_bad_options(place: Place, name: str, value: Any, native: type) -> None:
    with pytest.raises(native) as err:
        place.session("say x\nend", **{name: value})
    assert isinstance(err.value, CodeError) and err.value.code == "SESSION_CONFIGURATION_ERROR"
    assert err.value.details["field"] == name


def test_bad_configurations(library: None, tmp_path: Path) -> None:
    for source in (str(tmp_path / "none.acl"), 'default_model = "script/main', 'default_model = "nobody/x"'):
        with pytest.raises(ConfigError):
            Agent.create(source)


def test_a_workspace_that_is_not_there(place: Place) -> None:
    with pytest.raises(CodeError) as err:
        place.agent("say x\nend").session(str(place.root / "none"))
    assert (err.value.code, err.value.details["field"]) == ("SESSION_CONFIGURATION_ERROR", "workspace")


def test_paths_follow_the_current_folder(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.agent("say x\nend").close()
    monkeypatch.chdir(place.root)
    with Agent.create("agent.acl") as agent:
        monkeypatch.chdir(place.workspace)
        options = SessionOptions()
        options.session_store = FileSessionStore("kept")
        options.workspace_backend = LocalWorkspaceBackend(".")
        with agent.session(".", options) as session:
            assert Path(session.workspace) == place.workspace.resolve()
            session.send("x")
            session.save()
    assert len(list((place.workspace / "kept" / "v1" / "sessions").glob("id_*.json"))) == 1


def test_the_environment_is_that_of_the_moment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPT_OF_TEST", "turns.txt")
    place.acl.write_text('default_model = "script/main"\nproviders "script" { models "main" { script = env("SCRIPT_OF_TEST") } }\n')
    assert place.session("say from env\nend").send("x").text == "from env"


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_save_and_resume(place: Place, kind: str) -> None:
    store = FileSessionStore(str(place.root / "store")) if kind == "file" else MemorySessionStore()
    session = place.session("say one\nend\nsay two\nend", session_store=store, tenant_id="t")
    session.send("first")
    session.save()
    history, runs, session_id, agent = session.history(), session.runs(), session.session_id, session._agent
    session.close()
    options = SessionOptions()
    options.session_store = store
    with agent.resume_session(session_id, options) as again:
        assert (again.session_id, again.history(), again.runs(), again.tenant_id) == (session_id, history, runs, "t")
        assert again.send("second").text == "two"
    with pytest.raises(SessionError):
        agent.resume_session("nobody", options)


def test_contextlib_closing(place: Place) -> None:
    with closing(place.agent("say x\nend")) as agent, closing(agent.session(str(place.workspace))) as session:
        assert session.send("x").text == "x"
    assert agent.is_closed


def test_stored_sessions_are_listed_unsaved(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("say hi\nend\n")
    config = f'default_model = "script/m" providers "script" {{ models "m" {{ script = "{tmp_path}/t.txt" }} }}'
    options = SessionOptions()
    options.session_store, options.session_id = FileSessionStore(str(tmp_path / "store")), "mine"
    with Agent.create(config) as agent:
        with agent.session(str(tmp_path), options) as session:
            session.send("hello")
        assert agent.list_sessions() == []
        assert agent.list_stored_sessions(options.session_store) == ["mine"]
        with pytest.raises(ValueError, match="session_store"):
            agent.list_stored_sessions()
