"""Tools that this program calls itself, without a model."""

from __future__ import annotations

from collections.abc import Mapping

from ._errors import bad_type, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._results import ToolResult


def _object(args: Mapping[str, Any] | None) -> dict[str, Any]:
    if args is not None and not isinstance(args, Mapping):
        raise bad_type(f"args must be a mapping, not {type(args).__name__}", op="session.tool")
    return dict(args or {})


class DirectTools:
    """The part of a session that runs tools for this program."""

    def _long(self, method: bytes, /, **params: Any) -> dict[str, Any]:
        raise NotImplementedError

    async def _later(self, method: bytes, /, **params: Any) -> dict[str, Any]:
        raise NotImplementedError

    def tool(self, name: str, args: Mapping[str, Any] | None = None) -> ToolResult:
        """Runs a tool for this program, not for the model: the permission policy does not apply,
        limits and time-outs do. Works during a run. A tool that fails is a result with an exit
        code, and so is one that does not exist. Ctrl-C cancels it. Operation session.tool."""
        from ._results import ToolResult
        return ToolResult.from_wire(self._long(b"session.tool", name=name, args=_object(args)))

    async def tool_async(self, name: str, args: Mapping[str, Any] | None = None) -> ToolResult:
        """:meth:`tool` for asyncio. A cancelled task cancels the tool."""
        from ._results import ToolResult
        return ToolResult.from_wire(await self._later(b"session.tool", name=name, args=_object(args)))

    def read_file(self, path: str, offset: int | None = None, limit: int | None = None) -> str:
        """Text of a file, as the tool ``read`` shows it.

        Args:
            path: path in the workspace.
            offset: first line, counted from 0.
            limit: most lines.

        Raises:
            CodeError: TOOL_ERROR if the tool failed.
        """
        return self._output("read", file_path=path, offset=offset, limit=limit)

    def write_file(self, path: str, content: str) -> ToolResult:
        """Replaces a file with the tool ``write``; folders are made."""
        return self._run_tool("write", file_path=path, content=content)

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> ToolResult:
        """Replaces one passage of a file, or all, with the tool ``edit``."""
        return self._run_tool("edit", file_path=path, old_string=old, new_string=new, replace_all=replace_all or None)

    def ls(self, path: str | None = None) -> ToolResult:
        """Lists a folder with the tool ``ls``; None is the workspace."""
        return self._run_tool("ls", path=path)

    def glob(self, pattern: str) -> list[str]:
        """All paths that a pattern matches, page after page. Raises TOOL_ERROR if the tool failed."""
        paths: list[str] = []
        cursor: str | None = None
        while True:
            result = self._checked("glob", pattern=pattern, limit=1000, cursor=cursor)
            page = (result.metadata or {}).get("page") or {}
            paths += result.output.splitlines()[:page.get("returned_items", 0)]
            cursor = page.get("next_cursor")
            if not cursor:
                return paths

    def grep(self, pattern: str) -> str:
        """Lines that a regular expression matches, as the tool ``grep`` shows them. Raises TOOL_ERROR."""
        return self._output("grep", pattern=pattern)

    def bash(self, command: str) -> str:
        """Output of a shell command, run by the tool ``bash``. Raises TOOL_ERROR if the tool failed
        to run it; a command's own exit code is only in :meth:`tool`'s result."""
        return self._run_tool("bash", command=command).output

    def _run_tool(self, name: str, **args: Any) -> ToolResult:
        return self.tool(name, {k: v for k, v in args.items() if v is not None})

    def _checked(self, name: str, **args: Any) -> ToolResult:
        result = self._run_tool(name, **args)
        if result.exit_code != 0:
            raise refuse(
                "TOOL_ERROR", f"tool.{name}", f"Tool error: {name}: {result.output}",
                exit_code=result.exit_code, error_kind=result.error_kind)
        return result

    def _output(self, name: str, **args: Any) -> str:
        return self._checked(name, **args).output
