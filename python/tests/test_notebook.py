# SPDX-License-Identifier: MIT OR Apache-2.0
"""The worked notebook runs from its first cell to its last, and its plots are there."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "fleet.ipynb"


@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    plots = [output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {})]
    texts = "".join(output.get("text", "") for cell in cells for output in cell.outputs)
    assert len(plots) == 3
    assert "suffer" in texts and "UNKNOWN" in texts
    assert cells[-1].outputs[0]["data"]["text/html"].startswith("<iframe")


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
