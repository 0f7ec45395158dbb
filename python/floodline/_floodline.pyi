# SPDX-License-Identifier: MIT OR Apache-2.0
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, final

from floodline.answers import Advice, Budget, Diagnosis, Fleet, Ledger, Prediction, Simulated, Swept, Twin

_Value = str | int | float | bool
_Progress = Callable[[int, int], object]

__all__ = ["Preflight", "Recording", "Report", "Run", "Sweep", "Table", "__version__", "_Rows", "_change", "_conclude", "_judge", "_panic", "_unpack", "scenarios", "simulate", "sweep"]
__version__: str

@final
class Preflight:
    @property
    def headline(self) -> str: ...
    @property
    def result(self) -> Fleet: ...
    @property
    def table(self) -> Table: ...
    def __len__(self) -> int: ...

@final
class Recording:
    def __new__(cls, source: str | PathLike[str] | bytes | bytearray, /) -> Recording: ...
    @property
    def hostname(self) -> str | None: ...
    @property
    def kernel(self) -> str | None: ...
    @property
    def samples(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def damage(self) -> list[str]: ...
    @property
    def tables(self) -> dict[str, int]: ...
    def table(self, name: str, /) -> Table: ...
    def bytes(self) -> bytes: ...
    def diagnose(self, *, rules: list[str] | None = None) -> Diagnosis: ...
    def budget(self, *, all: bool = True, as_if: str | None = None) -> Budget: ...
    def ledger(self) -> Ledger: ...
    def twin(self, *, kernel: str | None = None) -> Twin: ...
    def predict(
        self,
        change: Mapping[str, _Value] | None = None,
        /,
        *,
        findings: list[str] | None = None,
        progress: _Progress | None = None,
    ) -> Prediction: ...
    def advise(
        self,
        *,
        goal: str = "latency",
        max_at_risk: int | str | None = None,
        max_pause: float | str | None = None,
        min_folios: int = ...,
        settings: int = 200,
        progress: _Progress | None = None,
    ) -> Advice: ...
    def report(self, after: Recording | None = None, /) -> Report: ...

@final
class Report:
    @property
    def html(self) -> str: ...
    def _repr_html_(self) -> str: ...

@final
class Run:
    @property
    def result(self) -> Simulated: ...
    @property
    def recording(self) -> Recording: ...

@final
class Sweep:
    @property
    def result(self) -> Swept: ...
    @property
    def table(self) -> Table: ...

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    def describe(self, column: str, /) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

def scenarios() -> list[str]: ...
def simulate(
    scenario: str | PathLike[str],
    /,
    *,
    set: Mapping[str, _Value] | None = None,
    variant: str | None = None,
    kernel: str | None = None,
    seconds: float | None = None,
    every: float | str | None = None,
    instances: int | None = None,
    seed: int | None = None,
    hostname: str | None = None,
    progress: _Progress | None = None,
) -> Run: ...
def sweep(
    scenario: str | PathLike[str],
    grid: Mapping[str, Iterable[_Value]],
    /,
    *,
    set: Mapping[str, _Value] | None = None,
    variant: str | None = None,
    kernel: str | None = None,
    seconds: float | None = None,
    every: float | str | None = None,
    instances: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: _Progress | None = None,
) -> Sweep: ...
@final
class _Rows:
    @property
    def simulated(self) -> int: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...

def _change(of: Mapping[str, _Value]) -> str: ...
def _conclude(parts: list[_Rows], change: Mapping[str, _Value], accepted: list[str]) -> Preflight: ...
def _judge(
    items: list[tuple[str, object]] | list[tuple[str, str]],
    change: Mapping[str, _Value],
    tier: int,
    control: float,
    jobs: int | None = None,
    progress: _Progress | None = None,
) -> _Rows: ...
def _panic() -> None: ...
def _unpack(packed: bytes) -> _Rows: ...
