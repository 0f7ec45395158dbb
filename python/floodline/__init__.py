# SPDX-License-Identifier: MIT OR Apache-2.0
"""Floodline in Python: why writes stall on a Linux host, what a change will do, and which hosts of a fleet will suffer.

A recording is a file that ``floodline record`` makes on a host. Open it, ask it, and read its tables:

>>> import floodline
>>> recording = floodline.simulate("dirty-cliff", seconds=5).recording
>>> recording.tables["disk"] > 5
True
>>> recording.diagnose()["schema"]
'floodline.doctor/1'

Answers are the JSON of the program (``floodline doctor --format json`` and so on) as dictionaries. Names of fields end
with their unit. A failed call raises ``floodline.Error``, whose ``hint`` says what to type next.
"""

from floodline import fleet
from floodline._error import Error
from floodline._floodline import (
    Preflight,
    Recording,
    Report,
    Run,
    Sweep,
    Table,
    __version__,
    scenarios,
    simulate,
    sweep,
)

from floodline.fleet import preflight

__all__ = [
    "Error",
    "Preflight",
    "Recording",
    "Report",
    "Run",
    "Sweep",
    "Table",
    "__version__",
    "fleet",
    "preflight",
    "scenarios",
    "simulate",
    "sweep",
]
