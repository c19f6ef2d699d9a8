"""Finding, loading and refusing the native library; errors on their way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ctypes import byref
from pathlib import Path
from typing import Any, Callable

import pytest

from a3s_code import Agent, CodeError, LibraryError, SessionOptions, _ffi, _find
from a3s_code._agent import _agent_request
from a3s_code._generated import FUNCTIONS


def refused(call: Callable[[], Any]) -> CodeError:
    with pytest.raises(CodeError) as err:
        call()
    return err.value


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(_ffi, "_lib", None)
    monkeypatch.delenv("A3S_LIB", raising=False)
    return monkeypatch


def test_a_finalizer_hides_no_error(library: None) -> None:
    lib = _ffi.library()

    def failed(config: str) -> int:
        request = json.dumps({"source": config, "cwd": "/"}).encode()
        return lib.agent_open(request, len(request), byref(_ffi.Handle()))

    status = failed("strict = true\nmax_tool_ronds = 1")
    for stale in (12345, 12345, 54321):  # as the collector may do between any two lines
        _ffi.close_quietly(_ffi.Handle(stale))
    err = _ffi._last_error(lib, status)
    assert err.code == "CONFIG_ERROR" and "max_tool_ronds" in str(err)
    status = failed('default_model = "nowhere/none"')
    assert "nowhere" in str(_ffi._last_error(lib, status))
    _ffi.close_quietly(_ffi.Handle(54321))
    with pytest.raises(CodeError, match="0x3039"):  # 12345
        _ffi.close(_ffi.Handle(12345), 0)


def test_importing_loads_nothing(finish: Callable[..., str]) -> None:
    maps = "print([l for l in open('/proc/self/maps') if 'a3s.so' in l])"
    assert finish(f"import a3s_code, sys\nassert 'asyncio' not in sys.modules\na3s_code.EventType.values()\na3s_code.SessionOptions().to_wire()\n{maps}") == "[]\n"


def test_without_a_library_the_error_says_where_it_looked(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setattr(_find, "candidates", lambda: [str(tmp_path / "one"), str(tmp_path / "two")])
    err = refused(lambda: Agent.create("x"))
    assert err.code == "LIBRARY_NOT_FOUND"
    assert f"{tmp_path}/one\n  {tmp_path}/two" in str(err) and "./build.sh build" in str(err)


def test_a_named_library_is_the_only_one(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setenv("A3S_LIB", str(tmp_path))
    err = refused(lambda: Agent.create("x"))
    assert "A3S_LIB names no file" in str(err) and str(err).endswith(f"\n  {tmp_path}/liba3s.so.1")


def test_candidates_are_the_package_and_the_checkout(unloaded: pytest.MonkeyPatch) -> None:
    package = Path(_ffi.__file__).resolve().parent
    assert _find.candidates() == [str(package / "liba3s.so.1"), str(package.parents[2] / "build" / "liba3s.so.1")]


def test_musl_is_named(unloaded: pytest.MonkeyPatch) -> None:
    unloaded.setattr(os, "confstr", lambda name: None)
    assert "musl" in str(refused(lambda: Agent.create("x")))


def test_a_python_without_the_gil_is_told_what_to_do(unloaded: pytest.MonkeyPatch) -> None:
    unloaded.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert "-X gil=1" in str(refused(lambda: Agent.create("x")))
    unloaded.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    _find.check_python(0)


SUB = """
import sys
sys.path.insert(0, {path!r})
try:
    from a3s_code import Agent
    Agent.create("x")
except Exception as err:
    print(type(err).__name__, "sub-interpreter" in str(err) or "subinterpreter" in str(err), flush=True)
"""


@pytest.mark.parametrize("isolated", [True, False])
def test_a_sub_interpreter_is_refused_and_the_main_one_works(fake_path: str, finish: Callable[..., str], isolated: bool) -> None:
    out = finish(f"""
        try:
            import _interpreters as interpreters
            number, run = interpreters.create("isolated" if {isolated} else "legacy"), interpreters.exec
        except ImportError:
            import _xxsubinterpreters as interpreters
            number, run = interpreters.create(isolated={isolated}), interpreters.run_string
        run(number, {SUB.format(path=str(Path(_ffi.__file__).parents[1]))!r})
        interpreters.destroy(number)
        from a3s_code import Agent
        print([e.type for e in Agent.create("x").session(".").stream("events 0")])
    """, lib=fake_path)
    # Where even ctypes refuses to be imported there, it says so itself.
    assert out in (f"{kind} True\n['agent_end']\n" for kind in ("LibraryError", "ImportError"))


def test_a_library_error_is_an_error_of_this_package(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setenv("A3S_LIB", str(tmp_path))
    err = refused(lambda: Agent.create("x"))
    assert isinstance(err, LibraryError) and (err.op, err.kind, err.status) == ("library.load", "unsupported", -17)


def test_a_file_that_is_no_library(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "liba3s.so.1").write_text("no library")
    unloaded.setenv("A3S_LIB", str(tmp_path / "liba3s.so.1"))
    assert "cannot be loaded" in str(refused(lambda: Agent.create("x")))


def test_a_library_that_is_too_old(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "old.c").write_text("int a3s_abi_version(void) { return 0; }")
    old = tmp_path / "old.so"
    subprocess.run(["cc", "-shared", "-o", str(old), str(tmp_path / "old.c")], check=True)
    unloaded.setenv("A3S_LIB", str(old))
    assert "has no function a3s_abi_check" in str(refused(lambda: Agent.create("x")))


def test_another_abi_is_refused(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_ABI", "1")
    assert refused(lambda: Agent.create("x")).code == "ABI_MISMATCH"


def test_every_c_type_is_known() -> None:
    assert {t for _, result, params, _ in FUNCTIONS for t in (result, *params)} <= set(_ffi._TYPES)


def test_errors_of_the_library(fake: str) -> None:
    err = refused(lambda: Agent.create("broken"))
    assert (err.code, err.details, err.op) == ("CONFIG_ERROR", {"line": 3}, "agent.open")
    options = SessionOptions()
    options.planning_mode = "sometimes"
    with pytest.raises(ValueError, match="planning_mode"):
        Agent.create("x").session(".", options)


def test_a_failure_without_words(fake: str) -> None:
    session = Agent.create("x").session(".")
    assert "without an error text" in str(refused(lambda: session.stream("mute")))


@pytest.mark.parametrize("prompt, native", [
    ("\ud800", ValueError), ({"prompt": float("nan")}, ValueError), ({"prompt": b"bytes"}, TypeError), (3, TypeError), (None, TypeError)])
def test_requests_that_json_cannot_say(fake: str, prompt: Any, native: type) -> None:
    session = Agent.create("x").session(".")
    with pytest.raises(native) as err:
        session.send(prompt)
    assert getattr(err.value, "code") == "INVALID_REQUEST"


@pytest.mark.parametrize("source, key", [("agent.acl", "source"), ('default_model = "script/main"', "source"), (Path("agent"), "acl_path")])
def test_what_opens_an_agent(source: Any, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert _agent_request(source, {"A": "b", "BAD": "\udcff"}) == {key: str(source), "env": {"A": "b"}, "cwd": str(tmp_path)}
    with pytest.raises(TypeError, match="env must map str to str, found 3"):
        Agent.create("x", env={"A": 3})  # type: ignore[dict-item]
    monkeypatch.setenv("SEEN", "now")
    assert _agent_request(source, None)["env"]["SEEN"] == "now"
