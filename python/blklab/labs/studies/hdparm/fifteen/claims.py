"""Checks the document's conclusions in runs in randomised blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.spread import spread_ratio
from blklab.labs.studies.hdparm.fifteen.set_up import BFQ, TUNED
from blklab.labs.studies.hdparm.jobs import BUFFERED, CACHED, TESTS
from blklab.labs.studies.hdparm.timing_tests import (
    WHY_EQUAL,
    ByBlock,
    best_other,
    extreme_ratio,
    mebibyte_rates,
    paired_ratios,
)
from blklab.labs.studies.replication.result import Estimate, Statement, StatementOutcome
from blklab.labs.studies.replication.statements import CONFIDENCE, equal, estimate_text, greater, mean_of
from blklab.records.experiment import ExperimentRecord

KYBER, MQ_DEADLINE, NONE = "kyber", "mq-deadline", "none"

_WHY_NO_TUNING = {
    CACHED: WHY_EQUAL[CACHED],
    BUFFERED: "slice_idle and timeout_sync divide the disk between several processes, and the expiry times "
    "order waiting requests; one reader has neither",
}


def claim_statements(record: ExperimentRecord) -> Iterator[Statement]:
    """First the statement that all schedulers are equal, then each published conclusion."""
    rates = {test: mebibyte_rates(record, test) for test in TESTS}
    for test, printed in TESTS.items():
        pair, ratio = extreme_ratio(rates[test])
        yield equal(
            f"{test}-equal",
            f"In {printed} no two of the five settings differ by 2 % ({pair})",
            ratio,
            why=WHY_EQUAL[test],
        )
    cached, buffered = rates[CACHED], rates[BUFFERED]
    second = best_other(cached, KYBER)
    yield greater(
        "kyber-fastest",
        "kyber is fastest in cached reads",
        mean_of(paired_ratios(cached, KYBER, second)),
        why=f"against {second}",
    )
    yield greater(
        "kyber-over-mq-deadline",
        "kyber is faster than mq-deadline in cached reads",
        mean_of(paired_ratios(cached, KYBER, MQ_DEADLINE)),
    )
    yield scatter(
        "kyber-steady",
        "kyber scatters less than bfq and none in cached reads",
        cached,
        [(one, KYBER) for one in (BFQ, NONE)],
    )
    yield equal(
        "kyber-as-good",
        "kyber is as good as the best, mq-deadline, in buffered reads",
        mean_of(paired_ratios(buffered, KYBER, MQ_DEADLINE)),
        origin="published",
    )
    for test, printed in TESTS.items():
        yield scatter(
            f"bfq-scatters-{test}",
            f"Default bfq scatters most in {printed}",
            rates[test],
            [(BFQ, other) for other in (MQ_DEADLINE, KYBER, NONE)],
        )


def tuning_statements(record: ExperimentRecord) -> Iterator[Statement]:
    """The tuned bfq compared with the default one, in pairs."""
    for test, printed in TESTS.items():
        rates = mebibyte_rates(record, test)
        ratio = mean_of(paired_ratios(rates, TUNED, BFQ))
        yield greater(f"tuning-raises-{test}", f"Tuning bfq raised {printed}", ratio)
        yield scatter(f"tuning-steadies-{test}", f"Tuning bfq steadied {printed}", rates, [(BFQ, TUNED)])
        yield equal(
            f"tuning-without-effect-{test}",
            f"The tuned bfq differs from the default one by less than 2 % in {printed}, in pairs",
            ratio,
            why=_WHY_NO_TUNING[test],
        )


def scatter(name: str, says: str, rates: ByBlock, pairs: Sequence[tuple[str, str]]) -> Statement:
    """States that the first scheduler of each pair scatters more than the second.

    Schedulers with the same value in every block scatter alike, which comparing two samples could not show.
    """
    outcomes: list[StatementOutcome] = []
    found = []
    for more, less in pairs:
        spread = spread_ratio(*(Sample(list(rates[label].values())) for label in (more, less)))
        if set(paired_ratios(rates, more, less)) == {1.0} or spread is None:
            outcomes.append("fails")
            found.append(f"{more} and {less}: the same in every block")
            continue
        ratio = Estimate(spread.ratio, *spread.interval(CONFIDENCE))
        outcomes.append(greater(name, says, ratio).outcome)
        found.append(f"{more} over {less} {estimate_text(ratio)}")
    outcome: StatementOutcome = (
        "fails" if "fails" in outcomes else "undecided" if "undecided" in outcomes else "holds"
    )
    return Statement(name, says, "published", outcome, "standard deviations: " + "; ".join(found))
