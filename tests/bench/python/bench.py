"""The figures of the Python binding. usage: bench.py PART DIR N [PACER]

DIR holds agent.acl and workspace/. Prints lines "name value ...", values in
seconds, bytes or events a second.
"""

import sys
import time

BEGAN = time.perf_counter()

import os  # what the binding itself needs must not be imported before it is measured


def quantiles(name, values):
    values = sorted(values)
    print(name, values[len(values) // 2], values[len(values) * 99 // 100])


def median(values):
    return sorted(values)[len(values) // 2]


def status(name):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def unmerged(events, name=None):
    """Options under which every delta is an event of its own and, if asked, all are kept."""
    import a3s_code
    o = a3s_code.SessionOptions()
    o.session_id = name
    o.planning_mode = "disabled"
    o.permission_policy = a3s_code.PermissionPolicy(default_decision="allow")
    if events:
        o.retention_limits = {"unbounded": True}
    o.host_env = a3s_code.HostEnvConfig(sequential_id_prefix="run-0190a3f0-0000-7000-8000-000000000")
    return o


def load(directory, n):
    """A cold process up to its first session."""
    from a3s_code import Agent, _ffi
    imported = time.perf_counter()
    rss, threads = status("VmRSS"), status("Threads")
    began = time.perf_counter()
    _ffi.stats()
    called = time.perf_counter()
    print("load", called - began)
    print("loaded", (status("VmRSS") - rss) * 1024, status("Threads") - threads)
    counted = time.perf_counter()
    agent = Agent.create(os.path.join(directory, "agent.acl"))
    created = time.perf_counter()
    session = agent.session(os.path.join(directory, "workspace"))
    opened = time.perf_counter()
    parts = imported - BEGAN, called - began, created - counted, opened - created
    print("whole", sum(parts))
    print("parts", *parts)
    if n:
        import resource
        used = resource.getrusage(resource.RUSAGE_SELF)
        time.sleep(n)
        now = resource.getrusage(resource.RUSAGE_SELF)
        print("idle_cpu", (now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime) / n)
    session.close()
    agent.close()


def first(directory, n):
    """The first event of a process that began a moment ago."""
    from a3s_code import Agent
    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        for _ in agent.session(os.path.join(directory, "workspace")).stream("go on"):
            print("first", flush=True)
            break


def memory(directory, n):
    """What n further sessions take, before and after a short run each."""
    import gc
    from a3s_code import Agent

    def resident():
        gc.collect()
        return status("VmRSS") * 1024

    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        opened = [agent.session(os.path.join(directory, "workspace"))]
        opened[0].send("go on")
        before = resident()
        opened += [agent.session(os.path.join(directory, "workspace")) for _ in range(n)]
        print("fresh", (resident() - before) / n)
        for session in opened[1:]:
            session.send("go on")
        print("used", (resident() - before) / n)


class Finished:
    """A run that has ended and whose stream may be read again and again."""

    def __init__(self, agent, directory, options):
        import ctypes
        from a3s_code import _ffi
        self.session = agent.session(os.path.join(directory, "workspace"), options)
        self.run = _ffi.run_start(self.session._handle, b'{"prompt": "go on"}')
        buf = _ffi._Buf()
        lib = _ffi.library()
        if lib.run_wait(self.run, -1, ctypes.byref(buf)) < 0:
            raise SystemExit("the run failed")
        _ffi._take(lib, buf)

    def stream(self):
        """The binding's own stream of the run, without its end taking the run's handle along."""
        from a3s_code import _ffi
        from a3s_code._stream import EventStream
        stream = EventStream(self.session, self.run)
        stream._finalizer.detach()
        stream._finalizer = _Finalizer(stream._stream, _ffi)
        return stream


class _Finalizer:
    def __init__(self, stream, ffi):
        self._close = lambda: ffi.close_quietly(stream)
        self.alive = True

    def __call__(self):
        if self.alive:
            self.alive = False
            self._close()


def raw(run, n, use):
    """All batches as bytes objects, as thin as ctypes allows; use gets each."""
    import ctypes
    from a3s_code import _ffi
    lib, stream = _ffi.library(), _ffi.stream_open(run.run)
    cap = 128 << 10
    buf = ctypes.create_string_buffer(cap)
    addr, needed = ctypes.addressof(buf), ctypes.c_size_t()
    ref, read, string_at = ctypes.byref(needed), lib.stream_next, ctypes.string_at
    begin = time.perf_counter()
    while (got := read(stream, -1, 256, addr, cap, ref)) > 0:
        use(string_at(addr, got))
    took = time.perf_counter() - begin  # the terminal event is larger than the buffer
    _ffi.close_quietly(stream)
    return n / took


def parsed(run, n):
    """Type and text of every event; the clock stops at the last delta."""
    begin, seen, length = time.perf_counter(), 0, 0
    for event in run.stream():
        if event.type == "text_delta":
            length += len(event.text)
            seen += 1
            if seen == n:
                took = time.perf_counter() - begin
    assert length > n
    return n / took


async def parsed_async(run, n):
    begin, seen, length = time.perf_counter(), 0, 0
    async for event in run.stream():
        if event.type == "text_delta":
            length += len(event.text)
            seen += 1
            if seen == n:
                took = time.perf_counter() - begin
    assert length > n
    return n / took


def deliver(directory, n):
    import asyncio
    import json
    from a3s_code import Agent
    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        run = Finished(agent, directory, unmerged(True))
        print("raw", median([raw(run, n, len) for _ in range(3)]))
        print("floor", median([raw(run, n, json.loads) for _ in range(3)]))
        print("sync", median([parsed(run, n) for _ in range(3)]))
        print("async", median([asyncio.run(parsed_async(run, n)) for _ in range(3)]))


def many(directory, n):
    """100 sessions at once, n events each, in one loop."""
    import asyncio
    from a3s_code import Agent

    async def all_of(runs):
        await asyncio.gather(*(parsed_async(run, n) for run in runs))

    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        runs = [Finished(agent, directory, unmerged(True, f"many-{i:031}")) for i in range(100)]
        rates = []
        for _ in range(3):
            begin = time.perf_counter()
            asyncio.run(all_of(runs))
            rates.append(100 * n / (time.perf_counter() - begin))
        print("many", median(rates))


def call(directory, n, pacer):
    import ctypes
    from a3s_code import Agent, _ffi
    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        session = agent.session(os.path.join(directory, "workspace"))
        lib, handle = _ffi.library(), session._handle
        stream = _ffi.stream_open(handle)

        def per_call(name, times, fn, *args):
            each = []
            for _ in range(21):
                begin = time.perf_counter()
                for _ in range(times):
                    fn(*args)
                each.append((time.perf_counter() - begin) / times)
            quantiles(name, each)

        nothing = ctypes.PyDLL(pacer).pacer_nothing
        nothing.restype, nothing.argtypes = ctypes.c_int32, (ctypes.c_uint64,)
        per_call("empty", n, nothing, stream)
        per_call("abi_version", n, lib.abi_version)
        per_call("stream_wake", n, lib.stream_wake, stream)
        per_call("session_info", n // 10, _ffi.call, handle, b"session.info", b"{}")


def wake(directory, n, pacer):
    """From handing in a piece of tool output on a thread of C to the event in a for, and in an
    async for; and from a write of that thread to a socket."""
    import asyncio
    import ctypes
    import json
    import select
    import socket
    from a3s_code import Agent, _ffi
    from a3s_code._stream import EventStream
    lib = ctypes.CDLL(pacer)
    lib.pacer_start.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    stamps = (ctypes.c_int64 * n)()

    def start(agent, control, name):
        session = agent.session(os.path.join(directory, "workspace"), unmerged(False, name))
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

    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        control = _ffi.Reader(_ffi.stream_open(agent._handle))
        _ffi.host_register(agent._handle, b"tool", b'{"name": "pace", "description": "Paces.", "read_only": true}')
        late = []
        for event in start(agent, control, "for"):
            note(event, late, time.monotonic_ns())
        lib.pacer_join()
        quantiles("sync", late)
        late = []
        asyncio.run(follow(start(agent, control, "async-for"), late))
        lib.pacer_join()
        quantiles("async", late)

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
        while poll.poll(100) is not None and heard(mine, late):
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

    late = []
    plain(late)
    lib.pacer_join()
    quantiles("floor_sync", late)
    late = []
    asyncio.run(in_loop(late))
    lib.pacer_join()
    quantiles("floor_async", late)


def host(directory, n):
    """n runs of calls of a tool of this program: the time from one call to the next."""
    import asyncio
    from a3s_code import Agent
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
        return agent.session(os.path.join(directory, "workspace"), unmerged(False))

    with Agent.create(os.path.join(directory, "agent.acl")) as agent:
        agent.register_tool(tick, name="tick", description="Ticks.", read_only=True)
        for run in range(n + 1):
            with open_session(agent) as session:
                session.send("go on")
            noted(run)
    quantiles("sync", each)
    each.clear()

    async def all_runs():
        with Agent.create(os.path.join(directory, "agent.acl")) as agent:
            agent.register_tool(tick_async, name="tick", description="Ticks.", read_only=True)
            for run in range(n + 1):
                with open_session(agent) as session:
                    await session.send_async("go on")
                noted(run)

    asyncio.run(all_runs())
    quantiles("async", each)


if __name__ == "__main__":
    what, where, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    globals()[what](where, number, *sys.argv[4:])
