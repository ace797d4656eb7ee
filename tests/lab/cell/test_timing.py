"""Deadlines fit the host: what boots side by side shares its processors."""

import pytest

from vmlab.lab.provision.timing import USUAL


@pytest.mark.parametrize(("guests", "cpus", "times"), [(1, 1, 1), (4, 1, 4), (4, 2, 2), (4, 8, 1), (2, 4, 1)])
def test_templates_that_share_processors_have_longer(guests: int, cpus: int, times: int) -> None:
    assert USUAL.template_of(guests, cpus) == USUAL.boot_template * times
