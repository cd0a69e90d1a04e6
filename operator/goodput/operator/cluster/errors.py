"""What can go wrong between the operator and the API server.

ClusterError
├── TemplateError      a podTemplate asks for what is refused
├── NameTakenError     an object of that name belongs to somebody else
├── ObjectGoneError    the object, or its namespace, is being deleted
└── ApiError           the API server refused, or did not answer
"""

from __future__ import annotations


class ClusterError(Exception):
    """Base of all errors of the cluster driver."""


class TemplateError(ClusterError):
    """The podTemplate cannot be merged; the message names the field."""


class NameTakenError(ClusterError):
    """An object of that name exists and has another owner: perhaps of a deleted sweep of the same name."""


class ObjectGoneError(ClusterError):
    """The object or its namespace is being deleted: there is nothing to do."""


class ApiError(ClusterError):
    """The API server refused a call, or did not answer in time."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status  # HTTP status, None where there was no answer

    @property
    def passing(self) -> bool:
        """Asking again may help: no answer, too many requests, a conflict, a fault of the server."""
        return self.status is None or self.status in (408, 409, 429) or self.status >= 500
