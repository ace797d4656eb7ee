"""What the pages on experiments say of themselves."""

PREFACE = """\
# Experiments

Most shipped scenarios repeat an experiment of a publication. `vmlab run NAME` measures it. `vmlab show last
--reference` prints the published values beside yours and answers the publication's claims.

An answer holds for the machine and the size beside it. It comes from [the interval of the
difference](../explanation/statistics.md#claims), with at least as many repeats as the claim needs. Two are no answers:

- *Not answerable here*: the host or the size rules an answer out. Most of these claims say what virtualization costs,
  and guests here were emulated ([rules](../decisions/0052-claims-without-an-answer-here.md)). On a host with KVM,
  `make experiments HOST=kvm` asks them.
- *Not asked yet*: the claim is newer than the kept run, or was never run.

Size `full` has the publication's amounts. `published` also limits the host to the publication's. `demo` and `smoke`
have smaller amounts: only ratios and directions compare with the publication. Claims that stayed open at `smoke` were
asked again at `demo`, and have the answers of `demo` ([why](../decisions/0040-answers-to-claims.md)).
"""

COUNTED = """\
Each claim of a publication is counted once. Claims of our own, and claims that restate another, are counted apart. The
publication's page has each claim with the comparison that decides it."""

LEGEND = """\
*Theirs* are published values, *ours* come from runs here. `tcg` marks values of emulated guests. `!` marks what the
publication's own numbers contradict. *The bound is ours* where the publication does not print how far values may
differ. *By ticks*: the run is older than 2026-11-28, when values of the host were summed by ticks of a second
([why](../../decisions/0045-counters-at-the-ends-of-a-cell.md))."""

MADE = """\
`python -m tests.experiments.page` writes these pages from the scenarios and from `docs/evidence/experiments/`. `make
test-experiments EXPERIMENTS=--record` keeps results of one repeat. `make experiments EXPERIMENTS=--record` keeps
answers with the repeats that claims need, and `EXPERIMENTS="--again --record"` answers of the
same command on another day."""
