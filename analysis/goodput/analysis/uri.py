"""Places as people write them: URIs, and folders of this machine. Pure, but for a look whether a folder is there."""

from __future__ import annotations

from pathlib import Path


def uri_of(place: str) -> str:
    """A place as command lines take it, as a URI: a URI stays, a folder (``results``, ``/data``) becomes ``file://``."""
    return place if "://" in place else f"file://{place}"


def existing_uri(place: str) -> str:
    """The same of a place to read from. Raises `ValueError` where it is a folder that is not there."""
    uri = uri_of(place)
    folder = file_path(uri)
    if folder is not None and not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    return uri


def file_path(uri: str) -> Path | None:
    """What a ``file://`` URI names, as it is written: ``#``, ``?``, ``%`` and ``[`` are in names. None for others."""
    scheme, _, path = uri.partition("://")
    return Path(path) if scheme == "file" else None
