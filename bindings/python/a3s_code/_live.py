"""What belongs to this process alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, SupportsIndex


class Live:
    """An object that stands for something inside the library of this process."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects belong to this process and cannot be copied or pickled: "
            "hand on what it is made from (the configuration, a session_id with its store) and open it there")
