"""Ctrl-C, fork and the end of the interpreter, in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Callable

import pytest

Start = Callable[..., "subprocess.Popen[str]"]

BLOCKED = {
    "send": 'session.send("idle")',
    "for": 'list(session.stream("idle"))',
    "save": "session.save()",
    "tool": 'session.bash("sleep 100")',
    "create": 'Agent.create("slow")',
    "async for": 'asyncio.run(collect())',
}


@pytest.mark.parametrize("call", BLOCKED.values(), ids=BLOCKED.keys())
def test_ctrl_c_interrupts(fake_path: str, program: Start, call: str) -> None:
    child = program(f"""
        import asyncio, time
        from a3s_code import Agent
        session = Agent.create("x").session(".")
        async def collect():
            return [e async for e in session.stream("idle")]
        print("ready", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print(time.monotonic())
    """, lib=fake_path)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    time.sleep(0.15)
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert err == "" and float(out) - sent < 0.25  # 0.1, and room for a busy machine


def test_a_forked_child_gets_an_error_at_once(fake_path: str, finish: Callable[..., str]) -> None:
    out = finish("""
        import asyncio, multiprocessing, os, time
        from a3s_code import Agent
        agent = Agent.create("x")
        session = agent.session(".")
        stream = session.stream("events 5")
        next(stream)
        tried = {
            "create": lambda: Agent.create("x"), "session": lambda: agent.session("."), "send": lambda: session.send("x"),
            "stream": lambda: next(stream) and list(stream), "runs": session.runs, "close": agent.close, "session close": session.close,
            "async": lambda: asyncio.run(session.save_async()), "list": agent.list_sessions,
        }
        def work(name):
            began = time.monotonic()
            try:
                tried[name]()
            except RuntimeError as err:
                return name, err.code, time.monotonic() - began < 0.5
            return name, None, True
        stream._batch = iter(())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for answer in pool.map(work, tried):
                print(*answer)
        pid = os.fork()
        if pid == 0:
            assert session.is_closed and agent.is_closed
            stream.close()
            del stream, session, agent
            raise SystemExit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        agent.close()
    """, lib=fake_path)
    *rows, code = out.splitlines()
    assert [row.split()[-2:] for row in rows] == [["FORKED", "True"]] * 9
    assert code == "7"


def test_a_child_may_load_the_library_itself(fake_path: str, finish: Callable[..., str]) -> None:
    assert finish("""
        import os
        import a3s_code
        pid = os.fork()
        if pid == 0:
            print(a3s_code.Agent.create("x").session(".").send("events 1"), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """, lib=fake_path) == "done\n"


def test_the_interpreter_ends_cleanly_with_everything_open(fake_path: str, finish: Callable[..., str]) -> None:
    assert finish("""
        import threading, time
        from a3s_code import Agent
        agent = Agent.create("x")
        session = agent.session(".")
        @session.register_tool
        def hello(): "Says hello."
        stream = session.stream("idle")
        threading.Thread(target=lambda: list(stream), daemon=True).start()
        time.sleep(0.1)
        print("end")
    """, lib=fake_path) == "end\n"
