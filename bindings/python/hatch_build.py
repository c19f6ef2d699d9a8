"""Build hook: the native library goes into the wheel, which then fits one platform and every Python."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SONAME = "liba3s.so.1"

_NO_LIBRARY = """
{library} is not there. The library is written in Go, and this package of Python sources does not
hold it. Wheels do, for glibc Linux: this Python has none to take, or was told not to (musl, as in
Alpine, cannot load the library). To build it, in a checkout of https://github.com/a3s-lab/liba3s:
./build.sh build, then A3S_LIB=/the/checkout/build/liba3s.so.1 pip install a3s-code"""


class NativeLibrary(BuildHookInterface[Any]):
    """Takes the library from A3S_LIB, or from the build folder of the checkout."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the library and the tag; an editable install uses the checkout's library as it is."""
        if version == "editable":
            return
        library = Path(os.environ.get("A3S_LIB") or Path(self.root, "../../build", SONAME)).resolve()
        if not library.is_file():
            raise FileNotFoundError(_NO_LIBRARY.format(library=library))
        build_data["force_include"][str(library)] = f"a3s_code/{SONAME}"
        licences = library.with_name("THIRD_PARTY_LICENSES.txt")  # ./build.sh dist writes it
        if licences.is_file():
            build_data["force_include"][str(licences)] = f"a3s_code/{licences.name}"
        build_data["pure_python"] = False
        # The newest symbol version that the library asks for is the oldest C library it runs on.
        newest = max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)\0", library.read_bytes())), default=None)
        if newest is None:
            raise RuntimeError(f"{library} does not say which glibc it needs: is it the library?")
        build_data["tag"] = f"py3-none-manylinux_2_{newest}_{platform.machine()}"
