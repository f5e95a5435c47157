"""`blklab tune`: searches, confirms, and shows what was found."""

from __future__ import annotations

import time
from pathlib import Path

from blklab.backends import Workers
from blklab.cli.kept_runs import say_what_is_kept
from blklab.cli.output import require_writable, write_own_text, write_text
from blklab.errors import BlklabError, InterruptedRunError
from blklab.labs.tuning.document import TuneDocument
from blklab.labs.tuning.page import tune_html
from blklab.labs.tuning.text import finalist_rows, headline, next_step, sentences
from blklab.labs.tuning.trials import Trial
from blklab.labs.tuning.tuning import Preparation, TuningRequest, prepare, tune
from blklab.progress.experiment import ProgressDisplay
from blklab.quantities.formatting import scheduler_text
from blklab.quantities.sample_units import rough_duration
from blklab.records.locations import default_report_folder
from blklab.records.store import Store
from blklab.report.terminal import console_out, print_note
from blklab.spec.request import SpecValues, build_specs


class _TuningDisplay(ProgressDisplay):
    """Progress of the search, then of the confirmation."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._begun_ns = time.monotonic_ns()

    def searching(self, done: int, planned: int, best: Trial | None, gain: float) -> None:
        """A batch of trials begins."""
        remaining_ns = (time.monotonic_ns() - self._begun_ns) * (planned - done) // max(done, 1)
        left = f", {rough_duration(remaining_ns)} left" if done else ""
        found = (
            "" if best is None else f"; best so far {scheduler_text(best.choice.label)}, {100 * gain:+.1f} %"
        )
        self.show("searching the model", f"{done}/{planned}{left}{found}")
        self.move(done, planned)
        self.log_now_and_then(f"trial {done + 1}/{planned}{left}{found}")


def tune_and_show(
    *,
    given: SpecValues,
    model: str | None,
    trials: int,
    vary: tuple[str, ...],
    workers: Workers,
    dry_run: bool,
    json_file: str | None,
    html_file: str | None,
    store_url: str | None,
    quiet: bool,
) -> None:
    """Searches and confirms, and prints and writes what was found."""
    (spec,) = build_specs(given)
    names = tuple(name.strip() for text in vary for name in text.split(",") if name.strip())
    request = TuningRequest(spec, model, trials, names)
    if dry_run:
        _print_space(prepare(request, dry_run=True))
        return
    require_writable(json_file, html_file)
    with Store.opened(store_url) as store:
        try:
            with _TuningDisplay(quiet=quiet) as display:
                document = TuneDocument.of(tune(request, store, display, workers=workers))
        except (BlklabError, InterruptedRunError) as error:
            say_what_is_kept(store, display.run_id, error)
            raise
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2) + "\n")
    if html_file is not None or json_file is None:
        run = document.confirmation.run if document.confirmation is not None else "search"
        destination = html_file or str(default_report_folder() / f"tune-{run}.html")
        if html_file:
            write_text(html_file, tune_html(document))
        else:
            write_own_text(Path(destination), tune_html(document))
        if not quiet:
            print_note(f"the report is {destination}")
    if json_file != "-":
        _print(document)


def _print_space(preparation: Preparation) -> None:
    console = console_out()
    console.print(
        f"{preparation.space.size:,} candidates, searched on {preparation.model}",
        soft_wrap=True,
    )
    for scheduler, settings in preparation.space.settings.items():
        console.print(f"{scheduler}")
        for setting in settings:
            values = " ".join(value or "default" for value in setting.values)
            console.print(f"  {setting.name}: {values}", soft_wrap=True)


def _print(document: TuneDocument) -> None:
    console = console_out()
    console.print(headline(document), style="bold", soft_wrap=True)
    for sentence in sentences(document):
        console.print(sentence)
    rows = finalist_rows(document)
    if rows:
        console.print()
    for candidate, modelled, measured in rows:
        console.print(f"  {candidate}", soft_wrap=True)
        console.print(f"    model {modelled}; measured {measured}")
    if (step := next_step(document)) is not None:
        console.print()
        console.print(f"next: {step}", soft_wrap=True)
