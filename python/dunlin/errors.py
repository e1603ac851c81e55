"""The exceptions of dunlin. All are an `Error`, whose text says which call failed, and why."""

from __future__ import annotations

__all__ = [
    "AbandonedError", "CallTimeoutError", "ConflictError", "EndedError", "Error", "ExistsError",
    "LockError", "LostError", "NoRoomError", "NotFoundError", "OverloadedError", "RefusedError",
    "TooLongError",
]


class Error(Exception):
    """A call has failed, or the options are wrong."""

    #: The library's word for the reason, such as "lost"; empty for wrong options.
    status: str = ""


class EndedError(Error):
    """The node has ended, or this process is a fork of the member's process."""


class AbandonedError(Error):
    """The call was given up; a change has happened as a whole, or not at all."""


class CallTimeoutError(Error, TimeoutError):
    """The call's time was up."""


class LostError(Error):
    """The members that hold the data have died, or the writer died in the middle of a put."""


class NoRoomError(Error):
    """The member's memory, or the container, is full."""


class OverloadedError(Error):
    """The node has no room for further calls now; nothing was done, try again."""


class NotFoundError(Error, LookupError):
    """There is no such name, or the segment was released."""


class ExistsError(Error):
    """The name, or the key to insert, is there already."""


class TooLongError(Error, ValueError):
    """A key, value or range has more bytes than there is room for, or lies at the wrong offset."""


class RefusedError(Error):
    """Another member made the object with other options, or this kind of object has no such call."""


class LockError(Error):
    """The lock is held by another process, or by this one, or is not held."""


class ConflictError(Error):
    """The data have changed since they were read; try again."""


_OF_STATUS: dict[str, type[Error]] = {
    "stopped": EndedError,
    "abandoned": AbandonedError,
    "timed_out": CallTimeoutError,
    "lost": LostError,
    "half_written": LostError,
    "no_room": NoRoomError,
    "full": NoRoomError,
    "over_quota": NoRoomError,
    "no_memory": NoRoomError,
    "overloaded": OverloadedError,
    "unknown": NotFoundError,
    "released": NotFoundError,
    "not_kept": NotFoundError,
    "name_taken": ExistsError,
    "too_long": TooLongError,
    "out_of_range": TooLongError,
    "misaligned": TooLongError,
    "refused": RefusedError,
    "not_allowed": RefusedError,
    "broken_promise": RefusedError,
    "busy": LockError,
    "not_held": LockError,
    "already_held": LockError,
    "conflict": ConflictError,
    "changed": ConflictError,
}


def make(status: str, text: str) -> Error:
    """The exception for a status of the library; for `dunlin._core`."""
    error = _OF_STATUS.get(status, Error)(text)
    error.status = status
    return error
