"""Opens the file system of a path or URL, or tells why it cannot be used."""

from __future__ import annotations

import errno
import functools
import os
import re
import socket
import urllib.parse
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

_REMEDIES = {
    errno.ENOSPC: "Free space on its disk",
    errno.EDQUOT: "Free space on its disk",
    errno.ENOENT: "Bring the directory back",
}
_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role"
)
_RIGHTS = "Use credentials that may list, read, write and delete there"
_NETWORK = "Check the network and AWS_ENDPOINT_URL"


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with the home directory in place of a `~` at its beginning.

    Raises:
        ResultsError: there is no such home directory.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ResultsError(
            f"{path} lies in a home directory, which is not known. Give an absolute path, or set "
            "HOME."
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
        raise ResultsError(f"{text} is no URL. It must begin with {found[1]}://.")
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
    protocol = url.partition("://")[0] if "://" in url else "file"
    host = url.partition("://")[2].partition("/")[0]
    if _PASSWORD.search(url) or (protocol in _S3 and "@" in host):
        instead = f" {_CREDENTIALS}." if protocol in _S3 else ""
        raise ResultsError(
            f"the {protocol}:// URL of {what} holds a user or a password, which "
            f"would stand in logs and reports. Leave it out of the URL.{instead}"
        )
    options: dict[str, Any] = _S3_OPTIONS if protocol in _S3 else {}
    try:
        if protocol == "file":  # a path may hold `::`, which fsspec takes for a chain
            system, path = fsspec.filesystem("file"), os.path.abspath(url)
        else:
            system, path = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        extra = "Install them with `uv sync --extra cluster`" if protocol in _S3 else "Install it"
        raise ResultsError(
            f"cannot open {what} {url}: {protocol}:// needs packages that are not "
            f"installed ({error}). {extra}, on every node."
        ) from error
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot open {what} {url} ({error}).") from error
    path = path.rstrip("/")
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        raise ResultsError(
            f"{what} {path!a} has a name that is not UTF-8, which neither Ray nor MLflow nor a "
            "report can hold. Rename it, or choose another."
        )
    if protocol in _OBJECT_STORES and not path:
        raise ResultsError(f"{url} names no bucket. Name one: {protocol}://BUCKET/results.")
    if protocol in _S3:
        _require_bucket(system, url, what)
    return system, path


def has_folders(system: fsspec.AbstractFileSystem) -> bool:
    """Whether folders have to be made. In an object store, making one could make a bucket."""
    return not set(_OBJECT_STORES) & set(_protocols(system))


def is_local(system: fsspec.AbstractFileSystem) -> bool:
    return "file" in _protocols(system)


def is_failure(error: Exception) -> bool:
    """Whether an error is a failure of a file system; any other error is a bug."""
    library = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError) or library in _LIBRARIES


def reason(error: Exception) -> str:
    """The reason of a failure for a message, without passwords."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return re.sub(r"://[^/\s]*@", "://", text or type(error).__name__)


def remedy(error: Exception, system: fsspec.AbstractFileSystem, otherwise: str) -> str:
    """What to do about a failure, without a full stop."""
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        return _REMEDIES[error.errno]
    if is_local(system):
        return otherwise
    if isinstance(error, FileNotFoundError):
        return "Bring its bucket back"
    if isinstance(error, PermissionError):
        return _RIGHTS
    name = type(error).__name__
    if re.search("Credential|Profile|Token|SSO", name):
        return _CREDENTIALS
    # botocore's errors are known by name, to spare its import.
    if isinstance(error, ConnectionError | TimeoutError) or re.search(
        "Endpoint|HTTPClient|Connect|Timeout|Proxy|SSL", name
    ):
        return _NETWORK
    return otherwise


@functools.cache
def _require_bucket(system: fsspec.AbstractFileSystem, url: str, what: str) -> None:
    """Raises ResultsError if a bucket does not exist or cannot be listed."""
    bucket, key, _ = system.split_path(url)
    try:
        prefix = f"{key.rstrip('/')}/" if key else ""
        system.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except FileNotFoundError as error:
        raise ResultsError(
            f"there is no bucket {bucket}, for {what} {url}. Correct its name, or "
            f"make it first: `aws s3 mb s3://{bucket}`."
        ) from error
    except Exception as error:
        if not is_failure(error) and not isinstance(error, ValueError):
            raise
        raise ResultsError(
            f"cannot open {what} {url} ({reason(error)}). "
            f"{remedy(error, system, 'Correct the URL')}."
        ) from error


def _protocols(system: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    protocol = system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
