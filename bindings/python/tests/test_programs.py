"""Whole programs: the examples, the guide, and processes that end in the middle."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

from conftest import HERE, Place

ROOT = HERE.parents[2]
EXAMPLES = ROOT / "examples" / "python"
EXAMPLE = EXAMPLES / "first_light.py"
GUIDE = HERE.parent / "README.md"
BLOCKS = re.findall(r"^##+ (.+?)$|^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S)

SCRIPTS = {
    "Your own tools": 'call weather {"city": "Kyoto"}\ncall count {"path": "a.txt"}\nend\nsay It is fine.\nend\n',
    "A permission checker": 'call write {"file_path": "plan.py", "content": "x"}\nend\nsay Done.\nend\n',
    "A workspace": 'call write {"file_path": "b.txt", "content": "x"}\nend\nsay Done.\nend\n',
    "A first program": 'call read {"file_path": "a.txt"}\nend\nsay In a.txt.\nend\n',
}
PRINTED = {
    "A first program": ["→ read", "In a.txt.", "completed"],
    "One answer, or every event": ["one", "LLM_ERROR False"],
    "asyncio": ["one", "two"],
    "Your own tools": ["It is fine."],
    "Any kind": ["one"],
    "A permission checker": ["only notes may be written"],
    "Background": ["one"],
    "A command": ["2 in script/main"],
    "A session store": ["4"],
    "A workspace": ["['a.txt', 'b.txt']"],
    "Log lines": ["warn context provider broken was left out: RuntimeError: not today"],
    "The HTTP of a provider": ["LLM error: the host's transport \"http\" failed: URLError: <urlopen error [Errno 111] Connection refused>"],
}


def guide() -> dict[str, str]:
    """The programs of the guide that are nowhere else."""
    title, found = "", {}
    quoted = {file.read_text() for file in EXAMPLES.glob("*.py")}
    for heading, code in BLOCKS:
        title = heading or title
        if code and code not in quoted:
            found[title] = code
    return found


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    return subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("title", guide())
def test_the_guide(place: Place, title: str) -> None:
    place.script.write_text(SCRIPTS.get(title, "say one\nend\nsay two\nend\n"))
    (place.root / "a.txt").write_text("hello\n")
    (place.root / "program.py").write_text(guide()[title])
    done = run("program.py", cwd=place.root)
    assert (done.stderr, done.returncode) == ("", 0)
    assert [line for line in PRINTED[title] if line not in done.stdout] == []


def test_the_guide_is_covered() -> None:
    assert set(guide()) == set(PRINTED)


@pytest.mark.parametrize("file", [f for f in sorted(EXAMPLES.glob("*.py")) if f != EXAMPLE], ids=lambda f: f.stem)
def test_the_guide_quotes_the_examples(file: Path) -> None:
    quote = f"[`{file.name}`](../../examples/python/{file.name}):\n\n```python\n{file.read_text()}```\n"
    assert quote in GUIDE.read_text(), f"bindings/python/README.md must quote examples/python/{file.name} as it is"


def test_the_example_with_a_model(place: Place) -> None:
    (place.workspace / "a.txt").write_text("hello\n")
    place.script.write_text('call read {"file_path": "a.txt"}\nend\nsay It says hello.\nend\n')
    done = run(str(EXAMPLE), "What is in a.txt?", "--workspace", "workspace", "--config", "agent.acl", cwd=place.root)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "→ read" in done.stdout and "It says hello." in done.stdout and "completed" in done.stdout
    assert len(list((place.workspace / ".a3s" / "sessions" / "v1" / "sessions").glob("id_*.json"))) == 1


def test_the_example_without_a_model(place: Place) -> None:
    (place.workspace / "settings.py").write_text("def parse_configuration():\n    pass\n")
    done = run(str(EXAMPLE), "Where is the configuration parsed?", cwd=place.workspace)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "no --config" in done.stdout and "settings.py" in done.stdout


def test_the_example_says_what_is_wrong(place: Place) -> None:
    done = run(str(EXAMPLE), "--config", "none.acl", cwd=place.root)
    assert done.returncode == 1 and done.stderr.startswith("CONFIG_ERROR: ")


def test_the_end_of_the_interpreter_with_everything_open(place: Place, finish: Callable[..., str]) -> None:
    place.script.write_text("say a\nwait 60000\nend\n")
    assert finish("""
        import contextlib, sys, threading, time
        from a3s_code import Agent, CodeError
        def quietly(call):
            with contextlib.suppress(CodeError):
                call()
        agent = Agent.create(sys.argv[1])
        session = agent.session(sys.argv[2])
        @session.register_tool
        def hang():
            "Hangs."
            time.sleep(60)
        threading.Thread(target=quietly, args=(lambda: session.tool("hang"),), daemon=True).start()
        stream = session.stream("go")
        next(stream)
        threading.Thread(target=quietly, args=(lambda: list(stream),), daemon=True).start()
        time.sleep(0.2)
        print("end")
    """, str(place.acl), str(place.workspace)) == "end\n"


@pytest.mark.parametrize("call", ['session.send("go")', 'list(session.stream("go"))', 'session.bash("sleep 60")'])
def test_ctrl_c(place: Place, program: Callable[..., "subprocess.Popen[str]"], call: str) -> None:
    place.script.write_text("say a\nwait 60000\nend\nsay b\nend\n")
    child = program(f"""
        import sys, time
        from a3s_code import Agent
        with Agent.create(sys.argv[1]) as agent, agent.session(sys.argv[2]) as session:
            session.history()
            print("ready", flush=True)
            try:
                {call}
            except KeyboardInterrupt:
                print("interrupted", session.cancel() or True)
    """, str(place.acl), str(place.workspace))
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    try:
        child.wait(0.3)
    except subprocess.TimeoutExpired:
        pass
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=5)
    assert (out, err, child.returncode) == ("interrupted True\n", "", 0)


def test_a_forked_child_of_a_program_with_runs(place: Place, finish: Callable[..., str]) -> None:
    place.script.write_text("say a\nend\n")
    assert finish("""
        import multiprocessing, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from a3s_code import Agent, Forked
        agent = Agent.create(sys.argv[1])
        session = agent.session(sys.argv[2])
        session.send("x")
        def work(n):
            try:
                session.send("x")
            except Forked as err:
                return err.code
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4)))
        print(session.runs()[0]["status"])
    """, str(place.acl), str(place.workspace)) == "['FORKED', 'FORKED', 'FORKED', 'FORKED']\ncompleted\n"
