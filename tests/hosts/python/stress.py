"""FFI-06: the collector of Python runs at every turn while tools, streams and agents come and go."""

import gc
import signal
import subprocess
import sys
import threading

import host

gc.set_threshold(1, 1, 1)
signals = 0


def on_signal(*_: object) -> None:
    global signals
    signals += 1


for number in (signal.SIGCHLD, signal.SIGALRM):
    signal.signal(number, on_signal)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)

wrong: list[str] = []


def one(name: int) -> None:
    for turn in range(4):
        agent = host.open_agent("tools.acl")
        session = host.open_session(agent)

        @session.register_tool(name="who")
        def who(n: int) -> str:
            """Says whose it is."""
            gc.collect(0)
            return f"{name}-{turn}-{n}"

        del who
        outputs = [e.tool_output for e in session.stream("go") if e.type == "tool_end"]
        if outputs != [f"{name}-{turn}-{n}" for n in range(3)]:
            wrong.append(str(outputs))
        stream = session.stream("go on")  # left in the middle, with all that belongs to it
        next(iter(stream), None)
        if turn % 2:
            agent.close()
        del stream, session, agent


def spawn() -> None:
    for _ in range(20):
        if subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode != 3:
            wrong.append("the end of a child was lost")


threads = [threading.Thread(target=one, args=(n,)) for n in range(4)] + [threading.Thread(target=spawn)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
gc.collect()
print(wrong, signals > 0, host.alive())
