# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks a wheel: its name says abi3, it declares no dependency, and its size and import time hold.

    python check_wheel.py WHEEL [--release]
    python check_wheel.py --files [--release] WHEEL...

The wheel must be installed in the Python that runs this. With --files none needs to be, and no import is timed. The size
counts only for a release build.
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


def check_file(wheel: Path, is_release: bool) -> list[str]:
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
    kind = "release" if is_release else "development build, so its size is not judged"
    print(f"{wheel.name}: {size / 1e6:.1f} MB ({kind}), {len(required)} dependencies")
    return wrong


def check_import() -> list[str]:
    # The shortest of several: other programs only make it longer.
    times = [float(subprocess.check_output([sys.executable, "-I", "-c", IMPORT])) for _ in range(10)]
    print(f"import floodline: {min(times):.1f} ms")
    is_slow = min(times) > IMPORT_MAX_MS
    return [f"import floodline takes {min(times):.1f} ms, more than {IMPORT_MAX_MS}"] if is_slow else []


def main(arguments: list[str]) -> list[str]:
    wheels = [Path(argument) for argument in arguments if not argument.startswith("--")]
    wrong = [complaint for wheel in wheels for complaint in check_file(wheel, "--release" in arguments)]
    return wrong + ([] if "--files" in arguments else check_import())


if __name__ == "__main__":
    complaints = main(sys.argv[1:])
    print("\n".join(complaints))
    sys.exit(bool(complaints))
