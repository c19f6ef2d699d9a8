"""What the programs of this folder share."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from a3s_code import Agent, PermissionPolicy, Session, SessionOptions, _ffi

FOLDER = sys.argv[1]
WORKSPACE = os.path.join(FOLDER, "workspace")


def open_agent(acl: str = "agent.acl") -> Agent:
    return Agent.create(os.path.join(FOLDER, acl), env={"PATH": "/usr/bin:/bin"})


def open_session(agent: Agent) -> Session:
    options = SessionOptions()
    options.permission_policy = PermissionPolicy(default_decision="allow")
    return agent.session(WORKSPACE, options)


def alive() -> dict[str, int]:
    """What the library says is alive, when the background has had its time."""
    until = time.monotonic() + 10
    while True:
        counts = _ffi.stats()
        left = {k: v for k, v in {**counts["handles"], "calls": counts["calls"], "callbacks": counts["callbacks"], "closing": counts["closing"]}.items() if v}
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.005)


def raw(handle: int, method: str, **params: Any) -> Any:
    """An operation by its name."""
    return json.loads(_ffi.call(handle, method.encode(), json.dumps(params).encode()))
