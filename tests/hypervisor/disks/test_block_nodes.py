"""Disks are opened again with every option that they had; QEMU's own block layer answers, in its storage daemon."""

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.block_layer import BlockLayer, block_layer, file_node, format_node, restored_guest
from tests.hypervisor.conftest import Start
from tests.hypervisor.libvirt.test_domain_xml import ON_BLOCK, ON_FILE
from vmlab.hypervisor.disks.cache_proof import direct_flags, open_flags
from vmlab.hypervisor.disks.cache_switch import BlockNodes, Definition, definitions_among, definitions_in
from vmlab.model.errors import HypervisorError


def directs(layer: BlockLayer, files: list[Path]) -> list[list[bool]]:
    return [direct_flags(layer.process, file) for file in files]


def test_every_file_of_the_disk_is_opened_past_the_page_cache_and_back(tmp_path: Path) -> None:
    files, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        nodes = BlockNodes(layer.process, layer)
        assert sorted(nodes.files) == sorted(files)
        for direct in (True, False, True):
            assert nodes.reopen(direct=direct) >= 0
            assert directs(layer, files) == [[direct]] * 3
            assert {node["cache"]["direct"] for node in layer("query-named-block-nodes")} == {direct}


def test_all_nodes_are_given_in_one_command_with_all_their_options(tmp_path: Path) -> None:
    _, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        BlockNodes(layer.process, layer).reopen(direct=True)
        (given,) = [arguments["options"] for command, arguments in layer.asked if command == "blockdev-reopen"]
    wanted = copy.deepcopy(definitions)
    for one in wanted:
        one["cache"]["direct"] = True
    assert given == wanted


def test_an_image_below_stays_closed_to_writing(tmp_path: Path) -> None:
    files, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        BlockNodes(layer.process, layer).reopen(direct=True)
        modes = [[flags & os.O_ACCMODE for flags in open_flags(layer.process, file)] for file in files]
    assert modes == [[os.O_RDWR], [os.O_RDONLY], [os.O_RDONLY]]


class Forgetful(BlockNodes):
    """Leaves an option out, which QEMU resets without a word."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for one in self._definitions:
            one.pop("auto-read-only", None)


def test_an_option_that_was_reset_is_found_out(tmp_path: Path) -> None:
    files, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        nodes = Forgetful(layer.process, layer)
        with pytest.raises(HypervisorError, match=r"more than the cache mode of .*root\.raw") as raised:
            nodes.reopen(direct=True)
    assert str(files[0]) not in str(raised.value), "the overlay is open to write in any case"


def test_a_node_that_qemu_refuses_leaves_all_as_they_were(tmp_path: Path) -> None:
    files, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        nodes = BlockNodes(layer.process, layer)
        del nodes._definitions[5]["backing"]
        with pytest.raises(HypervisorError, match="backing is missing"):
            nodes.reopen(direct=True)
        assert directs(layer, files) == [[False]] * 3


def with_data_disk(layer: BlockLayer, folder: Path) -> tuple[Path, list[Definition]]:
    """Plug a raw disk in as libvirt does, and what libvirt would say of it: other numbers, the same options."""
    file = folder / "web-1.data.raw"
    file.write_bytes(bytes(1 << 20))
    for one in (file_node(7, file), format_node(7, "raw", read_only=False)):
        layer("blockdev-add", one)
    return file, [file_node(1, file), format_node(1, "raw", read_only=False)]


def test_a_disk_that_was_plugged_in_is_switched_under_the_name_that_it_has(tmp_path: Path) -> None:
    files, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        file, told = with_data_disk(layer, tmp_path)
        nodes = BlockNodes(layer.process, layer, lambda: told)
        assert file in nodes.files
        nodes.reopen(direct=True)
        assert directs(layer, [*files, file]) == [[True]] * 4
        given = [arguments["options"] for command, arguments in layer.asked if command == "blockdev-reopen"][-1]
    assert [one["node-name"] for one in given[6:]] == ["libvirt-7-storage", "libvirt-7-format"]
    assert given[7]["file"] == "libvirt-7-storage"
    assert given[6]["discard"] == "unmap" and given[6]["auto-read-only"] is True


def test_a_node_whose_options_nobody_knows_is_not_touched(tmp_path: Path) -> None:
    _, definitions = restored_guest(tmp_path)
    with block_layer(tmp_path, definitions) as layer:
        with_data_disk(layer, tmp_path)
        with pytest.raises(HypervisorError, match="block node libvirt-7-format, libvirt-7-storage was opened"):
            BlockNodes(layer.process, layer)


def test_libvirt_tells_how_it_would_define_a_data_disk(isolated: Start, runtime: Path, tmp_path: Path) -> None:
    lab = isolated("definitions", str(runtime), str(tmp_path))
    answer, complaints = lab.communicate(timeout=240)
    assert lab.returncode == 0, complaints
    for name, source in (("file", ON_FILE), ("block", ON_BLOCK)):
        definitions = json.loads(answer)[name]
        assert len(definitions) == 8, "two nodes each of overlay, saved disk, image and data disk"
        storage = next(one for one in definitions if one.get("filename") == str(source.path))
        layer = next(one for one in definitions if one.get("file") == storage["node-name"])
        assert storage["driver"] == ("host_device" if source.block else "file")
        assert (storage["auto-read-only"], storage["discard"], storage["cache"]["direct"]) == (True, "unmap", True)
        assert (layer["driver"], layer["read-only"]) == ("raw", False)


def test_definitions_are_read_from_a_command_line() -> None:
    text = """LC_ALL=C /usr/bin/qemu -S -blockdev '{"driver":"file","filename":"/a b/it'\\''s","node-name":"n"}' -m 1"""
    assert definitions_in(text) == [{"driver": "file", "filename": "/a b/it's", "node-name": "n"}]
    assert definitions_among(["qemu", "-blockdev", "driver=file,node-name=n", "-blockdev"]) == []
