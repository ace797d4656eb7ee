"""Commands, options, scenarios and exit codes that the pages name: each is one that the program has.

Links are held by `make docs`; tables that are made from the program by the tests beside their generators.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from tests.cli.option_pages import GENERATED, current
from tests.cli.prose import HABITS, habits, long_sentences, sentences, without_generated, words_by_page
from vmlab.cli.main import COMMANDS
from vmlab.model.errors import ExitCode
from vmlab.model.scenarios.scenario import Limits, Scenario
from vmlab.plan.scenario_file.loading import read

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"),
]
_CODE = re.compile(r"^(?:    |\t)(?:\$ )?(vmlab .*)$|`(vmlab [^`]+)`", re.MULTILINE)
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"(--[a-z][a-z-]*)")


def named(page: Path) -> Iterator[str]:
    """The commands in code of a page, without comments and what follows a pipe."""
    for block, inline in _CODE.findall(page.read_text(encoding="utf-8")):
        yield re.split(r"\s#|[|>;&]", block or inline)[0].strip()


def options_of(command: click.Command) -> set[str]:
    found = {"--help", "--version", "--no-mouse", "--theme"}
    for param in command.params:
        found |= {*param.opts, *param.secondary_opts}
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        found |= options_of(inner)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_commands_and_options_that_there_are(page: Path) -> None:
    wrong = []
    for line in named(page):
        words = line.replace("…", "").split()
        # `show RUN, compare RUN` and the like stand for several commands.
        name = words[1].rstrip(",") if len(words) > 1 else ""
        if name.startswith(("-", "[", "(", "<")) or not name.islower() or "_" in name:
            continue
        known = options_of(COMMANDS[name].load()) if name in COMMANDS else None
        if known is None or ("," not in words[0] and not {*_OPTION.findall(line)} <= known | _of_others(line)):
            wrong.append(line)
    assert wrong == []


def _of_others(line: str) -> set[str]:
    """Options of further commands in a line that names several."""
    others = [COMMANDS[name].load() for name in re.findall(r"[,/] ([a-z]+)", line) if name in COMMANDS]
    return {option for command in others for option in options_of(command)}


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(page, block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(_YAML.findall(page.read_text(encoding="utf-8")), start=1)
    ],
)
def test_a_part_of_a_scenario_has_parts_that_there_are(page: Path, block: str) -> None:
    found = YAML(typ="safe", pure=True).load(block)
    assert found.keys() <= Scenario.model_fields.keys()
    if {"guests", "workloads"} <= found.keys():
        assert read(page, block if "name" in found else f"name: shown\n{block}").scenario.workloads.keys()


def test_every_page_on_a_scenario_has_one_that_is_valid() -> None:
    text = (ROOT / "docs" / "how-to" / "own-scenario.md").read_text(encoding="utf-8")
    block = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    ") or not line)
    found = read(Path("own.yaml"), block)
    assert [*found.scenario.workloads] == ["disk"]


def test_the_page_on_exit_codes_has_all_of_them() -> None:
    text = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    codes = {int(code) for row in re.findall(r"^\| ([0-9, ]+) \|", text, re.MULTILINE) for code in row.split(",")}
    assert codes == {int(code) for code in ExitCode}


def test_the_page_on_invalid_cells_has_every_limit_with_its_default() -> None:
    text = (ROOT / "docs" / "explanation" / "validity.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([\d.]+) (%|ms|MiB)[^|]* \| `(\w+)` \|$", text, re.MULTILINE)
    units = {"%": 1.0, "ms": 1e-3, "MiB": 2.0**20}
    told = {name: float(number) * units[unit] for number, unit, name in rows}
    assert told == {field.alias or name: field.default for name, field in Limits.model_fields.items()}


def test_the_readme_is_one_page() -> None:
    words = re.sub(r"\]\([^)]*\)", "]", (ROOT / "README.md").read_text(encoding="utf-8")).split()
    assert len(words) <= 700


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|sh|c|pl|toml))`")


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_a_page_and_names_files_that_there_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Decision 8 has tables of all that may remove, kill and mount.
    assert len(text.split()) <= 300 or page.stem.startswith("0008-")
    assert [
        name for name in _FILE.findall(text) if not any((ROOT / top / name).exists() for top in ("", "vmlab"))
    ] == []


def _held(page: Path, name: str, rows: list[str]) -> None:
    """The lines of a page between two comments are these; ``VMLAB_GOLDEN=write`` writes them."""
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(f"<!-- {name} -->\n")
    made = "\n".join([f"{head}<!-- {name} -->", *rows, f"<!-- end -->{rest.partition('<!-- end -->')[2]}"])
    if os.environ.get("VMLAB_GOLDEN") == "write":
        page.write_text(made, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == made


def test_the_list_of_decisions_has_each_with_its_successor() -> None:
    rows = []
    for page in DECISIONS:
        title, _, status = page.read_text(encoding="utf-8").splitlines()[:3]
        superseded = re.search(r"superseded by \[decision \d+\]\([^)]+\)", status)
        rows.append(f"- [{title.lstrip('# ')}]({page.name})" + (f" ({superseded[0]})" if superseded else ""))
    _held(ROOT / "docs" / "decisions" / "index.md", "decisions", rows)


def test_the_page_on_the_command_line_lists_every_command() -> None:
    rows = [f"| `{name}` | {command.summary} |" for name, command in COMMANDS.items()]
    _held(ROOT / "docs" / "reference" / "command-line.md", "commands", ["| command | |", "| --- | --- |", *rows])


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_options_and_keys_in_the_pages_are_those_of_the_program(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == current(page), "run `python -m tests.cli.option_pages`"


@pytest.mark.parametrize("page", PAGES + DECISIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_comment_in_place_of_its_content(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"<!-- generated|<!-- [^>]*-->\n\s*<!-- end -->", text) == []
    assert text.count("<!-- end -->") == len(re.findall(r"<!-- (?!tried: |end )[^>]*-->", text))


_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def _anchors(page: Path) -> set[str]:
    """Of the headings of a page, those that the site and a forge make alike: a forge keeps each space as a dash."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        text = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        found |= {text.replace(" ", "-")} & {re.sub(r"[-\s]+", "-", text)}
    return found


@pytest.mark.parametrize("page", PAGES + DECISIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_in_the_repository_too(page: Path) -> None:
    wrong = []
    for file, anchor in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        there = page.parent / file if file else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in _anchors(there)):
            wrong.append(f"{file}#{anchor}")
    assert wrong == []


def test_the_readme_counts_scenarios_as_there_are() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    ((every, published),) = re.findall(r"\[(\d+) scenarios\]\([^)]*\), (\d+) with published", text)
    scenarios = [file.read_text(encoding="utf-8") for file in (ROOT / "scenarios").glob("*.yaml")]
    assert int(every) == len(scenarios)
    assert int(published) == sum("\nreference:\n" in one for one in scenarios)


_RUN_ON = re.compile(r"^(?![|\-\s#<]|\d+\. ).+\n(?:\|.*\n\| ?:?-|- |1\. )", re.MULTILINE)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_or_a_list_begins_a_block_or_the_site_shows_its_source(page: Path) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    assert _RUN_ON.findall(text) == []


def test_a_broken_link_fails_the_build_of_the_site(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"^docs:.*\n\t@(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    # Two pages by the settings of all, which `make docs` builds.
    shutil.copytree(ROOT / "packaging", tmp_path / "packaging")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[0]
    (tmp_path / "mkdocs.yml").write_text(f"{settings}\nnav: [index.md, install.md]\n", encoding="utf-8")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "install.md").write_text("# Install\n\n## From a checkout\n", encoding="utf-8")
    ended = {}
    for link in ("install.md#from-a-checkout", "install.md#no-such-heading", "no-such-page.md"):
        (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n[Install]({link})\n", encoding="utf-8")
        done = subprocess.run(["sh", "-c", recipe], cwd=tmp_path, capture_output=True, text=True)
        ended[link.rpartition("#")[2]] = done.returncode, done.stderr
    assert ended.pop("from-a-checkout")[0] == 0
    assert all(code != 0 and name in said for name, (code, said) in ended.items()), ended


STYLE = Path(__file__).with_name("prose_bounds.txt")
WRITTEN = [page for page in PAGES + DECISIONS if "experiments" not in (page.stem, page.parent.name)]
"""Without the pages that a program makes of scenarios and results."""


def _counted(page: Path) -> dict[str, int]:
    text = without_generated(page.read_text(encoding="utf-8"))
    return {"habits": sum(habits(text).values()), "long": len(long_sentences(text))}


def _bounds() -> dict[str, dict[str, int]]:
    rows = [line.split() for line in STYLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {name: {"habits": int(words), "long": int(long)} for name, words, long in rows}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_more_habits_and_long_sentences_than_it_had(page: Path) -> None:
    text = without_generated(page.read_text(encoding="utf-8"))
    counted, most = _counted(page), _bounds().get(str(page.relative_to(ROOT)), {"habits": 0, "long": 0})
    found = {name: number for name, number in habits(text).items() if number}
    assert counted["habits"] <= most["habits"], f"write another word (tests/cli/prose.py): {found}"
    assert counted["long"] <= most["long"], "\n".join(long_sentences(text))


def test_the_bounds_of_prose_only_fall() -> None:
    """``VMLAB_GOLDEN=write`` lowers them to what pages have now; pages that are not listed have neither."""
    bounds = _bounds()
    if os.environ.get("VMLAB_GOLDEN") == "write":
        now = {str(page.relative_to(ROOT)): _counted(page) for page in WRITTEN}
        least = {name: {kind: min(one[kind], bounds.get(name, one)[kind]) for kind in one} for name, one in now.items()}
        head = (
            "# Habits of prose (tests/cli/prose.py) and sentences of over 30 words, at most: numbers here only fall.\n"
        )
        rows = [f"{name} {one['habits']} {one['long']}\n" for name, one in sorted(least.items()) if any(one.values())]
        STYLE.write_text(head + "".join(rows), encoding="utf-8")
        bounds = _bounds()
    assert [name for name in bounds if not (ROOT / name).exists()] == []
    assert all(any(one.values()) for one in bounds.values())


WORDS = 60_000
"""Of all pages in `docs/` without decisions and what programs write, hand-written tables included; it only falls.

``python -m tests.cli.prose`` counts, page by page.
"""


def test_all_pages_together_are_no_longer_than_they_were() -> None:
    assert sum(words_by_page().values()) <= WORDS


def test_prose_is_told_from_code_tables_and_lists() -> None:
    text = "Two words.\n\n    vmlab figure\n\n| a figure |\n| - |\n\n- First `figure`, [link](figure.md).\n- Two.\n"
    assert list(sentences(text)) == ["Two words.", "- First CODE, link.", "- Two."]
    assert not any(habits(text).values())
    assert habits("It stands in that of a figure, where nobody looks.") == {
        **dict.fromkeys(HABITS, 0), "stand": 1, "that of": 1, "nobody, nothing": 1, "figure": 1, "look": 1
    }  # fmt: skip
    assert len(long_sentences(" ".join(["word"] * 31) + ". " + " ".join(["Word"] * 30) + ".")) == 1
    assert without_generated("a\n<!-- rows -->\n| figure |\n<!-- end -->\nb") == "a\n\nb"
