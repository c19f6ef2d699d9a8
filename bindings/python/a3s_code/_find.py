"""Where the native library may be, and which Pythons it can be loaded into."""

from __future__ import annotations

import os
import sys

from ._errors import CodeError, error_from

SONAME = "liba3s.so.1"


def missing(message: str) -> CodeError:
    """The error of a library that cannot be loaded."""
    return error_from({"code": "LIBRARY_NOT_FOUND", "kind": "unsupported", "status": -17, "op": "library.load", "message": message})


def check_python(interpreter: int) -> None:
    """Refuses the Pythons that the library cannot be loaded into.

    Args:
        interpreter: number of the interpreter in its process.

    Raises:
        CodeError: LIBRARY_NOT_FOUND with what to do instead.
    """
    if _is_musl():
        raise missing(
            "this Python is linked with musl, which cannot load the library (it needs glibc 2.34 or newer): "
            "use a glibc based image, such as python:3-slim instead of python:3-alpine")
    if interpreter != 0:
        raise missing(
            "a3s_code works in the main interpreter of a process only, not in a sub-interpreter: its threads would outlive it. "
            "Use a thread or a process instead; under mod_wsgi set WSGIApplicationGroup %{GLOBAL}")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise missing(
            "this free-threaded Python runs without the GIL, which a3s_code does not support yet: start it with -X gil=1 or PYTHON_GIL=1")


def library_path() -> str:
    """The path of the library.

    Raises:
        CodeError: LIBRARY_NOT_FOUND with the places that were looked at.
    """
    looked = candidates()
    path = next((p for p in looked if os.path.isfile(p)), None)
    if path is None:
        places = "\n  ".join(looked)
        hint = "A3S_LIB names no file" if os.environ.get("A3S_LIB") else "install the a3s-code wheel, set A3S_LIB, or run ./build.sh build"
        raise missing(f"the native library was not found ({hint}); looked for:\n  {places}")
    return path


def candidates() -> list[str]:
    """A3S_LIB alone if it is set, else this package, else a checkout's build/."""
    named = os.environ.get("A3S_LIB")
    if named:
        return [os.path.join(named, SONAME) if os.path.isdir(named) else named]
    here = os.path.dirname(os.path.realpath(__file__))
    found = [os.path.join(here, SONAME)]
    root = os.path.realpath(os.path.join(here, "..", "..", ".."))
    if os.path.isfile(os.path.join(root, "go.mod")):
        found.append(os.path.join(root, "build", SONAME))
    return found


def _is_musl() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        return not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return True
