"""Fixtures: the real library, a stand-in for what it does not do on demand, and programs of their own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from a3s_code import Agent, Session, SessionOptions, _ffi  # noqa: E402


@pytest.fixture(scope="session")
def fake_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The stand-in, compiled."""
    out = tmp_path_factory.mktemp("fake") / "liba3s.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(out), str(HERE / "fakelib.c")], check=True)
    return str(out)


@pytest.fixture
def fake(fake_path: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The stand-in in the library's place for one test."""
    gc.collect()
    monkeypatch.setenv("A3S_LIB", fake_path)
    monkeypatch.setattr(_ffi, "_lib", None)
    yield fake_path
    gc.collect()


@pytest.fixture
def library() -> None:
    """The real library; without one the test fails: run ./build.sh build."""
    _ffi.library()


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Starts a Python program in a process of its own, with this package on its path."""

    def start(code: str, *args: str, lib: str | None = None) -> "subprocess.Popen[str]":
        file = tmp_path / "program.py"
        file.write_text(textwrap.dedent(code))
        env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        if lib:
            env["A3S_LIB"] = lib
        return subprocess.Popen(
            [sys.executable, "-X", "faulthandler", str(file), *args], cwd=tmp_path, env=env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_hears_ctrl_c)

    return start


def _hears_ctrl_c() -> None:
    """A job in the background of a shell ignores it, and so would the programs under test."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def finish(program: Callable[..., "subprocess.Popen[str]"]) -> Callable[..., str]:
    """Runs a program to its end, which must be clean, and gives what it printed."""

    def run(code: str, *args: str, lib: str | None = None) -> str:
        out, err = program(code, *args, lib=lib).communicate(timeout=60)
        assert err == ""
        return out

    return run


# A model that hangs in its first turn and answers in its second.
SLOW = "say starting\nwait 60000\nsay never\nend\nsay after\nend"


class Place:
    """A workspace, a script for the model, and an agent that reads it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.workspace.mkdir()
        self.acl = root / "agent.acl"
        self.script = root / "turns.txt"
        self.acl.write_text('default_model = "script/main"\nproviders "script" { models "main" { script = "turns.txt" } }\n')
        self.open: list[Agent] = []

    def agent(self, script: str) -> Agent:
        """An agent whose model plays a script."""
        self.script.write_text(textwrap.dedent(script).strip() + "\n")
        agent = Agent.create(str(self.acl))
        self.open.append(agent)
        return agent

    def session(self, script: str, **options: Any) -> Session:
        """A session of such an agent."""
        return opened(self, self.agent(script), **options)


@pytest.fixture
def place(library: None, tmp_path: Path) -> Iterator[Place]:
    """A workspace with a scripted model. Afterwards no handle may be alive."""
    here = Place(tmp_path)
    yield here
    while here.open:
        here.open.pop().close()
    gc.collect()
    until = time.monotonic() + 5
    while alive() and time.monotonic() < until:
        time.sleep(0.005)
    assert alive() == {}


@pytest.fixture
def host(place: Place) -> Place:
    """A place whose agent uses the model of this program."""
    place.acl.write_text('default_model = "host/mine"\n')
    return place


def opened(place: Place, agent: Agent, **options: Any) -> Session:
    """A session of an agent in a place."""
    wanted = SessionOptions()
    for name, value in options.items():
        setattr(wanted, name, value)
    return agent.session(str(place.workspace), wanted)


def limit(name: str, ms: int = 100) -> int:
    """Milliseconds for a request: few for what hangs, enough on any machine for the rest."""
    return ms if "hangs" in name else 20_000


def until(what: Callable[[], Any]) -> None:
    """Waits for something that happens in another thread."""
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def alive() -> dict[str, int]:
    """What the library says is still there; collected objects go in the background."""
    counts = _ffi.stats()
    found: dict[str, int] = {k: v for k, v in {**counts, **counts["handles"]}.items() if isinstance(v, int) and v}
    return {k: v for k, v in found.items() if k not in ("goroutines", "heap_bytes")}
