"""A private daemon, started if no address was given, as by the command line."""

import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import time
from typing import List, Optional

import grpc

from stride._errors import Unavailable
from stride.v1 import device_service_pb2, device_service_pb2_grpc

# A GPU worker's first context takes seconds on a machine with many GPUs.
_START_SECONDS = 60
_STOP_SECONDS = 10
_POLL_SECONDS = 0.01


def find_daemon() -> Optional[str]:
    """STRIDE_DAEMON, else `strided` in PATH."""
    return os.environ.get("STRIDE_DAEMON") or shutil.which("strided")


def user_cache() -> Optional[str]:
    """The user's folder for data that the next private daemon can reuse, created if missing: `stride` in
    XDG_CACHE_HOME, else in ~/.cache. None if other users may write it, since code from it is run."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    folder = os.path.join(base, "stride")
    try:
        os.makedirs(base, exist_ok=True)
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return None
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return folder if own and os.access(folder, os.W_OK | os.X_OK) else None


def _make_directory() -> str:
    # Socket paths are short (107 bytes): a long TMPDIR is passed over.
    for base in (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"):
        if base and len(base) <= 60 and os.access(base, os.W_OK | os.X_OK):
            return tempfile.mkdtemp(prefix="stride.", dir=base)
    raise Unavailable("No folder for a private daemon can be made in /tmp")


class PrivateDaemon:
    """Owns the process, its socket and its folder; `stop` ends them. The daemon ends by itself when this process does.
    If `cache` is given, it keeps compiled code."""

    def __init__(self, executable: str, arguments: Optional[List[str]] = None, cache: Optional[str] = None):
        self._folder = pathlib.Path(_make_directory())
        self.address = f"unix:{self._folder}/s"
        (self._folder / "state").mkdir()
        command = [executable, "--listen=" + self.address, f"--state-dir={self._folder}/state", "--durable-bytes=0",
                   f"--parent-pid={os.getpid()}", *([f"--cache-dir={cache}"] if cache else []), *(arguments or [])]
        try:
            with open(self._folder / "log", "w") as log:
                # Its own process group: Ctrl-C is for this program, which then stops the daemon in order.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise Unavailable(f"{executable} cannot be started: {error.strerror}") from None
        try:
            self._wait_until_serving()
        except BaseException:
            self.stop()
            raise

    def log_tail(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]

    def _wait_until_serving(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise Unavailable("strided ended at once. The end of its log:\n" + self.log_tail())
            if (self._folder / "s").exists() and self._answers():
                return
            time.sleep(_POLL_SECONDS)
        raise Unavailable("The private strided does not serve:\n" + self.log_tail())

    def _answers(self) -> bool:
        with grpc.insecure_channel(self.address) as channel:
            try:
                device_service_pb2_grpc.DeviceServiceStub(channel).ListDevices(
                    device_service_pb2.ListDevicesRequest(), timeout=5)
                return True
            except grpc.RpcError:
                return False

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
