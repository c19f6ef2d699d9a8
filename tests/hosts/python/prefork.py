"""FFI-01, FFI-10: a server that forks its workers before or after the library is loaded.

usage: prefork.py FOLDER unloaded|loaded|busy|spawn
"""

import contextlib
import gc
import multiprocessing
import os
import sys
import threading
import warnings

from a3s_code import Forked

import host

warnings.simplefilter("ignore", DeprecationWarning)


def serve(_: int = 0) -> str:
    with host.open_agent() as agent, host.open_session(agent) as session:
        return session.send("go").text


def refused(_: int = 0) -> str:
    """Every way to the library says the same, and so does a new agent; closing says nothing else."""
    told = set()
    for call in (lambda: session.send("go"), lambda: list(session.stream("go")), lambda: session.tool("here", {}), serve):
        try:
            call()
            told.add("it worked")
        except Forked as err:
            told.add(err.code if "spawn" in str(err) else str(err))
    for close in (session.close, agent.close):
        with contextlib.suppress(Forked):
            close()
    return str(told)


def fork(work) -> str:
    """What a child says that ends as a program ends: with its exit handlers and finalizers."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            os.write(writing, work().encode())
        finally:
            os.close(writing)
            sys.exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return f"{text} {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}"


if __name__ == "__main__":
    mode = sys.argv[2]
    master = os.getpid()
    if mode == "unloaded":
        print([fork(serve) for _ in range(3)])
    else:
        agent = host.open_agent()
        session = host.open_session(agent)

        @session.register_tool
        def here() -> str:
            """Says who runs it."""
            return "master" if os.getpid() == master else "a child"

        session.send("go")
    if mode == "loaded":
        print([fork(refused) for _ in range(3)])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(refused, range(4)))
    if mode == "busy":
        stop = threading.Event()

        def load() -> None:
            while not stop.is_set():
                serve()
                session.tool("here", {})

        busy = [threading.Thread(target=load) for _ in range(3)]
        for thread in busy:
            thread.start()
        print({fork(refused) for _ in range(10)})
        stop.set()
        for thread in busy:
            thread.join()
    if mode == "spawn":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(pool.map(serve, range(4)))
    if mode != "unloaded":
        print(session.tool("here", {}).output)
        agent.close()
        del agent, session
        gc.collect()
    print(serve(), host.alive())
