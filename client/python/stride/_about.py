"""The environment of the program: the daemon's devices, versions, and the daemon's address."""

import platform
from importlib import metadata
from typing import Dict, List, Optional

from google.protobuf.internal import api_implementation

from stride import _address, _daemon, _session
from stride._metrics import Device


def devices() -> List[Device]:
    """The devices of the daemon that the current session uses; the first call connects.

    Returns
        A list of Device, in the daemon's order.
    Raises
        Unavailable where no daemon is reached.
    Example
        >>> {one.kind for one in st.devices()} <= {"cpu", "cuda"}
        True
    """
    return _session.current_session().devices()


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed as a package"


def show_config(mode: str = "stdout") -> Optional[Dict[str, str]]:
    """Prints the versions of the client's dependencies, and the daemon that it uses or would use; `mode="dicts"`
    returns them. Starts no daemon.

    Parameters
        mode: `stdout` to print, or `dicts`.
    Returns
        None, or for `dicts` a dict of names and texts.
    Raises
        ValueError for another mode.
    Example
        >>> "numpy" in st.show_config(mode="dicts")
        True
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f'mode is "stdout" or "dicts", not {mode!r}')
    config = {"stride": _version("stride"), "python": platform.python_version(), "numpy": _version("numpy"),
              "grpcio": _version("grpcio"), "protobuf": f'{_version("protobuf")} ({api_implementation.Type()})'}
    session = _session._default[-1] if _session._default else None
    if session is not None:
        config.update(address=session.address, transport=session.transport, session=session.name,
                      devices=", ".join(device.name for device in session.devices()))
    else:
        address = _address.default_address()
        config["address"] = address or "none: connect() starts a private daemon"
        if address is None:
            config["strided"] = _daemon.find_daemon() or "not found (STRIDE_DAEMON, PATH)"
    if mode == "dicts":
        return config
    width = max(map(len, config))
    for name, value in config.items():
        print(f"{name:{width}}  {value}")
    return None
