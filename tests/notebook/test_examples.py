"""The example notebooks run from top to bottom, in a kernel of their own, and ship without outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))
PATIENCE_SECONDS = 300


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    for library in ("altair", "ipykernel", "pandas", "polars"):
        pytest.importorskip(library, reason=f"needs {library}")
    # The kernel's own settings and history must not come from, or go to, the user's home.
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "clear the outputs"
    nbclient.NotebookClient(
        notebook,
        timeout=PATIENCE_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    for cell in code:
        assert cell.outputs, f"shows no result: {cell.source}"
        assert all(
            output.output_type != "error" and output.get("name") != "stderr" for output in cell.outputs
        )


def test_there_are_three() -> None:
    assert len(EXAMPLES) >= 3
