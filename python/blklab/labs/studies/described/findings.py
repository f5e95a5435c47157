"""Reads the records of a described study: its values, statements, pictures and remarks."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.described.decisions import decided
from blklab.labs.studies.described.drawings import drawn
from blklab.labs.studies.described.measured import StudyRuns
from blklab.labs.studies.described.rows import table_rows
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.result import StudyResult
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord


def read_described(
    options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Compares the records with the published values, as ``study.toml`` says, table by table."""
    measured, backend = StudyRuns(folder, records), options.backend
    found = measured.description
    rows = [row for one in found.values if one.is_on(backend) for row in table_rows(measured, one)]
    tables = list(dict.fromkeys(row.value.table for row in rows))
    rows.sort(key=lambda row: tables.index(row.value.table))
    statements = [decided(measured, one, rows) for one in found.statements if one.is_on(backend)]
    pictures = [drawn(measured, one, rows, backend) for one in found.pictures if one.is_on(backend)]
    return StudyResult(
        [row.value for row in rows if not row.hidden],
        [one for one in statements if one is not None],
        [one for one in pictures if one is not None],
        [one.says for one in found.remarks if one.is_on(backend)],
    )
