"""For the Jupyter server: what a kernel says goes to the browser at once.

A kernel answers one step of a slider with three or four small messages. TCP holds a small message back until the one
before it is acknowledged (Nagle's algorithm, RFC 896), and the other end acknowledges what it has nothing to say to
after up to 40 ms (delayed acknowledgement, RFC 1122, 4.2.3.2). Together they hold back every other picture by 30 ms
or so. ``make lab`` starts the server with ``--ServerApp.jpserver_extensions="{'labkit.explore.server': True}"``.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    settings = server.web_app.settings
    connection: Any = settings["kernel_websocket_connection_class"]

    class AtOnce(connection):  # type: ignore[misc]
        """The server's own way between a kernel and a browser, on a socket that does not wait."""

        def connect(self) -> Awaitable[Any]:
            self.websocket_handler.set_nodelay(True)
            return super().connect()  # type: ignore[no-any-return]

    settings["kernel_websocket_connection_class"] = AtOnce
