"""Where things lie in a checkout."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "portable"
DIST = ROOT / "dist" / "gpu"
PACK = DIST / "stride-gpu.tar.xz"
