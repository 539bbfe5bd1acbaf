"""The Jupyter server with the extension that `make lab` asks for."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler

# What the server and its other extensions are told that they should no longer do.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def server(tmp_path, monkeypatch):
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name))
    app = ServerApp()
    options = {"root_dir": tmp_path, "jpserver_extensions": "{'labkit.explore.server': True}"}
    app.initialize([f"--ServerApp.{key}={value}" for key, value in options.items()], new_httpserver=False)
    yield app
    with ThreadPoolExecutor() as pool:  # this thread may have a running loop: that of a browser's tests
        pool.submit(asyncio.run, app._cleanup()).result()


def test_a_kernel_s_messages_do_not_wait_for_acknowledgements(server, monkeypatch):
    connection = server.web_app.settings["kernel_websocket_connection_class"]
    done = []
    monkeypatch.setattr(ZMQChannelsWebsocketConnection, "connect", lambda self: done.append("connected"))

    monkeypatch.setattr(KernelWebsocketHandler, "set_nodelay", lambda self, value: done.append(value))
    made = connection.__new__(connection)
    made.websocket_handler = KernelWebsocketHandler.__new__(KernelWebsocketHandler)
    made.connect()
    assert done == [True, "connected"]
