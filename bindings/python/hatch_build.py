"""Build hook: the native library goes into the wheel, which then fits one platform and every Python."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SONAME = "liba3s.so.1"


class NativeLibrary(BuildHookInterface[Any]):
    """Takes the library from A3S_LIB, or from the build folder of the checkout."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the library and the tag; an editable install uses the checkout's library as it is."""
        if version == "editable":
            return
        library = Path(os.environ.get("A3S_LIB") or Path(self.root, "../../build", SONAME)).resolve()
        if not library.is_file():
            raise FileNotFoundError(f"{library} is not there: run ./build.sh build, or set A3S_LIB")
        build_data["force_include"][str(library)] = f"a3s_code/{SONAME}"
        build_data["pure_python"] = False
        # The newest symbol version that the library asks for is the oldest C library it runs on.
        newest = max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)\0", library.read_bytes())), default=None)
        if newest is None:
            raise RuntimeError(f"{library} does not say which glibc it needs: is it the library?")
        build_data["tag"] = f"py3-none-manylinux_2_{newest}_{platform.machine()}"
