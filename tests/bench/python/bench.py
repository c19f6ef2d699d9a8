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


if __name__ == "__main__":
    what, where, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what in ("wake", "host"):
        import late
        getattr(late, what)(where, number, *sys.argv[4:])
    else:
        globals()[what](where, number, *sys.argv[4:])
