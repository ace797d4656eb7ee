"""Pictures that are joined to one that moves: each is shown whole in its time, and one of them without motion."""

from __future__ import annotations

import re
from collections import Counter

from lxml import etree
from textual.app import App, ComposeResult
from textual.widgets import Static

from screenshots.moving import Part, moving, picture_of

_SVG = "{http://www.w3.org/2000/svg}"
SECONDS = (1.0, 2.0, 1.0)


class Told(App[None]):
    """Two lines, one of which changes."""

    def compose(self) -> ComposeResult:
        yield Static("the same in all", id="same")
        yield Static("", id="told")


async def taken() -> list[str]:
    """Three pictures; the first and the last are equal."""
    app = Told()
    found = []
    async with app.run_test(size=(40, 5)) as pilot:
        for text in ("one & <two>", "[bold red]three[/] ", "one & <two>"):
            app.query_one("#told", Static).update(text)
            await pilot.pause()
            found.append(app.export_screenshot())
    return found


def seen(svg: str, percent: float | None) -> Counter[tuple[str, str]]:
    """Kind and text of what is seen at a time, in percent of the whole; without motion for None."""
    root = etree.fromstring(svg.encode())
    style = "".join(map(str, root.itertext(f"{_SVG}style")))
    groups = root.findall(f"{_SVG}g/{_SVG}g[@class]")
    found: Counter[tuple[str, str]] = Counter()
    for group in groups:
        name = group.get("class", "")
        rest = re.search(rf"\.{name}{{visibility:(\w+);", style)
        steps = re.search(rf"@keyframes {name}{{(.*)}}\n", style)
        visible = "visible" if rest is None else rest[1]
        if percent is not None and steps is not None:
            for at, state in re.findall(r"([\d.]+)%{visibility:(\w+)}", steps[1]):
                visible = state if float(at) <= percent else visible
        if visible == "visible":
            found.update((str(element.tag), element.text or "") for element in group)
    return found


def parts(svg: str) -> Counter[tuple[str, str]]:
    def kind(part: Part) -> str:
        return f"{_SVG}{'text' if part.is_text else 'rect'}"

    return Counter((kind(part), part.text) for part in set(picture_of(svg).parts))


async def test_each_picture_is_whole_in_its_time_and_one_of_them_without_motion() -> None:
    pictures = await taken()
    whole = [parts(picture) for picture in pictures]
    assert whole[0] != whole[1] and any("one" in text for _, text in whole[0])
    for still in (0, 1):
        film = moving(pictures, SECONDS, still)
        assert [seen(film, percent) for percent in (0, 24, 26, 74, 76, 99)] == [
            whole[number] for number in (0, 0, 1, 1, 2, 2)
        ]
        assert seen(film, None) == whole[still]


async def test_what_stands_in_several_pictures_is_written_once_and_nothing_is_loaded() -> None:
    film = moving(await taken(), SECONDS, 0)
    assert film.count("all</text>") == 1
    assert "http" not in film.replace("http://www.w3.org/2000/svg", "") and "<script" not in film
