"""What a host answers that is no answer: one line with its name, and nothing of it is used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncssh
import pytest

from vmlab.fleet.asset_files import AssetFiles
from vmlab.fleet.host_answers import Lacking, Rows, Started
from vmlab.fleet.link import HostLink, HostLost
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.asset import Asset
from vmlab.model.errors import CommandFailed, VmlabError


def _link(line: bytes) -> HostLink:
    """A line to a host that answers every question with `line`."""
    heard = asyncio.StreamReader()
    process = SimpleNamespace(
        stdin=SimpleNamespace(write=lambda question: heard.feed_data(line + b"\n")),
        stdout=heard,
        stderr=asyncio.StreamReader(),
    )
    connection = SimpleNamespace(abort=heard.feed_eof)
    return HostLink("hv1", cast(asyncssh.SSHClientConnection, connection), process, "vmlab")


async def _asked(line: bytes, answer: Any = Started) -> VmlabError:
    """What the question fails with."""
    link = _link(line)
    try:
        with pytest.raises(VmlabError) as raised:
            await link.ask(answer, "start", deadline=20.0)
        assert str(raised.value).startswith("host hv1")
        assert "\n" not in str(raised.value)
        assert str(raised.value).isprintable()
        return raised.value
    finally:
        await link.close()


@pytest.mark.parametrize(
    "line",
    [b"[]", b"7", b"null", b"{}", b"no JSON", b"\xff\xfe", b'{"id": []}', b'{"id": {}}', b'{"id": "1"}', b"[" * 10**6],
)
async def test_a_line_that_is_no_answer_cuts_the_line(line: bytes) -> None:
    """Nothing that comes after it could be trusted."""
    assert isinstance(await _asked(line), HostLost)


@pytest.mark.parametrize("code", [[], {}, "2", None, 1e400, 99])
async def test_a_failure_of_any_code_is_a_failure(code: object) -> None:
    """Its text is one line without control characters."""
    body = {"id": 1, "ok": False, "error": "a\x1b[2J\nb", "exit_code": code}
    assert isinstance(await _asked(json.dumps(body).encode()), CommandFailed)


_RUN: dict[str, Any] = {"run": "a-run", "cells": []}
_ROWS: dict[str, Any] = {"events": [], "seen": 0, "layouts": [], "samples": [], "alive": True}
_SAMPLE: dict[str, Any] = {"row": 1, "layout": 1, "wall": 1.0, "mono": 1.0, "body": "AAAA"}


@pytest.mark.parametrize(
    ("answer", "good", "bad"),
    [
        (Started, _RUN, None),
        (Started, _RUN, []),
        (Started, _RUN, {"run": "../../etc"}),
        (Started, _RUN, {"run": "-oProxyCommand"}),
        (Started, _RUN, {"cells": [{}] * 10001}),
        (Started, _RUN, {"cells": [{"index": -1, "axes": {}, "repeat": 1}]}),
        (Started, _RUN, {"cells": [{"index": 1, "axes": {"cache": []}, "repeat": 1}]}),
        (Lacking, {"names": ["unixbench"]}, {"names": "unixbench"}),
        (Lacking, {"names": ["unixbench"]}, {"names": ["unixbench"] * 101}),
        (Rows, _ROWS, {"seen": -1}),
        (Rows, _ROWS, {"seen": 2**63}),
        (Rows, _ROWS, {"alive": "maybe"}),
        (Rows, _ROWS, {"events": [{"row": 1, "body": "{}"}] * 501}),
        (Rows, _ROWS, {"samples": [_SAMPLE | {"body": "not base64!"}]}),
        (Rows, _ROWS, {"samples": [_SAMPLE | {"wall": float("nan")}]}),
        (Rows, _ROWS, {"samples": [_SAMPLE | {"mono": 1e300}]}),
        (Rows, _ROWS, {"layouts": [{"id": 1, "names": [""], "units": ["s"]}]}),
    ],
)
async def test_an_answer_out_of_its_bounds_is_refused(answer: Any, good: dict[str, Any], bad: Any) -> None:
    """With the key that is wrong; the good answer, of which it differs by that, is taken."""
    answer.model_validate(good)
    body = good | bad if isinstance(bad, dict) else bad
    failure = await _asked(json.dumps({"id": 1, "ok": True, "answer": body}).encode(), answer)
    assert isinstance(failure, CommandFailed)
    assert "answered nonsense to start" in str(failure)


async def test_a_host_lacks_no_asset_that_the_run_does_not_have(tmp_path: Path) -> None:
    """Nothing else is read or sent, and what it names does not reach a terminal."""
    link = _link(json.dumps({"id": 1, "ok": True, "answer": {"names": ["../\x1b[2Jsecret"]}}).encode())
    assets = AssetFiles(RunFolder("a-run", tmp_path), [Asset("unixbench", "/nowhere", "0" * 64, 1)])
    told: list[str] = []
    try:
        with pytest.raises(CommandFailed, match="host hv1 answered nonsense to lacking: names: ") as raised:
            await assets.send_lacking(link, told.append)
        assert str(raised.value).isprintable()
    finally:
        await link.close()
    assert told == []
    assert not list(tmp_path.iterdir())
