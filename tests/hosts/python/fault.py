"""FFI-02: faulthandler beside the library. usage: fault.py FOLDER before|after|repair"""

import ctypes
import faulthandler
import sys

from a3s_code import CodeError, _ffi

import host

when = sys.argv[2]
if when == "before":
    faulthandler.enable()
with host.open_agent() as agent, host.open_session(agent) as session:
    if when != "before":
        faulthandler.enable()
    if when == "repair":
        _ffi.library().signals_repair()
    print(session.send("go").text)
    if when != "after":  # a fault in the library is an error
        try:
            host.raw(session._handle, "test.nil")
        except CodeError as err:
            print(err.code)
    print(session.tool("bash", {"command": "exit 3"}).metadata["exit_code"])
del agent, session
print("open:", host.alive(), flush=True)
ctypes.string_at(0)  # a fault of the host
