"""Opens the file system of a path or URL, or tells why it cannot be used."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec

from study.errors import ResultsError

_S3 = ("s3", "s3a")
_OBJECT_STORES = (*_S3, "gs", "gcs", "abfs", "abfss", "az")

# One request a file: s3fs would ask for its size and fetch it in pieces, which could be of two
# files if one is replaced meanwhile. Listings are not kept, since others write, too.
_S3_OPTIONS = {"use_listings_cache": False, "max_concurrency": 1}

_LIBRARIES = {"aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google", "s3fs"}
"""Libraries of object stores, whose errors are not always an `OSError`."""

# A secret key may hold slashes; mere digits before a slash are a port.
_PASSWORD = re.compile(r"://[^/@]*:(?!\d+/)[^@]*@")
_NO_URL = re.compile(rf"({'|'.join(_OBJECT_STORES)}):(?!//)")

_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role"
)
_NETWORK = "Check the network and AWS_ENDPOINT_URL"
_FULL = {"ENOSPC|EDQUOT": "Free space on its disk"}  # of a store: where its files are copied to
_LOCAL = {
    **_FULL,
    "ENOENT": "Bring the directory back",
    "EEXIST|ENOTDIR": "Put a directory in the place of that file",
}
_REMOTE = {
    **_FULL,
    "FileNotFoundError": "Correct the name of its bucket, or make it first, with `aws s3 mb`",
    "PermissionError": "Use credentials that may list, read, write and delete there",
    "Credential|Profile|Token|SSO": _CREDENTIALS,
    "BrokenPipe|Connect|Endpoint|HTTPClient|Timeout|Proxy|SSL": _NETWORK,
}
"""What to do about errors whose name, or whose code's, matches: botocore's import is spared."""


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with the home directory in place of a `~` at its beginning.

    Raises:
        ResultsError: there is no such home directory.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ResultsError(
            f"{path} is in a home directory that is not known. Give an absolute path, or set HOME."
        ) from error


def local_path(url: str | os.PathLike[str]) -> Path | None:
    """The path of a path, expanded, or of a `file://` URL; None for other URLs.

    Raises:
        ResultsError: the text is a URL with a mistake, such as `s3:bucket`; or as `expanded`.
    """
    text = os.fspath(url)
    if text.startswith("file://"):
        return Path(urllib.parse.unquote(fsspec.core.strip_protocol(text)))
    if "://" in text:
        return None
    if found := _NO_URL.match(text):
        raise ResultsError(f"{text} is not a URL. It must begin with {found[1]}://.")
    return expanded(text)


def absolute(url: str) -> str:
    """The absolute path of a path; a URL stays as it is.

    Raises:
        ResultsError: as `local_path`.
    """
    path = local_path(url)
    return url if path is None else str(path.resolve())


def place_of(url: str) -> str:
    """Where a directory is, for people: a URL, or ``host:/path``."""
    path = local_path(url)
    return url if path is None else f"{socket.gethostname()}:{absolute(url)}"


def protocol(url: str) -> str:
    """The protocol of a URL, such as `s3`; of a path `file`."""
    return url.partition("://")[0].rpartition("::")[2] if "://" in url else "file"


def is_local(url: str) -> bool:
    """Whether it is a path; a `file://` URL has become one in `local_path`."""
    return "://" not in url


def has_folders(url: str) -> bool:
    """Whether folders have to be made. In an object store, making one could make a bucket."""
    return protocol(url) not in _OBJECT_STORES


@contextlib.contextmanager
def told(
    failure: str,
    url: str,
    otherwise: str,
    end: str = ".",
    more: type[Exception] = OSError,
    may_miss: bool = False,
) -> Iterator[None]:
    """Says in a line what failed in a file system, why, and what to do; other errors are bugs.

    Args:
        failure: what cannot be done.
        url: of the directory.
        otherwise: what to do, unless the error says it.
        end: of the message.
        more: a kind of errors that are such failures, too.
        may_miss: whether that a file is not there stays a FileNotFoundError.

    Raises:
        ResultsError: instead of the failure.
    """
    try:
        yield
    except Exception as error:
        library = type(error).__module__.partition(".")[0]
        failed = isinstance(error, OSError | more) or library in _LIBRARIES
        if not failed or (may_miss and isinstance(error, FileNotFoundError)):
            raise
        code = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
        kind = f"{type(error).__name__} {code}"
        remedies = _LOCAL if is_local(url) else _REMOTE
        fitting = (remedy for name, remedy in remedies.items() if re.search(name, kind))
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        reason = re.sub(r"://[^/\s]*@", "://", reason)
        raise ResultsError(f"{failure} ({reason}). {next(fitting, otherwise)}{end}") from error


def open_url(url: str, what: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path or URL, and the path in it without a final slash.

    A bucket must exist and be listable, which is checked once a process.

    Args:
        url: path or URL.
        what: it names, for messages.

    Raises:
        ResultsError: no file system is known or installed for it, it holds a password, or its
            bucket cannot be used.
    """
    kind = protocol(url)
    host = url.partition("://")[2].partition("/")[0]
    if _PASSWORD.search(url) or (kind in _S3 and "@" in host):
        instead = f" {_CREDENTIALS}." if kind in _S3 else ""
        raise ResultsError(
            f"the {kind}:// URL of {what} holds a user or a password, which would appear in logs "
            f"and reports. Leave it out of the URL.{instead}"
        )
    options: dict[str, Any] = _S3_OPTIONS if kind in _S3 else {}
    try:
        if is_local(url):  # a path may hold `::`, which fsspec takes for a chain
            system, path = fsspec.filesystem("file"), os.path.abspath(url)
        else:
            system, path = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        extra = "Install them with `uv sync --extra cluster`" if kind in _S3 else "Install it"
        raise ResultsError(
            f"cannot open {what} {url}: {kind}:// needs packages that are not installed "
            f"({error}). {extra}, on every node."
        ) from error
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot open {what} {url} ({error}).") from error
    path = path.rstrip("/")
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        raise ResultsError(
            f"{what} {path!a} has a name that is not UTF-8, which neither Ray nor MLflow nor a "
            "report can hold. Rename it, or choose another."
        )
    if kind in _OBJECT_STORES and not path:
        raise ResultsError(f"{url} names no bucket. Name one: {kind}://BUCKET/results.")
    if kind in _S3:
        _require_bucket(system, url, what)
    return system, path


@functools.cache
def _require_bucket(system: fsspec.AbstractFileSystem, url: str, what: str) -> None:
    """Raises ResultsError if a bucket does not exist or cannot be listed."""
    bucket, key, _ = system.split_path(url)
    prefix = f"{key.rstrip('/')}/" if key else ""
    with told(f"cannot open {what} {url}", url, "Correct the URL", more=ValueError):
        system.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=1)
