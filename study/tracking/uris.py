"""The URI of MLflow's store, and why a store does not answer."""

from __future__ import annotations

import os
import socket
import ssl
from urllib.parse import urlsplit

from study.errors import RequestError
from study.storage.databases import causes

NONE = "none"
"""The `--tracking` that logs nothing."""


class ServerDown(RequestError):
    """A tracking server does not answer now, but may later."""


def tracking_uri(uri: str | None) -> str | None:
    """The URI given by the option or else by the environment; None if neither gives one."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or None


def is_server(uri: str) -> bool:
    """Whether a URI names a tracking server."""
    return uri.startswith(("http://", "https://"))


def may_pass(error: Exception) -> bool:
    """Whether an error may go away: the server was absent or not ready, and refused nothing.

    No server has such a name, or another program listens there: that stays.
    """
    from mlflow.exceptions import InvalidUrlException, MlflowException

    for cause in causes(error):
        no_host = isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME
        no_tls = isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError)
        if no_host or no_tls or "not in a valid JSON" in str(cause):
            return False
    if not isinstance(error, MlflowException) or isinstance(error, InvalidUrlException):
        return isinstance(error, OSError)
    return error.get_http_status_code() >= 500


def of_proxy(error: Exception, uri: str) -> str:
    """What to do where an error came from a proxy of the environment, or nothing."""
    from requests.exceptions import ProxyError

    if any(isinstance(cause, ProxyError) for cause in causes(error)):
        host = urlsplit(uri).hostname
        return (
            f" That was through the proxy of HTTP_PROXY or HTTPS_PROXY: NO_PROXY={host} spares it."
        )
    return ""


def require_store(uri: str) -> None:
    """Raises at once if an address or file cannot be used; MLflow would go on trying for long."""
    from sqlalchemy import make_url

    if is_server(uri):
        parts = urlsplit(uri)
        if not parts.hostname or parts.port == 0:  # reading the port checks it
            raise ValueError("the address names no host")
    elif uri.startswith("sqlite") and (path := make_url(uri).database):
        with open(path, "ab"):  # creates it, as SQLite would, and says why it cannot
            pass
