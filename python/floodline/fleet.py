# SPDX-License-Identifier: MIT OR Apache-2.0
"""A change judged for every host of a fleet, on the threads of this machine or on an engine that runs elsewhere.

An engine is a function ``map(fn, batches)``: it calls ``fn`` once for each batch, anywhere, and returns the results in any
order. ``fn`` and batches can be pickled. Each batch takes one to two seconds and returns a few kilobytes. Three engines are
here: ``"threads"``, ``"ray"`` and ``"dask"``; any function of that form is one too.

>>> import floodline.fleet, pathlib, tempfile
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> for host in ["web1", "web2"]:
...     recording = floodline.simulate("healthy-idle", seconds=3).recording
...     _ = (folder / f"{host}.flr").write_bytes(recording.bytes())
>>> def one_by_one(fn, batches):
...     return [fn(batch) for batch in batches]
>>> answer = floodline.fleet.run(folder, {"vm.dirty_ratio": 10}, engine=one_by_one, tier=1)
>>> len(answer)
2
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from floodline._floodline import Preflight, _Rows

    _Path = str | os.PathLike[str]
    #: Number of a batch, and names of its files.
    _Batch = tuple[int, list[str]]
    #: Number of a batch, its rows, the seconds it took, and the version of the package that made it.
    _Part = tuple[int, _Rows, float, str]
    _Engine = Callable[[Callable[[_Batch], _Part], Iterable[_Batch]], Iterable[_Part]]

__all__ = ["ask_dask", "ask_ray", "ask_threads", "files", "preflight", "run"]

#: Seconds that a batch should take, and most files in one.
SECONDS, MOST = 1.5, 2000
#: Files of the sample that says how long one takes, each in a batch of its own.
SAMPLE = 8
#: Files that one worker fetches at once from a store.
FETCHED = 8


def run(
    paths: _Path | Sequence[_Path],
    change: Mapping[str, str | int | float],
    *,
    engine: str | _Engine = "threads",
    tier: int = 2,
    control: float = 0.01,
    accept: Sequence[str] = (),
    jobs: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = 60.0,
    progress: Callable[[int, int], object] | None = None,
) -> Preflight:
    """Tells which hosts a change will make suffer, from their recordings.

    ``paths`` are recordings, folders, patterns (``fleet/*.flr``), or URLs that fsspec opens (``s3://bucket/fleet``).
    ``change`` has settings and ``kernel``, ``cgroup``, ``memory``. ``engine`` says where the work runs. ``tier`` 1 is
    arithmetic; 2 also simulates hosts near a limit and the share ``control`` of the others. ``accept`` has keys of
    findings that do not count. ``jobs`` limits the threads of this machine. ``storage_options`` go to fsspec. A store
    that does not answer within ``timeout`` seconds is a row with that cause. ``progress`` is called with files done and
    in all.

    A file that cannot be judged is a row, never an exception. What is wrong with all files raises ``floodline.Error``.
    """
    from floodline._floodline import _change, _conclude, _judge

    _change(change)
    _conclude([], change, list(accept))
    if not (callable(engine) or engine in ENGINES):
        raise _error(f"unknown engine {engine!r}", f"one of {', '.join(ENGINES)}, or a function map(fn, batches)")
    options = dict(storage_options or {})
    names = files(paths, storage_options=options, timeout=timeout)
    if engine == "threads" and not any(map(_is_url, names)):
        # One call: the threads are in Rust.
        items = [(name, name) for name in names]
        return _conclude([_judge(items, change, tier, control, jobs, progress)], change, list(accept))
    judge = _Judge(dict(change), tier, control, options, timeout)
    go = ENGINES[engine] if isinstance(engine, str) else engine
    if engine == "threads":
        workers = jobs or os.cpu_count() or 1

        def go(fn: Callable[[_Batch], _Part], batches: Iterable[_Batch]) -> Iterable[_Part]:
            return ask_threads(fn, batches, workers=workers)

    return _conclude(_parts(go, judge, names, progress), change, list(accept))


def preflight(
    paths: _Path | Sequence[_Path],
    change: Mapping[str, str | int | float],
    *,
    tier: int = 2,
    control: float = 0.01,
    accept: Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Preflight:
    """Tells which hosts a change will make suffer, on the threads of this machine: ``fleet.run`` without an engine.

    The same as ``floodline preflight PATHS --set … --format json``.
    """
    return run(paths, change, tier=tier, control=control, accept=accept, jobs=jobs, progress=progress)


def _parts(
    engine: _Engine, judge: _Judge, names: list[str], progress: Callable[[int, int], object] | None
) -> list[_Rows]:
    """Runs a few files to learn how long one takes, then the rest in batches. Returns rows in the order of the names."""
    # Far apart: neighbours are often alike.
    step = max(1, len(names) // SAMPLE)
    sample = range(0, len(names), step)[:SAMPLE]
    parts: dict[int, _Rows] = {}
    seconds: list[float] = []
    done = 0

    def take(batches: dict[int, list[str]]) -> None:
        nonlocal done
        for number, rows, took, version in engine(judge, list(batches.items())):
            _same_version(version)
            if number not in batches or len(rows) != len(batches[number]):
                raise _error("the engine returned a result that belongs to no batch", "return what fn returns")
            if number not in parts:
                parts[number], done = rows, done + len(rows)
                seconds.append(took / max(1, len(rows)))
            if progress is not None:
                progress(done, len(names))
        missing = [number for number in batches if number not in parts]
        if missing:
            raise _error(f"the engine returned no result for {len(missing)} batches", "call fn once for each batch")

    take({at: [names[at]] for at in sample})
    size = max(1, min(MOST, int(SECONDS / max(1e-6, sum(seconds) / len(seconds)))))
    rest: dict[int, list[str]] = {}
    # A batch has the number of its first file, and stays between two files of the sample.
    for first, last in zip(sample, [*sample[1:], len(names)], strict=True):
        for at in range(first + 1, last, size):
            rest[at] = names[at : min(at + size, last)]
    if rest:
        take(rest)
    return [parts[number] for number in sorted(parts)]


def _same_version(version: str) -> None:
    from floodline._floodline import __version__

    if version != __version__:
        raise _error(
            f"a worker has floodline {version}, this machine has {__version__}",
            f"install the same version on the workers: pip install floodline=={__version__}",
        )


class _Judge:
    """Judges one batch, on whatever machine it is called."""

    def __init__(
        self, change: dict[str, str | int | float], tier: int, control: float, options: dict[str, Any], timeout: float
    ) -> None:
        self.asked = (change, tier, control)
        self.options, self.timeout = options, timeout

    def __call__(self, batch: _Batch) -> _Part:
        from floodline._floodline import __version__, _judge

        number, names = batch
        begun = time.perf_counter()
        contents = _contents(names, self.options, self.timeout)
        fetched, worked = time.perf_counter(), time.process_time()
        # The engine counts CPUs: one thread each.
        rows = _judge(contents, *self.asked, 1, None)
        # On a busy machine a worker waits for a CPU. That says nothing of how long the next files take.
        took = min(time.perf_counter() - fetched, time.process_time() - worked)
        return number, rows, fetched - begun + took, __version__


# Files and stores.


def _is_url(name: str) -> bool:
    return "://" in name and not os.path.exists(name)


def _filesystem(url: str, options: Mapping[str, Any]) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise _error(f"{url} needs fsspec", "pip install 'floodline[s3]', or fsspec and the store's own package") from None
    try:
        return fsspec.filesystem(url.split("://", 1)[0], **options)
    except (ImportError, ValueError) as error:
        raise _error(f"{url}: {error}", "install the store's package for fsspec, such as s3fs or gcsfs") from None


def files(
    paths: _Path | Sequence[_Path], *, storage_options: Mapping[str, Any] | None = None, timeout: float = 60.0
) -> list[str]:
    """Names of the recordings below some paths, in order and each once: what ``run`` looks at.

    Of a folder those that end in ``.flr`` count. A file that is named itself counts whatever its name is.
    """
    from functools import partial

    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[str, None] = {}
    for path in [os.fspath(path) for path in several]:
        if _is_url(path):
            listed = _in_time(partial(_in_store, path, storage_options or {}), timeout, path)
            if isinstance(listed, BaseException):
                hint = "check the address, the network and the credentials: storage_options={…}"
                raise listed if type(listed).__module__ == "floodline" else _error(f"{path}: {_said(listed)}", hint)
            found.update(dict.fromkeys(listed))
        elif os.path.isdir(path):
            found.update(dict.fromkeys(_below(path)))
        elif not os.path.exists(path) and any(mark in path for mark in "*?["):
            import glob

            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise _error(f"{path}: no file matches", "e.g. 'fleet/*.flr', or name the folder")
            for match in matches:
                found.update(dict.fromkeys(_below(match) if os.path.isdir(match) else [match]))
        else:
            found[path] = None
    if not found:
        raise _error(
            "nothing to judge: the paths contain no .flr file",
            "collect recordings: ssh HOST floodline record --for 60s -o - > fleet/HOST.flr",
        )
    return list(found)


def _below(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(".flr"))


def _in_store(url: str, options: Mapping[str, Any]) -> list[str]:
    store = _filesystem(url, options)
    if any(mark in url for mark in "*?["):
        names = store.glob(url)
    elif store.isdir(url):
        names = [name for name in store.find(url) if name.endswith(".flr")]
    else:
        names = [url]
    return sorted(store.unstrip_protocol(name) for name in names)


def _fetch(url: str, options: Mapping[str, Any]) -> bytes:
    content: bytes = _filesystem(url, options).cat_file(url)
    return content


def _contents(names: list[str], options: Mapping[str, Any], timeout: float) -> list[tuple[str, object]]:
    """What to judge for each name: a path, bytes, or why there are none. Fetches several files of a store at once."""
    from functools import partial

    contents: dict[str, object] = {name: name for name in names if not _is_url(name)}
    urls = [name for name in names if name not in contents]
    is_silent = False
    for at in range(0, len(urls), FETCHED):
        some = urls[at : at + FETCHED]
        if is_silent:
            # The store answered none of a whole round: more rounds would only wait.
            contents.update((url, TimeoutError(f"the store did not answer within {timeout:g} s")) for url in some)
            continue
        waits = [_begin(partial(_fetch, url, options)) for url in some]
        until = time.monotonic() + timeout
        is_silent = True
        for url, wait in zip(some, waits, strict=True):
            content = wait(max(0.0, until - time.monotonic()))
            if isinstance(content, TimeoutError) and not content.args:
                content = TimeoutError(f"the store did not answer within {timeout:g} s")
            else:
                is_silent = False
                content = OSError(_said(content)) if isinstance(content, BaseException) else content
            contents[url] = content
    return [(name, contents[name]) for name in names]


def _said(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error).strip() else type(error).__name__


def _begin(work: Callable[[], Any]) -> Callable[[float], Any]:
    """Starts work that may never end. The function that it returns waits and returns the result or the exception."""
    import threading

    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001: whatever a store's package raises is a row
            result.append(error)

    # A daemon: Python may end while a store still does not answer.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait(seconds: float) -> Any:
        thread.join(seconds)
        return result[0] if result else TimeoutError()

    return wait


def _in_time(work: Callable[[], Any], timeout: float, url: str) -> Any:
    result = _begin(work)(timeout)
    if isinstance(result, TimeoutError) and not str(result):
        raise _error(
            f"{url}: the store did not answer within {timeout:g} s",
            "check the address and the network, or wait longer: timeout=300",
        )
    return result


def _error(message: str, hint: str) -> Exception:
    from floodline._error import Error

    return Error(message, hint)


# Engines.


def ask_threads(fn: Callable[[_Batch], _Part], batches: Iterable[_Batch], *, workers: int | None = None) -> Iterator[_Part]:
    """Runs batches on threads of this process."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        yield from pool.map(fn, batches)


def ask_ray(fn: Callable[[_Batch], _Part], batches: Iterable[_Batch]) -> Iterator[_Part]:
    """Runs batches as Ray tasks. Ray repeats a task whose worker died. At most three batches per CPU wait at a time.

    Ray must be installed here and on the workers, and so must floodline. Without ``ray.init`` a cluster on this machine
    is started.
    """
    try:
        import ray
    except ImportError:
        raise _error("the engine ray needs Ray", "pip install 'floodline[ray]'") from None
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    task = ray.remote(num_cpus=1, max_retries=8)(_call)
    shared = ray.put(fn)
    most = 3 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    running: list[Any] = []
    for batch in batches:
        if len(running) >= most:
            ended, running = ray.wait(running)
            yield from map(_of_ray, ended)
        running.append(task.remote(shared, batch))
    while running:
        ended, running = ray.wait(running)
        yield from map(_of_ray, ended)


def _call(fn: Callable[[_Batch], _Part], batch: _Batch) -> _Part:
    return fn(batch)


def _of_ray(ended: Any) -> _Part:
    import ray

    try:
        part: _Part = ray.get(ended)
        return part
    except Exception as error:
        raise _told(error) from error


def ask_dask(fn: Callable[[_Batch], _Part], batches: Iterable[_Batch]) -> Iterator[_Part]:
    """Runs batches on the current Dask client, or on a cluster on this machine. Dask repeats what a dead worker had."""
    from itertools import islice

    try:
        from distributed import Client, as_completed, get_client
    except ImportError:
        raise _error("the engine dask needs Dask", "pip install 'floodline[dask]'") from None
    try:
        client, mine = get_client(), None
    except ValueError:
        client = mine = Client(dashboard_address=None)
    try:
        most = 3 * max(1, sum(client.nthreads().values()))
        begin = (client.submit(fn, batch, pure=False, retries=3) for batch in batches)
        ended = as_completed(list(islice(begin, most)))
        for future in ended:
            try:
                yield future.result()
            except Exception as error:
                raise _told(error) from error
            ended.update(list(islice(begin, 1)))
    finally:
        if mine is not None:
            mine.close()


def _told(error: Exception) -> Exception:
    """What a person can do about an exception of an engine."""
    from floodline._error import Error
    from floodline._floodline import __version__

    cause = getattr(error, "cause", None) or error.__cause__ or error
    if isinstance(cause, Error):
        return cause
    text = f"{error}\n{cause}"
    if "No module named 'floodline" in text or isinstance(cause, ModuleNotFoundError):
        return _error(
            "a worker of the engine cannot import floodline",
            f"install it there: pip install floodline=={__version__}; with Ray: "
            f'ray.init(runtime_env={{"pip": ["floodline=={__version__}"]}})',
        )
    lines = [line for line in text.splitlines() if line.strip()]
    return _error(f"the engine failed: {lines[-1].strip() if lines else type(error).__name__}", "see the exception below it")


ENGINES: dict[str, _Engine] = {"threads": ask_threads, "ray": ask_ray, "dask": ask_dask}
