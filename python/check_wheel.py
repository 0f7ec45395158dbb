# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks a wheel: its name says abi3, it declares no dependency, and its size and import time hold.

    python check_wheel.py WHEEL [--release]

The wheel must be installed in the Python that runs this. The size counts only for a release build.
"""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

SIZE_MAX = 6_000_000
IMPORT_MAX_MS = 30.0
NAME = re.compile(r"floodline-\d+\.\d+\.\d+-cp310-abi3-(manylinux_\d+_\d+|musllinux_\d+_\d+|linux)_(x86_64|aarch64)\.whl")
# In a process of its own: what else is loaded, and how long the start of Python takes, does not count.
IMPORT = "import time; start = time.perf_counter(); import floodline; print((time.perf_counter() - start) * 1e3)"


def main(wheel: Path, is_release: bool) -> list[str]:
    wrong = []
    if not NAME.fullmatch(wheel.name):
        wrong.append(f"{wheel.name}: not the name of an abi3 wheel for Python 3.10 and later")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    for needed in ["floodline/py.typed", "floodline/_floodline.pyi", "floodline/_floodline.abi3.so"]:
        if needed not in names:
            wrong.append(f"{wheel.name} has no {needed}")
    if not any(name.endswith("/THIRD-PARTY.md") for name in names):
        wrong.append(f"{wheel.name} does not quote the licences of what it contains")
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    wrong += [f"a dependency: {line}" for line in required]
    size = wheel.stat().st_size
    if is_release and size > SIZE_MAX:
        wrong.append(f"{wheel.name} has {size} bytes, more than {SIZE_MAX}")
    # The shortest of several: other programs only make it longer.
    times = [float(subprocess.check_output([sys.executable, "-I", "-c", IMPORT])) for _ in range(10)]
    if min(times) > IMPORT_MAX_MS:
        wrong.append(f"import floodline takes {min(times):.1f} ms, more than {IMPORT_MAX_MS}")
    kind = "release" if is_release else "development build, so its size is not judged"
    print(f"{wheel.name}: {size / 1e6:.1f} MB ({kind}), import {min(times):.1f} ms, {len(required)} dependencies")
    return wrong


if __name__ == "__main__":
    complaints = main(Path(sys.argv[1]), "--release" in sys.argv[2:])
    print("\n".join(complaints))
    sys.exit(bool(complaints))
