"""FFI-08: many agents in one process, each with its own everything.

usage: many.py FOLDER COUNT. Agent N lives in FOLDER/agents/N; it is opened with that as
its current folder and with relative paths alone. Prints what is wrong.
"""

import json
import os
import sys
import threading
from pathlib import Path

from a3s_code import _ffi

import host

COUNT = int(sys.argv[2])
gate = threading.Barrier(COUNT)
everybody_ran = threading.Barrier(COUNT)
wrong: list[str] = []


def key(n: int) -> str:
    return f"sk-secret-of-agent-{n:03d}"


def same(n: int, what: str, got: object, want: object) -> None:
    if got != want:
        wrong.append(f"agent {n}: {what} is {got!r}, want {want!r}")


def one(n: int) -> None:
    home, other = Path(host.FOLDER, "agents", str(n)), (n + 1) % COUNT
    verbose = n % 2 == 0
    gate.wait()
    agent = _ffi.agent_open(json.dumps({
        "acl_path": "agent.acl", "cwd": str(home), "log_level": "warn" if verbose else "error",
        "env": {"PATH": "/usr/bin:/bin", "THE_KEY": key(n)}}).encode())
    session = _ffi.session_open(agent, json.dumps({"workspace": "workspace", "options": {
        "session_id": f"session-{n}", "session_store": {"kind": "file", "dir": "store"},
        "permission_policy": {"default_decision": "allow"}}}).encode())
    result = host.raw(session, "session.send", prompt=f"I am {n}")
    same(n, "answer", result["text"], f"mine [REDACTED] theirs {key(other)}")

    traces = json.dumps(host.raw(session, "session.history"))
    same(n, "tool output with its own file and folder", f"file of {n} in {home}/workspace" in traces, True)
    same(n, "history with its key", key(n) in traces, False)
    everybody_ran.wait()

    same(n, "open sessions", host.raw(agent, "agent.list_sessions")["session_ids"], [f"session-{n}"])
    host.raw(session, "session.save")
    kept = host.raw(agent, "agent.list_stored_sessions", session_store={"kind": "file", "dir": "store"})
    same(n, "kept sessions", kept["session_ids"], [f"session-{n}"])
    log, lines = _ffi.Reader(_ffi.stream_open(agent)), []
    while text := log.read():
        lines += [e["payload"]["message"] for e in json.loads(text) if e["type"] == "log"]
    same(n, "log", [f"no_such_key_{n}" in line for line in lines], [True] if verbose else [])

    for path in home.joinpath("store").rglob("*"):
        if path.is_file() and key(n).encode() in path.read_bytes():
            wrong.append(f"agent {n}: its key is in {path}")
    if os.listdir(home / "workspace") != ["own.txt"]:
        wrong.append(f"agent {n}: its workspace holds {os.listdir(home / 'workspace')}")
    _ffi.close(agent, -1)


def safely(n: int) -> None:
    try:
        one(n)
    except Exception as err:  # told with the rest
        wrong.append(f"agent {n}: {err!r}")
        gate.abort()
        everybody_ran.abort()


threads = [threading.Thread(target=safely, args=(n,)) for n in range(COUNT)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(wrong) or "nothing wrong", host.alive())
