"""A real S3 server in a process of its own, on a free port of this machine: ``python moto_server.py`` prints the port.

It ends with its standard input, so that it never outlives the tests. Requests are served one after the other: moto
checks ``If-None-Match`` and stores the object in two steps, where S3 does it in one.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class OneByOne:
    """A WSGI application that handles one request at a time."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        with self._lock:
            return list(self._application(environ, start_response))


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def moto() -> DomainDispatcherApplication:
    """The application that answers as S3 does."""
    return DomainDispatcherApplication(create_backend_app)


def serve(application: Any, request_handler: type[WSGIRequestHandler] | None = None) -> None:
    """Serve an application on a free port of this machine and print the port; end with the standard input."""
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=request_handler)
    print(server.port, flush=True)
    threading.Thread(target=end_with_input, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    serve(OneByOne(moto()))
