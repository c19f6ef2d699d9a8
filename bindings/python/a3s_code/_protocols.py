"""What objects of this program must be able to do to be a model, a store and so on. They need not
derive from these classes: a type checker compares their methods.

Every method may be a plain one, which runs in a worker thread, or an async one, which runs in the
loop that was running when the object was registered. What it raises is told to the library: see
:class:`a3s_code.ExtensionError`. ``Context.current()`` says what is asked, until when, and whether
it was cancelled. Objects named ``Host...`` are described in ``a3s_code.types``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import AsyncIterable, Awaitable, Iterable, Literal, Mapping, TypeVar, Union

    from .types import (
        HostContextItem, HostContextQuery, HostModelChunk, HostModelRequest, HostModelResult,
        HostPermissionCheck, HostPermissionDecision, HostPermissionExpose, HostStoreLoaded,
        HostWorkspaceEntry, HostWorkspaceExit, HostWorkspaceFound, HostWorkspaceSearch,
    )

    T = TypeVar("T")
    Maybe = Union[T, Awaitable[T]]
    Pieces = Union[Iterable[T], AsyncIterable[T]]
    ModelPiece = Union[str, HostModelChunk, HostModelResult]
    ModelAnswer = Union[str, HostModelResult, Pieces[ModelPiece]]
    Decision = Union[Literal["allow", "ask", "deny"], HostPermissionDecision]
    Response = tuple[int, Mapping[str, str], Union[bytes, str, None, Pieces[bytes], Pieces[str]]]
    ExitStatus = Union[int, HostWorkspaceExit, Pieces[Union[bytes, str, int, HostWorkspaceExit]]]


class ModelClient(Protocol):
    """A model that may answer in pieces. A function of the same shape will do."""

    def stream(self, request: HostModelRequest) -> Maybe[ModelAnswer]:
        """Answers a conversation: the text, a result object, or an iterator (a generator, an
        async generator) of pieces.

        A piece is a text, or a chunk: ``{"text"}``, ``{"reasoning"}`` or ``{"tool_call"}``. An
        object with anything else, such as ``{"usage": ..., "stop": ...}``, belongs to the result
        that ends the answer; a plain generator may return it instead. A generator is closed when
        the run is cancelled.
        """


class CompletionClient(Protocol):
    """A model that answers at once."""

    def complete(self, request: HostModelRequest) -> Maybe[str | HostModelResult]:
        """Answers a conversation: the text, or a result object."""


class PermissionChecker(Protocol):
    """Judges tool calls. A function of the shape of :meth:`check` will do. Whatever goes wrong
    in it denies the call.

    With a further method ``expose(request) -> bool`` it also says which tools the model is told of.
    """

    def check(self, request: HostPermissionCheck) -> Maybe[Decision]:
        """Judges a call before it runs: ``"allow"``, ``"ask"`` or ``"deny"``, or an object with
        ``decision`` and ``reason``."""


class ExposingPermissionChecker(PermissionChecker, Protocol):
    """A checker that says which tools the model is told of."""

    def expose(self, request: HostPermissionExpose) -> Maybe[bool]:
        """Whether the model is told of a tool; asked once a run for each tool."""


class ContextProvider(Protocol):
    """Knows the background of prompts. A function of the shape of :meth:`query` will do."""

    def query(self, request: HostContextQuery) -> Maybe[Pieces[HostContextItem]]:
        """Items for a prompt, ``request["query"]``; each needs ``id`` and ``content``."""


class SessionStore(Protocol):
    """Keeps sessions: for each a snapshot and the facts that follow it, texts that are given back
    as they were. It is asked while a session writes, so it must not wait for that session."""

    def load(self, id: str, start: int, limit: int) -> Maybe[HostStoreLoaded | None]:
        """The snapshot of a session, its ``generation`` (1 before the first save), and its ``facts`` from number ``start``
        on, at most ``limit``; None for a session that is not kept. With fewer facts than there
        are, ``count`` says how many there are."""

    def append(self, id: str, generation: int, start: int, facts: list[str]) -> Maybe[None]:
        """Keeps more facts, the first with number ``start``. Those of a generation other than
        the snapshot's are obsolete."""

    def save(self, id: str, generation: int, snapshot: str) -> Maybe[None]:
        """Puts a snapshot in the place of the former one and of all facts, at once or not at all."""

    def delete(self, id: str) -> Maybe[None]:
        """Removes a session with all that is kept of it. What is not there is no failure."""

    def list(self) -> Maybe[Pieces[str]]:
        """Ids of the sessions with a snapshot or a fact."""


class BlobSessionStore(SessionStore, Protocol):
    """A store that keeps named blobs of sessions too: long outputs of tools. Without these
    methods they are kept in memory until the session is closed or saved."""

    def load_blob(self, id: str, blob: str) -> Maybe[bytes | None]:
        """A blob, or None."""

    def save_blob(self, id: str, blob: str, data: bytes) -> Maybe[None]:
        """Keeps a blob, once and for all."""

    def delete_blob(self, id: str, blob: str) -> Maybe[None]:
        """Removes a blob. What is not there is no failure."""


class Workspace(Protocol):
    """Files for a session to work in. Paths are clean, with slashes and relative to the root,
    which is ``"."``. Failures that the model should tell apart have a kind: ``FileNotFoundError``
    and the like, or an :class:`~a3s_code.ExtensionError`.

    With a further method ``run(line, timeout_ms, env)`` there is a shell, with
    ``search(request)`` there are grep and glob: see :class:`CommandWorkspace` and
    :class:`SearchWorkspace`.
    """

    def stat(self, path: str) -> Maybe[HostWorkspaceEntry]:
        """What is at a path: ``type`` and, of a file, ``size``."""

    def list(self, path: str) -> Maybe[Pieces[HostWorkspaceEntry]]:
        """The entries of a folder, each with its ``name``."""

    def read(self, path: str, max: int) -> Maybe[tuple[bytes, str]]:
        """A whole file and its version, a token that changes whenever the content does. A file of
        more than ``max`` bytes is refused whether or not it is read."""

    def write(self, path: str, data: bytes, if_version: str | None, if_absent: bool) -> Maybe[str]:
        """Replaces a whole file, makes missing folders, and gives the new version. If the file
        has another version than ``if_version``, or is there although ``if_absent``, raise an
        ``ExtensionError`` of kind ``"conflict"`` with details ``expected`` and ``actual``, which
        is ``"absent"`` where there is no file."""

    def remove(self, path: str) -> Maybe[None]:
        """Removes a file. What is not there is no failure; a folder is one, of kind ``"invalid"``."""


class CommandWorkspace(Workspace, Protocol):
    """A workspace with a shell."""

    def run(self, line: str, timeout_ms: int | None, env: dict[str, str]) -> Maybe[ExitStatus]:
        """Runs a shell command in the root: gives the exit code, or an iterator of output, ``str``
        or ``bytes``, and last the exit code. When its time is up the command must be ended with
        all that it started, and ``{"exit_code": ..., "timed_out": True}`` says so."""


class SearchWorkspace(Workspace, Protocol):
    """A workspace that is searched where it is."""

    def search(self, request: HostWorkspaceSearch) -> Maybe[HostWorkspaceFound]:
        """Finds files by name (``request["glob"]``) or lines by content (``request["grep"]``)."""


class Transport(Protocol):
    """Sends the HTTP requests of a provider. A function of the shape of :meth:`round_trip` will do.
    The requests carry the provider's key in their headers: treat them as a secret."""

    def round_trip(self, method: str, url: str, headers: Mapping[str, list[str]], body: bytes) -> Maybe[Response]:
        """Sends a request and gives status, headers and body: ``bytes``, ``str``, or an iterator
        of such pieces, which is closed at the end if it has ``close``. Follow no redirects."""
