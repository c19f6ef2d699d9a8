"""How the library reaches a program in Python: wake-ups, and requests that it answers."""

import asyncio
import ctypes
import json
import os
import select
import socket
import time

import bench
from a3s_code import Agent, _ffi
from a3s_code._stream import EventStream


def wake(directory, n, pacer):
    """From handing in a piece of tool output on a thread of C to the event in a for, and in an
    async for; from waking the stream to reading it; and from a write to a socket."""
    lib = ctypes.CDLL(pacer)
    lib.pacer_start.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    lib.pacer_wake.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    stamps = (ctypes.c_int64 * n)()

    def start(agent, control, name):
        session = agent.session(os.path.join(directory, "workspace"), bench.unmerged(False, name))
        stream = EventStream(session, _ffi.run_start(session._handle, b'{"prompt": "go on"}'))
        while True:
            for frame in json.loads(control.read(1000) or "[]"):
                if frame["type"] == "host_request":
                    lib.pacer_start(agent._handle, frame["payload"]["request"], n, 1000, stamps)
                    return stream

    def note(event, late, now):
        if event.type == "tool_output_delta":
            late.append((now - stamps[int(event.text[:-1])]) / 1e9)

    async def follow(stream, late):
        async for event in stream:
            note(event, late, time.monotonic_ns())

    def bare(session):
        """A wake of the stream, heard in the ways of for and async for."""
        reader = _ffi.Reader(_ffi.stream_open(session._handle))
        fd, late = _ffi.stream_fd(reader.stream), []

        def woken():
            if reader.read() == "":
                late.append((time.monotonic_ns() - stamps[len(late)]) / 1e9)
                reader.read()  # nothing more: lets the descriptor rest
                lib.pacer_seen()

        poll = select.poll()
        poll.register(fd, select.POLLIN)
        lib.pacer_wake(reader.stream, n, 1000, stamps)
        while len(late) < n:
            if poll.poll(100):
                woken()
        lib.pacer_join()
        bench.quantiles("bare_sync", late)
        late.clear()

        async def in_loop():
            loop, end = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(fd, lambda: woken() or len(late) == n and end.set())
            lib.pacer_wake(reader.stream, n, 1000, stamps)
            await end.wait()
            loop.remove_reader(fd)

        asyncio.run(in_loop())
        lib.pacer_join()
        bench.quantiles("bare_async", late)
        _ffi.close_quietly(reader.stream)

    def heard(mine, late):
        """One read; False at the end."""
        data, now = os.read(mine.fileno(), 4096), time.monotonic_ns()
        late += [(now - stamps[int.from_bytes(data[i:i + 4], "little")]) / 1e9 for i in range(0, len(data), 4)]
        return data != b""

    def plain(late):
        mine, other = socket.socketpair()
        lib.pacer_write(other.detach(), n, 1000, stamps)
        poll = select.poll()
        poll.register(mine, select.POLLIN)
        while poll.poll() and heard(mine, late):
            pass
        mine.close()

    async def in_loop(late):
        mine, other = socket.socketpair()
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(mine, lambda: heard(mine, late) or end.set())
        lib.pacer_write(other.detach(), n, 1000, stamps)
        await end.wait()
        loop.remove_reader(mine)
        mine.close()

    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        control = _ffi.Reader(_ffi.stream_open(agent._handle))
        _ffi.host_register(agent._handle, b"tool", b'{"name": "pace", "description": "Paces.", "read_only": true}')
        late = []
        for event in start(agent, control, "for"):
            note(event, late, time.monotonic_ns())
        lib.pacer_join()
        bench.quantiles("sync", late)
        late = []
        asyncio.run(follow(start(agent, control, "async-for"), late))
        lib.pacer_join()
        bench.quantiles("async", late)
        bare(agent.session(os.path.join(directory, "workspace")))

    late = []
    plain(late)
    lib.pacer_join()
    bench.quantiles("floor_sync", late)
    late = []
    asyncio.run(in_loop(late))
    lib.pacer_join()
    bench.quantiles("floor_async", late)


def host(directory, n):
    """n runs of calls of a tool of this program: the time from one call to the next."""
    at, each = [], []

    def noted(run):
        if run:  # the first one warms up
            each.extend(b - a for a, b in zip(at, at[1:]))
        at.clear()

    def tick(n: int = 0) -> str:
        at.append(time.perf_counter())
        return "ticked"

    async def tick_async(n: int = 0) -> str:
        at.append(time.perf_counter())
        return "ticked"

    def open_session(agent):
        return agent.session(os.path.join(directory, "workspace"), bench.unmerged(False))

    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        agent.register_tool(tick, name="tick", description="Ticks.", read_only=True)
        for run in range(n + 1):
            with open_session(agent) as session:
                session.send("go on")
            noted(run)
    bench.quantiles("sync", each)
    each.clear()

    async def all_runs():
        with Agent.create(os.path.join(directory, "agent.acl")) as agent:
            agent.register_tool(tick_async, name="tick", description="Ticks.", read_only=True)
            for run in range(n + 1):
                with open_session(agent) as session:
                    await session.send_async("go on")
                noted(run)

    asyncio.run(all_runs())
    bench.quantiles("async", each)
