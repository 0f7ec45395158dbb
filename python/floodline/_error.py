# SPDX-License-Identifier: MIT OR Apache-2.0
"""The one exception of the package. It is a class of Python so that engines can send it from process to process."""

from __future__ import annotations


class Error(Exception):
    """A call has no result. ``hint`` says what to type next; it is ``None`` where there is nothing to add.

    >>> import floodline
    >>> try:
    ...     floodline.simulate("dirty-clif")
    ... except floodline.Error as error:
    ...     print(error.hint)
    a scenario of this package: dirty-cliff
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


Error.__module__ = "floodline"
