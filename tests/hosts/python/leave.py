"""The interpreter ends in the middle of everything. usage: leave.py FOLDER MS return|exit|raise"""

import contextlib
import sys
import threading
import time

import host


def forever(work) -> None:
    while True:
        with contextlib.suppress(Exception):
            work()


def streams() -> None:
    with host.open_agent() as agent, host.open_session(agent) as session:
        for _ in session.stream("go"):
            pass


def tools() -> None:
    session = host.open_session(host.open_agent("tools.acl"))

    @session.register_tool(name="who")
    def who(n: int) -> str:
        """Takes its time."""
        time.sleep(0.01)
        return "x"

    session.send("go")
    session.bash("sleep 0.01")


for target in (streams, tools, streams, tools):
    threading.Thread(target=forever, args=(target,), daemon=True).start()
time.sleep(int(sys.argv[2]) / 1000)
print("end", flush=True)
if sys.argv[3] == "exit":
    sys.exit(0)
if sys.argv[3] == "raise":
    raise SystemExit(0)
