"""What the pages on experiments say of themselves."""

PREFACE = """\
# Experiments

Most shipped scenarios repeat a published experiment. `vmlab run NAME` measures it. `vmlab show last --reference`
prints the published values beside yours and answers the publication's claims.

An answer holds for the machine and the size listed beside it. It comes from [the interval of the
difference](../explanation/statistics.md#claims), with at least as many repeats as the claim needs. Two entries are not
answers:

- *Not answerable here*: the host or the size rules out an answer. Most of these claims say what virtualization costs,
  but guests here were emulated ([rules](../decisions/0052-claims-without-an-answer-here.md)). On a host with KVM,
  `make experiments HOST=kvm` tests them.
- *Not asked yet*: the claim is newer than the kept run, or no run is kept.

Size `full` has the publication's amounts; `published` also limits the host to the published size. `demo` and `smoke`
have smaller amounts, so only ratios and directions are comparable with the publication. Claims undecided at `smoke`
were tested again at `demo`, which gave their answers ([why](../decisions/0040-answers-to-claims.md)).
"""

COUNTED = """\
Each claim of a publication is counted once. Our own claims, and claims that restate another, are counted apart. Each
publication's page lists claims with the comparisons that decide them."""

LEGEND = """\
*Theirs* are published values, *ours* come from runs here. `tcg` marks values of emulated guests. `!` marks what the
publication's own numbers contradict. *The bound is ours* means that we chose the tolerance, difference
or value, as none is printed. *By
ticks* marks runs from before 2026-11-28, whose host metrics are sums over one-second ticks
([why](../../decisions/0045-counters-at-the-ends-of-a-cell.md))."""

MADE = """\
`python -m tests.experiments.page` writes these pages from the scenarios and from `docs/evidence/experiments/`. `make
test-experiments EXPERIMENTS=--record` keeps results of one repeat. `make experiments EXPERIMENTS=--record` keeps
answers from as many repeats as claims need; `EXPERIMENTS="--again --record"` keeps those of another day."""
